//! Arrays that are used again and again for bytes that come and go.
//!
//! An array that is not used any more takes memory until the browser collects garbage. It does that
//! too rarely while a gigabyte passes in seconds. So a load uses only a few arrays.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{ArrayBuffer, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, ReadableStream, ReadableStreamByobReader, ReadableStreamDefaultReader};

use super::error::text;
use crate::error::{Error, Result};

/// The most bytes that are taken from a stream at a time.
const STEP: u32 = 512 << 10;

/// The arrays of a load that are free at the moment.
#[derive(Clone, Default)]
pub(super) struct ArrayPool(Rc<RefCell<Vec<ArrayBuffer>>>);

impl ArrayPool {
    /// An empty buffer with room for `capacity` bytes.
    pub(super) fn take(&self, capacity: u32) -> Bytes {
        let mut free = self.0.borrow_mut();
        let fits = |array: &ArrayBuffer| array.byte_length() >= capacity;
        let smallest = (0..free.len())
            .filter(|&index| fits(&free[index]))
            .min_by_key(|&index| free[index].byte_length());
        let array = match smallest {
            Some(index) => free.swap_remove(index),
            None => ArrayBuffer::new(capacity),
        };
        Bytes { pool: self.clone(), array, capacity, length: 0 }
    }
}

/// A buffer that fills with bytes. Its array goes back to the pool when it is dropped.
pub(super) struct Bytes {
    pool: ArrayPool,
    array: ArrayBuffer,
    capacity: u32,
    length: u32,
}

impl Bytes {
    /// Bytes in the buffer.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// Bytes until the buffer is full.
    pub(super) fn missing(&self) -> u32 {
        self.capacity - self.length
    }

    /// The bytes of `range`, which are not copied. They are valid until the buffer is dropped.
    pub(super) fn view(&self, range: Range<u32>) -> Uint8Array {
        let length = range.end - range.start;
        Uint8Array::new_with_byte_offset_and_length(&self.array, range.start, length)
    }

    /// All bytes, which are not copied. They are valid until the buffer is dropped.
    pub(super) fn all(&self) -> Uint8Array {
        self.view(0..self.length)
    }

    /// Appends as many of `bytes` as fit.
    pub(super) fn push(&mut self, bytes: &Uint8Array) {
        let taken = bytes.length().min(self.missing());
        let end = self.length + taken;
        self.view(self.length..end).set(&bytes.subarray(0, taken), 0);
        self.length = end;
    }

    /// Forgets the bytes.
    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    /// Lends the array to another thread, until [`Bytes::give_back`].
    pub(super) fn lend(&self) -> ArrayBuffer {
        self.array.clone()
    }

    /// Takes the array back. It begins with `length` bytes now. It has the same memory, but is
    /// another object.
    pub(super) fn give_back(&mut self, array: ArrayBuffer, length: u32) {
        (self.array, self.length) = (array, length.min(self.capacity));
    }

    /// Takes the array back from a stream that read into it. It has the same memory, but is another
    /// object. Returns the bytes that the stream has read; `None` at its end.
    fn take_back(&mut self, result: &JsValue) -> Option<Uint8Array> {
        let read: Uint8Array = get(result, "value").dyn_into().ok()?;
        self.array = read.buffer();
        (!get(result, "done").is_truthy()).then_some(read)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // If a stream fails, the array that it had is lost, and its length is 0.
        if self.array.byte_length() > 0 {
            self.pool.0.borrow_mut().push(self.array.clone());
        }
    }
}

/// Reads a stream of bytes, and cancels it when dropped.
pub(super) struct StreamReader(Kind);

enum Kind {
    /// The stream fills our array.
    Filling(ReadableStreamByobReader, Bytes),
    /// The stream brings its own arrays, because some browsers can do no better. The second field
    /// holds the bytes that were not asked for yet.
    Bringing(ReadableStreamDefaultReader, Uint8Array),
}

impl StreamReader {
    /// Fails if the stream has a reader already.
    pub(super) fn new(stream: &ReadableStream, pool: &ArrayPool) -> Result<Self, JsValue> {
        Ok(Self(match ReadableStreamByobReader::new(stream) {
            Ok(reader) => Kind::Filling(reader, pool.take(STEP)),
            Err(_) => Kind::Bringing(
                ReadableStreamDefaultReader::new(stream)?,
                Uint8Array::new_with_length(0),
            ),
        }))
    }

    /// The next bytes, at most `most`; `None` at the end. They are valid until the next call.
    /// `watched` awaits the promise.
    pub(super) async fn next<E>(
        &mut self,
        most: u32,
        watched: impl AsyncFnOnce(Promise) -> Result<JsValue, E>,
    ) -> Result<Option<Uint8Array>, E> {
        match &mut self.0 {
            Kind::Filling(reader, buffer) => {
                let room = buffer.view(0..most.min(STEP));
                let result = watched(reader.read_with_array_buffer_view(&room)).await?;
                Ok(buffer.take_back(&result))
            }
            Kind::Bringing(reader, waiting) => {
                if waiting.length() == 0 {
                    let result = watched(reader.read()).await?;
                    let value = get(&result, "value").dyn_into();
                    match value {
                        Ok(bytes) if !get(&result, "done").is_truthy() => *waiting = bytes,
                        _ => return Ok(None),
                    }
                }
                let (taken, all) = (most.min(waiting.length()), waiting.length());
                let bytes = waiting.subarray(0, taken);
                *waiting = waiting.subarray(taken, all);
                Ok(Some(bytes))
            }
        }
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let cancelled = JsFuture::from(match &self.0 {
            Kind::Filling(reader, _) => reader.cancel(),
            Kind::Bringing(reader, _) => reader.cancel(),
        });
        // If the stream has failed, cancelling it rejects. That error does not matter.
        spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}

/// The bytes of `blob`, which an error calls `what`.
///
/// Errors: `io`.
pub(super) async fn read_blob(blob: &Blob, pool: &ArrayPool, what: &str) -> Result<Bytes> {
    let thrown = |why: JsValue| Error::unreadable(what, text(&why));
    let size = blob.size();
    if size > f64::from(u32::MAX) {
        return Err(Error::unreadable(what, format!("{size} bytes at once")));
    }
    let mut bytes = pool.take(size as u32);
    if let Ok(reader) = ReadableStreamByobReader::new(&blob.stream()) {
        while bytes.missing() > 0 {
            let room = bytes.view(bytes.length..bytes.capacity);
            let result = JsFuture::from(reader.read_with_array_buffer_view(&room)).await;
            let Some(read) = bytes.take_back(&result.map_err(thrown)?) else { break };
            bytes.length += read.length();
        }
    } else {
        let whole = JsFuture::from(blob.array_buffer()).await.map_err(thrown)?;
        bytes.push(&Uint8Array::new(&whole));
    }
    if bytes.missing() == 0 {
        return Ok(bytes);
    }
    // A file may shrink after it was chosen.
    Err(Error::unreadable(what, format!("{} bytes, {size} expected", bytes.length)))
}

fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}
