//! Model files on this device: IndexedDB, in pieces.
//!
//! Two stores. `files` has one record per download, [`File`]; `chunks` has its bytes, blobs of
//! [`Pieces::SIZE`] under `[file id, index]`. A file counts only when its record says `complete`,
//! which is written last, in one transaction that has counted the chunks: half a download, or one
//! that another tab has deleted, is never taken for a whole. Every download has an id of its own,
//! so that two tabs that load the same address do not write into each other's file.

use std::ops::Range;
use std::rc::Rc;

use futures_util::future::{Either, select};
use idb::{
    Database, DatabaseEvent as _, KeyPath, KeyRange, ObjectStore, Query, Transaction,
    TransactionMode, TransactionResult,
};
use js_sys::{Array, Uint8Array};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;

use super::abort::detached;
use super::blob::{self, Pieces};
use super::error::text;
use super::log::warn;
use crate::error::{Error, Result};
use crate::source::Source;

/// The database's name and the version of its layout. A new layout needs a new version and says
/// in [`open`] what becomes of the old one.
const DATABASE: (&str, u32) = ("ternlight", 1);
const FILES: &str = "files";
const CHUNKS: &str = "chunks";
/// Milliseconds to wait for a database that another tab blocks.
const PATIENCE: i32 = 5000;

/// One download.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    id: String,
    pub(super) url: String,
    /// Whether all of it is here.
    pub(super) complete: bool,
    /// Bytes stored.
    pub(super) bytes: u64,
    /// Chunks they are in.
    chunks: u32,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    /// When it was stored and when it was last loaded, milliseconds since 1970.
    pub(super) added: f64,
    pub(super) used: f64,
}

/// The open database.
#[derive(Clone)]
pub(super) struct Storage(Rc<Database>);

#[wasm_bindgen]
extern "C" {
    // A global of pages and workers alike.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, milliseconds: i32) -> JsValue;
}

