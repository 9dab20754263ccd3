//! Model files on this device: IndexedDB, in pieces.
//!
//! Two stores. `files` has one record per file, its [`Manifest`]; `chunks` has the bytes, blobs
//! under `[file id, chunk key]`. A chunk and its mark in the manifest are written in one
//! transaction, and `complete` in the last one, which has counted the chunks: half a download, or
//! one that another tab has deleted, is never taken for a whole. What a download that was broken
//! off has left is found again by the next one.

mod room;
mod writer;

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use futures_util::future::{Either, join_all, select};
use idb::{
    Database, DatabaseEvent as _, KeyPath, KeyRange, ObjectStore, Query, Transaction,
    TransactionMode, TransactionResult,
};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::Blob;

use super::abort::detached;
use super::error::text;
use super::timer::sleep;
use crate::error::{Error, Result};
use crate::transfer::{Chunk, Manifest, Record};

pub(super) use room::Room;
pub(super) use writer::{Place, Writer};

/// The database's name and the version of its layout. Version 1 had the same stores with other
/// records, which [`Record`] knows; releases of that time refuse to open a newer version.
const DATABASE: (&str, u32) = ("ternlight", 2);
const FILES: &str = "files";
const CHUNKS: &str = "chunks";
/// Milliseconds to wait for a database that another tab blocks.
const PATIENCE: f64 = 5000.0;

/// Bytes to be stored as a chunk.
#[derive(Clone)]
struct Piece {
    /// Where they begin in the file.
    start: u64,
    blob: Blob,
    /// In base64.
    sha256: String,
}

