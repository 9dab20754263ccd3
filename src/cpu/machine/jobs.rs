//! Jobs whose parts several threads share.

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::bell::{Bell, nap};

/// How often a thread looks for a job before it sleeps. A step has some hundred jobs in a row, and to
/// wake a thread takes longer than most of them.
const LOOKS: usize = if cfg!(target_arch = "wasm32") { 20_000 } else { 4000 };

/// How often a thread looks whether the others are done before it lets other programs run. In a page, where it
/// sleeps then, this is some tenths of a millisecond.
const SPINS: usize = if cfg!(target_arch = "wasm32") { 20_000 } else { 1000 };

/// A thread that waits for longer sleeps so often for so long, and then for longer.
const SHORT_NAPS: usize = 100;
const SHORT_NAP: Duration = Duration::from_micros(100);
const LONG_NAP: Duration = Duration::from_millis(10);

/// Set in the state while threads may join the job. Below it is the number of threads that have
/// joined, and above it the number of the job.
const OPEN: u64 = 1 << 31;
const JOB: u64 = 1 << 32;

thread_local! {
    /// Whether this thread has joined a job.
    static JOINED: Cell<bool> = const { Cell::new(false) };
}

/// The jobs of one thread. Others call [`Jobs::serve`] to share their parts.
#[repr(C)]
pub(super) struct Jobs {
    /// It rings with each job, and at the end. A page finds it at the address of the jobs.
    bell: Bell,
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// The next part that has no thread.
    next: AtomicUsize,
    failed: AtomicBool,
    stop: AtomicBool,
    /// Held while a job runs.
    busy: Mutex<()>,
    /// How long a thread waits for one that has joined before that counts as gone; `None`: for ever.
    limit: Option<Duration>,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
}

// SAFETY: `job` is written only by `Jobs::run`, which holds `busy`, while the state is not open and
// no thread has joined; and it is read only by threads that have joined. The work that it points to
// is `Sync`, and it outlives the job: see `Jobs::run`.
unsafe impl Sync for Jobs {}
// SAFETY: as above. The pointer is not used but as a reference to something `Sync`.
unsafe impl Send for Jobs {}

impl Jobs {
    /// No job so far. With a `limit`, a thread that has not left a job after so long counts as gone. Where threads may
    /// end at any time, nothing else tells.
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self {
            bell: Bell::default(),
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            busy: Mutex::new(()),
            limit,
        }
    }

    /// Calls `work` once for each of `parts`, in this thread and in those that serve, and returns when
    /// all calls have.
    ///
    /// Panics if a call does, or if a thread is gone. Such a thread may still write what it computes, so nothing
    /// of the job can be used after that, and no memory that it had.
    pub(super) fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this only makes the lifetime longer. No thread uses the work after this function:
        // `Closing` waits for all, also when `work` panics.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(
                work as *const (dyn Fn(usize) + Sync),
            )
        };
        // SAFETY: no other thread reads or writes `job` now. `busy` keeps other callers out, and threads read
        // it only after they have joined an open job, which this one is not yet.
        unsafe { *self.job.get() = Some(Job { work, parts }) };
        self.next.store(0, Ordering::Relaxed);
        // If a part of the calling thread failed before, others may have failed beside it.
        self.failed.store(false, Ordering::Relaxed);
        let number = self.state.load(Ordering::Relaxed) & !(JOB - 1);
        self.state.store(number.wrapping_add(JOB) | OPEN, Ordering::SeqCst);
        self.bell.ring();
        let closing = Closing(self);
        self.take_parts(Job { work, parts });
        drop(closing);
        assert!(!self.failed.swap(false, Ordering::SeqCst), "a thread of the CPU engine failed");
    }

    /// Takes parts of jobs until [`Jobs::end`], or in a page until there was no job for a while. Gives whether
    /// there may be others.
    pub(super) fn serve(&self) -> bool {
        let mut last = 0;
        loop {
            let state = match self.job_after(last) {
                Some(Next::Job(state)) => state,
                Some(Next::End) => return false,
                None => return true,
            };
            let joined =
                self.state.compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::Relaxed);
            if joined.is_err() {
                continue;
            }
            last = state / JOB;
            JOINED.set(true);
            let leaving = Leaving(self);
            // SAFETY: this thread has joined, so the job is not written.
            if let Some(job) = unsafe { *self.job.get() } {
                self.take_parts(job);
            }
            drop(leaving);
        }
    }

    /// Lets the threads that serve return.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Leaves the job for a thread whose [`Jobs::serve`] has trapped, and makes it fail. Where panics
    /// unwind, the thread does so itself.
    #[cfg(any(target_arch = "wasm32", test))]
    pub(super) fn fail(&self) {
        if JOINED.get() {
            self.failed.store(true, Ordering::SeqCst);
            drop(Leaving(self));
        }
    }

    fn take_parts(&self, Job { work, parts }: Job) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return;
            }
            // SAFETY: the job is open or this thread has joined it, so the work still exists.
            unsafe { (*work)(part) };
        }
    }

    /// The end, or the next job after number `last`; `None` if there was none for a while.
    fn job_after(&self, last: u64) -> Option<Next> {
        let next = || {
            let state = self.state.load(Ordering::SeqCst);
            if state & OPEN != 0 && state / JOB != last {
                return Some(Next::Job(state));
            }
            self.stop.load(Ordering::SeqCst).then_some(Next::End)
        };
        for _ in 0..LOOKS {
            if let Some(next) = next() {
                return Some(next);
            }
            std::hint::spin_loop();
        }
        self.bell.wait_for(next)
    }
}

