//! The part of a load that all its attempts have in common.

use std::rc::Rc;

use super::parts::Ahead;
use super::request::Address;
use crate::error::{Error, Result};
use crate::transfer::{LoadedVersion, Manifest, Note, Phase, Restarts};
use crate::web::bytes::ArrayPool;
use crate::web::log::warn;
use crate::web::opening::Opening;
use crate::web::options::CacheMode;
use crate::web::store::{Storage, StoredFile};
use crate::web::tabs::{Following, Lock};

/// The share of the progress that the first of two stages fills. The second stage is faster.
pub(super) const FIRST_STAGE: f64 = 0.8;

/// The load of one file, which is a whole model or one of its volumes.
pub(super) struct Load<'a> {
    pub(super) opening: &'a Opening<'a>,
    pub(super) address: &'a Address,
    pub(super) cache: CacheMode,
    /// `None` if nothing can be stored, or nothing is to be stored.
    pub(super) storage: Option<Storage>,
    pub(super) pool: ArrayPool,
    pub(super) ahead: Ahead,
    pub(super) restarts: Restarts,
    /// The index of this volume in a model of several files, from 0.
    pub(super) volume: Option<usize>,
    /// The version from which the model was loaded before its device was lost. Another one would be
    /// another model.
    pub(super) version: Option<LoadedVersion>,
}

impl<'a> Load<'a> {
    pub(super) async fn new(opening: &'a Opening<'a>, address: &'a Address) -> Self {
        let cache = if address.is_lasting() { opening.options.cache } else { CacheMode::Off };
        let mut load = Self {
            opening,
            address,
            cache,
            storage: None,
            pool: ArrayPool::default(),
            ahead: Ahead::default(),
            restarts: Restarts::default(),
            volume: None,
            version: None,
        };
        if cache != CacheMode::Off {
            load.storage = Storage::open().await.map_err(|error| load.not_stored(&error)).ok();
        }
        load
    }

    /// The load of one volume of the same model.
    pub(super) fn of_volume(&self, volume: usize, address: &'a Address) -> Self {
        Self {
            opening: self.opening,
            address,
            cache: self.cache,
            storage: self.storage.clone(),
            pool: self.pool.clone(),
            ahead: self.ahead.clone(),
            restarts: Restarts::default(),
            volume: Some(volume),
            version: None,
        }
    }

    /// Whether the first request is for a single byte. Its response says all that is needed to
    /// begin. Files that are read later are asked for in this way, because a browser can keep few
    /// connections open.
    pub(super) fn probes(&self) -> bool {
        self.volume > Some(0)
    }

    /// Reports that the load goes on without storing.
    pub(super) fn not_stored(&self, error: &Error) {
        warn(&format!("loading without storage: {error}"));
        self.opening.reporter.note(Note::NotStored { why: error.to_string() });
    }

    /// The record of the address, if something is stored. A whole file does not count if it may not
    /// be used, or, with `revalidate`, if the server has another one. Then the record is that of a new
    /// file that has begun to come. The old one stays until the new one is stored.
    ///
    /// Errors: those of [`Load::is_current`].
    pub(super) async fn find(&self) -> Result<Option<Manifest>> {
        let Some(found) = self.record(None).await else { return Ok(None) };
        let is_asked = self.cache == CacheMode::Revalidate;
        let is_wanted = !found.complete
            || self.allows_stored() && (!is_asked || self.is_current(&found).await?);
        Ok(if is_wanted { Some(found) } else { self.record(Some(found.id)).await })
    }

    /// The record of the address, but not the one with the id `not`.
    async fn record(&self, not: Option<String>) -> Option<Manifest> {
        let version = self.version.clone();
        let may_be = move |file: &Manifest| {
            not.as_ref() != Some(&file.id)
                && version.as_ref().is_none_or(|version| version.is_of(file))
        };
        let found = self.storage.as_ref()?.find(&self.address.url, may_be).await;
        found.unwrap_or_else(|error| {
            warn(&format!("the stored model cannot be read: {error}"));
            None
        })
    }

    /// The file, if it is complete and may be used.
    pub(super) fn complete<'m>(&self, found: &'m Option<Manifest>) -> Option<&'m Manifest> {
        found.as_ref().filter(|file| file.complete && self.allows_stored())
    }

    /// Whether a whole stored file may be used.
    fn allows_stored(&self) -> bool {
        self.cache != CacheMode::Refresh && self.restarts.allow_stored()
    }

    /// The error if only a stored file is allowed and there is none.
    pub(super) fn absent(&self, found: Option<&Manifest>) -> Error {
        let url = self.address.url.clone();
        match found.and_then(|file| file.did_not_fit) {
            Some(0) => Error::StorageFull(format!("{url} did not fit")),
            Some(needed) => Error::StorageFull(format!("{url} did not fit: {needed} bytes")),
            None => Error::NotCached { url },
        }
    }

    /// Waits for another tab that is downloading the same address.
    pub(super) async fn wait(&self) -> Lock {
        let (reporter, url) = (self.opening.reporter, &self.address.url);
        reporter.begin(Phase::Download, (0, 0), FIRST_STAGE);
        reporter.note(Note::Waiting);
        let _following = Following::new(url, reporter);
        Lock::wait(url).await
    }

    pub(super) fn stored_file(
        &self,
        storage: &Storage,
        file: &Manifest,
        beside_download: bool,
    ) -> StoredFile {
        StoredFile {
            storage: storage.clone(),
            id: file.id.clone(),
            reporter: Rc::clone(self.opening.reporter),
            pool: self.pool.clone(),
            beside_download,
        }
    }

    pub(super) async fn discard(&self, file: &Manifest) {
        if let Some(storage) = &self.storage {
            // If this fails, the next download of the address cleans up.
            let _ = storage.discard(vec![file.id.clone()]).await;
        }
    }
}