/// The open database.
#[derive(Clone)]
pub(super) struct Storage {
    database: Rc<Database>,
    /// Bytes that must be free since other files have given way, less what was written since. The
    /// browser may not have counted them yet.
    made: Rc<Cell<u64>>,
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
            Ok(Self { database: Rc::new(database), made: Rc::default() })
        });
        match select(std::pin::pin!(opening), std::pin::pin!(sleep(PATIENCE))).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => Err(unavailable("another tab blocks it".into())),
        }
    }

    /// Every file there is, whole or not.
    pub(super) async fn list(&self) -> Result<Vec<Manifest>> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES], TransactionMode::ReadOnly)?;
            files(&transaction).await
        })
        .await
    }

    /// What is here of `url`, marked as used: the whole file, else the largest part of one. Chunks
    /// that the browser has lost are off its list.
    pub(super) async fn find(&self, url: &str) -> Result<Option<Manifest>> {
        let (this, url) = (self.clone(), url.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let mut found: Option<Manifest> = None;
            for mut file in files(&transaction).await? {
                if file.url != url {
                    continue;
                }
                reconcile(&transaction, &mut file).await?;
                let rank = |file: &Manifest| (file.complete, file.bytes());
                if found.as_ref().is_none_or(|found| rank(&file) > rank(found)) {
                    found = Some(file);
                }
            }
            if let Some(file) = &mut found {
                file.used = js_sys::Date::now();
                put(&transaction, file).await?;
            }
            end(transaction).await?;
            Ok(found)
        })
        .await
    }

    /// Begins a file, in place of the parts of its address that are here, and clears away what
    /// belongs to none.
    pub(super) async fn create(&self, file: &Manifest) -> Result<()> {
        let (this, file) = (self.clone(), file.clone());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            sweep(&transaction).await?;
            for old in files(&transaction).await? {
                if old.url == file.url && !old.complete {
                    remove(&transaction, &old.id).await?;
                }
            }
            put(&transaction, &file).await?;
            end(transaction).await
        })
        .await
    }

    /// Stores pieces and their marks, all or none of them. Nothing happens where there are bytes
    /// already.
    ///
    /// Errors: `network` if the file was deleted meanwhile, `storage-full`.
    async fn append(&self, id: &str, pieces: &[Piece]) -> Result<()> {
        let (this, id, pieces) = (self.clone(), id.to_owned(), pieces.to_vec());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            let store = transaction.object_store(CHUNKS).map_err(failed)?;
            let (mut puts, mut written) = (Vec::new(), 0);
            for Piece { start, blob, sha256 } in pieces {
                let (key, length) = (file.next_key(), blob.size() as u64);
                if file.insert(Chunk { key, start, length, sha256: Some(sha256) }) {
                    puts.push(store.put(&blob, Some(&chunk_key(&id, key))));
                    written += length;
                }
            }
            // The bytes first: a refusal that does not undo the transaction leaves no mark.
            // All of them are awaited, whatever becomes of one: see `detached`.
            let stored = join_all(puts.into_iter().map(async |put| put?.await)).await;
            stored.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed)?;
            put(&transaction, &file).await?;
            end(transaction).await?;
            this.made.set(this.made.get().saturating_sub(written));
            Ok(())
        })
        .await
    }

    /// Makes a file of `total` bytes count as whole, in place of older ones of its address.
    async fn complete(&self, id: &str, total: u64, sha256: Option<String>) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            file.total = Some(total);
            reconcile(&transaction, &mut file).await?;
            if !file.complete {
                let why = format!("{} of {total} bytes are there", file.bytes());
                return Err(unavailable(why));
            }
            for old in files(&transaction).await? {
                if old.url == file.url && old.id != file.id {
                    remove(&transaction, &old.id).await?;
                }
            }
            file.sha256 = sha256.or(file.sha256);
            put(&transaction, &file).await?;
            end(transaction).await
        })
        .await
    }

    /// Remembers that `needed` bytes of `url` did not fit, in place of a part of them.
    pub(super) async fn refuse(&self, url: &str, needed: u64) -> Result<()> {
        let mut file = new_file(url);
        file.did_not_fit = Some(needed);
        self.create(&file).await
    }

    /// Notes the hash of a whole file.
    pub(super) async fn set_sha256(&self, id: &str, sha256: String) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            file.sha256 = Some(sha256);
            put(&transaction, &file).await?;
            end(transaction).await
        })
        .await
    }

    /// Forgets chunks that turned out to be damaged: the next load fetches them, and no others.
    pub(super) async fn forget(&self, id: &str, starts: Vec<u64>) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            let store = transaction.object_store(CHUNKS).map_err(failed)?;
            for chunk in starts.into_iter().filter_map(|start| file.remove(start)) {
                let key = chunk_key(&id, chunk.key);
                store.delete(key).map_err(failed)?.await.map_err(failed)?;
            }
            put(&transaction, &file).await?;
            end(transaction).await
        })
        .await
    }

    /// Deletes a file.
    pub(super) async fn discard(&self, id: &str) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, CHUNKS], TransactionMode::ReadWrite)?;
            remove(&transaction, &id).await?;
            end(transaction).await
        })
        .await
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

    /// A chunk's bytes; `None` if they are gone.
    pub(super) async fn chunk(&self, id: &str, key: u32) -> Result<Option<Blob>> {
        let (this, key) = (self.clone(), chunk_key(id, key));
        detached(async move {
            let transaction = this.begin(&[CHUNKS], TransactionMode::ReadOnly)?;
            let store = transaction.object_store(CHUNKS).map_err(failed)?;
            let blob = store.get(key).map_err(failed)?.await.map_err(failed)?;
            Ok(blob.and_then(|blob| blob.dyn_into().ok()))
        })
        .await
    }

    fn begin(&self, stores: &[&str], mode: TransactionMode) -> Result<Transaction> {
        self.database.transaction(stores, mode).map_err(failed)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Open connections make a newer layout wait.
        if Rc::strong_count(&self.database) == 1 {
            self.database.close();
        }
    }
}

/// A file with nothing in it. Every download has an id of its own, so that two tabs without locks
/// that load the same address do not write into each other's file.
pub(super) fn new_file(url: &str) -> Manifest {
    let now = js_sys::Date::now();
    Manifest::new(format!("{now}-{}", (js_sys::Math::random() * 1e16) as u64), url, now)
}

fn chunk_key(id: &str, key: u32) -> JsValue {
    Array::of2(&id.into(), &key.into()).into()
}

