//! Where the records of the files are: in IndexedDB, or in files of their own where a program runs
//! that is no browser. Both have transactions.
//!
//! In IndexedDB there are two object stores. `files` has one record for each file, its [`Manifest`].
//! `parts` has the bytes that are in no file of the disk: one blob for each part, under
//! `[file id, part key]`.

use std::collections::HashSet;
use std::rc::Rc;

use futures_util::future::{Either, join_all, select};
use idb::{
    Database, DatabaseEvent as _, KeyPath, KeyRange, ObjectStore, Query, TransactionMode,
    TransactionResult,
};
use js_sys::Array;
use wasm_bindgen::prelude::*;
use web_sys::Blob;

use super::disk::{DiskRecords, DiskTransaction};
use crate::error::{Error, Result};
use crate::transfer::Manifest;
use crate::web::abort::detached;
use crate::web::error::text;
use crate::web::timer::sleep;

/// The database's name and the version of its layout.
const DATABASE: (&str, u32) = ("tritloom", 1);
const FILES: &str = "files";
const PARTS: &str = "parts";
/// Milliseconds to wait for a database that another tab blocks.
const OPEN_TIMEOUT: f64 = 5000.0;

/// The records of all files.
#[derive(Clone)]
pub(super) enum Records {
    Browser(Rc<Database>),
    Disk(Rc<DiskRecords>),
}

impl Records {
    /// Opens the database. Creates it the first time.
    ///
    /// Errors: `storage`, as for all functions here. Functions that write also fail with
    /// `storage-full`.
    pub(super) async fn in_browser() -> Result<Self> {
        let opening = detached(async {
            let mut database = Database::builder(DATABASE.0)
                .version(DATABASE.1)
                .add_object_store(
                    ObjectStore::builder(FILES).key_path(Some(KeyPath::new_single("id"))),
                )
                .add_object_store(ObjectStore::builder(PARTS))
                .build()
                .await
                .map_err(failed)?;
            // A newer version of this package in another tab may change the layout.
            database.on_version_change(|event| {
                if let Ok(database) = event.database() {
                    database.close();
                }
            });
            Ok(Self::Browser(Rc::new(database)))
        });
        match select(std::pin::pin!(opening), std::pin::pin!(sleep(OPEN_TIMEOUT))).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => Err(Error::Storage("another tab blocks it".into())),
        }
    }

    /// A transaction that only reads.
    pub(super) async fn read(&self) -> Result<Transaction> {
        self.begin(TransactionMode::ReadOnly).await
    }

    /// A transaction that may write.
    pub(super) async fn write(&self) -> Result<Transaction> {
        self.begin(TransactionMode::ReadWrite).await
    }

    async fn begin(&self, mode: TransactionMode) -> Result<Transaction> {
        match self {
            Self::Browser(database) => {
                let transaction = database.transaction(&[FILES, PARTS], mode).map_err(failed)?;
                Ok(Transaction::Browser(transaction))
            }
            Self::Disk(records) => {
                Ok(Transaction::Disk(records.begin(mode == TransactionMode::ReadWrite).await?))
            }
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // An open connection would block a newer layout.
        if let Self::Browser(database) = self
            && Rc::strong_count(database) == 1
        {
            database.close();
        }
    }
}

/// Reads and changes records. Nothing is changed if it is dropped without [`Transaction::end`].
pub(super) enum Transaction {
    Browser(idb::Transaction),
    Disk(DiskTransaction),
}

impl Transaction {
    /// Every file, complete or not.
    pub(super) async fn files(&self) -> Result<Vec<Manifest>> {
        let records = match self {
            Self::Browser(_) => {
                self.store(FILES)?.get_all(None, None).map_err(failed)?.await.map_err(failed)?
            }
            Self::Disk(transaction) => transaction.all()?,
        };
        Ok(records.into_iter().filter_map(manifest).collect())
    }

    /// A file's record. Fails if there is none.
    pub(super) async fn file(&self, id: &str) -> Result<Manifest> {
        let record = match self {
            Self::Browser(_) => {
                let found = self.store(FILES)?.get(JsValue::from(id)).map_err(failed)?;
                found.await.map_err(failed)?.and_then(manifest)
            }
            Self::Disk(transaction) => manifest(transaction.get(id)?),
        };
        record.ok_or_else(|| Error::Storage("the file was deleted meanwhile".into()))
    }

    /// Adds a record, or changes it.
    pub(super) async fn put(&self, file: &Manifest) -> Result<()> {
        let record = serde_wasm_bindgen::to_value(file)
            .map_err(|error| Error::Internal(format!("a file's record: {error}")))?;
        match self {
            Self::Browser(_) => {
                self.store(FILES)?.put(&record, None).map_err(failed)?.await.map_err(failed)?;
            }
            Self::Disk(transaction) => transaction.put(&file.id, &record),
        }
        Ok(())
    }

    /// Removes a record and the blobs of its parts.
    pub(super) async fn remove(&self, id: &str) -> Result<()> {
        match self {
            Self::Browser(_) => {
                let parts = self.store(PARTS)?.delete(part_keys(id)?).map_err(failed)?;
                parts.await.map_err(failed)?;
                let file = self.store(FILES)?.delete(JsValue::from(id)).map_err(failed)?;
                file.await.map_err(failed)
            }
            Self::Disk(transaction) => {
                transaction.remove(id);
                Ok(())
            }
        }
    }

