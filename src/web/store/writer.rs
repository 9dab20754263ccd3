//! Stores a file's pieces while they are used, without keeping anybody waiting for the disk.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_channel::oneshot;
use futures_util::lock::Mutex;
use js_sys::{Array, Uint8Array};
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use super::Storage;
use super::room::Room;
use crate::error::{Error, Result};
use crate::transfer::Manifest;
use crate::web::digest::sha256;
use crate::web::error::text;
use crate::web::log::warn;
use crate::web::progress::{Meter, Note};
use crate::web::timer::sleep;

/// Pieces on their way to the disk at a time: their bytes are in memory.
const PENDING: usize = 3;

/// Milliseconds before each attempt to use the room of what was deleted: browsers take a while to
/// count it. Chromium deletes what a page has read two to five seconds after the page let go of it.
const AFTER_EVICTION: [f64; 5] = [0.0, 100.0, 400.0, 1600.0, 5000.0];

/// Bytes that a file's record takes at most, or so.
const RECORD: u64 = 256 << 10;

/// Stores one file. Its failures are not the download's: it says so, and stops.
pub(in crate::web) struct Writer {
    storage: Storage,
    id: String,
    url: String,
    total: Option<u64>,
    /// Whether there are chunks of an earlier load.
    resumed: bool,
    meter: Rc<Meter>,
    /// Bytes on the disk, with those of an earlier download.
    stored: Cell<u64>,
    /// Whether any of them are this writer's.
    written: Cell<bool>,
    /// Held by the piece that is being written: one at a time makes room.
    writing: Mutex<()>,
    stopped: Cell<bool>,
    /// Pieces that are neither on the disk nor given up.
    pending: Cell<usize>,
    /// Dropped when one of them is.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Writer {
    /// For a file that has been created.
    pub(in crate::web) fn new(storage: Storage, file: &Manifest, meter: Rc<Meter>) -> Rc<Self> {
        Rc::new(Self {
            storage,
            id: file.id.clone(),
            url: file.url.clone(),
            total: file.total,
            resumed: !file.chunks.is_empty(),
            meter,
            stored: Cell::new(file.bytes()),
            writing: Mutex::new(()),
            written: Cell::new(false),
            stopped: Cell::new(false),
            pending: Cell::new(0),
            waiting: RefCell::default(),
        })
    }

    /// Stores the bytes that begin at `start`; returns at once.
    pub(in crate::web) fn put(self: &Rc<Self>, start: u64, bytes: Uint8Array) {
        if self.stopped.get() {
            return;
        }
        self.pending.set(self.pending.get() + 1);
        let this = Rc::clone(self);
        spawn_local(async move {
            match this.write(start, bytes).await {
                Ok(()) => this.written.set(true),
                Err(error) => this.stop(&error).await,
            }
            this.pending.set(this.pending.get() - 1);
            this.waiting.take();
        });
    }

    /// Waits until there is room for another piece in memory.
    pub(in crate::web) async fn ready(&self) {
        self.until(PENDING - 1).await;
    }

    /// Waits until everything is on the disk; `false` if it did not get there.
    pub(in crate::web) async fn settle(&self) -> bool {
        self.until(0).await;
        !self.stopped.get()
    }

    /// Whether anything came to the disk.
    pub(in crate::web) async fn has_stored(&self) -> bool {
        self.settle().await && self.written.get()
    }

    /// The file is whole.
    pub(in crate::web) async fn complete(&self, total: u64, sha256: Option<String>) {
        if !self.settle().await {
            return;
        }
        let complete = async || self.storage.complete(&self.id, total, sha256.clone()).await;
        if let Err(error) = self.with_room(RECORD, complete).await {
            self.stop(&error).await;
        }
    }

    /// Deletes what is stored of the file.
    pub(in crate::web) async fn discard(&self) {
        self.settle().await;
        // If this fails too, the next download of the address cleans up.
        let _ = self.storage.discard(&self.id).await;
    }

    async fn until(&self, most: usize) {
        while self.pending.get() > most {
            let (tell, told) = oneshot::channel();
            self.waiting.borrow_mut().push(tell);
            // Dropped, which is how it is told.
            let _ = told.await;
        }
    }

    async fn write(&self, start: u64, bytes: Uint8Array) -> Result<()> {
        let hash = sha256(&bytes).await?;
        let blob = Blob::new_with_u8_array_sequence(&Array::of1(&bytes)).map_err(|why| {
            Error::Network { what: "a piece of the file".into(), why: text(&why) }
        })?;
        let _writing = self.writing.lock().await;
        if self.stopped.get() {
            return Ok(());
        }
        let length = blob.size() as u64;
        let append =
            async || self.storage.append(&self.id, start, hash.clone(), blob.clone()).await;
        self.with_room(length, append).await?;
        self.stored.set(self.stored.get() + length);
        Ok(())
    }

    /// Writes; on a full disk again, in place of other models.
    async fn with_room(&self, length: u64, write: impl AsyncFn() -> Result<()>) -> Result<()> {
        let mut result = write().await;
        if matches!(result, Err(Error::StorageFull(_))) && self.make_room(length).await {
            for wait in AFTER_EVICTION {
                sleep(wait).await;
                result = write().await;
                if !matches!(result, Err(Error::StorageFull(_))) {
                    break;
                }
            }
        }
        result
    }

    /// Whether other models have given way to what is missing of this one, or at least `length`.
    async fn make_room(&self, length: u64) -> bool {
        let missing = self.total.map(|total| total.saturating_sub(self.stored.get()));
        let needed = missing.unwrap_or(0).max(length);
        match self.storage.make_room_when_full(&self.url, needed).await {
            Room::Made(evicted) => {
                self.meter.evicted(evicted);
                true
            }
            Room::Not { .. } => false,
        }
    }

    /// Gives up storing. A part that will never be whole only takes room from others; but what is
    /// here of an earlier load may still be read by this one.
    async fn stop(&self, error: &Error) {
        if self.stopped.replace(true) {
            return;
        }
        warn(&format!("the model is not stored: {error}"));
        self.meter.note(Note::NotStored { why: error.to_string() });
        if self.resumed {
            return;
        }
        // Neither can be helped if it fails; a later download of the address cleans up.
        let _ = self.storage.discard(&self.id).await;
        if matches!(error, Error::StorageFull(_)) {
            let _ = self.storage.refuse(&self.url, self.total.unwrap_or(0)).await;
        }
    }
}
