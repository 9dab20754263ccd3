//! A model from an address: from this device if it is here, else from the network, and stored.
//!
//! ```text
//! request    one request: asks, checks what comes, reads it
//! fetcher    one version of a file over many requests: retries, continues
//! supply     its parts in order, from storage and network
//! ```
//!
//! This file decides between them, and begins anew when the bytes turn out to be of another
//! version than those before, or the server's answers not what they seemed.

mod fetcher;
mod request;
mod supply;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::blob::{BlobSource, Gathering};
use super::bytes::Arrays;
use super::digest::Hasher;
use super::log::warn;
use super::open::Opening;
use super::options::CacheMode;
use super::progress::{Note, Phase};
use super::store::{Room, Storage, Writer, new_file};
use super::tabs::{Announcement, Following, Lock};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::{Backoff, Manifest, Version};

use fetcher::{Fetcher, Line, wait};
use request::{Answer, Cause, Content, Fault, Length, Question};
use supply::{Feed, Shelf, Supply};

pub(super) use request::Address;
pub(super) use supply::read as read_chunk;

/// How often a load may begin anew: a server whose file changes with every request is not
/// followed for ever.
const RESTARTS: usize = 4;
/// The first of several stages, for the progress: what comes after them is quicker.
const FIRST_STAGE: f64 = 0.8;
/// Bytes in each piece of a file whose length nobody knows.
const PIECE: u64 = 4 << 20;

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

/// A download that has begun.
struct Begun {
    answer: Answer,
    /// What of the file is here; nothing for a file that is not stored.
    file: Manifest,
    /// Whether it is stored.
    stored: bool,
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

    /// Whether parts of the file may be asked for: not of a server that has failed at it, nor of a
    /// file that has changed more than once while it was read.
    fn with_ranges(&self) -> bool {
        let count = |cause| self.begun_anew.iter().filter(|before| **before == cause).count();
        self.address.has_ranges() && count(Cause::NoRanges) == 0 && count(Cause::Changed) < 2
    }

