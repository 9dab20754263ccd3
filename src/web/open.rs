//! Loads a session from a source with options.

use std::rc::Rc;

use js_sys::{Array, ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{Blob, ReadableStream};

use super::blob::{ArraySource, BlobSource};
use super::opening::Opening;
use super::options::LoadOptions;
use super::progress::Reporter;
use super::remote::{self, Address, Trace};
use super::stream;
use crate::error::Result;
use crate::gguf::Joined;
use crate::session::Session;
use crate::source::{Reader, Source};
use crate::transfer::{LoadedVersion, Phase};

/// The share of the progress for reading a page's stream. Uploading fills the rest, because it is
/// faster.
const STREAM_SHARE: f64 = 0.8;

/// Loads a model from any source that a page can give. `versions` are those of its files if it was
/// loaded before: see [`remote::load`]. Only a model from an address leaves a trace.
pub(super) async fn open(
    source: &JsValue,
    options: &LoadOptions,
    reporter: &Rc<Reporter>,
    versions: &[LoadedVersion],
) -> Result<(Session, Trace)> {
    let opening = Opening::new(options, reporter)?;
    let mut trace = Trace::default();
    let session = if let Some(blob) = source.dyn_ref::<Blob>() {
        local(&opening, BlobSource::new(blob.clone())).await
    } else if let Some(buffer) = source.dyn_ref::<ArrayBuffer>() {
        local(&opening, ArraySource::new(Uint8Array::new(buffer))).await
    } else if let Some(bytes) = source.dyn_ref::<Uint8Array>() {
        local(&opening, ArraySource::new(bytes.clone())).await
    } else if let Some(stream) = source.dyn_ref::<ReadableStream>() {
        // If there is no GPU, another back end can read the stream.
        opening.opened().await?;
        // Checking the model's header needs the file's length, and a stream does not tell it.
        reporter.begin(Phase::Download, (0, 0), STREAM_SHARE);
        let blob = stream::collect(stream, reporter).await?;
        local(&opening, BlobSource::new(blob)).await
    } else if let Some(files) = source.dyn_ref::<Array>().and_then(blobs) {
        // The files of a model on a disk, in their order.
        local(&opening, Joined::open(files).await?).await
    } else {
        let address = Address::parse("source", source)?;
        let (session, found) = remote::load(&opening, &address, versions).await?;
        trace = found;
        Ok(session)
    }?;
    opening.ready();
    Ok((session, trace))
}

/// The sources of an array of blobs; `None` if it is empty or holds anything else.
fn blobs(array: &Array) -> Option<Vec<BlobSource>> {
    let blob = |value: JsValue| value.dyn_into::<Blob>().ok().map(BlobSource::new);
    array.iter().map(blob).collect::<Option<Vec<_>>>().filter(|blobs| !blobs.is_empty())
}

/// Loads from a source that can be read twice. So its hash is checked before it is used.
async fn local<S: Source>(opening: &Opening<'_>, mut source: S) -> Result<Session> {
    if let Some(integrity) = &opening.options.integrity {
        integrity.check(&mut source).await?;
    }
    opening.reporter.begin(Phase::Upload, (source.len(), 0), 1.0);
    opening.session(&mut Reader::new(source), false, || {}).await
}
