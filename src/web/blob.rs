//! Bytes that lie somewhere in the browser: a `Blob` (or `File`) on disk or in memory, an array.

use std::ops::Range;

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::Blob;

use super::bytes::{Arrays, read_blob};
use super::error::text;
use crate::error::{Error, Result};
use crate::source::Source;

/// The bytes of a `Blob`, read by slices: a file on disk never is in memory as a whole.
pub(super) struct BlobSource {
    blob: Blob,
    arrays: Arrays,
}

impl BlobSource {
    pub(super) fn new(blob: Blob) -> Self {
        Self { blob, arrays: Arrays::default() }
    }
}

impl Source for BlobSource {
    fn len(&self) -> u64 {
        self.blob.size() as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let slice = self.blob.slice_with_f64_and_f64(range.start as f64, range.end as f64);
        let slice = slice.map_err(ungathered)?;
        let bytes = read_blob(&slice, &self.arrays, "the file").await?;
        let (expected, found) = (range.end - range.start, u64::from(bytes.length()));
        if expected == found {
            return Ok(bytes.all().to_vec());
        }
        let why = format!("{found} bytes at {}, {expected} expected", range.start);
        Err(Error::Network { what: "the file".into(), why })
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

    /// The same for many bytes, in an array that may have others right after.
    pub(super) fn push_all(&mut self, bytes: &Uint8Array) -> Result<()> {
        let blob = Blob::new_with_u8_array_sequence(&Array::of1(bytes)).map_err(ungathered)?;
        self.blobs.push(&blob);
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
