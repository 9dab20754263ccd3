//! A model from the network: to the GPU and into storage, piece by piece.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::begin::{Begun, is_ours};
use super::fetcher::{Fetcher, Line};
use super::request::{Cause, Content, Fault, Length};
use super::supply::{Feed, Supply};
use super::{FIRST_STAGE, Load};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::Manifest;
use crate::web::blob::{BlobSource, Gathering};
use crate::web::digest::Hasher;
use crate::web::progress::Phase;
use crate::web::store::Writer;

/// Bytes in each piece of a file whose length nobody knows.
const PIECE: u64 = 4 << 20;

impl Load<'_> {
    /// From the network to the GPU and into storage, piece by piece.
    pub(super) async fn download(&self, found: Option<Manifest>) -> Result<Session, Fault> {
        let Begun { answer, file, stored } = self.begin(self.resumable(found)).await?;
        let storage = self.storage.as_ref().filter(|_| stored);
        let writer = storage
            .map(|storage| Writer::new(storage.clone(), &file, Rc::clone(self.opening.meter)));
        let length = match &answer.content {
            Content::Part(part) => Length::Known(part.total),
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
            begun: Cell::new(!file.chunks.is_empty()),
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
        let supply = Supply::new(feed, parts, total, wanted.is_some());
        let (finished, mut supply) = self.session(supply, true).await;
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