/// All chunks of a file. In IndexedDB's order an array sorts after every number.
fn chunk_keys(id: &str) -> Result<Query> {
    let (first, last) = (chunk_key(id, 0), Array::of2(&id.into(), &Array::new()));
    KeyRange::bound(&first, &last, None, None).map(Query::from).map_err(failed)
}

async fn files(transaction: &Transaction) -> Result<Vec<Manifest>> {
    let store = transaction.object_store(FILES).map_err(failed)?;
    let records = store.get_all(None, None).map_err(failed)?.await.map_err(failed)?;
    Ok(records.into_iter().filter_map(manifest).collect())
}

async fn file(transaction: &Transaction, id: &str) -> Result<Manifest> {
    let store = transaction.object_store(FILES).map_err(failed)?;
    let record = store.get(JsValue::from(id)).map_err(failed)?.await.map_err(failed)?;
    record
        .and_then(manifest)
        .ok_or_else(|| unavailable("the file was deleted from it meanwhile".into()))
}

/// A record that cannot be read is not a file.
fn manifest(record: JsValue) -> Option<Manifest> {
    let record: Record = serde_wasm_bindgen::from_value(record).ok()?;
    Manifest::read(record).ok()
}

async fn put(transaction: &Transaction, file: &Manifest) -> Result<()> {
    let record = serde_wasm_bindgen::to_value(file)
        .map_err(|error| Error::Internal(format!("a file's record: {error}")))?;
    let store = transaction.object_store(FILES).map_err(failed)?;
    store.put(&record, None).map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

/// Takes chunks off the list that are not there. A file is whole when nothing is missing, whoever
/// came to write the last of it.
async fn reconcile(transaction: &Transaction, file: &mut Manifest) -> Result<()> {
    let store = transaction.object_store(CHUNKS).map_err(failed)?;
    let keys = store.get_all_keys(Some(chunk_keys(&file.id)?), None).map_err(failed)?;
    let there: HashSet<u32> = keys
        .await
        .map_err(failed)?
        .into_iter()
        .filter_map(|key| Some(key.dyn_ref::<Array>()?.get(1).as_f64()? as u32))
        .collect();
    file.chunks.retain(|chunk| there.contains(&chunk.key));
    file.complete = !file.chunks.is_empty() && file.total == Some(file.bytes());
    Ok(())
}

/// Deletes records that cannot be read, and chunks of files that are none.
async fn sweep(transaction: &Transaction) -> Result<()> {
    let known: HashSet<String> =
        files(transaction).await?.into_iter().map(|file| file.id).collect();
    let (files, chunks) = (
        transaction.object_store(FILES).map_err(failed)?,
        transaction.object_store(CHUNKS).map_err(failed)?,
    );
    let keys = files.get_all_keys(None, None).map_err(failed)?.await.map_err(failed)?;
    for key in keys {
        if key.as_string().is_none_or(|id| !known.contains(&id)) {
            files.delete(key).map_err(failed)?.await.map_err(failed)?;
        }
    }
    let keys = chunks.get_all_keys(None, None).map_err(failed)?.await.map_err(failed)?;
    for key in keys {
        let id = key.dyn_ref::<Array>().and_then(|key| key.get(0).as_string());
        if id.is_none_or(|id| !known.contains(&id)) {
            chunks.delete(key).map_err(failed)?.await.map_err(failed)?;
        }
    }
    Ok(())
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
    // The same transaction again: awaiting it gives no reason for an abort.
    let same = transaction.object_store(FILES).or_else(|_| transaction.object_store(CHUNKS));
    let same = same.map_err(failed)?.transaction();
    match transaction.await.map_err(failed)? {
        TransactionResult::Committed => Ok(()),
        TransactionResult::Aborted => Err(match same.error() {
            Some(exception) => failed(idb::Error::DomException(exception)),
            None => unavailable("a write was undone".into()),
        }),
    }
}

fn unavailable(why: String) -> Error {
    Error::Network { what: "the browser's storage (IndexedDB)".into(), why }
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
