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
    own: Reserved,
    model: Rc<ModelFiles>,
}

/// The storing of a model, for the attempt that loads it. If this is dropped before the header is
/// known, no other model is deleted for this one any more.
#[derive(Default)]
pub(in crate::web) struct Storing(Rc<ModelFiles>);

impl Storing {
    /// The header has been read and describes a model that can run. So other models may be deleted
    /// for it.
    pub(in crate::web) fn header_is_known(&self) {
        self.0.decide(Header::Known);
    }

    /// A file of the model is not stored.
    pub(in crate::web) fn lacks_a_file(&self) {
        self.0.lacks_a_file.set(true);
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        self.0.decide(Header::NotRead);
    }
}

/// The state that the files of a model share.
#[derive(Default)]
struct ModelFiles {
    /// The bytes of the files that are in memory.
    in_memory: Reserved,
    /// The number of bytes that are still to be stored, of files whose length is known.
    missing: Cell<u64>,
    header: Cell<Header>,
    /// Whether a write waits for the header.
    is_waited_for: Cell<bool>,
    /// Whether a file of the model is not stored. Then no other model is deleted for the rest.
    lacks_a_file: Cell<bool>,
    /// Held while other models are deleted.
    making_room: Mutex<()>,
}

/// Whether the model's header has been read. Before that, the bytes may be no model at all.
#[derive(Clone, Copy, Default, PartialEq)]
enum Header {
    #[default]
    Unknown,
    Known,
    /// The attempt has ended without it.
    NotRead,
}

impl ModelFiles {
    /// Sets the state of the header, if it is not set yet.
    fn decide(&self, header: Header) {
        if self.header.get() == Header::Unknown {
            self.header.set(header);
            self.in_memory.wake();
        }
    }

    /// Waits until the header has been read. Gives `false` if the attempt ends without it.
    async fn is_known(&self) -> bool {
        if self.header.get() == Header::Unknown {
            self.is_waited_for.set(true);
            // The rest of the header must come although the bytes before it stay in memory.
            self.in_memory.wake();
            self.in_memory.until(|_| self.header.get() != Header::Unknown).await;
        }
        self.header.get() == Header::Known
    }

    /// Waits until `bytes` more may be in memory. While a write waits for the header, there is no
    /// limit. The load keeps the header in memory in any case.
    async fn has_memory_for(&self, bytes: u64) {
        let needs_more = || self.is_waited_for.get() && self.header.get() == Header::Unknown;
        let most = MAX_WAITING.saturating_sub(bytes);
        self.in_memory.until(|taken| taken <= most || needs_more()).await;
    }
}

/// The bytes of all reservations.
#[derive(Default)]
struct Reserved {
    taken: Cell<u64>,
    /// All are dropped when something has changed, which wakes the receivers.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Reserved {
    /// Waits until `ends` is true of the reserved bytes.
    async fn until(&self, ends: impl Fn(u64) -> bool) {
        while !ends(self.taken.get()) {
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
        self.wake();
    }

    fn wake(&self) {
        self.waiting.take();
    }
}

/// The right to hold the bytes of a part in memory, until they are stored or given up.
pub(in crate::web) struct Reservation {
    writer: Rc<Writer>,
    bytes: u64,
    /// How many of the bytes may still be in memory.
    in_memory: Cell<u64>,
}

impl Reservation {
    /// Frees the memory of `bytes` more bytes.
    fn let_go(&self, bytes: u64) {
        let bytes = bytes.min(self.in_memory.get());
        self.in_memory.set(self.in_memory.get() - bytes);
        self.writer.model.in_memory.free(bytes);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.let_go(self.bytes);
        self.writer.own.free(self.bytes);
    }
}

impl Writer {
    /// For a file that is in the storage already.
    pub(in crate::web) fn new(
        storage: Storage,
        file: &Manifest,
        reporter: Rc<Reporter>,
        pool: ArrayPool,
        Storing(model): &Storing,
    ) -> Rc<Self> {
        let this = Rc::new(Self {
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
            own: Reserved::default(),
            model: Rc::clone(model),
        });
        model.missing.set(model.missing.get() + this.missing());
        this
    }