    /// Whether what is stored as a whole may be used.
    fn with_whole(&self) -> bool {
        self.cache != CacheMode::Refresh && !self.begun_anew.contains(&Cause::OtherFile)
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
        let _told = Announcement::new(&self.address.url, self.opening.meter);
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

    async fn take_stored(&self, storage: &Storage, file: &Manifest) -> Result<Session, Fault> {
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
        let (loaded, mut supply) = self.session(supply).await;
        let session = match (loaded, supply.restart) {
            (Err(_), Some(_)) if self.cache == CacheMode::Only => {
                return Err(Error::NotCached { url: self.address.url.clone() }.into());
            }
            (Err(_), Some(cause)) => return Err(Fault::Restart(cause)),
            (Err(Error::BadGguf(_)), _) if !compared && self.cache != CacheMode::Only => {
                self.discard(file).await;
                return Err(Fault::Restart(Cause::Damaged));
            }
            (loaded, _) => loaded?,
        };
        if let (Some(wanted), true) = (wanted, hashed) {
            let hash = supply.drain().await?.unwrap_or_default();
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

    fn shelf(&self, storage: &Storage, file: &Manifest, aside: bool) -> Shelf {
        Shelf {
            storage: storage.clone(),
            id: file.id.clone(),
            meter: Rc::clone(self.opening.meter),
            arrays: self.arrays.clone(),
            aside,
        }
    }

    /// The model from `supply`, and what is left of that.
    async fn session(&self, supply: Supply) -> (Result<Session>, Supply) {
        let mut reader = Reader::new(supply);
        let loaded = self.opening.session(&mut reader, true).await;
        (loaded, reader.into_inner())
    }

    /// From the network to the GPU and into storage, piece by piece.
    async fn download(&self, found: Option<Manifest>) -> Result<Session, Fault> {
        let Begun { answer, file, stored } = self.begin(self.resumable(found)).await?;
        let storage = self.storage.as_ref().filter(|_| stored);
        let writer = storage
            .map(|storage| Writer::new(storage.clone(), &file, Rc::clone(self.opening.meter)));
        let length = match &answer.content {
            Content::Part(part) => Length::Known(part.total),
            Content::Whole(Length::Claimed(_)) if self.begun_anew.contains(&Cause::WrongLength) => {
                Length::Unknown
            }
            Content::Whole(length) => *length,
        };
        let in_parts = matches!(answer.content, Content::Part(_));
        let fetcher = Rc::new(Fetcher {
            address: self.address.clone(),
            version: answer.version.clone(),
            total: file.total,
            conditional: is_ours(&answer.final_url),
            patience: self.opening.options.patience,
            meter: Rc::clone(self.opening.meter),
            arrays: self.arrays.clone(),
            writer: writer.clone(),
            begun: Cell::new(false),
            first: RefCell::new(Some(answer)),
        });
        let feed = if in_parts {
            // What is here is read, even if there is no room for the rest.
            let shelf = self.storage.as_ref().map(|storage| self.shelf(storage, &file, true));
            Feed::parts(shelf, Some(fetcher))
        } else {
            Feed::Line(Line::new(fetcher, length))
        };
        let result = match (length, feed) {
            (Length::Unknown, Feed::Line(line)) => self.collect(line, writer.as_deref()).await,
            (Length::Known(total) | Length::Claimed(total), feed) => {
                self.stream(feed, &file, total, writer.as_deref()).await
            }
            _ => Err(Error::Internal("parts of a file of unknown length".into()).into()),
        };
        if let (Err(fault), Some(writer)) = (&result, &writer) {
            self.tidy(fault, &file, writer).await;
        }
        result
    }

    /// A part that can be gone on with.
    fn resumable(&self, found: Option<Manifest>) -> Option<Manifest> {
        found.filter(|file| {
            let begun = !file.complete && !file.chunks.is_empty();
            // With `refresh`, what was there before the load is not of interest.
            let wanted = self.cache != CacheMode::Refresh || !self.begun_anew.is_empty();
            begun && wanted && file.total.is_some() && file.version.validator().is_some()
        })
    }

    /// Asks for the file, or for what is missing of it, and makes it a place in the storage.
    async fn begin(&self, partial: Option<Manifest>) -> Result<Begun, Fault> {
        let answer = self.first_answer(partial.as_ref()).await?;
        let total = match &answer.content {
            Content::Part(part) => Some(part.total),
            Content::Whole(Length::Known(total) | Length::Claimed(total)) => Some(*total),
            Content::Whole(Length::Unknown) => None,
        };
        if let Some(file) = partial {
            return if file.version.is_same(&answer.version) && file.total == total {
                if matches!(answer.content, Content::Whole(_)) {
                    self.not_resumable(&answer.version, total);
                }
                self.opening.meter.note(Note::Resumed { bytes: file.bytes() });
                let stored = self.has_room(&file, total).await;
                Ok(Begun { answer, file, stored })
            } else {
                self.discard(&file).await;
                Err(Fault::Restart(Cause::Changed))
            };
        }
        match &answer.content {
            Content::Part(_) if answer.version.validator().is_some() => {}
            Content::Part(_) => return Err(Fault::Restart(Cause::NoRanges)),
            Content::Whole(_) => self.not_resumable(&answer.version, total),
        }
        let mut file = new_file(&self.address.url);
        file.final_url = Some(answer.final_url.clone());
        file.version = answer.version.clone();
        file.total = total;
        let stored = self.has_room(&file, total).await && self.create(&file).await;
        Ok(Begun { answer, file, stored })
    }

    async fn first_answer(&self, partial: Option<&Manifest>) -> Result<Answer, Fault> {
        let ours = is_ours(&self.address.url);
        let came_from = partial.and_then(|file| file.final_url.as_deref());
        let validator = partial.and_then(|file| file.version.validator());
        let validator = validator.filter(|_| came_from.is_some_and(is_ours));
        let nothing = new_file(&self.address.url);
        let question = Question {
            range: self.with_ranges().then(|| partial.unwrap_or(&nothing).first_missing()),
            if_range: validator.map(Into::into),
            stored: self.storage.is_some(),
            patience: self.opening.options.patience,
        };
        let (mut backoff, mut failures) = (Backoff::default(), 0);
        loop {
            let fault = match request::ask(self.address, &question, &self.arrays).await {
                Err(fault @ Fault::Passing { .. }) => fault,
                answer => return answer,
            };
            let unanswered = matches!(fault, Fault::Passing { error: Error::Network { .. }, .. });
            if unanswered && question.range.is_some() && (failures > 0 || !ours) {
                // What looks like no connection may be a refusal: of another origin, to be asked
                // for a part; of the browser, to take a compressed part.
                let plain = Question { range: None, if_range: None, ..question.clone() };
                let answer = request::ask(self.address, &plain, &self.arrays).await;
                match answer.as_ref().map(|answer| &answer.content) {
                    Ok(Content::Whole(Length::Unknown)) => return answer,
                    // What is here already is worth a second attempt to go on with it.
                    Ok(Content::Whole(Length::Claimed(_))) if partial.is_none() || failures > 0 => {
                        return answer;
                    }
                    _ => {}
                }
            }
            failures += 1;
            wait(&mut backoff, partial.is_some(), fault).await?;
        }
    }

    fn not_resumable(&self, version: &Version, total: Option<u64>) {
        let why = match (version.validator(), total) {
            (None, _) => "the server names no version of the file (ETag, Last-Modified)",
            (_, None) => "the server names no length of the file",
            _ => "the server gives no parts of the file",
        };
        self.opening.meter.note(Note::NotResumable { why: why.into() });
    }

    /// Whether the rest of `file` will fit into the storage, if need be in place of other models.
    async fn has_room(&self, file: &Manifest, total: Option<u64>) -> bool {
        let Some(storage) = &self.storage else { return false };
        let Some(needed) = total.map(|total| total - file.bytes()) else { return true };
        let (meter, url) = (self.opening.meter, &self.address.url);
        match storage.make_room(url, needed).await {
            Room::Made(evicted) => {
                meter.evicted(evicted);
                true
            }
            Room::Not { possible } => {
                let why = format!("{needed} bytes are needed, {possible} could be had");
                meter.note(Note::NotStored { why: Error::StorageFull(why).to_string() });
                if file.chunks.is_empty() {
                    // For the sake of a better message when it is asked for offline.
                    let _ = storage.refuse(url, needed).await;
                }
                false
            }
        }
    }

    async fn create(&self, file: &Manifest) -> bool {
        let Some(storage) = &self.storage else { return false };
        let created = storage.create(file).await;
        if let Err(error) = &created {
            not_stored(self.opening, error);
        }
        created.is_ok()
    }

    async fn discard(&self, file: &Manifest) {
        if let Some(storage) = &self.storage {
            // If this fails, the next download of the address cleans up.
            let _ = storage.discard(&file.id).await;
        }
    }

    /// A file of known length: the model is loaded while the bytes come.
    async fn stream(
        &self,
        feed: Feed,
        file: &Manifest,
        total: u64,
        writer: Option<&Writer>,
    ) -> Result<Session, Fault> {
        let parts = file.parts(total);
        // A line brings everything once more.
        let aside = if matches!(feed, Feed::Line(_)) { 0 } else { file.bytes() };
        self.opening.meter.begin(Phase::Download, total, aside, 1.0);
        let wanted = self.opening.options.integrity.as_ref();
        let (loaded, mut supply) =
            self.session(Supply::new(feed, parts, total, wanted.is_some())).await;
        let finished = match loaded {
            Ok(session) => supply.drain().await.map(|hash| (session, hash)),
            Err(error) => Err(error),
        };
        if let (Err(_), Some(cause)) = (&finished, supply.restart) {
            return Err(Fault::Restart(cause));
        }
        if matches!(finished, Err(Error::BadGguf(_))) && supply.claim_is_wrong().await {
            return Err(Fault::Restart(Cause::WrongLength));
        }
        let (session, hash) = finished?;
        if let (Some(wanted), Some(hash)) = (wanted, &hash) {
            wanted.compare(hash)?;
        }
        if let Some(writer) = writer {
            writer.complete(total, hash).await;
        }
        Ok(session)
    }

    /// A file of unknown length: first all of it, then the model.
    async fn collect(&self, mut line: Line, writer: Option<&Writer>) -> Result<Session, Fault> {
        self.opening.meter.begin(Phase::Download, 0, 0, FIRST_STAGE);
        let wanted = self.opening.options.integrity.as_ref();
        let mut hasher = wanted.map(|_| Hasher::default());
        let (mut gathering, mut total) = (Gathering::default(), 0);
        loop {
            let bytes = line.part(total..total + PIECE, true).await?;
            let length = u64::from(bytes.length());
            if let Some(hasher) = &mut hasher {
                hasher.update(&bytes.all().to_vec());
            }
            gathering.push_all(&bytes.all())?;
            total += length;
            if length < PIECE {
                break;
            }
        }
        let hash = hasher.map(Hasher::finish);
        if let (Some(wanted), Some(hash)) = (wanted, &hash) {
            wanted.compare(hash)?;
        }
        let blob = gathering.finish()?;
        self.opening.meter.begin(Phase::Upload, total, 0, 1.0);
        let mut reader = Reader::new(BlobSource::new(blob));
        let session = self.opening.session(&mut reader, false).await?;
        if let Some(writer) = writer {
            writer.complete(total, hash).await;
        }
        Ok(session)
    }

    /// After a failure: keeps what the next load can go on with, deletes the rest, before the
    /// failure is told; the worker may end with that.
    async fn tidy(&self, fault: &Fault, file: &Manifest, writer: &Writer) {
        let useless = match fault {
            Fault::Restart(Cause::Changed | Cause::WrongLength) => true,
            Fault::Final(error) => matches!(
                error,
                Error::BadGguf(_)
                    | Error::UnsupportedModel(_)
                    | Error::MissingTensor { .. }
                    | Error::TensorShape { .. }
                    | Error::Integrity { .. }
            ),
            _ => false,
        };
        let resumable = file.total.is_some() && file.version.validator().is_some();
        if useless || !resumable || !writer.has_stored().await && file.chunks.is_empty() {
            writer.discard().await;
        }
    }
}

/// Whether the address is of the page's own origin.
fn is_ours(url: &str) -> bool {
    let origin = js_sys::Reflect::get(&js_sys::global(), &"origin".into());
    let origin = origin.ok().and_then(|origin| origin.as_string()).unwrap_or_default();
    url.strip_prefix(&origin).is_some_and(|rest| rest.starts_with('/'))
}
