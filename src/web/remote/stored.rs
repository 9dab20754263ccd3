//! Loads a model that is stored on this device.

use super::load::Load;
use super::parts::{Feed, PartSource};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transfer::{Cause, Fault, Manifest, Phase};
use crate::web::options::CacheMode;
use crate::web::store::Storage;

impl Load<'_> {
    /// Loads the model from a complete `file`.
    pub(super) async fn load_stored(
        &self,
        storage: &Storage,
        file: &Manifest,
    ) -> Result<Session, Fault> {
        let reporter = self.opening.reporter;
        let wanted = self.opening.options.integrity.as_ref();
        if let (Some(wanted), Some(hash)) = (wanted, &file.sha256)
            && let Err(error) = wanted.compare(hash)
        {
            return Err(self.other_file(error));
        }
        let total = file.bytes();
        reporter.begin(Phase::Cache, (total, 0), 1.0);
        // Each part is compared with its own hash. So if the file's hash is known, the file has it.
        let hashed = wanted.is_some() && file.sha256.is_none();
        let feed = Feed::parts(Some(self.stored_file(storage, file, false)), None, &self.ahead);
        let parts = PartSource::new(feed, file.parts(total), total, hashed);
        let (finished, parts) = self.session(parts, hashed).await;
        let (session, hash) = match (finished, parts.restart.get()) {
            (Err(_), Some(_)) if self.cache == CacheMode::Only => {
                return Err(Error::NotCached { url: self.address.url.clone() }.into());
            }
            (Err(_), Some(cause)) => return Err(Fault::Restart(cause)),
            (finished, _) => finished?,
        };
        if let (Some(wanted), Some(hash)) = (wanted, hash) {
            if let Err(error) = wanted.compare(&hash) {
                return Err(self.other_file(error));
            }
            // This saves the hashing next time. Nothing else depends on it.
            let _ = storage.set_sha256(&file.id, hash).await;
        }
        Ok(session)
    }

    /// Perhaps the server has replaced the stored file by the one that the caller wants.
    fn other_file(&self, error: Error) -> Fault {
        match self.cache {
            CacheMode::Only => Fault::Permanent(error),
            _ => Fault::Restart(Cause::OtherFile),
        }
    }
}
