//! Results in flight.

use std::future::poll_fn;
use std::task::Poll;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use crate::error::Result;

/// The result of work in flight. Several may be in flight, and each is taken when it is needed. It
/// holds all that is needed to wait for it.
pub struct Pending<T>(LocalBoxFuture<'static, Result<T>>);

impl<T: 'static> Pending<T> {
    /// The result of work that was submitted. `wait` is polled by [`Pending::take`] only.
    pub fn new(wait: impl Future<Output = Result<T>> + 'static) -> Self {
        Self(wait.boxed_local())
    }

    /// A result that is known already. Taking it lets other tasks run, as waiting would.
    pub fn ready(value: T) -> Self {
        Self::new(async {
            let_others_run().await;
            Ok(value)
        })
    }

    /// Waits for the result.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<T> {
        self.0.await
    }
}

/// Lets the other tasks of the thread run once. One of them may make a call.
pub async fn let_others_run() {
    let mut they_ran = false;
    poll_fn(|context| {
        if std::mem::replace(&mut they_ran, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
