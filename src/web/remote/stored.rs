//! A model that is on this device.

use super::Load;
use super::request::{Cause, Fault};
use super::supply::{Feed, Supply};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transfer::Manifest;
use crate::web::options::CacheMode;
use crate::web::progress::Phase;
use crate::web::store::Storage;

impl Load<'_> {
    /// The model of a whole `file`.
    pub(super) async fn take_stored(
        &self,
        storage: &Storage,
        file: &Manifest,
    ) -> Result<Session, Fault> {
        let meter = self.opening.meter;
        let wanted = self.opening.options.integrity.as_ref();
        if let (Some(wanted), Some(hash)) = (wanted, &file.sha256)
            && wanted.compare(hash).is_err()
        {
            return Err(self.other_file(wanted.compare(hash)));
        }
        // Chunk by chunk the hashes are compared anyway, where there are any.
        let compared = file.chunks.iter().all(|chunk| chunk.sha256.is_some());
        let vouched = file.sha256.is_some() && compared;
        let total = file.bytes();
        meter.begin(Phase::Cache, total, 0, 1.0);
        let shelf = self.shelf(storage, file, false);
        let hashed = wanted.is_some() && !vouched;
        let supply = Supply::new(Feed::parts(Some(shelf), None), file.parts(total), total, hashed);
        let (finished, supply) = self.session(supply, hashed).await;
        let (session, hash) = match (finished, supply.restart) {
            (Err(_), Some(_)) if self.cache == CacheMode::Only => {
                return Err(Error::NotCached { url: self.address.url.clone() }.into());
            }
            (Err(_), Some(cause)) => return Err(Fault::Restart(cause)),
            (Err(Error::BadGguf(_)), _) if !compared && self.cache != CacheMode::Only => {
                self.discard(file).await;
                return Err(Fault::Restart(Cause::Damaged));
            }
            (finished, _) => finished?,
        };
        if let (Some(wanted), Some(hash)) = (wanted, hash) {
            if let Err(error) = wanted.compare(&hash) {
                return Err(self.other_file(Err(error)));
            }
            // Only a shortcut for the next time.
            let _ = storage.set_sha256(&file.id, hash).await;
        }
        Ok(session)
    }

    /// The file at this address may have been replaced by the one that is wanted.
    fn other_file(&self, compared: Result<()>) -> Fault {
        match compared {
            Err(error) if self.cache == CacheMode::Only => Fault::Final(error),
            _ => Fault::Restart(Cause::OtherFile),
        }
    }
}
