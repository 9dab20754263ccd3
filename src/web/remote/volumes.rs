//! Loads a model in several files. Each file is fetched and stored by itself. Together they are
//! read as one.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::FutureExt;

use super::Address;
use super::begin::Begun;
use super::download::{finish, neutral, tidy};
use super::load::Load;
use super::parts::{Feed, PartSource};
use crate::error::{Error, Result};
use crate::gguf::Joined;
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::{Cause, Content, Fault, Manifest, Note, Phase, VolumeName};
use crate::web::error::bad_option;
use crate::web::opening::Opening;
use crate::web::options::CacheMode;
use crate::web::store::Writer;
use crate::web::tabs::{Announcement, Lock};

/// A volume that is ready to be read.
struct Volume {
    parts: PartSource,
    total: u64,
    /// The number of its stored bytes.
    stored: u64,
    /// `None` if it is only read from the storage.
    download: Option<Download>,
    /// See [`PartSource`].
    restart: Rc<Cell<Option<Cause>>>,
}

struct Download {
    file: Manifest,
    /// Stores the volume, if it is to be stored.
    writer: Option<Rc<Writer>>,
}

/// A fault, and the index of its volume; `None` if the whole model has it.
type VolumeFault = (Option<usize>, Fault);

/// Loads the model whose first file is at `address`. `name` is the name of that volume.
pub(super) async fn load(
    opening: &Opening<'_>,
    address: &Address,
    name: &VolumeName<'_>,
) -> Result<Session> {
    let urls = name.all().map_err(|why| bad_option("source", why))?;
    if opening.options.integrity.is_some() {
        let why = "cannot be compared with a model in several files";
        return Err(bad_option("integrity", why));
    }
    let addresses = urls.iter().map(|url| address.beside(url)).collect::<Result<Vec<_>>>()?;
    let model = Load::new(opening, address).await;
    let mut loads: Vec<_> =
        addresses.iter().enumerate().map(|(i, address)| model.of_volume(i, address)).collect();
    loop {
        match attempt(&loads).await {
            Ok(session) => return Ok(session),
            Err((_, Fault::Permanent(error) | Fault::Transient { error, .. })) => {
                return Err(error);
            }
            Err((index, Fault::Restart(cause))) => {
                let load = &mut loads[index.unwrap_or(0)];
                load.restarts.add(cause, &load.address.url)?;
                opening.reporter.note(Note::Restarted { why: cause.why().into() });
            }
        }
    }
}