impl Storage {
    /// Opens the database, and makes it the first time.
    pub(super) async fn open() -> Result<Self> {
        let opening = detached(async {
            let mut database = Database::builder(DATABASE.0)
                .version(DATABASE.1)
                .add_object_store(
                    ObjectStore::builder(FILES).key_path(Some(KeyPath::new_single("id"))),
                )
                .add_object_store(ObjectStore::builder(CHUNKS))
                .build()
                .await
                .map_err(failed)?;
            // Let a newer version of this package in another tab change the layout.
            database.on_version_change(|event| {
                if let Ok(database) = event.database() {
                    database.close();
                }
            });
            Ok(Self(Rc::new(database)))
        });
        let patience = js_sys::Promise::new(&mut |resolve, _| {
            set_timeout(&resolve, PATIENCE);
        });
        match select(std::pin::pin!(opening), JsFuture::from(patience)).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => Err(unavailable("another tab blocks it".into())),
        }
    }

    /// Every file there is, whole or not.
    pub(super) async fn list(&self) -> Result<Vec<File>> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES], TransactionMode::ReadOnly)?;
            files(&transaction).await
        })
        .await
    }

    /// The whole file of `url`, marked as used.
    pub(super) async fn find(&self, url: &str) -> Result<Option<File>> {
        let (this, url) = (self.clone(), url.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let mut found = None;
            for mut file in files(&transaction).await? {
                if !file.complete || file.url != url {
                    continue;
                }
                if count(&transaction, &file.id).await? == file.chunks {
                    file.used = js_sys::Date::now();
                    put(&transaction, &file).await?;
                    found = Some(file);
                } else {
                    remove(&transaction, &file.id).await?;
                }
            }
            end(transaction).await?;
            Ok(found)
        })
        .await
    }

    /// Begins a file. What was left of an earlier attempt goes.
    pub(super) async fn create(
        &self,
        url: &str,
        etag: Option<String>,
        last_modified: Option<String>,
    ) -> Result<Writer> {
        let now = js_sys::Date::now();
        let file = File {
            id: format!("{now}-{}", (js_sys::Math::random() * 1e16) as u64),
            url: url.to_owned(),
            complete: false,
            bytes: 0,
            chunks: 0,
            etag,
            last_modified,
            added: now,
            used: now,
        };
        let (this, record) = (self.clone(), file.clone());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            for old in files(&transaction).await? {
                if old.url == record.url && !old.complete {
                    remove(&transaction, &old.id).await?;
                }
            }
            put(&transaction, &record).await?;
            end(transaction).await
        })
        .await?;
        Ok(Writer { storage: self.clone(), file: Some(file), pieces: Pieces::default() })
    }

    /// Deletes what is stored of `url`.
    pub(super) async fn delete(&self, url: &str) -> Result<()> {
        let (this, url) = (self.clone(), url.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            for file in files(&transaction).await? {
                if file.url == url {
                    remove(&transaction, &file.id).await?;
                }
            }
            end(transaction).await
        })
        .await
    }

    /// Deletes everything.
    pub(super) async fn clear(&self) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            for name in [FILES, CHUNKS] {
                let store = transaction.object_store(name).map_err(failed)?;
                store.clear().map_err(failed)?.await.map_err(failed)?;
            }
            end(transaction).await
        })
        .await
    }

    async fn chunk(&self, id: &str, index: u32) -> Result<Blob> {
        let (this, key) = (self.clone(), chunk_key(id, index));
        detached(async move {
            let transaction = this.begin(&[CHUNKS], TransactionMode::ReadOnly)?;
            let store = transaction.object_store(CHUNKS).map_err(failed)?;
            let blob = store.get(key).map_err(failed)?.await.map_err(failed)?;
            blob.and_then(|blob| blob.dyn_into().ok()).ok_or_else(|| {
                unavailable(format!("chunk {index} of the model is gone; load it again"))
            })
        })
        .await
    }

    /// Stores a chunk, if the file is still wanted.
    async fn append(&self, file: &File, blob: Blob) -> Result<()> {
        let (this, file) = (self.clone(), file.clone());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            // Another tab may have cleared the storage, or begun the same download anew.
            if !files(&transaction).await?.iter().any(|other| other.id == file.id) {
                return Err(unavailable("the download was deleted meanwhile".into()));
            }
            put(&transaction, &file).await?;
            let store = transaction.object_store(CHUNKS).map_err(failed)?;
            let key = chunk_key(&file.id, file.chunks - 1);
            store.put(&blob, Some(&key)).map_err(failed)?.await.map_err(failed)?;
            end(transaction).await
        })
        .await
    }

    /// Makes a file count, in place of older ones of its address.
    async fn commit(&self, file: &File) -> Result<()> {
        let (this, mut file) = (self.clone(), file.clone());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let stored = count(&transaction, &file.id).await?;
            if stored != file.chunks {
                return Err(unavailable(format!("{stored} of {} chunks are there", file.chunks)));
            }
            for old in files(&transaction).await? {
                if old.url == file.url && old.id != file.id && old.complete {
                    remove(&transaction, &old.id).await?;
                }
            }
            file.complete = true;
            put(&transaction, &file).await?;
            end(transaction).await
        })
        .await
    }

    async fn discard(&self, id: String) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            remove(&transaction, &id).await?;
            end(transaction).await
        })
        .await
    }

    fn begin(&self, stores: &[&str], mode: TransactionMode) -> Result<Transaction> {
        self.0.transaction(stores, mode).map_err(failed)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Open connections make a newer layout wait.
        if Rc::strong_count(&self.0) == 1 {
            self.0.close();
        }
    }
}

/// Stores a download as it comes. Its failures are not the download's: it warns, and stops.
pub(super) struct Writer {
    storage: Storage,
    /// `None` when storing has failed.
    file: Option<File>,
    pieces: Pieces,
}

impl Writer {
    /// Takes the next bytes.
    pub(super) async fn write(&mut self, chunk: &Uint8Array) {
        if self.file.is_none() {
            return;
        }
        let mut blobs = Vec::new();
        let mut result = self.pieces.push(chunk, |blob| blobs.push(blob));
        for blob in blobs {
            if result.is_ok() {
                result = self.append(blob).await;
            }
        }
        self.give_up_on_error(result);
    }

    /// The file is whole.
    pub(super) async fn commit(mut self) {
        let result = match self.pieces.rest() {
            Ok(Some(blob)) => self.append(blob).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let result = match (result, &self.file) {
            (Ok(()), Some(file)) => self.storage.commit(file).await,
            (result, _) => result,
        };
        match result {
            // Taken, so that dropping it discards nothing.
            Ok(()) => self.file = None,
            failed => self.give_up_on_error(failed),
        }
    }

    async fn append(&mut self, blob: Blob) -> Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.bytes += blob.size() as u64;
        file.chunks += 1;
        self.storage.append(file, blob).await
    }

