//! The interface of a pool of threads, and the pool that has none but the caller's.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Computes the parts of a job, on one thread or on several.
pub(crate) trait Pool {
    /// The number of threads.
    fn threads(&self) -> usize;

    /// Calls `work` once for each of `parts`, in any order, and returns when all calls have. A job has
    /// no jobs within it.
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "pages without threads"))]
pub(crate) struct Alone;

impl Pool for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..parts).for_each(work);
    }
}

/// Calls `work` with each of `items` and its index.
pub(crate) fn each<T: Send>(pool: &dyn Pool, items: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    if let [item] = items {
        return work(0, item);
    }
    // Each is locked once, by the one thread that has its part.
    let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
    pool.run(items.len(), &|part| {
        if let Ok(mut item) = items[part].lock() {
            work(part, &mut item);
        }
    });
}

/// Calls `work` with each of `items`, on at most as many threads as there are `rooms`. A thread has one of them to
/// itself, so it need not allocate memory.
pub(crate) fn each_with_room<T: Send, R: Send>(
    pool: &dyn Pool,
    rooms: &mut [R],
    items: &mut [T],
    work: impl Fn(&mut R, &mut T) + Sync,
) {
    let next = AtomicUsize::new(0);
    let items: Vec<Mutex<&mut T>> = items.iter_mut().map(Mutex::new).collect();
    each(pool, rooms, |_, room| {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Ok(mut item) = item.lock() {
                work(room, &mut item);
            }
        }
    });
}
