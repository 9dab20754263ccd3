//! A thread that computes, and its events.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_time::{Duration, Instant};

/// After so long, a thread that computes handles the events that wait for it before its next chunk or step.
const LONGEST: Duration = Duration::from_millis(10);

// This is JavaScript because it needs a channel of messages: see pause.ts.
#[wasm_bindgen(raw_module = "./cpu/pause.js")]
extern "C" {
    fn pause() -> Promise;
}

/// Does `work`, which computes in this thread, and lets the thread handle its events in between: a call
/// that stops the work comes as a message.
pub(in crate::web) async fn with_events<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let mut pausing: Option<JsFuture> = None;
    let mut since = Instant::now();
    poll_fn(|context| {
        if let Some(pause) = &mut pausing {
            if pin!(pause).poll(context).is_pending() {
                return Poll::Pending;
            }
            (pausing, since) = (None, Instant::now());
        }
        if let Poll::Ready(result) = work.as_mut().poll(context) {
            return Poll::Ready(result);
        }
        if since.elapsed() >= LONGEST {
            let mut pause = JsFuture::from(pause());
            if pin!(&mut pause).poll(context).is_pending() {
                pausing = Some(pause);
            }
        }
        Poll::Pending
    })
    .await
}