    fn give_up_on_error(&mut self, result: Result<()>) {
        if let Err(error) = result {
            warn(&format!("the model is not stored: {error}"));
            self.discard_later();
        }
    }

    /// Deletes what is stored of the file.
    pub(super) async fn discard(mut self) {
        if let Some(file) = self.file.take() {
            // If this fails too, the next download of the address cleans up.
            let _ = self.storage.discard(file.id).await;
        }
    }

    fn discard_later(&mut self) {
        if let Some(file) = self.file.take() {
            let storage = self.storage.clone();
            wasm_bindgen_futures::spawn_local(async move {
                let _ = storage.discard(file.id).await;
            });
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.discard_later();
    }
}

/// A stored file.
pub(super) struct StoredSource {
    storage: Storage,
    file: File,
    /// The chunk read last: the pieces of a model are mostly smaller than a chunk.
    current: Option<(u32, Blob)>,
}

impl StoredSource {
    pub(super) fn new(storage: Storage, file: File) -> Self {
        Self { storage, file, current: None }
    }
}

impl Source for StoredSource {
    fn len(&self) -> u64 {
        self.file.bytes
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let size = u64::from(Pieces::SIZE);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut start = range.start;
        while start < range.end {
            let index = (start / size) as u32;
            let chunk = match &self.current {
                Some((current, chunk)) if *current == index => chunk.clone(),
                _ => self.storage.chunk(&self.file.id, index).await?,
            };
            self.current = Some((index, chunk.clone()));
            let first = u64::from(index) * size;
            let end = range.end.min(first + size);
            let part = blob::read(&chunk, start - first..end - first, STORAGE).await?;
            part.copy_to(&mut bytes[(start - range.start) as usize..(end - range.start) as usize]);
            start = end;
        }
        Ok(bytes)
    }
}

const STORAGE: &str = "the browser's storage (IndexedDB)";

fn chunk_key(id: &str, index: u32) -> JsValue {
    Array::of2(&id.into(), &index.into()).into()
}

/// All chunks of a file. In IndexedDB's order an array sorts after every number.
fn chunk_keys(id: &str) -> Result<Query> {
    let (first, last) = (chunk_key(id, 0), Array::of2(&id.into(), &Array::new()));
    KeyRange::bound(&first, &last, None, None).map(Query::from).map_err(failed)
}

async fn files(transaction: &Transaction) -> Result<Vec<File>> {
    let store = transaction.object_store(FILES).map_err(failed)?;
    let records = store.get_all(None, None).map_err(failed)?.await.map_err(failed)?;
    // A record that cannot be read is not a file.
    Ok(records.into_iter().filter_map(|file| serde_wasm_bindgen::from_value(file).ok()).collect())
}

async fn put(transaction: &Transaction, file: &File) -> Result<()> {
    let record = serde_wasm_bindgen::to_value(file)
        .map_err(|error| Error::Internal(format!("a file's record: {error}")))?;
    let store = transaction.object_store(FILES).map_err(failed)?;
    store.put(&record, None).map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

async fn count(transaction: &Transaction, id: &str) -> Result<u32> {
    let store = transaction.object_store(CHUNKS).map_err(failed)?;
    store.count(Some(chunk_keys(id)?)).map_err(failed)?.await.map_err(failed)
}

async fn remove(transaction: &Transaction, id: &str) -> Result<()> {
    let store = transaction.object_store(CHUNKS).map_err(failed)?;
    store.delete(chunk_keys(id)?).map_err(failed)?.await.map_err(failed)?;
    let store = transaction.object_store(FILES).map_err(failed)?;
    store.delete(JsValue::from(id)).map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

/// Waits until everything is on disk, where a full disk shows.
async fn end(transaction: Transaction) -> Result<()> {
    match transaction.await.map_err(failed)? {
        TransactionResult::Committed => Ok(()),
        TransactionResult::Aborted => Err(Error::StorageFull("a write was undone".into())),
    }
}

fn unavailable(why: String) -> Error {
    Error::Network { what: STORAGE.into(), why }
}

fn failed(error: idb::Error) -> Error {
    let message = error.to_string();
    let thrown = match error {
        idb::Error::DomException(exception) => exception.into(),
        _ => JsValue::from(message),
    };
    let message = text(&thrown);
    if message.contains("QuotaExceeded") {
        Error::StorageFull(message)
    } else {
        unavailable(message)
    }
}
