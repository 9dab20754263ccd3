//! Prepares a volume for reading: from the storage, from the network, or from both. Bytes from the
//! network are stored.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use super::begin::{Begun, is_same_origin};
use super::fetcher::{Fetcher, SequentialReader};
use super::load::{FIRST_STAGE, Load};
use super::parts::{Feed, PartSource};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::transfer::{Cause, Content, Fault, Hasher, Length, Manifest, Phase};
use crate::web::blob::{BlobSource, Gathering};
use crate::web::options::CacheMode;
use crate::web::store::{Storage, Storing, Writer};

/// Bytes in each part of a file whose length is unknown.
const PART: u64 = 4 << 20;

/// The bytes of a volume.
pub(super) enum VolumeSource {
    Parts(Box<PartSource>),
    /// The server did not tell the length, so all bytes were gathered first.
    Gathered {
        blob: BlobSource,
        hash: Option<String>,
    },
}

impl VolumeSource {
    pub(super) fn is_gathered(&self) -> bool {
        matches!(self, Self::Gathered { .. })
    }

    /// Reads the bytes that the model did not need, so that all of the file is hashed and stored.
    /// Gives the hash, if it was computed.
    pub(super) async fn drain(&mut self) -> Result<Option<String>> {
        match self {
            Self::Parts(parts) => parts.drain().await,
            Self::Gathered { hash, .. } => Ok(hash.take()),
        }
    }

    /// Whether the file has another length than the server claimed.
    pub(super) async fn claim_is_wrong(&mut self) -> bool {
        match self {
            Self::Parts(parts) => parts.claim_is_wrong().await,
            Self::Gathered { .. } => false,
        }
    }
}

impl Source for VolumeSource {
    fn len(&self) -> u64 {
        match self {
            Self::Parts(parts) => parts.len(),
            Self::Gathered { blob, .. } => blob.len(),
        }
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        match self {
            Self::Parts(parts) => parts.read(range).await,
            Self::Gathered { blob, .. } => blob.read(range).await,
        }
    }
}

/// A volume that is being loaded, without its bytes.
pub(super) struct Volume {
    /// The record of the file at the beginning.
    pub(super) file: Manifest,
    pub(super) total: u64,
    /// The number of bytes that come from the storage.
    pub(super) stored: u64,
    /// Whether all of the file is read before the model counts as loaded.
    pub(super) to_the_end: bool,
    /// Whether all of the file was stored before.
    is_whole: bool,
    /// Stores the downloaded bytes, if they are to be stored.
    writer: Option<Rc<Writer>>,
    /// See [`PartSource`].
    restart: Rc<Cell<Option<Cause>>>,
}

impl Volume {
    /// Why the load has to start again, if it has to.
    pub(super) fn restart(&self) -> Option<Cause> {
        self.restart.get()
    }

    /// The writer that stores the file, unless it has given up.
    pub(super) fn writer(&self) -> Option<&Writer> {
        self.writer.as_deref().filter(|writer| !writer.has_stopped())
    }

    /// Reads the bytes that the model did not need, so that all of the file is stored, and marks it
    /// as complete. Gives whether all of it is stored. `hash` is that of the file, if it is known.
    pub(super) async fn finish(&self, source: &mut VolumeSource, hash: Option<String>) -> bool {
        let Some(writer) = self.writer() else { return self.is_whole };
        if let Err(error) = source.drain().await {
            writer.interrupted(&error);
            self.tidy(&neutral()).await;
            return false;
        }
        writer.complete(self.total, hash).await
    }

    /// After a failure, deletes bytes that no later load can use. This is done before the failure is
    /// reported, because the worker may end then.
    pub(super) async fn tidy(&self, fault: &Fault) {
        if let Some(writer) = &self.writer {
            tidy(fault, &self.file, writer).await;
        }
    }
}

/// See [`Volume::tidy`].
async fn tidy(fault: &Fault, file: &Manifest, writer: &Writer) {
    let is_empty = !writer.has_stored().await && file.stored.is_empty();
    if fault.spoils_stored_bytes() || !file.is_resumable() || is_empty {
        writer.discard().await;
    }
}

