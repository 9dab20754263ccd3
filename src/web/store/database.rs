//! The records of the files, in IndexedDB.
//!
//! There are two object stores. `files` has one record for each file, its [`Manifest`]. The bytes
//! are in a file of [`Disk`], whose name is the record's id, each part at its own offset. In a
//! browser without such files, `parts` has the bytes: one blob for each part, under
//! `[file id, part key]`. A part's entry in the manifest is written after its bytes, or in one
//! transaction with its blob. `complete` is written last, in a transaction that has counted the
//! parts. So an incomplete download, or one that another tab has deleted, never counts as complete.
//! A later download continues a broken one from its stored bytes.

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

use super::disk::{Disk, Sizes};
use crate::error::{Error, Result};
use crate::transfer::{Manifest, StoredPart};
use crate::web::abort::detached;
use crate::web::error::text;
use crate::web::timer::sleep;

/// The database's name and the version of its layout.
const DATABASE: (&str, u32) = ("tritloom", 1);
const FILES: &str = "files";
const PARTS: &str = "parts";
/// Milliseconds to wait for a database that another tab blocks.
const OPEN_TIMEOUT: f64 = 5000.0;

/// A part to store.
#[derive(Clone)]
pub(super) struct NewPart {
    /// Offset in the file.
    pub(super) start: u64,
    pub(super) length: u64,
    /// The bytes of the part; `None` if they are on the disk already.
    pub(super) blob: Option<Blob>,
    /// The hash in base64.
    pub(super) sha256: String,
}

/// The open database.
#[derive(Clone)]
pub(in crate::web) struct Storage {
    database: Rc<Database>,
    /// The files with the bytes, if the browser has such files.
    pub(super) disk: Option<Rc<Disk>>,
    /// Bytes of files that were deleted to make room, minus the bytes that were written since. The
    /// browser may not have noticed the deletions yet.
    pub(super) freed: Rc<Cell<u64>>,
}

