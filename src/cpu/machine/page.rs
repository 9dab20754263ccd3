//! Threads of a page: workers that share the memory of the one with the model.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::jobs::Jobs;
use crate::cpu::pool::Pool;

/// How long a thread may take for its parts of a job. Most take less than a millisecond, and the longest of long contexts
/// some hundred; but a busy machine may let it wait. A browser may end a worker at any time.
const LIMIT: Duration = Duration::from_secs(10);

/// The thread that makes this, and workers, which the page starts. Each of them calls [`serve`] until the last clone of
/// this is dropped.
#[derive(Clone)]
pub struct PageThreads {
    owner: Rc<Owner>,
    others: usize,
}

struct Owner(Arc<Jobs>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl PageThreads {
    /// No worker so far.
    #[allow(clippy::new_without_default, reason = "a pool is no plain value")]
    pub fn new() -> Self {
        Self { owner: Rc::new(Owner(Arc::new(Jobs::new(Some(LIMIT))))), others: 0 }
    }

    /// The argument for [`serve`] and [`fail`]. A worker may come at any later time, so what is there is never
    /// freed: some hundred bytes for each model.
    pub fn address(&self) -> usize {
        Arc::into_raw(Arc::clone(&self.owner.0)) as usize
    }

    /// The same with `others` workers that have started.
    #[must_use]
    pub fn with(self, others: usize) -> Self {
        Self { others, ..self }
    }
}

impl fmt::Debug for PageThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} threads of a page", self.threads())
    }
}

impl Pool for PageThreads {
    fn threads(&self) -> usize {
        self.others + 1
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        if parts <= 1 {
            return (0..parts).for_each(work);
        }
        self.owner.0.run(parts, work);
    }
}

/// Computes, in a worker, for the model whose threads are at `address`, which [`PageThreads::address`] has given.
/// Returns false when the model is gone, and true if there was nothing to do for a while. At the address is an i32 that
/// changes, with a notification, when there is.
pub fn serve(address: usize) -> bool {
    jobs(address).serve()
}

/// To be called in a worker whose [`serve`] has trapped: the job that it was in has failed.
pub fn fail(address: usize) {
    jobs(address).fail();
}

fn jobs(address: usize) -> &'static Jobs {
    // SAFETY: `PageThreads::address` has given the address, and what is there is never freed.
    unsafe { &*(address as *const Jobs) }
}
