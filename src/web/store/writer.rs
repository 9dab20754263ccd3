//! Stores a file's pieces while they are used, without keeping anybody waiting for the disk.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::slice;

use futures_channel::oneshot;
use futures_util::lock::Mutex;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use super::room::Room;
use super::{Piece, Storage};
use crate::error::{Error, Result};
use crate::transfer::Manifest;
use crate::web::digest::digest;
use crate::web::error::text;
use crate::web::log::warn;
use crate::web::progress::{Meter, Note};
use crate::web::timer::sleep;

/// Pieces that are fetched or on their way to the disk at a time: their bytes are in memory.
const PLACES: usize = 4;

/// Milliseconds before each attempt to use the room of what was deleted: browsers take a while to
/// count it. Chromium deletes what a page has read two to five seconds after the page let go of it.
const AFTER_EVICTION: [f64; 5] = [0.0, 100.0, 400.0, 1600.0, 5000.0];

/// Bytes of an array that make a browser think of garbage.
const NUDGE: u32 = 128 << 20;

/// Bytes that a file's record takes at most, or so.
const RECORD: u64 = 256 << 10;

#[wasm_bindgen]
extern "C" {
    // js-sys has it as one that never throws.
    #[wasm_bindgen(js_name = ArrayBuffer)]
    type Untouched;
    #[wasm_bindgen(constructor, js_class = "ArrayBuffer", catch)]
    fn new(length: u32) -> Result<Untouched, JsValue>;
}

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
    /// Pieces that are ready to be written.
    queue: RefCell<Vec<Piece>>,
    /// Held while some are: one transaction at a time makes room.
    writing: Mutex<()>,
    stopped: Cell<bool>,
    /// Places that are taken.
    taken: Cell<usize>,
    /// Dropped when one of them is free again.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

/// A piece's place in memory, until its bytes are on the disk or given up.
pub(in crate::web) struct Place(Rc<Writer>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.set(self.0.taken.get() - 1);
        self.0.waiting.take();
    }
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
            queue: RefCell::default(),
            writing: Mutex::new(()),
            written: Cell::new(false),
            stopped: Cell::new(false),
            taken: Cell::new(0),
            waiting: RefCell::default(),
        })
    }

    /// A place for another piece, when there is one.
    pub(in crate::web) async fn place(self: &Rc<Self>) -> Rc<Place> {
        self.until(PLACES - 1).await;
        self.taken.set(self.taken.get() + 1);
        Rc::new(Place(Rc::clone(self)))
    }

    /// Stores a copy of `bytes`, which begin at `start`; returns at once.
    pub(in crate::web) fn put(place: &Rc<Place>, start: u64, bytes: &Uint8Array) {
        let this = &place.0;
        if this.stopped.get() {
            return;
        }
        // Both copy before they return: the array has other bytes soon.
        let blob = Blob::new_with_u8_array_sequence(&Array::of1(bytes));
        let hash = digest(bytes);
        let (this, place) = (Rc::clone(this), Rc::clone(place));
        spawn_local(async move {
            let piece = async {
                let failed = |why| Error::Network { what: "a piece".into(), why: text(&why) };
                Ok(Piece { start, blob: blob.map_err(failed)?, sha256: hash?.await? })
            };
            let done = match piece.await {
                Ok(piece) => {
                    this.queue.borrow_mut().push(piece);
                    collect_garbage();
                    this.commit().await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                this.stop(&error).await;
            }
            drop(place);
        });
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
        while self.taken.get() > most {
            let (tell, told) = oneshot::channel();
            self.waiting.borrow_mut().push(tell);
            // Dropped, which is how it is told.
            let _ = told.await;
        }
    }

    /// Writes what is in the queue, all in one transaction: one for each piece takes three times as
    /// long. What comes meanwhile goes into the next.
    async fn commit(&self) -> Result<()> {
        let _writing = self.writing.lock().await;
        let pieces = self.queue.take();
        if pieces.is_empty() || self.stopped.get() {
            return Ok(());
        }
        let written = self.storage.append(&self.id, &pieces).await;
        if matches!(written, Err(Error::StorageFull(_))) {
            // As many of them as there is room for.
            for piece in &pieces {
                let alone = slice::from_ref(piece);
                let append = async || self.storage.append(&self.id, alone).await;
                self.with_room(length(alone), append).await?;
                self.stored.set(self.stored.get() + length(alone));
            }
        } else {
            written?;
            self.stored.set(self.stored.get() + length(&pieces));
        }
        self.written.set(true);
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

fn length(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.blob.size() as u64).sum()
}

/// Has the browser look for garbage soon. It keeps a blob's bytes in memory until it finds that
/// nobody uses the blob any more, and does not count them among the reasons to look: without this,
/// the whole file was in memory at the end. An array counts, though one that is never touched takes
/// no memory.
fn collect_garbage() {
    // It is a mere hint: no matter if there is no room for it.
    let _ = Untouched::new(NUDGE);
}