impl Storage {
    /// Opens the database. Creates it the first time.
    ///
    /// Errors: `storage`, as for all functions here. Functions that write also fail with
    /// `storage-full`.
    pub(in crate::web) async fn open() -> Result<Self> {
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
            let disk = Disk::open().await.map(Rc::new);
            Ok(Self { database: Rc::new(database), disk, freed: Rc::default() })
        });
        match select(std::pin::pin!(opening), std::pin::pin!(sleep(OPEN_TIMEOUT))).await {
            Either::Left((opened, _)) => opened,
            Either::Right(_) => Err(Error::Storage("another tab blocks it".into())),
        }
    }

    /// Every file, complete or not.
    pub(in crate::web) async fn list(&self) -> Result<Vec<Manifest>> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES], TransactionMode::ReadOnly)?;
            files(&transaction).await
        })
        .await
    }

    /// The best record of `url` (see [`Manifest::rank`]) among those that `may_be` allows. Marks it as
    /// used. If the browser has lost some of its parts, they are removed from the record.
    pub(in crate::web) async fn find(
        &self,
        url: &str,
        may_be: impl Fn(&Manifest) -> bool + 'static,
    ) -> Result<Option<Manifest>> {
        let (this, url) = (self.clone(), url.to_owned());
        detached(async move {
            // Another tab may write a part and its record at any time. So the record is read before
            // the sizes, and only parts that it had then can be missing.
            let known = this.parts_on_disk(&url).await?;
            if !known.is_empty() && this.disk.is_none() {
                return Err(Error::Storage("the browser's files cannot be reached".into()));
            }
            let sizes = this.sizes().await?;
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            let mut found: Option<Manifest> = None;
            for mut file in files(&transaction).await? {
                if file.url != url || !may_be(&file) {
                    continue;
                }
                let (id, size) = (file.id.clone(), sizes.of(&file.id));
                let is_gone = |part: &StoredPart| {
                    part.end() > size && known.contains(&(id.clone(), part.key))
                };
                reconcile(&transaction, &mut file, is_gone).await?;
                if found.as_ref().is_none_or(|found| file.rank() > found.rank()) {
                    found = Some(file);
                }
            }
            if let Some(file) = &mut found {
                file.used = js_sys::Date::now();
                match save(transaction, file).await {
                    // The record stays as it was. The bytes can be read all the same.
                    Ok(()) | Err(Error::StorageFull(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(found)
        })
        .await
    }

    /// Adds a file. Deletes incomplete files of the same address, and all bytes that belong to no
    /// file.
    pub(in crate::web) async fn create(&self, file: &Manifest) -> Result<()> {
        let (this, file) = (self.clone(), file.clone());
        detached(async move {
            let names = this.sizes().await?.names();
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            sweep(&transaction).await?;
            put(&transaction, &file).await?;
            let mut kept = HashSet::new();
            for other in files(&transaction).await? {
                if other.url == file.url && !other.complete && other.id != file.id {
                    remove(&transaction, &other.id).await?;
                } else {
                    kept.insert(other.id);
                }
            }
            end(transaction).await?;
            this.remove_files(names.into_iter().filter(|name| !kept.contains(name))).await;
            Ok(())
        })
        .await
    }

    /// Stores parts and their entries in the record, either all or none. A part is skipped if some of
    /// its bytes are stored already.
    ///
    /// Errors: `storage-full`; `storage`, also if the file was deleted meanwhile.
    pub(super) async fn append(&self, id: &str, parts: &[NewPart]) -> Result<()> {
        let (this, id, parts) = (self.clone(), id.to_owned(), parts.to_vec());
        detached(async move {
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            let store = transaction.object_store(PARTS).map_err(failed)?;
            let (mut puts, mut written) = (Vec::new(), 0);
            for NewPart { start, length, blob, sha256 } in parts {
                let (key, on_disk) = (file.next_key(), blob.is_none());
                if file.insert(StoredPart { key, start, length, sha256, on_disk }) {
                    puts.extend(blob.map(|blob| store.put(&blob, Some(&part_key(&id, key)))));
                    written += length;
                }
            }
            // The bytes come first, so that a write that is refused without undoing the transaction
            // leaves no entry. All writes are awaited even if one fails: see `detached`.
            let stored = join_all(puts.into_iter().map(async |put| put?.await)).await;
            stored.into_iter().collect::<Result<Vec<_>, _>>().map_err(failed)?;
            put(&transaction, &file).await?;
            end(transaction).await?;
            this.freed.set(this.freed.get().saturating_sub(written));
            Ok(())
        })
        .await
    }

    /// Marks a file of `total` bytes as complete, and deletes older files of its address.
    pub(super) async fn complete(
        &self,
        id: &str,
        total: u64,
        sha256: Option<String>,
    ) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let sizes = this.sizes().await?;
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            file.total = Some(total);
            let size = sizes.of(&id);
            reconcile(&transaction, &mut file, |part| part.end() > size).await?;
            if !file.complete {
                return Err(Error::Storage(format!("it has {} of {total} bytes", file.bytes())));
            }
            let mut removed = Vec::new();
            for old in files(&transaction).await? {
                if old.url == file.url && old.id != file.id {
                    remove(&transaction, &old.id).await?;
                    removed.push(old.id);
                }
            }
            file.sha256 = sha256.or(file.sha256);
            put(&transaction, &file).await?;
            end(transaction).await?;
            this.remove_files(removed).await;
            Ok(())
        })
        .await
    }

    /// Records that `needed` bytes of `url` did not fit. Deletes its stored bytes.
    pub(in crate::web) async fn refuse(&self, url: &str, needed: u64) -> Result<()> {
        let mut file = new_file(url);
        file.did_not_fit = Some(needed);
        self.create(&file).await
    }

    /// Records the hash of a complete file.
    pub(in crate::web) async fn set_sha256(&self, id: &str, sha256: String) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            file.sha256 = Some(sha256);
            save(transaction, &file).await
        })
        .await
    }

    /// Deletes the parts that begin at `starts`, because they are damaged. The next load fetches only
    /// these.
    pub(in crate::web) async fn forget(&self, id: &str, starts: Vec<u64>) -> Result<()> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move {
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            let mut file = file(&transaction, &id).await?;
            let store = transaction.object_store(PARTS).map_err(failed)?;
            // On the disk, new bytes will be written over the old ones.
            for part in starts.into_iter().filter_map(|start| file.remove(start)) {
                let key = part_key(&id, part.key);
                store.delete(key).map_err(failed)?.await.map_err(failed)?;
            }
            save(transaction, &file).await
        })
        .await
    }

    /// Deletes files, either all or none.
    pub(in crate::web) async fn discard(&self, ids: Vec<String>) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            for id in &ids {
                remove(&transaction, id).await?;
            }
            end(transaction).await?;
            this.remove_files(ids).await;
            Ok(())
        })
        .await
    }

    /// Deletes all that is stored of `urls`, or nothing if one fails.
    pub(in crate::web) async fn delete(&self, urls: Vec<String>) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            let mut removed = Vec::new();
            for file in files(&transaction).await? {
                if urls.contains(&file.url) {
                    remove(&transaction, &file.id).await?;
                    removed.push(file.id);
                }
            }
            end(transaction).await?;
            this.remove_files(removed).await;
            Ok(())
        })
        .await
    }

    /// Deletes everything.
    pub(in crate::web) async fn clear(&self) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.begin(&[FILES, PARTS], TransactionMode::ReadWrite)?;
            for name in [FILES, PARTS] {
                let store = transaction.object_store(name).map_err(failed)?;
                store.clear().map_err(failed)?.await.map_err(failed)?;
            }
            end(transaction).await?;
            let names = this.sizes().await?.names();
            this.remove_files(names).await;
            Ok(())
        })
        .await
    }

    /// The blob of a part; `None` if it is gone.
    pub(super) async fn blob(&self, id: &str, key: u32) -> Result<Option<Blob>> {
        let (this, key) = (self.clone(), part_key(id, key));
        detached(async move {
            let transaction = this.begin(&[PARTS], TransactionMode::ReadOnly)?;
            let store = transaction.object_store(PARTS).map_err(failed)?;
            let blob = store.get(key).map_err(failed)?.await.map_err(failed)?;
            Ok(blob.and_then(|blob| blob.dyn_into().ok()))
        })
        .await
    }

    /// The files of `url` and the keys of their parts that are on the disk.
    async fn parts_on_disk(&self, url: &str) -> Result<HashSet<(String, u32)>> {
        let transaction = self.begin(&[FILES], TransactionMode::ReadOnly)?;
        let files = files(&transaction).await?;
        let of_url = files.iter().filter(|file| file.url == url);
        let keys = of_url.flat_map(|file| {
            let on_disk = file.stored.iter().filter(|part| part.on_disk);
            on_disk.map(|part| (file.id.clone(), part.key))
        });
        Ok(keys.collect())
    }

    /// The files on the disk. Each has the id of its record as its name.
    async fn sizes(&self) -> Result<Sizes> {
        match &self.disk {
            Some(disk) => disk.sizes().await,
            None => Ok(Sizes::default()),
        }
    }

    /// Deletes files whose records are gone.
    async fn remove_files(&self, ids: impl IntoIterator<Item = String>) {
        if let Some(disk) = &self.disk {
            disk.remove(ids).await;
        }
    }

    fn begin(&self, stores: &[&str], mode: TransactionMode) -> Result<Transaction> {
        self.database.transaction(stores, mode).map_err(failed)
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // An open connection would block a newer layout.
        if Rc::strong_count(&self.database) == 1 {
            self.database.close();
        }
    }
}

