//! Stores the parts of a file while they are used, and after. The load waits for the disk only when
//! too many bytes would be in memory.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::slice;

use futures_channel::oneshot;
use futures_util::lock::Mutex;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::Blob;

use super::database::{NewPart, Storage};
use super::room::Room;
use crate::error::{Error, Result};
use crate::transfer::{Manifest, Note};
use crate::web::bytes::{ArrayPool, Bytes};
use crate::web::digest::digest;
use crate::web::error::text;
use crate::web::log::warn;
use crate::web::progress::Reporter;
use crate::web::timer::sleep;

/// Bytes in memory that are being fetched or written, of all files of a model. If the disk is
/// slower than the network, the download waits for it.
const MAX_WAITING: u64 = 10 << 20;

/// Milliseconds before each attempt to write after other files were deleted. Browsers free their
/// room late: Chromium deletes bytes that a page has read two to five seconds after the page let go
/// of them.
const AFTER_EVICTION: [f64; 5] = [0.0, 100.0, 400.0, 1600.0, 5000.0];

/// The length of an array that makes a browser collect garbage.
const NUDGE: u32 = 128 << 20;

/// A file's record takes about so many bytes at most.
const MAX_RECORD: u64 = 256 << 10;

#[wasm_bindgen]
extern "C" {
    // js-sys declares a constructor that never throws, but this one may.
    #[wasm_bindgen(js_name = ArrayBuffer)]
    type Untouched;
    #[wasm_bindgen(constructor, js_class = "ArrayBuffer", catch)]
    fn new(length: u32) -> Result<Untouched, JsValue>;
}

/// Stores one file. If that fails, it reports the failure and stops, and the download goes on.
pub(in crate::web) struct Writer {
    storage: Storage,
    /// Whether the bytes go to a file on the disk, or else to IndexedDB; `None` until that is
    /// known.
    on_disk: Cell<Option<bool>>,
    pool: ArrayPool,
    id: String,
    url: String,
    total: Option<u64>,
    /// Whether an earlier load has stored parts of the file.
    resumed: bool,
    reporter: Rc<Reporter>,
    /// Bytes on the disk, including those of an earlier load.
    stored: Cell<u64>,
    /// Whether this writer has written any bytes.
    written: Cell<bool>,
    /// Parts that are ready to write.
    queue: RefCell<Vec<NewPart>>,
    /// Held during a write, because only one transaction at a time may make room.
    writing: Mutex<()>,
    stopped: Cell<bool>,
    /// The bytes of this file that are in memory and not stored yet.
    own: Slots,
    /// The bytes of all files of the model that are in memory.
    all: Rc<Slots>,
}

/// The bytes of the slots in use.
#[derive(Default)]
pub(in crate::web) struct Slots {
    taken: Cell<u64>,
    /// All are dropped when a slot becomes free, which wakes the receivers.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Slots {
    /// Waits until at most `max` bytes are in use.
    async fn until(&self, max: u64) {
        while self.taken.get() > max {
            let (tell, told) = oneshot::channel();
            self.waiting.borrow_mut().push(tell);
            // This resolves with an error when the sender is dropped.
            let _ = told.await;
        }
    }

    fn take(&self, bytes: u64) {
        self.taken.set(self.taken.get() + bytes);
    }

    fn free(&self, bytes: u64) {
        self.taken.set(self.taken.get() - bytes);
        self.waiting.take();
    }
}

/// The right to hold the bytes of a part in memory, until they are stored or given up.
pub(in crate::web) struct WriteSlot {
    writer: Rc<Writer>,
    bytes: u64,
    /// How many of the bytes may still be in memory.
    in_memory: Cell<u64>,
}

impl WriteSlot {
    /// Frees the memory of `bytes` more bytes.
    fn let_go(&self, bytes: u64) {
        let bytes = bytes.min(self.in_memory.get());
        self.in_memory.set(self.in_memory.get() - bytes);
        self.writer.all.free(bytes);
    }
}

impl Drop for WriteSlot {
    fn drop(&mut self) {
        self.let_go(self.bytes);
        self.writer.own.free(self.bytes);
    }
}

