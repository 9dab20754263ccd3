//! Threads that share the parts of a job.

use std::cell::UnsafeCell;
#[cfg(not(target_arch = "wasm32"))]
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
#[cfg(not(target_arch = "wasm32"))]
use std::thread::JoinHandle;

use crate::cpu::pool::Pool;

/// How often a thread looks for a job before it sleeps. A step has some hundred jobs in a row, and to
/// wake a thread takes longer than most of them.
const LOOKS: usize = 4000;

/// How often a thread looks whether the others are done before it lets other programs run.
const SPINS: usize = if cfg!(target_arch = "wasm32") { 20_000 } else { 1000 };

/// Set in the state while threads may join the job. Below it is the number of threads that have
/// joined, and above it the number of the job.
const OPEN: u64 = 1 << 31;
const JOB: u64 = 1 << 32;

/// The calling thread and others, which wait for its jobs.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    /// The threads beside the calling one.
    others: Others,
    /// Held while a job runs.
    busy: Mutex<()>,
}

#[cfg(not(target_arch = "wasm32"))]
type Others = Vec<JoinHandle<()>>;

/// How many a page has started, which ends them when it drops this.
#[cfg(target_arch = "wasm32")]
struct Others(PageThreads, usize);

struct Shared {
    state: AtomicU64,
    job: UnsafeCell<Option<Job>>,
    /// The next part that has no thread.
    next: AtomicUsize,
    failed: AtomicBool,
    stop: AtomicBool,
    sleeping: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize) + Sync),
    parts: usize,
}

// SAFETY: `job` is written only by `Threads::run`, which holds `busy`, while the state is not open and
// no thread has joined; and it is read only by threads that have joined. The work that it points to
// is `Sync`, and it outlives the job: see `Threads::run`.
unsafe impl Sync for Shared {}
// SAFETY: as above. The pointer is not used but as a reference to something `Sync`.
unsafe impl Send for Shared {}

impl Threads {
    /// `threads` threads, of which the caller of [`Pool::run`] is one. If the system starts fewer, there
    /// are fewer.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared::new());
        let start = |n: usize| {
            let shared = Arc::clone(&shared);
            let name = format!("tritloom-{n}");
            thread::Builder::new().name(name).spawn(move || shared.wait_for_jobs()).ok()
        };
        let others = (1..threads).map_while(start).collect();
        Self { shared, others, busy: Mutex::new(()) }
    }

    /// The caller of [`Pool::run`], and those that a page has started: `others` of them so far.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn of_page(threads: PageThreads, others: usize) -> Self {
        let shared = Arc::clone(&threads.0.0);
        Self { shared, others: Others(threads, others), busy: Mutex::new(()) }
    }

    /// The number of threads beside the calling one.
    fn others(&self) -> usize {
        #[cfg(not(target_arch = "wasm32"))]
        return self.others.len();
        #[cfg(target_arch = "wasm32")]
        return self.others.1;
    }

    /// As many threads as this process may run at once.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn default_number() -> usize {
        thread::available_parallelism().map_or(1, NonZero::get)
    }
}

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.others() + 1
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        if parts <= 1 || self.others() == 0 {
            return (0..parts).for_each(work);
        }
        let shared = &*self.shared;
        let _busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: this only makes the lifetime longer. No thread uses the work after this function:
        // `Closing` waits for all, also when `work` panics.
        let work = unsafe {
            std::mem::transmute::<*const (dyn Fn(usize) + Sync), *const (dyn Fn(usize) + Sync)>(
                work as *const (dyn Fn(usize) + Sync),
            )
        };
        // SAFETY: `busy` is held, the state is not open, and no thread has joined.
        unsafe { *shared.job.get() = Some(Job { work, parts }) };
        shared.next.store(0, Ordering::Relaxed);
        let number = shared.state.load(Ordering::Relaxed) & !(JOB - 1);
        shared.state.store(number.wrapping_add(JOB) | OPEN, Ordering::SeqCst);
        if shared.sleeping.load(Ordering::SeqCst) > 0 {
            drop(shared.sleep.lock());
            shared.wake.notify_all();
        }
        let closing = Closing(shared);
        shared.take_parts(Job { work, parts });
        drop(closing);
        assert!(!shared.failed.swap(false, Ordering::SeqCst), "a thread of the CPU engine failed");
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.end();
        for other in self.others.drain(..) {
            let _ = other.join();
        }
    }
}

/// Threads that a page starts for a pool, in workers that share its memory. Each calls [`serve`]. They end
/// when all that hold this have dropped it.
#[cfg(target_arch = "wasm32")]
#[derive(Clone)]
pub struct PageThreads(Arc<Owner>);

#[cfg(target_arch = "wasm32")]
struct Owner(Arc<Shared>);

