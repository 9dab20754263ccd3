//! A model from an address: from this device if it is here, else from the network, and stored.
//!
//! ```text
//! request    one request: asks, checks what comes, reads it
//! fetcher    one version of a file over many requests: retries, continues
//! supply     its parts in order, from storage and network
//! begin      the first answer to a download, and a place for what comes
//! download   from the network to the GPU and into storage
//! stored     from storage to the GPU
//! ```
//!
//! This file decides between the last two, and begins anew when the bytes turn out to be of another
//! version than those before, or the server's answers not what they seemed.

mod begin;
mod download;
mod fetcher;
mod request;
mod stored;
mod supply;

use std::rc::Rc;

use super::bytes::Arrays;
use super::log::warn;
use super::open::Opening;
use super::options::CacheMode;
use super::progress::{Note, Phase};
use super::store::Storage;
use super::tabs::{Announcement, Following, Lock};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::Manifest;

use request::{Cause, Fault};
use supply::{Shelf, Supply};

pub(super) use request::Address;
pub(super) use supply::read as read_chunk;

/// How often a load may begin anew: a server whose file changes with every request is not
/// followed for ever.
const RESTARTS: usize = 4;
/// The first of several stages, for the progress: what comes after them is quicker.
const FIRST_STAGE: f64 = 0.8;

/// Loads the model at `address`.
pub(super) async fn load(opening: &Opening<'_>, address: &Address) -> Result<Session> {
    let cache = if address.is_lasting() { opening.options.cache } else { CacheMode::Off };
    let storage = match cache {
        CacheMode::Off => None,
        _ => Storage::open().await.map_err(|error| not_stored(opening, &error)).ok(),
    };
    let arrays = Arrays::default();
    let mut load = Load { opening, address, cache, storage, arrays, begun_anew: Vec::new() };
    loop {
        match load.attempt().await {
            Ok(session) => return Ok(session),
            Err(Fault::Final(error) | Fault::Passing { error, .. }) => return Err(error),
            Err(Fault::Restart(cause)) => load.begin_anew(cause)?,
        }
    }
}

fn not_stored(opening: &Opening<'_>, error: &Error) {
    warn(&format!("loading without storage: {error}"));
    opening.meter.note(Note::NotStored { why: error.to_string() });
}

struct Load<'a> {
    opening: &'a Opening<'a>,
    address: &'a Address,
    cache: CacheMode,
    storage: Option<Storage>,
    arrays: Arrays,
    /// Why the attempts before this one ended.
    begun_anew: Vec<Cause>,
}

impl Load<'_> {
    fn begin_anew(&mut self, cause: Cause) -> Result<()> {
        self.begun_anew.push(cause);
        let why = cause.why();
        if self.begun_anew.len() > RESTARTS {
            let why = format!("{why}, again and again");
            return Err(Error::Network { what: self.address.url.clone(), why });
        }
        self.opening.meter.note(Note::Restarted { why: why.into() });
        Ok(())
    }

    /// How many of the attempts so far ended for this.
    fn count(&self, cause: Cause) -> usize {
        self.begun_anew.iter().filter(|before| **before == cause).count()
    }

    /// Whether parts of the file may be asked for: not of a server that has failed at it, nor of a
    /// file that has changed more than once while it was read.
    fn with_ranges(&self) -> bool {
        let failed = self.count(Cause::NoRanges) > 0 || self.count(Cause::Changed) > 1;
        self.address.has_ranges() && !failed
    }

    /// Whether what is stored as a whole may be used: not once it has turned out to be another file,
    /// nor if it was damaged more than once; damage that stays cannot even be deleted.
    fn with_whole(&self) -> bool {
        let failed = self.count(Cause::OtherFile) > 0 || self.count(Cause::Damaged) > 1;
        self.cache != CacheMode::Refresh && !failed
    }

    async fn attempt(&self) -> Result<Session, Fault> {
        let mut found = self.find().await;
        if let (Some(storage), Some(file)) = (&self.storage, self.whole(&found)) {
            return self.take_stored(storage, file).await;
        }
        if self.cache == CacheMode::Only {
            return Err(self.absent(found.as_ref()).into());
        }
        let lock = match &self.storage {
            Some(_) => Some(match Lock::if_free(&self.address.url).await {
                Some(lock) => lock,
                None => {
                    let lock = self.wait().await;
                    // It is all here now, or as far as the other tab got.
                    found = self.find().await;
                    lock
                }
            }),
            None => None,
        };
        if let (Some(storage), Some(file)) = (&self.storage, self.whole(&found)) {
            drop(lock);
            return self.take_stored(storage, file).await;
        }
        // Others wait for the load that holds the lock, and are to see no other's progress.
        let holds = lock.is_some();
        let _told = holds.then(|| Announcement::new(&self.address.url, self.opening.meter));
        self.download(found).await
    }

    /// What is stored of the address.
    async fn find(&self) -> Option<Manifest> {
        match self.storage.as_ref()?.find(&self.address.url).await {
            Ok(file) => file,
            Err(error) => {
                warn(&format!("the stored model cannot be read: {error}"));
                None
            }
        }
    }

    fn whole<'m>(&self, found: &'m Option<Manifest>) -> Option<&'m Manifest> {
        found.as_ref().filter(|file| file.complete && self.with_whole())
    }

    fn absent(&self, found: Option<&Manifest>) -> Error {
        let url = self.address.url.clone();
        match found.and_then(|file| file.did_not_fit) {
            Some(0) => Error::StorageFull(format!("{url} did not fit")),
            Some(needed) => Error::StorageFull(format!("{url} did not fit: {needed} bytes")),
            None => Error::NotCached { url },
        }
    }

    /// Waits for another tab that is downloading the same.
    async fn wait(&self) -> Lock {
        let (meter, url) = (self.opening.meter, &self.address.url);
        meter.begin(Phase::Download, 0, 0, FIRST_STAGE);
        meter.note(Note::Waiting);
        let _following = Following::new(url, meter);
        Lock::wait(url).await
    }

    fn shelf(&self, storage: &Storage, file: &Manifest, aside: bool) -> Shelf {
        Shelf {
            storage: storage.clone(),
            id: file.id.clone(),
            meter: Rc::clone(self.opening.meter),
            arrays: self.arrays.clone(),
            aside,
        }
    }

    /// The model from `supply`, and what is left of that. If `whole`, all of it was read by then,
    /// also what the model does not need, and its hash comes with the model, if there is one.
    async fn session(
        &self,
        supply: Supply,
        whole: bool,
    ) -> (Result<(Session, Option<String>)>, Supply) {
        let mut reader = Reader::new(supply);
        let loaded = self.opening.session(&mut reader, true).await;
        let mut supply = reader.into_inner();
        let finished = match loaded {
            Ok(session) if whole => supply.drain().await.map(|hash| (session, hash)),
            loaded => loaded.map(|session| (session, None)),
        };
        (finished, supply)
    }

    async fn discard(&self, file: &Manifest) {
        if let Some(storage) = &self.storage {
            // If this fails, the next download of the address cleans up.
            let _ = storage.discard(&file.id).await;
        }
    }
}