impl Writer {
    /// For a file whose record is in the storage already. `slots` are those of all files of the
    /// model.
    pub(in crate::web) fn new(
        storage: Storage,
        file: &Manifest,
        reporter: Rc<Reporter>,
        pool: ArrayPool,
        slots: &Rc<Slots>,
    ) -> Rc<Self> {
        Rc::new(Self {
            storage,
            on_disk: Cell::new(None),
            pool,
            id: file.id.clone(),
            url: file.url.clone(),
            total: file.total,
            resumed: !file.stored.is_empty(),
            reporter,
            stored: Cell::new(file.bytes()),
            queue: RefCell::default(),
            writing: Mutex::new(()),
            written: Cell::new(false),
            stopped: Cell::new(false),
            own: Slots::default(),
            all: Rc::clone(slots),
        })
    }

    /// Waits for a slot for a part of `bytes`, and takes it.
    pub(in crate::web) async fn slot(self: &Rc<Self>, bytes: u64) -> Rc<WriteSlot> {
        if self.on_disk.get().is_none() {
            let on_disk = match &self.storage.disk {
                Some(disk) => disk.can_write().await,
                None => false,
            };
            self.on_disk.set(Some(on_disk));
        }
        self.all.until(MAX_WAITING.saturating_sub(bytes)).await;
        self.own.take(bytes);
        self.all.take(bytes);
        Rc::new(WriteSlot { writer: Rc::clone(self), bytes, in_memory: Cell::new(bytes) })
    }

    /// Stores a copy of `bytes`, which begin at the offset `start`. Returns at once.
    pub(in crate::web) fn put(slot: &Rc<WriteSlot>, start: u64, bytes: &Uint8Array) {
        let this = &slot.writer;
        if this.stopped.get() {
            return;
        }
        this.reporter.waits(u64::from(bytes.length()));
        // The array will be used again soon.
        let mut copy = this.pool.take(bytes.length());
        copy.push(bytes);
        let (this, slot) = (Rc::clone(this), Rc::clone(slot));
        spawn_local(async move {
            let length = u64::from(copy.length());
            let done = match this.part(start, copy).await {
                Ok(part) => {
                    if part.blob.is_none() {
                        slot.let_go(length);
                    }
                    this.queue.borrow_mut().push(part);
                    this.commit().await
                }
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                this.stop(&error).await;
            }
            this.reporter.stored(length);
            drop(slot);
        });
    }

    /// The part of `bytes`. When this is done, they are on the disk or in a blob.
    async fn part(&self, start: u64, bytes: Bytes) -> Result<NewPart> {
        let length = u64::from(bytes.length());
        let Some(disk) = self.storage.disk.as_ref().filter(|_| self.on_disk.get() == Some(true))
        else {
            let failed = |why| Error::Storage(format!("a blob: {}", text(&why)));
            let blob = Blob::new_with_u8_array_sequence(&Array::of1(&bytes.all()));
            let sha256 = digest(&bytes.all())?.await?;
            drop(bytes);
            collect_garbage();
            return Ok(NewPart { start, length, blob: Some(blob.map_err(failed)?), sha256 });
        };
        let (bytes, hash) = (Mutex::new(bytes), Cell::new(String::new()));
        let write = async || {
            if self.stopped.get() {
                // Writing would create the deleted file again.
                return Err(Error::Storage("the model is not stored".into()));
            }
            hash.set(disk.write(&self.id, start, &mut *bytes.lock().await).await?);
            Ok(())
        };
        if let Err(error) = write().await {
            if !matches!(error, Error::StorageFull(_)) {
                return Err(error);
            }
            let _writing = self.writing.lock().await;
            self.with_room(length, write).await?;
        }
        Ok(NewPart { start, length, blob: None, sha256: hash.take() })
    }

    /// Reports that the rest of the file does not come. The stored bytes stay.
    pub(in crate::web) fn interrupted(&self, error: &Error) {
        warn(&format!("the rest of the model is not stored: {error}"));
        self.reporter.note(Note::NotStored { why: error.to_string() });
    }

