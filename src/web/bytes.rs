//! Bytes on their way, in arrays that serve again and again.
//!
//! To a browser, an array that nobody uses any more is memory in use until it next collects
//! garbage, and while a gigabyte passes in seconds it does so too seldom. A load therefore makes do
//! with a few arrays.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{ArrayBuffer, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{Blob, ReadableStream, ReadableStreamByobReader, ReadableStreamDefaultReader};

use super::error::text;
use crate::error::{Error, Result};

/// Bytes that are taken from a stream at a time, at most.
const STEP: u32 = 512 << 10;

/// The arrays of a load that nobody uses at the moment.
#[derive(Clone, Default)]
pub(super) struct Arrays(Rc<RefCell<Vec<ArrayBuffer>>>);

impl Arrays {
    /// A place for `capacity` bytes.
    pub(super) fn take(&self, capacity: u32) -> Bytes {
        let mut idle = self.0.borrow_mut();
        let fits = |array: &ArrayBuffer| array.byte_length() >= capacity;
        let smallest = (0..idle.len())
            .filter(|&index| fits(&idle[index]))
            .min_by_key(|&index| idle[index].byte_length());
        let array = match smallest {
            Some(index) => idle.swap_remove(index),
            None => ArrayBuffer::new(capacity),
        };
        Bytes { arrays: self.clone(), array, capacity, length: 0 }
    }
}

/// Bytes as they gather; their array serves again when they are dropped.
pub(super) struct Bytes {
    arrays: Arrays,
    array: ArrayBuffer,
    capacity: u32,
    length: u32,
}

impl Bytes {
    /// Bytes that are here.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// Bytes that it lacks to be full.
    pub(super) fn missing(&self) -> u32 {
        self.capacity - self.length
    }

    /// Those of `range`, in place: to be copied before this is dropped.
    pub(super) fn view(&self, range: Range<u32>) -> Uint8Array {
        let length = range.end - range.start;
        Uint8Array::new_with_byte_offset_and_length(&self.array, range.start, length)
    }

    /// All of them, in place.
    pub(super) fn all(&self) -> Uint8Array {
        self.view(0..self.length)
    }

    /// As many of `bytes` as it lacks; gives the rest back.
    pub(super) fn push(&mut self, bytes: &Uint8Array) -> Uint8Array {
        let taken = bytes.length().min(self.missing());
        let end = self.length + taken;
        self.view(self.length..end).set(&bytes.subarray(0, taken), 0);
        self.length = end;
        bytes.subarray(taken, bytes.length())
    }

    /// The array as a stream gives it back: the same memory, as another object. What it has read;
    /// `None` at the end.
    fn take_back(&mut self, step: &JsValue) -> Option<Uint8Array> {
        let read: Uint8Array = get(step, "value").dyn_into().ok()?;
        self.array = read.buffer();
        (!get(step, "done").is_truthy()).then_some(read)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // One that was given to a stream that then failed is not to be had back.
        if self.array.byte_length() > 0 {
            self.arrays.0.borrow_mut().push(self.array.clone());
        }
    }
}

/// Reads a stream of bytes; cancels it when dropped.
pub(super) struct StreamReader(Kind);

enum Kind {
    /// Fills an array of ours.
    Filling(ReadableStreamByobReader, Bytes),
    /// Brings arrays of its own: some browsers can do no better.
    Bringing(ReadableStreamDefaultReader),
}

impl StreamReader {
    /// Fails for a stream that somebody else reads.
    pub(super) fn new(stream: &ReadableStream, arrays: &Arrays) -> Result<Self, JsValue> {
        Ok(Self(match ReadableStreamByobReader::new(stream) {
            Ok(reader) => Kind::Filling(reader, arrays.take(STEP)),
            Err(_) => Kind::Bringing(ReadableStreamDefaultReader::new(stream)?),
        }))
    }

    /// The next bytes, good until the next call; `None` at the end. `watched` awaits the promise.
    pub(super) async fn next<E>(
        &mut self,
        watched: impl AsyncFnOnce(Promise) -> Result<JsValue, E>,
    ) -> Result<Option<Uint8Array>, E> {
        let promise = match &self.0 {
            Kind::Filling(reader, place) => {
                reader.read_with_array_buffer_view(&place.view(0..STEP))
            }
            Kind::Bringing(reader) => reader.read(),
        };
        let step = watched(promise).await?;
        Ok(match &mut self.0 {
            Kind::Filling(_, place) => place.take_back(&step),
            Kind::Bringing(_) if get(&step, "done").is_truthy() => None,
            Kind::Bringing(_) => get(&step, "value").dyn_into().ok(),
        })
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        let cancelled = JsFuture::from(match &self.0 {
            Kind::Filling(reader, _) => reader.cancel(),
            Kind::Bringing(reader) => reader.cancel(),
        });
        // Cancelling a stream that has failed rejects; nobody is left to tell.
        spawn_local(async move {
            let _ = cancelled.await;
        });
    }
}

/// The bytes of `blob`, which `what` names in an error.
pub(super) async fn read_blob(blob: &Blob, arrays: &Arrays, what: &str) -> Result<Bytes> {
    let failed = |why: String| Error::Network { what: what.into(), why };
    let thrown = |why: JsValue| failed(text(&why));
    let size = blob.size();
    if size > f64::from(u32::MAX) {
        return Err(failed(format!("{size} bytes at once")));
    }
    let mut bytes = arrays.take(size as u32);
    if let Ok(reader) = ReadableStreamByobReader::new(&blob.stream()) {
        while bytes.missing() > 0 {
            let room = bytes.view(bytes.length..bytes.capacity);
            let step = JsFuture::from(reader.read_with_array_buffer_view(&room)).await;
            let Some(read) = bytes.take_back(&step.map_err(thrown)?) else { break };
            bytes.length += read.length();
        }
    } else {
        let whole = JsFuture::from(blob.array_buffer()).await.map_err(thrown)?;
        bytes.push(&Uint8Array::new(&whole));
    }
    if bytes.missing() == 0 {
        return Ok(bytes);
    }
    // A file may shrink between its choice and its reading.
    Err(failed(format!("{} bytes, {size} expected", bytes.length)))
}

fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}
