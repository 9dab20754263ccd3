//! Threads of the system.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::jobs::Jobs;
use crate::cpu::pool::Pool;

/// The calling thread and others, which wait for its jobs.
pub(crate) struct Threads {
    jobs: Arc<Jobs>,
    others: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts `threads` - 1 threads. The thread that calls [`Pool::run`] is the last one. The pool has fewer
    /// threads if the system refuses to start as many.
    pub(crate) fn new(threads: usize) -> Self {
        let jobs = Arc::new(Jobs::new(None));
        let start = |n: usize| {
            let jobs = Arc::clone(&jobs);
            let name = format!("tritloom-{n}");
            thread::Builder::new().name(name).spawn(move || while jobs.serve() {}).ok()
        };
        let others = (1..threads).map_while(start).collect();
        Self { jobs, others }
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
        self.jobs.run(parts, work);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.jobs.end();
        for other in self.others.drain(..) {
            let _ = other.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
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
