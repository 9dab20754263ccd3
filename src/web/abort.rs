//! Cancelling: an `AbortSignal` of the platform drops a future.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;

use futures_channel::oneshot;
use futures_util::future::{Either, select};
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use crate::error::{Error, Result};

/// Runs `work`. If `signal` aborts first, drops `work` and fails with the signal's reason.
pub(super) async fn or_abort<T>(
    signal: Option<&AbortSignal>,
    work: impl Future<Output = Result<T>>,
) -> Result<T, JsValue> {
    let Some(signal) = signal else { return Ok(work.await?) };
    match select(pin!(aborted(signal)), pin!(work)).await {
        Either::Left(((), _)) => Err(signal.reason()),
        Either::Right((done, _)) => Ok(done?),
    }
}

/// Resolves when `signal` aborts; at once if it has aborted already.
pub(super) async fn aborted(signal: &AbortSignal) {
    if signal.aborted() {
        return;
    }
    let (tell, told) = oneshot::channel::<()>();
    let tell = RefCell::new(Some(tell));
    let listener = Closure::<dyn Fn()>::new(move || {
        if let Some(tell) = tell.borrow_mut().take() {
            // This fails if the work was done first, and the receiver dropped.
            let _ = tell.send(());
        }
    });
    let listening = Listening { signal, listener };
    listening.start();
    let _ = told.await;
    drop(listening);
}

struct Listening<'a> {
    signal: &'a AbortSignal,
    listener: Closure<dyn Fn()>,
}

impl Listening<'_> {
    fn start(&self) {
        let listener = self.listener.as_ref().unchecked_ref();
        // Cannot fail: the target is a real signal.
        let _ = self.signal.add_event_listener_with_callback("abort", listener);
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let listener = self.listener.as_ref().unchecked_ref();
        let _ = self.signal.remove_event_listener_with_callback("abort", listener);
    }
}

/// Runs `work` to its end even if the returned future is dropped.
///
/// For IndexedDB: a request of `idb` owns the closures that the browser calls when it is done. If
/// the request were dropped before that, the browser would call a closure that is gone, which
/// throws.
pub(super) async fn detached<T: 'static>(
    work: impl Future<Output = Result<T>> + 'static,
) -> Result<T> {
    let (tell, told) = oneshot::channel();
    super::task::spawn(async move {
        // This fails if the returned future was dropped.
        let _ = tell.send(work.await);
    });
    told.await.unwrap_or_else(|_| Err(Error::Internal("a detached task was dropped".into())))
}
