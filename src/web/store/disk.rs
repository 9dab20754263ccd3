//! Files of bytes in the browser's own file system. Other threads read, write and hash them.
//!
//! Chromium reads them twenty times as fast as blobs in IndexedDB and writes them twice as fast.
//! The records stay in IndexedDB. Where there is no browser, the files are in a folder of the
//! system's, and the records beside them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use js_sys::{ArrayBuffer, Map, Uint8Array};
use wasm_bindgen::prelude::*;

use crate::error::{Error, Result};
use crate::web::bytes::Bytes;
use crate::web::error::text;

mod browser {
    use super::*;

    #[wasm_bindgen(raw_module = "./threads/disk.js")]
    extern "C" {
        #[wasm_bindgen(js_name = Disk)]
        pub(super) type BrowserDisk;
        #[wasm_bindgen(static_method_of = BrowserDisk, js_class = "Disk", catch)]
        pub(super) async fn open() -> Result<JsValue, JsValue>;
        #[wasm_bindgen(static_method_of = BrowserDisk, js_class = "Disk")]
        pub(super) async fn free() -> JsValue;
        #[wasm_bindgen(method, getter)]
        pub(super) fn records(this: &BrowserDisk) -> Option<FolderRecords>;
        #[wasm_bindgen(method, js_name = canWrite)]
        pub(super) async fn can_write(this: &BrowserDisk) -> JsValue;
        #[wasm_bindgen(method, catch)]
        pub(super) async fn sizes(this: &BrowserDisk) -> Result<JsValue, JsValue>;
        #[wasm_bindgen(method)]
        pub(super) async fn read(
            this: &BrowserDisk,
            name: &str,
            start: f64,
            length: u32,
            array: &ArrayBuffer,
        ) -> JsValue;
        #[wasm_bindgen(method)]
        pub(super) async fn write(
            this: &BrowserDisk,
            name: &str,
            start: f64,
            length: u32,
            array: &ArrayBuffer,
        ) -> JsValue;
        #[wasm_bindgen(method)]
        pub(super) async fn flush(this: &BrowserDisk, name: &str) -> JsValue;
        #[wasm_bindgen(method, catch)]
        pub(super) async fn remove(this: &BrowserDisk, name: &str) -> Result<(), JsValue>;
        #[wasm_bindgen(method)]
        pub(super) fn end(this: &BrowserDisk);

        pub(super) type FolderRecords;
        #[wasm_bindgen(method, catch)]
        pub(super) async fn begin(this: &FolderRecords, writes: bool) -> Result<JsValue, JsValue>;

        pub(super) type FolderTransaction;
        #[wasm_bindgen(method, catch)]
        pub(super) fn all(this: &FolderTransaction) -> Result<Vec<JsValue>, JsValue>;
        #[wasm_bindgen(method, catch)]
        pub(super) fn get(this: &FolderTransaction, id: &str) -> Result<JsValue, JsValue>;
        #[wasm_bindgen(method)]
        pub(super) fn put(this: &FolderTransaction, id: &str, record: &JsValue);
        #[wasm_bindgen(method, js_name = remove)]
        pub(super) fn forget(this: &FolderTransaction, id: &str);
        #[wasm_bindgen(method, catch)]
        pub(super) fn sweep(this: &FolderTransaction) -> Result<(), JsValue>;
        #[wasm_bindgen(method, js_name = end, catch)]
        pub(super) fn commit(this: &FolderTransaction) -> Result<(), JsValue>;
        #[wasm_bindgen(method, js_name = leave)]
        pub(super) fn leave(this: &FolderTransaction);

        /// An answer of a thread.
        pub(super) type DiskAnswer;
        #[wasm_bindgen(method, getter)]
        pub(super) fn array(this: &DiskAnswer) -> Option<ArrayBuffer>;
        #[wasm_bindgen(method, getter)]
        pub(super) fn length(this: &DiskAnswer) -> Option<u32>;
        #[wasm_bindgen(method, getter)]
        pub(super) fn sha256(this: &DiskAnswer) -> Option<ArrayBuffer>;
        #[wasm_bindgen(method, getter)]
        pub(super) fn failed(this: &DiskAnswer) -> Option<String>;
    }
}

use browser::{BrowserDisk, DiskAnswer, FolderRecords, FolderTransaction};

/// Bytes that can still be stored, if that is known.
pub(super) async fn free() -> Option<f64> {
    BrowserDisk::free().await.as_f64().filter(|bytes| bytes.is_finite())
}

/// The files of this origin. Their threads start when they are needed. They end when this is
/// dropped.
pub(super) struct Disk(BrowserDisk);

impl Disk {
    /// `None` in a browser without such files. Fails if the folder cannot be made.
    pub(super) async fn open() -> Result<Option<Self>> {
        let disk = BrowserDisk::open().await.map_err(|why| failed(&text(&why)))?;
        Ok((!disk.is_undefined()).then(|| Self(disk.unchecked_into())))
    }

    /// The records, if they are files too.
    pub(super) fn records(&self) -> Option<DiskRecords> {
        self.0.records().map(DiskRecords)
    }