/// A fault after which the stored bytes are as good as before.
pub(super) fn neutral() -> Fault {
    Fault::Restart(Cause::Broken)
}

impl Load<'_> {
    /// The volume at this address. It comes from the storage if it is there. `alone` says that no
    /// volume of the model is downloaded.
    pub(super) async fn volume(
        &self,
        found: Option<Manifest>,
        alone: bool,
        storing: &Storing,
    ) -> Result<(VolumeSource, Volume), Fault> {
        if let (Some(storage), Some(file)) = (&self.storage, self.complete(&found)) {
            return self.stored_volume(storage, file, alone).await;
        }
        if self.cache == CacheMode::Only {
            return Err(self.absent(found.as_ref()).into());
        }
        self.downloaded_volume(found, storing).await
    }

    /// The volume that is the complete `file`.
    async fn stored_volume(
        &self,
        storage: &Storage,
        file: &Manifest,
        alone: bool,
    ) -> Result<(VolumeSource, Volume), Fault> {
        if !alone {
            self.expect_same(file).await?;
        }
        let wanted = self.opening.options.integrity.as_ref();
        if let (Some(wanted), Some(hash)) = (wanted, &file.sha256)
            && let Err(error) = wanted.compare(hash)
        {
            return Err(self.other_file(error));
        }
        // Each part is compared with its own hash. So if the file's hash is known, the file has it.
        let hashed = wanted.is_some() && file.sha256.is_none();
        let total = file.bytes();
        let feed = Feed::parts(Some(self.stored_file(storage, file, !alone)), None, &self.ahead);
        let parts = self.parts(feed, file, total, hashed);
        let volume = Volume {
            file: file.clone(),
            total,
            stored: total,
            to_the_end: hashed,
            is_whole: true,
            writer: None,
            restart: Rc::clone(&parts.restart),
        };
        Ok((VolumeSource::Parts(Box::new(parts)), volume))
    }

    /// The volume from the network. If possible, it continues from the stored bytes.
    async fn downloaded_volume(
        &self,
        found: Option<Manifest>,
        storing: &Storing,
    ) -> Result<(VolumeSource, Volume), Fault> {
        let begun = self.begin(self.resumable(found)).await?;
        let length = begun.response.content.length();
        let in_parts = matches!(begun.response.content, Content::Part(_));
        let file = begun.file.clone();
        if self.volume.is_some() && !in_parts {
            if file.stored.is_empty() {
                self.discard(&file).await;
            }
            let why = "the server does not send parts of the file with their version, which a model in \
                       several files needs";
            let what = self.address.url.clone();
            return Err(Error::Network { what, why: why.into() }.into());
        }
        let fetcher = self.fetcher(begun, storing);
        if self.probes() {
            fetcher.first.take();
        }
        let writer = fetcher.writer.clone();
        let hashed = self.opening.options.integrity.is_some();
        // Only a whole file can be compared with a hash, and a single response ends only with its
        // last byte.
        let to_the_end = hashed || !in_parts;
        let is_whole = false;
        let (total, feed, stored) = match length {
            Length::Known(total) | Length::Claimed(total) if !in_parts => {
                // A sequential reader downloads stored parts again.
                (total, Feed::Sequential(SequentialReader::new(fetcher, length)), 0)
            }
            Length::Known(total) | Length::Claimed(total) => {
                // Stored parts are read even if there is no room to store the others.
                let stored =
                    self.storage.as_ref().map(|storage| self.stored_file(storage, &file, true));
                (total, Feed::parts(stored, Some(fetcher), &self.ahead), file.bytes())
            }
            Length::Unknown => {
                let reader = SequentialReader::new(fetcher, length);
                let gathered = self.gather(reader).await;
                if let (Err(fault), Some(writer)) = (&gathered, &writer) {
                    tidy(fault, &file, writer).await;
                }
                let (source, restart) = (gathered?, Rc::default());
                let (total, stored) = (source.len(), 0);
                let volume = Volume { file, total, stored, to_the_end, is_whole, writer, restart };
                return Ok((source, volume));
            }
        };
        let parts = self.parts(feed, &file, total, hashed);
        let restart = Rc::clone(&parts.restart);
        let volume = Volume { file, total, stored, to_the_end, is_whole, writer, restart };
        Ok((VolumeSource::Parts(Box::new(parts)), volume))
    }

    /// The parts of `file`. If there are other volumes, only one part is in memory until the reader
    /// comes to this one.
    fn parts(&self, feed: Feed, file: &Manifest, total: u64, hashed: bool) -> PartSource {
        let parts = PartSource::new(feed, file.parts(total), total, hashed);
        if self.volume.is_some() { parts.patient() } else { parts }
    }

    /// The fetcher of the rest of the file. It stores the bytes if that is possible.
    fn fetcher(&self, Begun { response, file, stored }: Begun, storing: &Storing) -> Rc<Fetcher> {
        if !stored {
            storing.lacks_a_file();
        }
        let storage = self.storage.as_ref().filter(|_| stored);
        let writer = storage.map(|storage| {
            let reporter = Rc::clone(self.opening.reporter);
            Writer::new(storage.clone(), &file, reporter, self.pool.clone(), storing)
        });
        Rc::new(Fetcher {
            address: self.address.clone(),
            version: response.version.clone(),
            total: file.total,
            conditional: is_same_origin(&response.final_url),
            stall_timeout: self.opening.options.stall_timeout,
            reporter: Rc::clone(self.opening.reporter),
            pool: self.pool.clone(),
            writer,
            begun: Cell::new(!file.stored.is_empty()),
            first: RefCell::new(Some(response)),
            reach: Cell::default(),
            threads: RefCell::default(),
            may_thread: Cell::new(self.address.is_plain()),
            passed: Cell::default(),
        })
    }

    /// Downloads all of a file of unknown length, before the model is loaded.
    async fn gather(&self, mut reader: SequentialReader) -> Result<VolumeSource, Fault> {
        self.opening.reporter.begin(Phase::Download, (0, 0), FIRST_STAGE);
        let wanted = self.opening.options.integrity.as_ref();
        let mut hasher = wanted.map(|_| Hasher::default());
        let (mut gathering, mut total) = (Gathering::default(), 0);
        loop {
            let bytes = reader.part(total..total + PART, true).await?;
            let length = u64::from(bytes.length());
            if let Some(hasher) = &mut hasher {
                hasher.update(&bytes.all().to_vec());
            }
            gathering.push_copy(&bytes.all())?;
            total += length;
            if length < PART {
                break;
            }
        }
        let hash = hasher.map(Hasher::finish);
        if let (Some(wanted), Some(hash)) = (wanted, &hash) {
            wanted.compare(hash)?;
        }
        Ok(VolumeSource::Gathered { blob: BlobSource::new(gathering.finish()?), hash })
    }

    /// Compares the hash of a volume with the hash that the caller wants, if there are both.
    pub(super) async fn compare(&self, volume: &Volume, hash: Option<&str>) -> Result<(), Fault> {
        let (Some(wanted), Some(hash)) = (&self.opening.options.integrity, hash) else {
            return Ok(());
        };
        match (wanted.compare(hash), &self.storage) {
            (Err(error), _) if volume.is_whole => return Err(self.other_file(error)),
            (Err(error), _) => return Err(error.into()),
            (Ok(()), Some(storage)) if volume.is_whole => {
                // This saves the hashing next time. Nothing else depends on it.
                let _ = storage.set_sha256(&volume.file.id, hash.to_owned()).await;
            }
            _ => {}
        }
        Ok(())
    }

    /// Perhaps the server has replaced the stored file by the one that the caller wants.
    fn other_file(&self, error: Error) -> Fault {
        match self.cache {
            CacheMode::Only => Fault::Permanent(error),
            _ => Fault::Restart(Cause::OtherFile),
        }
    }

    /// Asks the server whether it still has the stored `file`. A model must not be a mixture of two
    /// versions.
    async fn expect_same(&self, file: &Manifest) -> Result<(), Fault> {
        let response = self.first_response(None).await?;
        if response.version.is_same(&file.version) && response.content.total() == file.total {
            return Ok(());
        }
        self.discard(file).await;
        Err(Fault::Restart(Cause::Changed))
    }
}
