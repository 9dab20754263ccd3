//! The page's bytes: a `Blob` (or `File`) on disk or in memory, or an array.

use std::ops::Range;

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::Blob;

use super::bytes::{ArrayPool, read_blob};
use super::error::text;
use crate::error::{Error, Result};
use crate::source::Source;

/// A `Blob`, read in slices, so that a file on disk is never whole in memory.
pub(super) struct BlobSource {
    blob: Blob,
    pool: ArrayPool,
}

impl BlobSource {
    pub(super) fn new(blob: Blob) -> Self {
        Self { blob, pool: ArrayPool::default() }
    }
}

impl Source for BlobSource {
    fn len(&self) -> u64 {
        self.blob.size() as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let slice = self.blob.slice_with_f64_and_f64(range.start as f64, range.end as f64);
        let slice = slice.map_err(unreadable)?;
        let bytes = read_blob(&slice, &self.pool, "the file").await?;
        let (expected, found) = (range.end - range.start, u64::from(bytes.length()));
        if expected == found {
            return Ok(bytes.all().to_vec());
        }
        let why = format!("{found} bytes at {}, {expected} expected", range.start);
        Err(Error::unreadable("the file", why))
    }
}

/// Gathers bytes into one blob. The browser holds it, on disk if it is large.
#[derive(Default)]
pub(super) struct Gathering {
    /// The bytes that the browser holds, in blobs of at least [`Gathering::STEP`].
    blobs: Array,
    /// The bytes that we hold.
    arrays: Array,
    /// Bytes in `arrays`.
    length: u32,
}

impl Gathering {
    /// We hold fewer bytes than this.
    const STEP: u32 = 4 << 20;

    /// Adds the bytes of an array that is not used elsewhere.
    pub(super) fn push(&mut self, bytes: &Uint8Array) -> Result<()> {
        self.arrays.push(bytes);
        self.length += bytes.length();
        if self.length >= Self::STEP {
            self.length = 0;
            let arrays = std::mem::take(&mut self.arrays);
            let blob = Blob::new_with_u8_array_sequence(&arrays).map_err(unreadable)?;
            self.blobs.push(&blob);
        }
        Ok(())
    }

    /// Adds many bytes. They are copied at once, so their array may be used again.
    pub(super) fn push_copy(&mut self, bytes: &Uint8Array) -> Result<()> {
        let blob = Blob::new_with_u8_array_sequence(&Array::of1(bytes)).map_err(unreadable)?;
        self.blobs.push(&blob);
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Blob> {
        let rest = Blob::new_with_u8_array_sequence(&self.arrays).map_err(unreadable)?;
        self.blobs.push(&rest);
        Blob::new_with_blob_sequence(&self.blobs).map_err(unreadable)
    }
}

fn unreadable(thrown: JsValue) -> Error {
    Error::unreadable("the file", text(&thrown))
}

/// An `ArrayBuffer` or `Uint8Array` of the page.
pub(super) struct ArraySource {
    bytes: Uint8Array,
    /// The number of bytes when the load began.
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
        // The page may transfer its buffer while we load. Reading it would throw then.
        if range.end > u64::from(self.bytes.length()) {
            return Err(Error::unreadable("the array", "it was detached or has shrunk"));
        }
        Ok(self.bytes.subarray(range.start as u32, range.end as u32).to_vec())
    }
}