    /// Whether files can be written. They cannot if the page's policy allows no workers.
    pub(super) async fn can_write(&self) -> bool {
        self.0.can_write().await.is_truthy()
    }

    /// Errors: `storage`, as for all functions here. Functions that write also fail with
    /// `storage-full`.
    pub(super) async fn sizes(&self) -> Result<Sizes> {
        let sizes = self.0.sizes().await.map_err(|why| failed(&text(&why)))?;
        Ok(Sizes(sizes.unchecked_into()))
    }

    /// Fills `bytes` with the bytes of a file from `start` on, as many as there are. Returns their
    /// hash in base64; `None` if the file is gone, because another tab may have deleted it.
    pub(super) async fn read(
        &self,
        name: &str,
        start: u64,
        bytes: &mut Bytes,
    ) -> Result<Option<String>> {
        let (array, length) = (bytes.lend(), bytes.missing());
        let answer: DiskAnswer =
            self.0.read(name, start as f64, length, &array).await.unchecked_into();
        if answer.failed().is_some_and(|why| why.contains("NotFoundError")) {
            return Ok(None);
        }
        let length = answer.length().unwrap_or(0);
        hash(&answer, bytes, length).map(Some)
    }

    /// Writes all of `bytes` to a file from `start` on. Returns their hash in base64.
    pub(super) async fn write(&self, name: &str, start: u64, bytes: &mut Bytes) -> Result<String> {
        let (array, length) = (bytes.lend(), bytes.length());
        let answer = self.0.write(name, start as f64, length, &array).await.unchecked_into();
        hash(&answer, bytes, length)
    }

    /// Waits until all that was written is on the disk.
    pub(super) async fn flush(&self, name: &str) -> Result<()> {
        checked(self.0.flush(name).await.unchecked_ref())
    }

    /// Deletes files. A file that another tab reads stays. It then counts as a file without a
    /// record.
    pub(super) async fn remove(&self, names: impl IntoIterator<Item = String>) {
        for name in names {
            // If this fails, the next download cleans up.
            let _ = self.0.remove(&name).await;
        }
    }
}

/// The records of the files, which are files too. Other threads and programs may use them.
pub(super) struct DiskRecords(FolderRecords);

impl DiskRecords {
    /// Begins a transaction. One that writes waits for the others that do.
    ///
    /// Errors: `storage`.
    pub(super) async fn begin(&self, writes: bool) -> Result<DiskTransaction> {
        let begun = self.0.begin(writes).await.map_err(|why| failed(&text(&why)))?;
        Ok(DiskTransaction(begun.unchecked_into()))
    }
}

/// A look at all records, and changes of them. Others that write wait until it is dropped.
pub(super) struct DiskTransaction(FolderTransaction);

impl DiskTransaction {
    /// Errors: `storage`, as for all functions here, if the disk does not give the records.
    pub(super) fn all(&self) -> Result<Vec<JsValue>> {
        self.0.all().map_err(|why| failed(&text(&why)))
    }

    /// A record; `undefined` if there is none, or if it is broken.
    pub(super) fn get(&self, id: &str) -> Result<JsValue> {
        self.0.get(id).map_err(|why| failed(&text(&why)))
    }

    pub(super) fn put(&self, id: &str, record: &JsValue) {
        self.0.put(id, record);
    }

    pub(super) fn remove(&self, id: &str) {
        self.0.forget(id);
    }

    /// Deletes records that cannot be read, and what programs left behind that were ended.
    pub(super) fn sweep(&self) -> Result<()> {
        self.0.sweep().map_err(|why| failed(&text(&why)))
    }

    /// Makes the changes.
    ///
    /// Errors: `storage`, `storage-full`.
    pub(super) fn end(&self) -> Result<()> {
        self.0.commit().map_err(|why| refused(&text(&why)))
    }
}

impl Drop for DiskTransaction {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// The bytes of each file, by name.
#[derive(Default)]
pub(super) struct Sizes(Map);

impl Sizes {
    /// The bytes of a file; 0 if there is none.
    pub(super) fn of(&self, name: &str) -> u64 {
        self.0.get(&name.into()).as_f64().unwrap_or(0.0) as u64
    }

    /// The names of the files.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().into_iter().flatten().filter_map(|name| name.as_string()).collect()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Gives the array back, which now holds `length` bytes.
fn hash(answer: &DiskAnswer, bytes: &mut Bytes, length: u32) -> Result<String> {
    if let Some(array) = answer.array() {
        bytes.give_back(array, length);
    }
    checked(answer)?;
    let hash = answer.sha256().ok_or_else(|| failed("no hash"))?;
    Ok(BASE64_STANDARD.encode(Uint8Array::new(&hash).to_vec()))
}

fn checked(answer: &DiskAnswer) -> Result<()> {
    answer.failed().map_or(Ok(()), |why| Err(refused(&why)))
}

fn refused(why: &str) -> Error {
    if why.contains("QuotaExceeded") { Error::StorageFull(why.into()) } else { failed(why) }
}

fn failed(why: &str) -> Error {
    Error::Storage(format!("a file: {why}"))
}
