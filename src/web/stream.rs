//! A `ReadableStream` of the page: bytes that come once, without a length.

use std::rc::Rc;

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, ReadableStream, ReadableStreamDefaultReader};

use super::blob::Gathering;
use super::error::{bad_option, text};
use super::progress::Reporter;
use crate::error::{Error, Result};

/// Reads the stream to its end.
///
/// Errors: `io`; `bad-option` for a stream of something else than bytes.
pub(super) async fn collect(stream: &ReadableStream, reporter: &Rc<Reporter>) -> Result<Blob> {
    let reader = ReadableStreamDefaultReader::new(stream).map_err(failed)?;
    let reader = CancelOnDrop(reader);
    let mut gathering = Gathering::default();
    loop {
        let result = JsFuture::from(reader.0.read()).await.map_err(failed)?;
        let get = |name: &str| Reflect::get(&result, &name.into()).unwrap_or(JsValue::UNDEFINED);
        if get("done").is_truthy() {
            return gathering.finish();
        }
        let bytes: Uint8Array = get("value")
            .dyn_into()
            .map_err(|_| bad_option("source", "the stream must bring Uint8Arrays"))?;
        reporter.advance(u64::from(bytes.length()));
        gathering.push(&bytes)?;
    }
}

fn failed(thrown: JsValue) -> Error {
    Error::unreadable("the stream", text(&thrown))
}

struct CancelOnDrop(ReadableStreamDefaultReader);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let cancelled = JsFuture::from(self.0.cancel());
        // If the stream has failed, cancelling it rejects. That error does not matter.
        spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}