#[cfg(target_arch = "wasm32")]
impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(target_arch = "wasm32")]
impl PageThreads {
    /// No thread so far.
    #[allow(clippy::new_without_default, reason = "a pool is no plain value")]
    pub fn new() -> Self {
        Self(Arc::new(Owner(Arc::new(Shared::new()))))
    }

    /// The argument for [`serve`] and [`fail`]. Threads may use it at any later time, so what it points to
    /// stays: some hundred bytes for each model.
    pub fn address(&self) -> usize {
        Arc::into_raw(Arc::clone(&self.0.0)) as usize
    }
}

#[cfg(target_arch = "wasm32")]
thread_local! {
    /// Whether this thread has joined a job.
    static JOINED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// What a thread of a page does until its pool ends. `address` is that of its [`PageThreads`].
#[cfg(target_arch = "wasm32")]
pub fn serve(address: usize) {
    // SAFETY: `PageThreads::address` has given it, and what is there is never freed.
    let shared = unsafe { &*(address as *const Shared) };
    shared.wait_for_jobs();
}

/// To be called in a thread whose [`serve`] has trapped: the job in which it was has failed.
#[cfg(target_arch = "wasm32")]
pub fn fail(address: usize) {
    // SAFETY: as in `serve`.
    let shared = unsafe { &*(address as *const Shared) };
    if JOINED.replace(false) {
        shared.failed.store(true, Ordering::SeqCst);
        shared.state.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// Ends the threads that wait for jobs.
    fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(self.sleep.lock());
        self.wake.notify_all();
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

    /// What every thread but the caller's does.
    fn wait_for_jobs(&self) {
        let mut last = 0;
        while let Some(state) = self.next_job(last) {
            let joined =
                self.state.compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::Relaxed);
            if joined.is_err() {
                continue;
            }
            last = state / JOB;
            #[cfg(target_arch = "wasm32")]
            JOINED.set(true);
            let leaving = Leaving(self);
            // SAFETY: this thread has joined, so the job is not written.
            if let Some(job) = unsafe { *self.job.get() } {
                self.take_parts(job);
            }
            drop(leaving);
        }
    }

    /// The state with an open job that is not the `last` one; `None` at the end.
    fn next_job(&self, last: u64) -> Option<u64> {
        let job = || {
            let state = self.state.load(Ordering::SeqCst);
            (state & OPEN != 0 && state / JOB != last).then_some(state)
        };
        for _ in 0..LOOKS {
            if let Some(state) = job() {
                return Some(state);
            }
            std::hint::spin_loop();
        }
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let mut guard = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        let found = loop {
            if self.stop.load(Ordering::SeqCst) {
                break None;
            }
            if let Some(state) = job() {
                break Some(state);
            }
            guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
        found
    }
}

/// Ends a job when it is dropped: no thread joins any more, and all have left.
struct Closing<'a>(&'a Shared);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::SeqCst);
        let mut spins = 0;
        while self.0.state.load(Ordering::SeqCst) & (OPEN - 1) != 0 {
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                let_others_run(spins - SPINS);
            }
        }
    }
}

/// Lets other threads run, which a thread that waits has done `times` before.
#[cfg(not(target_arch = "wasm32"))]
fn let_others_run(_times: usize) {
    thread::yield_now();
}

/// The same in a page, which may end a thread at any time.
#[cfg(target_arch = "wasm32")]
fn let_others_run(times: usize) {
    assert!(times < MOST_SLEEPS, "a thread of the CPU engine has ended");
    thread::sleep(SLEEP);
}

/// How long a thread of a page sleeps while it waits for others, and how often. A part of a job takes
/// milliseconds. A machine that sleeps meanwhile does not count as time.
#[cfg(target_arch = "wasm32")]
const SLEEP: std::time::Duration = std::time::Duration::from_micros(100);
#[cfg(target_arch = "wasm32")]
const MOST_SLEEPS: usize = 200_000;

/// A thread that has joined a job. When it is dropped, the thread leaves; if by a panic, the job has
/// failed.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
        #[cfg(target_arch = "wasm32")]
        JOINED.set(false);
        self.0.state.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_part_is_done_once() {
        for threads in [1, 2, 5] {
            let pool = Threads::new(threads);
            for round in 0..300 {
                let parts = round % 37;
                let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                pool.run(parts, &|part| {
                    done[part].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1), "{threads}");
                if round % 100 == 0 {
                    // Long enough for all threads to fall asleep.
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    #[test]
    fn a_thread_that_fails_fails_the_job_and_not_the_next_one() {
        let pool = Threads::new(3);
        for _ in 0..3 {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                pool.run(64, &|part| assert_ne!(part, 20, "as a bad kernel would"));
            }));
            assert!(failed.is_err());
            let done = AtomicUsize::new(0);
            pool.run(64, &|_| {
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(done.into_inner(), 64);
        }
    }
}
