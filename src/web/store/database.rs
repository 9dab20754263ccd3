//! Finds, adds and changes the records of the files, in transactions of [`Records`].
//!
//! A file's record is its [`Manifest`]. The bytes are in a file of [`Disk`], whose name is the
//! record's id, each part at its own offset. In a browser without such files they are blobs among
//! the records. A part's entry in the manifest is written after its bytes, or in one
//! transaction with its blob. `complete` is written last, in a transaction that has counted the
//! parts. So an incomplete download, or one that another tab has deleted, never counts as complete.
//! A later download continues a broken one from its stored bytes.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use web_sys::Blob;

use super::disk::{Disk, Sizes};
use super::records::{Records, Transaction};
use crate::error::{Error, Result};
use crate::transfer::{Manifest, StoredPart};
use crate::web::abort::detached;

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

/// The open records.
#[derive(Clone)]
pub(in crate::web) struct Storage {
    records: Records,
    /// The files with the bytes, if the browser has such files.
    pub(super) disk: Option<Rc<Disk>>,
    /// Bytes of files that were deleted to make room, minus the bytes that were written since. The
    /// browser may not have noticed the deletions yet.
    pub(super) freed: Rc<Cell<u64>>,
}

impl Storage {
    /// Opens the records. Creates them the first time.
    ///
    /// Errors: `storage`, as for all functions here. Functions that write also fail with
    /// `storage-full`.
    pub(in crate::web) async fn open() -> Result<Self> {
        let disk = Disk::open().await?.map(Rc::new);
        let records = match disk.as_ref().and_then(|disk| disk.records()) {
            Some(records) => Records::Disk(Rc::new(records)),
            None => Records::in_browser().await?,
        };
        Ok(Self { records, disk, freed: Rc::default() })
    }

    /// Every file, complete or not.
    pub(in crate::web) async fn list(&self) -> Result<Vec<Manifest>> {
        let this = self.clone();
        detached(async move { this.records.read().await?.files().await }).await
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
            let transaction = this.records.write().await?;
            let mut found: Option<Manifest> = None;
            for mut file in transaction.files().await? {
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
                    Ok(()) | Err(Error::StorageFull(_) | Error::Storage(_)) => {}
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
            let transaction = this.records.write().await?;
            transaction.sweep().await?;
            transaction.put(&file).await?;
            let mut kept = HashSet::new();
            for other in transaction.files().await? {
                if other.url == file.url && !other.complete && other.id != file.id {
                    transaction.remove(&other.id).await?;
                } else {
                    kept.insert(other.id);
                }
            }
            transaction.end().await?;
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
            let transaction = this.records.write().await?;
            let mut file = transaction.file(&id).await?;
            let (mut blobs, mut written) = (Vec::new(), 0);
            for NewPart { start, length, blob, sha256 } in parts {
                let (key, on_disk) = (file.next_key(), blob.is_none());
                if file.insert(StoredPart { key, start, length, sha256, on_disk }) {
                    blobs.extend(blob.map(|blob| (key, blob)));
                    written += length;
                }
            }
            // The bytes come first, so that a write that is refused without undoing the transaction
            // leaves no entry.
            transaction.put_blobs(&id, &blobs).await?;
            transaction.put(&file).await?;
            transaction.end().await?;
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
            let transaction = this.records.write().await?;
            let mut file = transaction.file(&id).await?;
            file.total = Some(total);
            let size = sizes.of(&id);
            reconcile(&transaction, &mut file, |part| part.end() > size).await?;
            if !file.complete {
                return Err(Error::Storage(format!("it has {} of {total} bytes", file.bytes())));
            }
            let mut removed = Vec::new();
            for old in transaction.files().await? {
                if old.url == file.url && old.id != file.id {
                    transaction.remove(&old.id).await?;
                    removed.push(old.id);
                }
            }
            file.sha256 = sha256.or(file.sha256);
            transaction.put(&file).await?;
            transaction.end().await?;
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
            let transaction = this.records.write().await?;
            let mut file = transaction.file(&id).await?;
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
            let transaction = this.records.write().await?;
            let mut file = transaction.file(&id).await?;
            // On the disk, new bytes will be written over the old ones.
            for part in starts.into_iter().filter_map(|start| file.remove(start)) {
                transaction.remove_blob(&id, part.key).await?;
            }
            save(transaction, &file).await
        })
        .await
    }

    /// Deletes files, either all or none.
    pub(in crate::web) async fn discard(&self, ids: Vec<String>) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.records.write().await?;
            for id in &ids {
                transaction.remove(id).await?;
            }
            transaction.end().await?;
            this.remove_files(ids).await;
            Ok(())
        })
        .await
    }

    /// Deletes all that is stored of `urls`, or nothing if one fails.
    pub(in crate::web) async fn delete(&self, urls: Vec<String>) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.records.write().await?;
            let mut removed = Vec::new();
            for file in transaction.files().await? {
                if urls.contains(&file.url) {
                    transaction.remove(&file.id).await?;
                    removed.push(file.id);
                }
            }
            transaction.end().await?;
            this.remove_files(removed).await;
            Ok(())
        })
        .await
    }

    /// Deletes everything.
    pub(in crate::web) async fn clear(&self) -> Result<()> {
        let this = self.clone();
        detached(async move {
            let transaction = this.records.write().await?;
            transaction.clear().await?;
            transaction.end().await?;
            let names = this.sizes().await?.names();
            this.remove_files(names).await;
            Ok(())
        })
        .await
    }

    /// The blob of a part; `None` if it is gone.
    pub(super) async fn blob(&self, id: &str, key: u32) -> Result<Option<Blob>> {
        let (this, id) = (self.clone(), id.to_owned());
        detached(async move { this.records.read().await?.blob(&id, key).await }).await
    }

    /// The files of `url` and the keys of their parts that are on the disk.
    async fn parts_on_disk(&self, url: &str) -> Result<HashSet<(String, u32)>> {
        let transaction = self.records.read().await?;
        let files = transaction.files().await?;
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
}

/// A record of a file without parts. Every download gets its own id, because two tabs that load the
/// same address without locks must not write into the same file.
pub(in crate::web) fn new_file(url: &str) -> Manifest {
    let now = js_sys::Date::now();
    Manifest::new(format!("{now}-{}", (js_sys::Math::random() * 1e16) as u64), url, now)
}

/// Writes a record, and ends the transaction.
async fn save(transaction: Transaction, file: &Manifest) -> Result<()> {
    transaction.put(file).await?;
    transaction.end().await
}

/// Removes from the record the parts whose bytes are gone. `is_gone` says whether the bytes of a
/// part on the disk are gone. The file is complete if nothing is missing, even if another tab wrote
/// the last part.
async fn reconcile(
    transaction: &Transaction,
    file: &mut Manifest,
    is_gone: impl Fn(&StoredPart) -> bool,
) -> Result<()> {
    let found = transaction.blob_keys(&file.id).await?;
    file.stored.retain(
        |part| {
            if part.on_disk { !is_gone(part) } else { found.contains(&part.key) }
        },
    );
    file.complete = !file.stored.is_empty() && file.total == Some(file.bytes());
    Ok(())
}
