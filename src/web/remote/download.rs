//! Downloads a model, part by part, to the GPU and into storage.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::FutureExt;

use super::begin::{Begun, is_same_origin};
use super::fetcher::{Fetcher, SequentialReader};
use super::load::{FIRST_STAGE, Load};
use super::parts::{Feed, PartSource};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::{Cause, Content, Fault, Hasher, Length, Manifest, Phase};
use crate::web::blob::{BlobSource, Gathering};
use crate::web::opening::Behind;
use crate::web::store::Writer;

/// Bytes in each part of a file whose length is unknown.
const PART: u64 = 4 << 20;

impl Load<'_> {
    /// Downloads the model. If possible, continues from its stored bytes.
    ///
    /// The model may be loaded before all of it is stored. Then the rest is left as work for later.
    pub(super) async fn download(
        &self,
        found: Option<Manifest>,
    ) -> Result<(Session, Option<Behind>), Fault> {
        let begun = self.begin(self.resumable(found)).await?;
        let length = begun.response.content.length();
        let in_parts = matches!(begun.response.content, Content::Part(_));
        let file = begun.file.clone();
        let fetcher = self.fetcher(begun);
        let writer = fetcher.writer.clone();
        let feed = if in_parts {
            // Stored parts are read even if there is no room to store the others.
            let stored =
                self.storage.as_ref().map(|storage| self.stored_file(storage, &file, true));
            Feed::parts(stored, Some(fetcher), &self.ahead)
        } else {
            Feed::Sequential(SequentialReader::new(fetcher, length))
        };
        let result = match (length, feed) {
            (Length::Unknown, Feed::Sequential(reader)) => {
                self.gather(reader, writer.clone()).await
            }
            (Length::Known(total) | Length::Claimed(total), feed) => {
                self.stream(feed, &file, total, writer.clone()).await
            }
            _ => Err(Error::Internal("parts of a file of unknown length".into()).into()),
        };
        if let (Err(fault), Some(writer)) = (&result, &writer) {
            tidy(fault, &file, writer).await;
        }
        result
    }

    /// The fetcher of the rest of the file. It stores the bytes if that is possible.
    pub(super) fn fetcher(&self, Begun { response, file, stored }: Begun) -> Rc<Fetcher> {
        let storage = self.storage.as_ref().filter(|_| stored);
        let writer = storage.map(|storage| {
            let reporter = Rc::clone(self.opening.reporter);
            Writer::new(storage.clone(), &file, reporter, self.pool.clone(), &self.slots)
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

    /// A file of known length: the model is loaded while the bytes come.
    async fn stream(
        &self,
        feed: Feed,
        file: &Manifest,
        total: u64,
        writer: Option<Rc<Writer>>,
    ) -> Result<(Session, Option<Behind>), Fault> {
        let in_parts = matches!(feed, Feed::Parts { .. });
        // A sequential reader downloads stored parts again.
        let stored = if matches!(feed, Feed::Sequential(_)) { 0 } else { file.bytes() };
        self.opening.reporter.begin(Phase::Download, (total, stored), 1.0);
        let wanted = self.opening.options.integrity.as_ref();
        let parts = PartSource::new(feed, file.parts(total), total, wanted.is_some());
        // Only a whole file can be compared with a hash, and a single response ends only with its
        // last byte.
        let to_the_end = wanted.is_some() || !in_parts;
        let (finished, mut parts) = self.session(parts, to_the_end).await;
        if let (Err(_), Some(cause)) = (&finished, parts.restart.get()) {
            return Err(Fault::Restart(cause));
        }
        if matches!(finished, Err(Error::BadGguf(_))) && parts.claim_is_wrong().await {
            return Err(Fault::Restart(Cause::WrongLength));
        }
        let (session, hash) = finished?;
        if let (Some(wanted), Some(hash)) = (wanted, &hash) {
            wanted.compare(hash)?;
        }
        let file = file.clone();
        let behind = writer.filter(|writer| !writer.has_stopped()).map(|writer| {
            async move { finish(&mut parts, &file, &writer, total, hash).await }.boxed_local()
        });
        Ok((session, behind))
    }

    /// A file of unknown length: all of it is downloaded before the model is loaded.
    async fn gather(
        &self,
        mut reader: SequentialReader,
        writer: Option<Rc<Writer>>,
    ) -> Result<(Session, Option<Behind>), Fault> {
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
        let blob = gathering.finish()?;
        self.opening.reporter.begin(Phase::Upload, (total, 0), 1.0);
        let mut reader = Reader::new(BlobSource::new(blob));
        let session = self.opening.session(&mut reader, false).await?;
        let behind =
            writer.map(|writer| async move { writer.complete(total, hash).await }.boxed_local());
        Ok((session, behind))
    }
}

/// Reads the bytes that the model did not need, so that all of `file` is stored, and marks it as
/// complete. Gives whether that was possible.
pub(super) async fn finish(
    parts: &mut PartSource,
    file: &Manifest,
    writer: &Writer,
    total: u64,
    hash: Option<String>,
) -> bool {
    if let Err(error) = parts.drain().await {
        writer.interrupted(&error);
        tidy(&neutral(), file, writer).await;
        return false;
    }
    writer.complete(total, hash).await
}

/// After a failure, deletes bytes that no later load can use. This is done before the failure is
/// reported, because the worker may end then.
pub(super) async fn tidy(fault: &Fault, file: &Manifest, writer: &Writer) {
    let is_empty = !writer.has_stored().await && file.stored.is_empty();
    if fault.spoils_stored_bytes() || !file.is_resumable() || is_empty {
        writer.discard().await;
    }
}

/// A fault after which the stored bytes are as good as before.
pub(super) fn neutral() -> Fault {
    Fault::Restart(Cause::Broken)
}
