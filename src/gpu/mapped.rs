//! Buffers that are being mapped, and those who wait for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The result of mapping a buffer.
pub(super) type Mapping = std::result::Result<(), wgpu::BufferAsyncError>;

/// Those who wait for the order to move on.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Vec<Waker>>);

/// A buffer that is being mapped. Its callback says when it is.
#[derive(Clone)]
pub(super) struct Mapped(Arc<AtomicBool>);

impl Waiting {
    pub(super) fn add(&self, waker: &Waker) {
        let mut all = self.all();
        if !all.iter().any(|other| other.will_wake(waker)) {
            all.push(waker.clone());
        }
    }

    fn wake(&self) {
        let all = std::mem::take(&mut *self.all());
        all.into_iter().for_each(Waker::wake);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mapped {
    /// A buffer that was made mapped.
    pub(super) fn already() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// Begins to map all of `buffer`. `waiting` is woken when that has ended. If it failed, the use of the buffer
    /// fails.
    pub(super) fn begin(
        buffer: &wgpu::Buffer,
        mode: wgpu::MapMode,
        waiting: &Arc<Waiting>,
    ) -> Self {
        let (state, waiting) = (Arc::new(AtomicBool::new(false)), Arc::clone(waiting));
        let told = Arc::clone(&state);
        buffer.slice(..).map_async(mode, move |_: Mapping| {
            told.store(true, Ordering::Release);
            waiting.wake();
        });
        Self(state)
    }

    /// Whether mapping has ended, in success or not.
    pub(super) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
