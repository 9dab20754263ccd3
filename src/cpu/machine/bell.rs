//! Wakes threads.

#[cfg(target_feature = "atomics")]
pub(super) use of_page::{Bell, nap};
#[cfg(not(target_feature = "atomics"))]
pub(super) use of_system::{Bell, nap};

#[cfg(not(target_feature = "atomics"))]
mod of_system {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex, PoisonError};

    /// Lets the thread sleep for so long.
    pub(in super::super) use std::thread::sleep as nap;

    /// Wakes the threads that wait for it.
    #[derive(Default)]
    pub(in super::super) struct Bell {
        waiting: AtomicUsize,
        lock: Mutex<()>,
        wake: Condvar,
    }

    impl Bell {
        /// Wakes all threads.
        pub(in super::super) fn ring(&self) {
            if self.waiting.load(Ordering::SeqCst) > 0 {
                // A thread that looks for the last time before it sleeps has the lock.
                drop(self.lock.lock());
                self.wake.notify_all();
            }
        }

        /// Waits until `find` finds something. Before it can, the bell rings.
        pub(in super::super) fn wait_for<T>(&self, find: impl Fn() -> Option<T>) -> Option<T> {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let found = loop {
                if let Some(found) = find() {
                    break found;
                }
                guard = self.wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
            };
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            Some(found)
        }
    }
}

#[cfg(target_feature = "atomics")]
mod of_page {
    use std::arch::wasm32::{memory_atomic_notify, memory_atomic_wait32};
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    /// Nanoseconds after which a thread stops waiting. A browser ends a thread at once only while it handles its
    /// events, so it waits there for what comes later.
    const PATIENCE: i64 = 50_000_000;

    /// Wakes the threads that wait for it, also those that wait in JavaScript. It counts how often it has rung. It
    /// has no lock, because a thread that ends would keep it.
    #[derive(Default)]
    #[repr(transparent)]
    pub(in super::super) struct Bell(AtomicU32);

    impl Bell {
        /// Wakes all threads.
        pub(in super::super) fn ring(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            // SAFETY: the address is that of an i32.
            unsafe { memory_atomic_notify(self.0.as_ptr().cast(), u32::MAX) };
        }

        /// The result of `find` now, or after the next ring; `None` if there is none by then, or if the ring is long in
        /// coming.
        pub(in super::super) fn wait_for<T>(&self, find: impl Fn() -> Option<T>) -> Option<T> {
            let rung = self.0.load(Ordering::SeqCst);
            find().or_else(|| {
                wait(&self.0, rung, PATIENCE);
                find()
            })
        }
    }

    /// Lets the thread sleep for so long.
    pub(in super::super) fn nap(duration: Duration) {
        static NEVER: AtomicU32 = AtomicU32::new(0);
        wait(&NEVER, 0, duration.as_nanos().try_into().unwrap_or(i64::MAX));
    }

    /// Waits while `number` is `value`, until it is notified, for at most so many nanoseconds.
    ///
    /// The V8 of Node 20 makes wrong code of functions with this instruction: variables that it was given are 0 after it.
    /// So there are none after it, and the function is called by its address, or it would be inlined. The sleep
    /// of Rust's library has such variables.
    fn wait(number: &AtomicU32, value: u32, nanoseconds: i64) {
        fn alone(number: *mut i32, value: i32, nanoseconds: i64) {
            // SAFETY: the pointer is to an i32. Where a thread must not wait, no module with threads runs.
            unsafe { memory_atomic_wait32(number, value, nanoseconds) };
        }
        let alone: fn(*mut i32, i32, i64) = alone;
        black_box(alone)(number.as_ptr().cast(), value as i32, nanoseconds);
    }
}
