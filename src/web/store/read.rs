//! Reads the parts of a stored file.

use std::rc::Rc;

use super::database::Storage;
use crate::error::Result;
use crate::transfer::StoredPart;
use crate::web::bytes::{ArrayPool, Bytes, read_blob};
use crate::web::digest::digest;
use crate::web::log::warn;
use crate::web::progress::Reporter;

/// A stored file for a load to read.
#[derive(Clone)]
pub(in crate::web) struct StoredFile {
    pub(in crate::web) storage: Storage,
    /// The file's name in the storage.
    pub(in crate::web) id: String,
    pub(in crate::web) reporter: Rc<Reporter>,
    pub(in crate::web) pool: ArrayPool,
    /// Whether other parts are downloaded at the same time. Then stored bytes do not count in the
    /// rate.
    pub(in crate::web) beside_download: bool,
}

impl StoredFile {
    /// The bytes of a part. `None` if they cannot be read, are gone or have changed. In that case
    /// the part is removed from the file's record.
    pub(in crate::web) async fn read(&self, part: &StoredPart) -> Option<Bytes> {
        let read = || read_part(&self.storage, &self.id, part, &self.pool);
        let mut found = read().await;
        // A part that fails once may not be damaged. Fetching it again would take longer than
        // reading it again.
        if let Err(error) = &found {
            warn(&format!("a stored part is read again: {error}"));
            found = read().await;
        }
        let Ok(Some(bytes)) = found else {
            // The load goes on, because the network may have the bytes.
            if self.beside_download {
                self.reporter.stored_lost(part.length);
            }
            // This fails if the whole file was deleted meanwhile, which is as good. After any other
            // failure the next load finds the part again, and `Restarts` limits how often.
            let _ = self.storage.forget(&self.id, vec![part.start]).await;
            return None;
        };
        if self.beside_download {
            self.reporter.advance_stored(part.length);
        } else {
            self.reporter.advance(part.length);
        }
        Some(bytes)
    }
}

/// The bytes of a part; `None` if they are gone or have changed.
///
/// Errors: `storage`.
pub(in crate::web) async fn read_part(
    storage: &Storage,
    id: &str,
    part: &StoredPart,
    pool: &ArrayPool,
) -> Result<Option<Bytes>> {
    let found = match &storage.disk {
        Some(disk) if part.on_disk => {
            let mut bytes = pool.take(part.length as u32);
            disk.read(id, part.start, &mut bytes).await?.map(|hash| (bytes, hash))
        }
        _ => from_blob(storage, id, part, pool).await?,
    };
    Ok(found
        .filter(|(bytes, hash)| {
            let is_whole = u64::from(bytes.length()) == part.length;
            is_whole && part.sha256 == *hash
        })
        .map(|(bytes, _)| bytes))
}

/// The bytes of a part that is stored as a blob, and their hash; `None` if they are gone.
async fn from_blob(
    storage: &Storage,
    id: &str,
    part: &StoredPart,
    pool: &ArrayPool,
) -> Result<Option<(Bytes, String)>> {
    let Some(blob) = storage.blob(id, part.key).await? else { return Ok(None) };
    if blob.size() != part.length as f64 {
        return Ok(None);
    }
    // The browser may have lost the file behind a blob.
    let Ok(bytes) = read_blob(&blob, pool, "a stored part").await else { return Ok(None) };
    let hash = digest(&bytes.all())?.await?;
    Ok(Some((bytes, hash)))
}