/// The find of a thread that serves.
enum Next {
    /// An open job, by the state.
    Job(u64),
    End,
}

/// Ends a job when it is dropped: no thread joins any more, and all have left.
struct Closing<'a>(&'a Jobs);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut patience = Patience::new(self.0.limit);
        while self.0.state.load(Ordering::SeqCst) & (OPEN - 1) != 0 {
            patience.wait();
        }
    }
}

/// A thread that has joined a job. When it is dropped, the thread leaves; if by a panic, the job has
/// failed.
struct Leaving<'a>(&'a Jobs);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        JOINED.set(false);
        if thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
        self.0.state.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A wait for other threads.
struct Patience {
    looks: usize,
    left: Option<Duration>,
}

impl Patience {
    fn new(limit: Option<Duration>) -> Self {
        Self { looks: 0, left: limit }
    }

    /// Waits a little, and longer the later it is.
    ///
    /// Panics after the limit.
    fn wait(&mut self) {
        self.looks += 1;
        if self.looks < SPINS {
            std::hint::spin_loop();
        } else if let Some(left) = self.left {
            assert!(!left.is_zero(), "a thread of the CPU engine has ended");
            let duration = if self.looks < SPINS + SHORT_NAPS { SHORT_NAP } else { LONG_NAP };
            // No clock is read: on a machine that sleeps, no thread goes on.
            self.left = Some(left.saturating_sub(duration));
            nap(duration);
        } else {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    /// Runs a job of two parts. One calls `stray` in another thread; the other ends once that has begun.
    fn run_with(jobs: &Jobs, stray: impl Fn() + Send + Sync + 'static) -> Result<(), String> {
        let (begun, begins) = channel();
        let begins = Mutex::new(begins);
        let own = thread::current().id();
        // A thread that is gone for the job goes on in it.
        let work: &'static (dyn Fn(usize) + Sync) = Box::leak(Box::new(move |_| {
            if thread::current().id() == own {
                begins.lock().unwrap().recv().unwrap();
            } else {
                begun.send(()).unwrap();
                stray();
            }
        }));
        let result = catch_unwind(AssertUnwindSafe(|| jobs.run(2, work)));
        result.map_err(|said| (*said.downcast_ref::<&str>().unwrap()).to_owned())
    }

    fn serve(jobs: &Arc<Jobs>) -> thread::JoinHandle<()> {
        let jobs = Arc::clone(jobs);
        thread::spawn(move || while jobs.serve() {})
    }

    #[test]
    fn a_thread_that_does_not_leave_is_gone_after_the_limit_and_not_before() {
        let patient = Arc::new(Jobs::new(Some(Duration::from_secs(60))));
        let other = serve(&patient);
        assert_eq!(run_with(&patient, || thread::sleep(Duration::from_millis(50))), Ok(()));
        patient.end();
        other.join().unwrap();
        let jobs = Arc::new(Jobs::new(Some(Duration::from_millis(100))));
        let other = serve(&jobs);
        let (end, ends) = channel::<()>();
        let ends = Mutex::new(ends);
        let gone = run_with(&jobs, move || ends.lock().unwrap().recv().unwrap_or_default());
        assert_eq!(gone, Err("a thread of the CPU engine has ended".into()));
        drop(end);
        jobs.end();
        other.join().unwrap();
    }

    #[test]
    fn a_job_fails_if_a_thread_left_it_by_a_trap() {
        let jobs = Arc::new(Jobs::new(Some(Duration::from_secs(60))));
        let _other = serve(&jobs);
        let its = Arc::clone(&jobs);
        let trapped = run_with(&jobs, move || {
            its.fail();
            // It has left, and does not leave twice.
            its.fail();
            // As a thread that has trapped, it never comes back.
            loop {
                thread::park();
            }
        });
        assert_eq!(trapped, Err("a thread of the CPU engine failed".into()));
        let done = AtomicUsize::new(0);
        jobs.run(9, &|_| {
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(done.into_inner(), 9);
    }
}