    /// The number of bytes of the file that are still to be stored; 0 if its length is unknown.
    fn missing(&self) -> u64 {
        self.total.map_or(0, |total| total.saturating_sub(self.stored.get()))
    }

    /// Counts bytes that have been stored.
    fn count(&self, bytes: u64) {
        let before = self.missing();
        self.stored.set(self.stored.get() + bytes);
        self.model.missing.set(self.model.missing.get() + self.missing() - before);
    }

    /// Reserves memory for a part of `bytes`, as soon as there is some.
    pub(in crate::web) async fn reserve(self: &Rc<Self>, bytes: u64) -> Rc<Reservation> {
        if self.on_disk.get().is_none() {
            let on_disk = match &self.storage.disk {
                Some(disk) => disk.can_write().await,
                None => false,
            };
            self.on_disk.set(Some(on_disk));
        }
        self.model.has_memory_for(bytes).await;
        self.own.take(bytes);
        self.model.in_memory.take(bytes);
        Rc::new(Reservation { writer: Rc::clone(self), bytes, in_memory: Cell::new(bytes) })
    }

    /// Stores a copy of `bytes`, which begin at the offset `start` and whose memory is reserved.
    /// Returns at once.
    pub(in crate::web) fn put(reservation: &Rc<Reservation>, start: u64, bytes: &Uint8Array) {
        let this = &reservation.writer;
        if this.stopped.get() {
            return;
        }
        this.reporter.waits(u64::from(bytes.length()));
        // The array will be used again soon.
        let mut copy = this.pool.take(bytes.length());
        copy.push(bytes);
        let (this, reservation) = (Rc::clone(this), Rc::clone(reservation));
        spawn_local(async move {
            let length = u64::from(copy.length());
            let done = match this.part(start, copy).await {
                Ok(part) => {
                    if part.blob.is_none() {
                        reservation.let_go(length);
                    }
                    this.queue.borrow_mut().push(part);
                    this.commit().await
                }
                Err(error) => Err(error),
            };
            // An attempt that ended without a header keeps the bytes that it could store.
            if let Err(error) = done
                && this.model.header.get() != Header::NotRead
            {
                this.stop(&error).await;
            }
            this.reporter.stored(length);
            drop(reservation);
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
        self.own.until(|taken| taken == 0).await;
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
                self.count(length(alone));
            }
        } else {
            written?;
            self.count(length(&parts));
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

    /// Deletes other models, and other versions of this file, to make room for the rest of this
    /// model, or at least for `length` bytes. Gives `false` if there are too few to delete, if the
    /// attempt ends before the header is known, or if a file of the model is not stored anyway.
    async fn make_room(&self, length: u64) -> bool {
        // A file of unknown length is read when all of it is here, and so is its header. Its bytes
        // cannot wait in memory until then.
        let cannot_wait = self.total.is_none() && self.model.header.get() == Header::Unknown;
        if cannot_wait || !self.model.is_known().await {
            return false;
        }
        // Another file of the model may have made enough room for all of them.
        let _making = self.model.making_room.lock().await;
        if self.model.lacks_a_file.get() {
            return false;
        }
        let needed = self.model.missing.get().max(length);
        let evicted = self.storage.evict(&self.url, &self.id, needed).await;
        let is_made = evicted.is_some();
        self.reporter.evicted(evicted.unwrap_or_default());
        is_made
    }

    /// Gives up storing, and deletes the stored bytes, because they would only take room from other
    /// models. Bytes that an earlier load has stored stay, because this load may still read them.
    async fn stop(&self, error: &Error) {
        if self.stopped.replace(true) {
            return;
        }
        self.model.lacks_a_file.set(true);
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
