//! Errors that a device reports by itself: WebGPU's errors do not throw, and a device can be lost
//! at any time.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;
use futures_util::future::{Either, select};

use crate::compute::Loss;
use crate::error::{Error, Result};

/// The faults of one device. Its callbacks note them, and its calls find them.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    first: Option<Error>,
    /// The loss of the device, when it has told it.
    loss: Option<Loss>,
    /// Whether the device was freed.
    has_ended: bool,
    waiting: Vec<oneshot::Sender<Loss>>,
}

impl Noted {
    fn is_lost(&self) -> bool {
        matches!(self.first, Some(Error::DeviceLost(_)))
    }
}

impl Faults {
    /// Notes an error. Only the first is kept.
    pub(super) fn note(&self, error: Error) {
        self.noted().first.get_or_insert(error);
    }

    /// Notes that the device is lost, and tells all who wait for that. The loss replaces earlier
    /// errors.
    pub(super) fn lose(&self, loss: &Loss) {
        let mut noted = self.noted();
        noted.first = Some(Error::DeviceLost(loss.why()));
        noted.loss = Some(loss.clone());
        for waiting in noted.waiting.drain(..) {
            // This fails if the model was freed, and with it the receiver.
            let _ = waiting.send(loss.clone());
        }
    }

    /// The error of a call that failed. If the device was lost or reported an error before, it is
    /// that error. Otherwise the device counts as lost from now on, and the error says `what`
    /// failed. The device's own callback may come later, with a better reason.
    pub(super) fn failed(&self, what: &str) -> Error {
        let error = Error::DeviceLost(what.into());
        self.note(error.clone());
        self.check().err().unwrap_or(error)
    }

    /// Fails with the error that was noted, if any.
    pub(super) fn check(&self) -> Result<()> {
        self.noted().first.clone().map_or(Ok(()), Err)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.noted().is_lost()
    }

    /// Whether the device is lost or freed: nothing needs to reach it any more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_lost() || self.noted().has_ended
    }

    /// Resolves when the device is lost, at once if it was lost before; fails when it is freed.
    pub(super) fn wait(&self) -> oneshot::Receiver<Loss> {
        let (tell, told) = oneshot::channel();
        let mut noted = self.noted();
        noted.waiting.retain(|other| !other.is_canceled());
        match noted.loss.clone() {
            // The receiver is still here.
            Some(loss) => drop(tell.send(loss)),
            // Nothing tells it any more.
            None if noted.has_ended && !noted.is_lost() => {}
            None => noted.waiting.push(tell),
        }
        told
    }

    /// The result of `work`, or `None` when the device is lost or freed, or was lost before. In that
    /// case a browser may never settle its promises.
    pub(super) fn unless_gone<T, F: Future<Output = T>>(
        &self,
        work: F,
    ) -> impl Future<Output = Option<T>> + use<T, F> {
        // If a call has found the device lost, the callback of the loss may never come.
        let gone = (!self.is_lost()).then(|| self.wait());
        async move {
            let gone = pin!(async {
                if let Some(gone) = gone {
                    let _ = gone.await;
                }
            });
            match select(pin!(work), gone).await {
                Either::Left((result, _)) => Some(result),
                Either::Right(_) => None,
            }
        }
    }

    /// Notes that the device is freed, which is not a loss. But if a call has found the device
    /// lost, the callback of the loss is still to come, so receivers keep waiting for it.
    pub(super) fn end(&self) {
        self.noted().has_ended = true;
        if !self.is_lost() {
            self.noted().waiting.clear();
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does `work` at once. Gives its result, or `None` if WebGPU refuses something in it. Such an
/// error does not count as an error of the device.
pub(super) fn attempt<T, F: FnOnce() -> T>(
    device: &wgpu::Device,
    work: F,
) -> impl Future<Output = Option<T>> + use<T, F> {
    let refused = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let failed = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let result = work();
    let (failed, refused) = (failed.pop(), refused.pop());
    async move { (failed.await.is_none() && refused.await.is_none()).then_some(result) }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn work_that_never_ends_ends_with_the_device() {
        let loss = Loss { reason: "unknown", message: String::new() };
        let ends: [fn(&Faults, &Loss); 2] =
            [|faults, loss| faults.lose(loss), |faults, _| faults.end()];
        for end in ends {
            let faults = Faults::default();
            let mut work = pin!(faults.unless_gone(std::future::pending::<()>()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(work.as_mut().poll(&mut context).is_pending());
            end(&faults, &loss);
            assert!(work.as_mut().poll(&mut context).is_ready());
            let mut later = pin!(faults.unless_gone(std::future::pending::<()>()));
            assert!(later.as_mut().poll(&mut context).is_ready());
        }
    }

    #[test]
    fn work_that_is_awaited_after_the_loss_ends_too() {
        let faults = Faults::default();
        faults.lose(&Loss { reason: "unknown", message: String::new() });
        let mut context = Context::from_waker(Waker::noop());
        let mut never = pin!(faults.unless_gone(std::future::pending::<()>()));
        assert_eq!(never.as_mut().poll(&mut context), Poll::Ready(None));
        let mut done = pin!(faults.unless_gone(std::future::ready(7)));
        assert_eq!(done.as_mut().poll(&mut context), Poll::Ready(Some(7)));
    }

    #[test]
    fn a_loss_is_told_to_those_who_ask_after_it() {
        let faults = Faults::default();
        faults.lose(&Loss { reason: "unknown", message: "gone".into() });
        assert_eq!(faults.wait().try_recv().unwrap().unwrap().message, "gone");
    }

    #[test]
    fn who_waits_no_more_leaves_nothing_behind() {
        let faults = Faults::default();
        let _waits = faults.wait();
        (0..9).for_each(|_| drop(faults.unless_gone(std::future::ready(()))));
        assert!(faults.noted().waiting.len() <= 2);
    }

    #[test]
    fn the_error_of_a_lost_device_always_gives_a_reason() {
        for (reason, message, why) in [
            ("unknown", "the driver was reset", "the driver was reset"),
            ("unknown", "", "the system gives no reason"),
            ("destroyed", " ", "it was destroyed"),
        ] {
            let faults = Faults::default();
            faults.note(Error::Internal("an earlier error".into()));
            faults.lose(&Loss { reason, message: message.into() });
            let error = faults.check().expect_err("the device is lost");
            assert_eq!(error.to_string(), format!("the GPU device was lost: {why}"));
        }
    }
}
