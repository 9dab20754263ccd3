//! Bytes that lie somewhere in the browser: a `Blob` (or `File`) on disk or in memory, an array.

use std::ops::Range;

use js_sys::{Array, ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

use super::error::text;
use crate::error::{Error, Result};
use crate::source::Source;

/// The bytes of a `Blob`, read by slices: a file on disk never is in memory as a whole.
pub(super) struct BlobSource(pub(super) Blob);

impl Source for BlobSource {
    fn len(&self) -> u64 {
        self.0.size() as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        Ok(read(&self.0, range, "the file").await?.to_vec())
    }
}

/// The bytes of `range` of `blob`, which `what` names in an error.
pub(super) async fn read(blob: &Blob, range: Range<u64>, what: &str) -> Result<Uint8Array> {
    let failed = |why: JsValue| Error::Network { what: what.into(), why: text(&why) };
    let slice =
        blob.slice_with_f64_and_f64(range.start as f64, range.end as f64).map_err(failed)?;
    let buffer: ArrayBuffer =
        JsFuture::from(slice.array_buffer()).await.map_err(failed)?.unchecked_into();
    let bytes = Uint8Array::new(&buffer);
    let (expected, found) = (range.end - range.start, u64::from(bytes.length()));
    if expected == found {
        Ok(bytes)
    } else {
        // A file may shrink between its choice and its reading.
        let why = format!("{found} bytes at {}, {expected} expected", range.start);
        Err(Error::Network { what: what.into(), why })
    }
}

/// Gathers bytes as they come into one blob, which the browser holds, on disk if they are many.
#[derive(Default)]
pub(super) struct Gathering {
    /// What is in the browser's hands, in pieces of at least [`Gathering::PIECE`].
    blobs: Array,
    chunks: Array,
    /// Bytes in `chunks`.
    bytes: u32,
}

impl Gathering {
    /// Few enough to hold here.
    const PIECE: u32 = 4 << 20;

    pub(super) fn push(&mut self, chunk: &Uint8Array) -> Result<()> {
        self.chunks.push(chunk);
        self.bytes += chunk.length();
        if self.bytes >= Self::PIECE {
            self.bytes = 0;
            let chunks = std::mem::take(&mut self.chunks);
            let blob = Blob::new_with_u8_array_sequence(&chunks).map_err(ungathered)?;
            self.blobs.push(&blob);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Blob> {
        let rest = Blob::new_with_u8_array_sequence(&self.chunks).map_err(ungathered)?;
        self.blobs.push(&rest);
        Blob::new_with_blob_sequence(&self.blobs).map_err(ungathered)
    }
}

fn ungathered(thrown: JsValue) -> Error {
    Error::Network { what: "the file".into(), why: text(&thrown) }
}

/// The bytes of an `ArrayBuffer` or `Uint8Array` of the page.
pub(super) struct ArraySource {
    bytes: Uint8Array,
    /// Bytes there were at first.
    len: u64,
}

impl ArraySource {
    pub(super) fn new(bytes: Uint8Array) -> Self {
        let len = u64::from(bytes.length());
        Self { bytes, len }
    }
}

impl Source for ArraySource {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        // The page may give its buffer away meanwhile, after which the browser throws.
        if range.end > u64::from(self.bytes.length()) {
            let what = "the array".to_owned();
            return Err(Error::Network { what, why: "it was detached or shrunk".into() });
        }
        Ok(self.bytes.subarray(range.start as u32, range.end as u32).to_vec())
    }
}
