//! Threads that share the parts of a job.

use std::cell::UnsafeCell;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::cpu::pool::Pool;

/// How often a thread looks for a job before it sleeps. A step has some hundred jobs in a row, and to
/// wake a thread takes longer than most of them.
const LOOKS: usize = 4000;

/// How often a thread looks whether the others are done before it lets other programs run.
const SPINS: usize = 1000;

/// Set in the state while threads may join the job. Below it is the number of threads that have
/// joined, and above it the number of the job.
const OPEN: u64 = 1 << 31;
const JOB: u64 = 1 << 32;

/// The calling thread and others, which wait for its jobs.
pub(crate) struct Threads {
    shared: Arc<Shared>,
    others: Vec<JoinHandle<()>>,
    /// Held while a job runs.
    busy: Mutex<()>,
}

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
    /// Starts `threads` - 1 threads. The thread that calls [`Pool::run`] is the last one. The pool has fewer
    /// threads if the system refuses to start as many.
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            job: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let start = |n: usize| {
            let shared = Arc::clone(&shared);
            let name = format!("tritloom-{n}");
            thread::Builder::new().name(name).spawn(move || shared.wait_for_jobs()).ok()
        };
        let others = (1..threads).map_while(start).collect();
        Self { shared, others, busy: Mutex::new(()) }
    }

    /// As many threads as this process may run at once.
    pub(crate) fn default_number() -> usize {
        thread::available_parallelism().map_or(1, NonZero::get)
    }
}

impl Pool for Threads {
    fn threads(&self) -> usize {
        self.others.len() + 1
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        if parts <= 1 || self.others.is_empty() {
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
        // SAFETY: no other thread reads or writes `job` now. `busy` keeps other callers out, and threads read
        // it only after they have joined an open job, which this one is not yet.
        unsafe { *shared.job.get() = Some(Job { work, parts }) };
        shared.next.store(0, Ordering::Relaxed);
        // If a part of the calling thread failed before, others may have failed beside it.
        shared.failed.store(false, Ordering::Relaxed);
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

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(self.shared.sleep.lock());
        self.shared.wake.notify_all();
        for other in self.others.drain(..) {
            let _ = other.join();
        }
    }
}

impl Shared {
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

    /// The loop of every thread that the pool has started.
    fn wait_for_jobs(&self) {
        let mut last = 0;
        while let Some(state) = self.next_job(last) {
            let joined =
                self.state.compare_exchange(state, state + 1, Ordering::SeqCst, Ordering::Relaxed);
            if joined.is_err() {
                continue;
            }
            last = state / JOB;
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
            if spins < SPINS { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }
}

/// A thread that has joined a job. When it is dropped, the thread leaves; if by a panic, the job has
/// failed.
struct Leaving<'a>(&'a Shared);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.failed.store(true, Ordering::SeqCst);
        }
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
