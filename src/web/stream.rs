//! Bytes that come one after the other, once: a response's body, a `ReadableStream`.

use std::ops::Range;
use std::rc::Rc;

use js_sys::{Array, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, ReadableStream, ReadableStreamDefaultReader};

use super::abort::AbortOnDrop;
use super::blob::Pieces;
use super::error::text;
use super::integrity::Hasher;
use super::progress::{Meter, Phase};
use super::storage::Writer;
use crate::error::{Error, Result};
use crate::source::Source;

/// A stream's chunks, each hashed and stored as it passes.
pub(super) struct Chunks {
    reader: ReadableStreamDefaultReader,
    /// What an error calls it: the address, or `the stream`.
    what: String,
    received: u64,
    /// Bytes there should be, 0 if nobody said.
    expected: u64,
    pub(super) hasher: Option<Hasher>,
    pub(super) writer: Option<Writer>,
    meter: Rc<Meter>,
    /// Ends the request when loading is given up.
    _request: Option<AbortOnDrop>,
}

impl Chunks {
    pub(super) fn new(
        stream: &ReadableStream,
        what: String,
        expected: u64,
        meter: Rc<Meter>,
        request: Option<AbortOnDrop>,
    ) -> Result<Self> {
        let reader = ReadableStreamDefaultReader::new(stream)
            .map_err(|why| Error::Network { what: what.clone(), why: text(&why) })?;
        let (hasher, writer) = (None, None);
        Ok(Self { reader, what, received: 0, expected, hasher, writer, meter, _request: request })
    }

    /// The next chunk; `None` at the end.
    async fn next(&mut self) -> Result<Option<Uint8Array>> {
        let failed = |why: String| Error::Network { what: self.what.clone(), why };
        let step =
            JsFuture::from(self.reader.read()).await.map_err(|thrown| failed(text(&thrown)))?;
        let get = |name: &str| Reflect::get(&step, &name.into()).unwrap_or(JsValue::UNDEFINED);
        if get("done").is_truthy() {
            return Ok(None);
        }
        let chunk: Uint8Array = get("value")
            .dyn_into()
            .map_err(|_| failed("a chunk of the stream is not a Uint8Array".into()))?;
        self.received += u64::from(chunk.length());
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&chunk.to_vec());
        }
        if let Some(writer) = &mut self.writer {
            writer.write(&chunk).await;
        }
        self.meter.bytes(Phase::Download, self.received, self.expected);
        Ok(Some(chunk))
    }

    /// Takes in all there is. The browser holds the bytes, on disk if they are many.
    pub(super) async fn collect(&mut self) -> Result<Blob> {
        let (blobs, mut pieces) = (Array::new(), Pieces::default());
        while let Some(chunk) = self.next().await? {
            pieces.push(&chunk, |blob| {
                blobs.push(&blob);
            })?;
        }
        if let Some(blob) = pieces.rest()? {
            blobs.push(&blob);
        }
        Blob::new_with_blob_sequence(&blobs)
            .map_err(|why| Error::Network { what: self.what.clone(), why: text(&why) })
    }

    /// Reads on to the end and gives the length of the whole.
    pub(super) async fn drain(&mut self) -> Result<u64> {
        while self.next().await?.is_some() {}
        Ok(self.received)
    }

    pub(super) fn ended_early(&self, received: u64, expected: u64) -> Error {
        let why = format!("it ended after {received} of {expected} bytes");
        Error::Network { what: self.what.clone(), why }
    }

    /// Whether the stream turns out to have another length than `len`; reads no further than it
    /// takes to know.
    pub(super) async fn differs(&mut self, len: u64) -> bool {
        while self.received <= len {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return self.received != len,
                Err(_) => return false,
            }
        }
        true
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let cancelled = JsFuture::from(self.reader.cancel());
        // Cancelling a stream that has failed rejects; nobody is left to tell.
        spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}

/// A stream of known length as a [`Source`].
pub(super) struct StreamSource {
    chunks: Chunks,
    len: u64,
    /// Where `rest` begins in the file.
    position: u64,
    /// What is left of the chunk before.
    rest: Uint8Array,
}

impl StreamSource {
    pub(super) fn new(chunks: Chunks, len: u64) -> Self {
        Self { chunks, len, position: 0, rest: Uint8Array::new_with_length(0) }
    }

    /// Makes `rest` hold at least one byte.
    async fn fill(&mut self) -> Result<()> {
        while self.rest.length() == 0 {
            let Some(chunk) = self.chunks.next().await? else {
                return Err(self.chunks.ended_early(self.position, self.len));
            };
            self.rest = chunk;
        }
        Ok(())
    }

    /// At most `len` of the bytes in `rest`.
    fn take(&mut self, len: u64) -> Uint8Array {
        let len = len.min(u64::from(self.rest.length()));
        let taken = self.rest.subarray(0, len as u32);
        self.rest = self.rest.subarray(len as u32, self.rest.length());
        self.position += len;
        taken
    }

    /// The stream itself, to read it to its end.
    pub(super) fn into_chunks(self) -> Chunks {
        self.chunks
    }
}

impl Source for StreamSource {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        while self.position < range.start {
            self.fill().await?;
            self.take(range.start - self.position);
        }
        if self.position != range.start {
            return Err(Error::Internal(format!(
                "read of {range:?}, already at {}",
                self.position
            )));
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            self.fill().await?;
            let part = self.take((bytes.len() - filled) as u64);
            let end = filled + part.length() as usize;
            part.copy_to(&mut bytes[filled..end]);
            filled = end;
        }
        Ok(bytes)
    }
}
