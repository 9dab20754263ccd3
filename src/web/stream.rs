//! A `ReadableStream` of the page's: bytes that come once, and nobody knows how many.

use std::rc::Rc;

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, ReadableStream, ReadableStreamDefaultReader};

use super::blob::Gathering;
use super::error::text;
use super::progress::Meter;
use crate::error::{Error, Result};

/// Takes in all there is: the head of a model needs its length.
pub(super) async fn collect(stream: &ReadableStream, meter: &Rc<Meter>) -> Result<Blob> {
    let reader = ReadableStreamDefaultReader::new(stream).map_err(|thrown| failed(&thrown))?;
    let reader = CancelOnDrop(reader);
    let mut gathering = Gathering::default();
    loop {
        let step = JsFuture::from(reader.0.read()).await.map_err(|thrown| failed(&thrown))?;
        let get = |name: &str| Reflect::get(&step, &name.into()).unwrap_or(JsValue::UNDEFINED);
        if get("done").is_truthy() {
            return gathering.finish();
        }
        let chunk: Uint8Array = get("value")
            .dyn_into()
            .map_err(|_| failed(&"a chunk of the stream is not a Uint8Array".into()))?;
        meter.advance(u64::from(chunk.length()));
        gathering.push(&chunk)?;
    }
}

fn failed(thrown: &JsValue) -> Error {
    Error::Network { what: "the stream".into(), why: text(thrown) }
}

struct CancelOnDrop(ReadableStreamDefaultReader);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let cancelled = JsFuture::from(self.0.cancel());
        // Cancelling a stream that has failed rejects; nobody is left to tell.
        spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}