/// A record of a file without parts. Every download gets its own id, because two tabs that load the
/// same address without locks must not write into the same file.
pub(in crate::web) fn new_file(url: &str) -> Manifest {
    let now = js_sys::Date::now();
    Manifest::new(format!("{now}-{}", (js_sys::Math::random() * 1e16) as u64), url, now)
}

fn part_key(id: &str, key: u32) -> JsValue {
    Array::of2(&id.into(), &key.into()).into()
}

/// The keys of all parts of a file. In IndexedDB's order an array sorts after every number.
fn part_keys(id: &str) -> Result<Query> {
    let (first, last) = (part_key(id, 0), Array::of2(&id.into(), &Array::new()));
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
    record.and_then(manifest).ok_or_else(|| Error::Storage("the file was deleted meanwhile".into()))
}

/// The record; `None` if it cannot be read, because then it is not a file of ours.
fn manifest(record: JsValue) -> Option<Manifest> {
    serde_wasm_bindgen::from_value::<Manifest>(record).ok()?.checked().ok()
}

async fn put(transaction: &Transaction, file: &Manifest) -> Result<()> {
    let record = serde_wasm_bindgen::to_value(file)
        .map_err(|error| Error::Internal(format!("a file's record: {error}")))?;
    let store = transaction.object_store(FILES).map_err(failed)?;
    store.put(&record, None).map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

/// Writes a record, and ends the transaction.
async fn save(transaction: Transaction, file: &Manifest) -> Result<()> {
    put(&transaction, file).await?;
    end(transaction).await
}

/// Removes from the record the parts whose bytes are gone. `is_gone` says whether the bytes of a
/// part on the disk are gone. The file is complete if nothing is missing, even if another tab wrote
/// the last part.
async fn reconcile(
    transaction: &Transaction,
    file: &mut Manifest,
    is_gone: impl Fn(&StoredPart) -> bool,
) -> Result<()> {
    let store = transaction.object_store(PARTS).map_err(failed)?;
    let keys = store.get_all_keys(Some(part_keys(&file.id)?), None).map_err(failed)?;
    let found: HashSet<u32> = keys
        .await
        .map_err(failed)?
        .into_iter()
        .filter_map(|key| Some(key.dyn_ref::<Array>()?.get(1).as_f64()? as u32))
        .collect();
    file.stored.retain(
        |part| {
            if part.on_disk { !is_gone(part) } else { found.contains(&part.key) }
        },
    );
    file.complete = !file.stored.is_empty() && file.total == Some(file.bytes());
    Ok(())
}

/// Deletes records that cannot be read, and parts that belong to no file.
async fn sweep(transaction: &Transaction) -> Result<()> {
    let known: HashSet<String> =
        files(transaction).await?.into_iter().map(|file| file.id).collect();
    let (files, parts) = (
        transaction.object_store(FILES).map_err(failed)?,
        transaction.object_store(PARTS).map_err(failed)?,
    );
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

async fn remove(transaction: &Transaction, id: &str) -> Result<()> {
    let store = transaction.object_store(PARTS).map_err(failed)?;
    store.delete(part_keys(id)?).map_err(failed)?.await.map_err(failed)?;
    let store = transaction.object_store(FILES).map_err(failed)?;
    store.delete(JsValue::from(id)).map_err(failed)?.await.map_err(failed)?;
    Ok(())
}

/// Waits until everything is on the disk. Only then is it known whether the disk is full.
async fn end(transaction: Transaction) -> Result<()> {
    // A second handle on the transaction, because awaiting the first one does not tell why it was
    // aborted.
    let same = transaction.object_store(FILES).or_else(|_| transaction.object_store(PARTS));
    let same = same.map_err(failed)?.transaction();
    match transaction.await.map_err(failed)? {
        TransactionResult::Committed => Ok(()),
        TransactionResult::Aborted => Err(match same.error() {
            Some(exception) => failed(idb::Error::DomException(exception)),
            None => Error::Storage("a write was undone".into()),
        }),
    }
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