async fn attempt(loads: &[Load<'_>]) -> Result<Session, VolumeFault> {
    // The lock and the progress of the whole model are those of its first file.
    let (first, reporter) = (&loads[0], loads[0].opening.reporter);
    let mut found = find(loads).await;
    let mut lock = None;
    if first.storage.is_some() && !is_complete(loads, &found) && first.cache != CacheMode::Only {
        lock = Some(match Lock::if_free(&first.address.url).await {
            Some(lock) => lock,
            None => {
                let lock = first.wait().await;
                found = find(loads).await;
                lock
            }
        });
    }
    let complete = is_complete(loads, &found);
    if complete {
        lock = None;
    }
    let told = lock.is_some().then(|| Announcement::new(&first.address.url, reporter));

    let mut volumes = Vec::with_capacity(loads.len());
    for (index, (load, found)) in loads.iter().zip(found).enumerate() {
        match load.volume(found, complete).await {
            Ok(volume) => volumes.push(volume),
            Err(fault) => {
                for volume in &volumes {
                    if let Some(Download { file, writer: Some(writer) }) = &volume.download {
                        tidy(&neutral(), file, writer).await;
                    }
                }
                return Err((Some(index), fault));
            }
        }
    }
    let sum = |bytes: fn(&Volume) -> u64| volumes.iter().map(bytes).sum::<u64>();
    let (phase, stored) = match complete {
        true => (Phase::Cache, 0),
        false => (Phase::Download, sum(|volume| volume.stored)),
    };
    reporter.resumed(stored);
    reporter.begin(phase, (sum(|volume| volume.total), stored), 1.0);

    let (mut sources, mut rest) = (Vec::new(), Vec::new());
    for Volume { parts, total, download, restart, .. } in volumes {
        sources.push(parts);
        rest.push((download, total, restart));
    }
    let finished = session(first.opening, sources).await;
    let result = finished.map_err(|error| {
        let restart = |(_, _, restart): &(_, _, Rc<Cell<Option<Cause>>>)| restart.get();
        let found = rest.iter().enumerate().find_map(|(i, volume)| Some((i, restart(volume)?)));
        match found {
            Some(_) if first.cache == CacheMode::Only => {
                (None, Error::NotCached { url: first.address.url.clone() }.into())
            }
            Some((index, cause)) => (Some(index), Fault::Restart(cause)),
            None => (None, error.into()),
        }
    });
    let (session, sources) = match result {
        Ok(loaded) => loaded,
        Err((of, fault)) => {
            for (index, (download, ..)) in rest.iter().enumerate() {
                let Some(Download { file, writer: Some(writer) }) = download else { continue };
                // A fault of another volume does not show that this one is bad.
                match of {
                    Some(of) if of != index => tidy(&neutral(), file, writer).await,
                    _ => tidy(&fault, file, writer).await,
                }
            }
            return Err((of, fault));
        }
    };
    let stores = |download: &Option<Download>| {
        download.as_ref().and_then(|download| download.writer.as_ref()).is_some()
    };
    if rest.iter().any(|(download, ..)| stores(download)) {
        let held = (lock, told);
        let behind = async move {
            let mut is_stored = true;
            for (mut parts, (download, total, _)) in sources.into_iter().zip(rest) {
                // `None` if the volume was stored before.
                let Some(Download { file, writer }) = download else { continue };
                let Some(writer) = writer else {
                    is_stored = false;
                    continue;
                };
                is_stored &= finish(&mut parts, &file, &writer, total, None).await;
            }
            drop(held);
            is_stored
        };
        first.opening.do_behind(behind.boxed_local());
    }
    Ok(session)
}

/// Loads the model, and gives the sources back.
async fn session(
    opening: &Opening<'_>,
    sources: Vec<PartSource>,
) -> Result<(Session, Vec<PartSource>)> {
    let mut reader = Reader::new(Joined::open(sources).await?);
    let session = opening.session(&mut reader, true).await?;
    Ok((session, reader.into_inner().into_inner()))
}

async fn find(loads: &[Load<'_>]) -> Vec<Option<Manifest>> {
    let mut found = Vec::with_capacity(loads.len());
    for load in loads {
        found.push(load.find().await);
    }
    found
}

/// Whether every volume is stored and may be used.
fn is_complete(loads: &[Load<'_>], found: &[Option<Manifest>]) -> bool {
    let mut both = loads.iter().zip(found);
    both.all(|(load, found)| load.storage.is_some() && load.complete(found).is_some())
}

impl Load<'_> {
    /// The volume at this address. It comes from the storage if it is there. `alone` says that no
    /// volume of the model is downloaded.
    async fn volume(&self, found: Option<Manifest>, alone: bool) -> Result<Volume, Fault> {
        if let (Some(storage), Some(file)) = (&self.storage, self.complete(&found)) {
            if !alone {
                self.expect_same(file).await?;
            }
            let total = file.bytes();
            let feed =
                Feed::parts(Some(self.stored_file(storage, file, !alone)), None, &self.ahead);
            let parts = PartSource::new(feed, file.parts(total), total, false).patient();
            let restart = Rc::clone(&parts.restart);
            return Ok(Volume { parts, total, stored: total, download: None, restart });
        }
        if self.cache == CacheMode::Only {
            return Err(self.absent(found.as_ref()).into());
        }
        let begun: Begun = self.begin(self.resumable(found)).await?;
        let total = match &begun.response.content {
            Content::Part(part) => part.total,
            Content::Whole(_) => {
                if begun.file.stored.is_empty() {
                    self.discard(&begun.file).await;
                }
                let why = "the server does not send parts of the file with their version, which a \
                           model in several files needs";
                let what = self.address.url.clone();
                return Err(Error::Network { what, why: why.into() }.into());
            }
        };
        let file = begun.file.clone();
        let fetcher = self.fetcher(begun);
        if self.probes() {
            fetcher.first.take();
        }
        let writer = fetcher.writer.clone();
        let stored = self.storage.as_ref().map(|storage| self.stored_file(storage, &file, true));
        let feed = Feed::parts(stored, Some(fetcher), &self.ahead);
        let parts = PartSource::new(feed, file.parts(total), total, false).patient();
        let restart = Rc::clone(&parts.restart);
        let stored = file.bytes();
        Ok(Volume { parts, total, stored, download: Some(Download { file, writer }), restart })
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
