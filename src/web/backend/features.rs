//! Requests to a browser that wgpu 30 cannot make.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use wasm_bindgen::prelude::*;

// This is JavaScript because it wraps a method of the browser: see features.ts. To find out what
// was granted, `gpu` asks the browser's device, which needs no JavaScript.
#[wasm_bindgen(raw_module = "./crate/features.js")]
extern "C" {
    #[wasm_bindgen(js_name = askForFeatures)]
    fn ask_for_features();
    #[wasm_bindgen(js_name = inCompatibilityMode)]
    fn ask_in_compatibility_mode(ask: &mut dyn FnMut());
}

/// Makes `requestDevice` request subgroups and matrix units if the adapter has them, for devices with
/// the label of [`crate::gpu::Gpu`]. Calling it again changes nothing.
pub(super) fn ask() {
    ask_for_features();
}

/// Does `work`, which asks for an adapter, and gets one in compatibility mode.
pub(super) async fn in_compatibility_mode<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        let mut outcome = Poll::Pending;
        ask_in_compatibility_mode(&mut || outcome = work.as_mut().poll(context));
        outcome
    })
    .await
}