    /// Removes all records and blobs.
    pub(super) async fn clear(&self) -> Result<()> {
        match self {
            Self::Browser(_) => {
                for name in [FILES, PARTS] {
                    self.store(name)?.clear().map_err(failed)?.await.map_err(failed)?;
                }
            }
            Self::Disk(transaction) => {
                for file in self.files().await? {
                    transaction.remove(&file.id);
                }
                transaction.sweep()?;
            }
        }
        Ok(())
    }

    /// The keys of a file's parts that are blobs.
    pub(super) async fn blob_keys(&self, id: &str) -> Result<HashSet<u32>> {
        let Self::Browser(_) = self else { return Ok(HashSet::new()) };
        let keys = self.store(PARTS)?.get_all_keys(Some(part_keys(id)?), None).map_err(failed)?;
        let keys = keys.await.map_err(failed)?;
        let key = |key: JsValue| Some(key.dyn_ref::<Array>()?.get(1).as_f64()? as u32);
        Ok(keys.into_iter().filter_map(key).collect())
    }

    /// The blob of a part; `None` if it is gone.
    pub(super) async fn blob(&self, id: &str, key: u32) -> Result<Option<Blob>> {
        let Self::Browser(_) = self else { return Ok(None) };
        let blob = self.store(PARTS)?.get(part_key(id, key)).map_err(failed)?;
        Ok(blob.await.map_err(failed)?.and_then(|blob| blob.dyn_into().ok()))
    }

    /// Adds blobs of a file's parts, by their keys.
    pub(super) async fn put_blobs(&self, id: &str, blobs: &[(u32, Blob)]) -> Result<()> {
        if blobs.is_empty() {
            return Ok(());
        }
        let store = self.store(PARTS)?;
        let puts = blobs.iter().map(|(key, blob)| store.put(blob, Some(&part_key(id, *key))));
        // All writes are awaited even if one fails: see `detached`.
        let stored = join_all(puts.map(async |put| put?.await)).await;
        stored.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed)?;
        Ok(())
    }

    /// Removes the blob of a part, if there is one.
    pub(super) async fn remove_blob(&self, id: &str, key: u32) -> Result<()> {
        let Self::Browser(_) = self else { return Ok(()) };
        let removed = self.store(PARTS)?.delete(part_key(id, key)).map_err(failed)?;
        removed.await.map_err(failed)
    }

    /// Removes records that cannot be read, and blobs that belong to no file.
    pub(super) async fn sweep(&self) -> Result<()> {
        if let Self::Disk(transaction) = self {
            return transaction.sweep();
        }
        let known: HashSet<String> = self.files().await?.into_iter().map(|file| file.id).collect();
        let (files, parts) = (self.store(FILES)?, self.store(PARTS)?);
        let keys = files.get_all_keys(None, None).map_err(failed)?.await.map_err(failed)?;
        for key in keys {
            if key.as_string().is_none_or(|id| !known.contains(&id)) {
                files.delete(key).map_err(failed)?.await.map_err(failed)?;
            }
        }
        let keys = parts.get_all_keys(None, None).map_err(failed)?.await.map_err(failed)?;
        for key in keys {
            let id = key.dyn_ref::<Array>().and_then(|key| key.get(0).as_string());
            if id.is_none_or(|id| !known.contains(&id)) {
                parts.delete(key).map_err(failed)?.await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Waits until everything is on the disk. Only then is it known whether the disk is full.
    pub(super) async fn end(self) -> Result<()> {
        // A second handle on the transaction, because awaiting the first one does not tell why it was
        // aborted.
        let same = match &self {
            Self::Browser(_) => self.store(FILES)?.transaction(),
            Self::Disk(transaction) => return transaction.end(),
        };
        let Self::Browser(transaction) = self else { return Ok(()) };
        match transaction.await.map_err(failed)? {
            TransactionResult::Committed => Ok(()),
            TransactionResult::Aborted => Err(match same.error() {
                Some(exception) => failed(idb::Error::DomException(exception)),
                None => Error::Storage("a write was undone".into()),
            }),
        }
    }

    fn store(&self, name: &str) -> Result<ObjectStore> {
        match self {
            Self::Browser(transaction) => transaction.object_store(name).map_err(failed),
            Self::Disk(_) => Err(Error::Internal("records of the disk have no stores".into())),
        }
    }
}

fn part_key(id: &str, key: u32) -> JsValue {
    Array::of2(&id.into(), &key.into()).into()
}

/// The keys of all parts of a file. In IndexedDB's order an array sorts after every number.
fn part_keys(id: &str) -> Result<Query> {
    let (first, last) = (part_key(id, 0), Array::of2(&id.into(), &Array::new()));
    KeyRange::bound(&first, &last, None, None).map(Query::from).map_err(failed)
}

/// The record; `None` if it cannot be read, because then it is not a file of ours.
fn manifest(record: JsValue) -> Option<Manifest> {
    serde_wasm_bindgen::from_value::<Manifest>(record).ok()?.checked().ok()
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
        Error::Storage(message)
    }
}