    /// Waits until everything is on the disk; `false` if writing has failed.
    pub(in crate::web) async fn settle(&self) -> bool {
        self.own.until(0).await;
        !self.stopped.get()
    }

    /// Whether this writer has stored anything.
    pub(in crate::web) async fn has_stored(&self) -> bool {
        self.settle().await && self.written.get()
    }

    /// Whether it has stopped storing.
    pub(in crate::web) fn has_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Marks the file as complete. Gives whether that was possible.
    pub(in crate::web) async fn complete(&self, total: u64, sha256: Option<String>) -> bool {
        if !self.settle().await {
            return false;
        }
        if let (Some(disk), Some(true)) = (&self.storage.disk, self.on_disk.get())
            && let Err(error) = disk.flush(&self.id).await
        {
            self.stop(&error).await;
            return false;
        }
        let complete = async || self.storage.complete(&self.id, total, sha256.clone()).await;
        if let Err(error) = self.with_room(MAX_RECORD, complete).await {
            self.stop(&error).await;
        }
        !self.stopped.get()
    }

    /// Deletes the stored bytes of the file.
    pub(in crate::web) async fn discard(&self) {
        self.settle().await;
        // If this fails, the next download of the address cleans up.
        let _ = self.storage.discard(vec![self.id.clone()]).await;
    }

    /// Writes the whole queue in one transaction, because one transaction for each part takes three
    /// times as long. Parts that come meanwhile go into the next transaction.
    async fn commit(&self) -> Result<()> {
        let _writing = self.writing.lock().await;
        let parts = self.queue.take();
        if parts.is_empty() || self.stopped.get() {
            return Ok(());
        }
        let written = self.storage.append(&self.id, &parts).await;
        if matches!(written, Err(Error::StorageFull(_))) {
            // The parts go one by one, as many as there is room for.
            for part in &parts {
                let alone = slice::from_ref(part);
                let append = async || self.storage.append(&self.id, alone).await;
                self.with_room(length(alone), append).await?;
                self.stored.set(self.stored.get() + length(alone));
            }
        } else {
            written?;
            self.stored.set(self.stored.get() + length(&parts));
        }
        self.written.set(true);
        Ok(())
    }

    /// Calls `write`. If the disk is full, deletes other models and tries again.
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

    /// Deletes other models to make room for the rest of this one, or at least for `length` bytes.
    /// Gives `false` if there are too few to delete.
    async fn make_room(&self, length: u64) -> bool {
        let missing = self.total.map(|total| total.saturating_sub(self.stored.get()));
        let needed = missing.unwrap_or(0).max(length);
        match self.storage.make_room_when_full(&self.url, needed).await {
            Room::Made(evicted) => {
                self.reporter.evicted(evicted);
                true
            }
            Room::Not { .. } => false,
        }
    }

    /// Gives up storing, and deletes the stored bytes, because they would only take room from other
    /// models. Bytes that an earlier load has stored stay, because this load may still read them.
    async fn stop(&self, error: &Error) {
        if self.stopped.replace(true) {
            return;
        }
        warn(&format!("the model is not stored: {error}"));
        self.reporter.note(Note::NotStored { why: error.to_string() });
        if self.resumed {
            return;
        }
        // If either fails, the next download of the address cleans up.
        let _ = self.storage.discard(vec![self.id.clone()]).await;
        if matches!(error, Error::StorageFull(_)) {
            let _ = self.storage.refuse(&self.url, self.total.unwrap_or(0)).await;
        }
    }
}

fn length(parts: &[NewPart]) -> u64 {
    parts.iter().map(|part| part.length).sum()
}

/// Makes the browser collect garbage soon. The browser keeps the bytes of a blob in memory until it
/// finds that the blob is not used any more, but blobs do not make it look. Without this call, the
/// whole file ends up in memory. Arrays do make it look, and an array that is never touched takes
/// no memory.
fn collect_garbage() {
    // Only a hint: it may fail for lack of memory.
    let _ = Untouched::new(NUDGE);
}
