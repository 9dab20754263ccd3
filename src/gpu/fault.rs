//! What goes wrong on a device on its own: WebGPU's errors do not throw, and a device can be taken
//! away at any time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;
use serde::Serialize;

use crate::error::{Error, Result};

/// How a device was lost, in the words of `GPUDeviceLostInfo`.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// `destroyed` if someone has called `destroy()`, else `unknown`.
    pub reason: &'static str,
    /// What the platform says of it, for people.
    pub message: String,
}

/// The faults of one device, which its callbacks note and its calls find.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    first: Option<Error>,
    waiting: Vec<oneshot::Sender<Loss>>,
}

impl Faults {
    /// Notes an error, unless there was one before.
    pub(super) fn note(&self, error: Error) {
        self.noted().first.get_or_insert(error);
    }

    /// Notes that the device is lost, which outweighs all that came before, and tells who waits.
    pub(super) fn lose(&self, loss: &Loss) {
        let mut noted = self.noted();
        noted.first = Some(Error::DeviceLost(loss.message.clone()));
        for waiting in noted.waiting.drain(..) {
            // Nobody listens any more when the model was let go.
            let _ = waiting.send(loss.clone());
        }
    }

    /// The error noted, if any.
    pub(super) fn check(&self) -> Result<()> {
        self.noted().first.clone().map_or(Ok(()), Err)
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.noted().first, Some(Error::DeviceLost(_)))
    }

    /// Resolves when the device is lost; fails when it is let go.
    pub(super) fn wait(&self) -> oneshot::Receiver<Loss> {
        let (tell, told) = oneshot::channel();
        self.noted().waiting.push(tell);
        told
    }

    /// The device is let go, which is no loss. If a call has found that it is lost, its own word of
    /// that is still to come.
    pub(super) fn end(&self) {
        if !self.is_lost() {
            self.noted().waiting.clear();
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
