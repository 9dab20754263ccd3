//! A file's parts in order, from the storage or the network, a few ahead of who reads them.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use futures_util::future::RemoteHandle;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use wasm_bindgen_futures::spawn_local;

use super::fetcher::{Fetcher, Line};
use super::request::{Cause, Fault};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::transfer::{Chunk, Part};
use crate::web::bytes::{Arrays, Bytes, read_blob};
use crate::web::digest::{Hasher, digest};
use crate::web::log::warn;
use crate::web::progress::Meter;
use crate::web::store::Storage;

/// Parts under way at a time: requests to the server, or reads of the storage. Their bytes are in
/// memory.
const AHEAD: usize = 4;

/// A stored file's chunks.
#[derive(Clone)]
pub(super) struct Shelf {
    pub(super) storage: Storage,
    /// The file's name there.
    pub(super) id: String,
    pub(super) meter: Rc<Meter>,
    pub(super) arrays: Arrays,
    /// Whether other bytes come from the network meanwhile, whose rate counts.
    pub(super) aside: bool,
}

impl Shelf {
    /// A chunk's bytes, if they are those that were stored; else it is off the file's list.
    async fn read(&self, chunk: &Chunk) -> Option<Bytes> {
        let bytes = match read(&self.storage, &self.id, chunk, &self.arrays).await {
            Ok(bytes) => bytes,
            // To a load, bytes that cannot be had are none: there may be a network.
            Err(error) => {
                warn(&format!("a stored chunk cannot be read: {error}"));
                None
            }
        };
        match &bytes {
            Some(_) if self.aside => self.meter.advance_aside(chunk.length),
            Some(_) => self.meter.advance(chunk.length),
            None => {
                if self.aside {
                    self.meter.not_aside(chunk.length);
                }
                // It fails if the whole file was deleted meanwhile, which comes to the same. If it
                // fails for another reason, the chunk is found again, but not trusted for ever.
                let _ = self.storage.forget(&self.id, vec![chunk.start]).await;
            }
        }
        bytes
    }
}

/// A chunk's bytes; `None` if they are gone, or not those that were stored.
pub(in crate::web) async fn read(
    storage: &Storage,
    id: &str,
    chunk: &Chunk,
    arrays: &Arrays,
) -> Result<Option<Bytes>> {
    let Some(blob) = storage.chunk(id, chunk.key).await? else { return Ok(None) };
    if blob.size() != chunk.length as f64 {
        return Ok(None);
    }
    // A blob whose file the browser has lost cannot be read.
    let Ok(bytes) = read_blob(&blob, arrays, "a stored chunk").await else { return Ok(None) };
    let is_whole = match &chunk.sha256 {
        Some(expected) => digest(&bytes.all())?.await? == *expected,
        None => true,
    };
    Ok(is_whole.then_some(bytes))
}

/// Where the bytes of a load come from.
pub(super) enum Feed {
    /// Each part by itself, several at a time: stored ones, and by requests of their own the others.
    Parts {
        shelf: Option<Shelf>,
        fetcher: Option<Rc<Fetcher>>,
        under_way: FuturesOrdered<RemoteHandle<Result<Bytes, Fault>>>,
    },
    /// The whole file in one answer; what is stored already is not stored again.
    Line(Line),
}

impl Feed {
    pub(super) fn parts(shelf: Option<Shelf>, fetcher: Option<Rc<Fetcher>>) -> Self {
        Self::Parts { shelf, fetcher, under_way: FuturesOrdered::new() }
    }
}

/// A file of known length as a [`Source`].
pub(super) struct Supply {
    feed: Feed,
    /// Parts that nobody has begun to get.
    parts: VecDeque<Part>,
    len: u64,
    /// How far it has been read.
    position: u64,
    /// The part that is being read, and how much of it is behind.
    current: Option<(Bytes, u32)>,
    hasher: Option<Hasher>,
    /// Why the load has to begin anew, if it has.
    pub(super) restart: Option<Cause>,
}

impl Supply {
    /// All of the file's `parts`, hashed as they pass if `hashed`.
    pub(super) fn new(feed: Feed, parts: Vec<Part>, len: u64, hashed: bool) -> Self {
        Self {
            feed,
            parts: parts.into(),
            len,
            position: 0,
            current: None,
            hasher: hashed.then(Hasher::default),
            restart: None,
        }
    }

    /// The next part; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let bytes = match &mut self.feed {
            Feed::Line(line) => match self.parts.pop_front() {
                Some(part) => {
                    let missing = matches!(part, Part::Missing(_));
                    Some(line.part(part.range(), missing).await?)
                }
                None => None,
            },
            Feed::Parts { shelf, fetcher, under_way } => {
                while under_way.len() < AHEAD
                    && let Some(part) = self.parts.pop_front()
                {
                    // A task of its own: it goes on while the reader waits for something else, and
                    // ends when its handle is dropped.
                    let (task, handle) = get(part, shelf.clone(), fetcher.clone()).remote_handle();
                    spawn_local(task);
                    under_way.push_back(handle);
                }
                under_way.next().await.transpose()?
            }
        };
        if let (Some(bytes), Some(hasher)) = (&bytes, &mut self.hasher) {
            hasher.update(&bytes.all().to_vec());
        }
        Ok(bytes)
    }

    /// Bytes of the current part that have not been read.
    fn rest(&self) -> u32 {
        self.current.as_ref().map_or(0, |(bytes, read)| bytes.length() - read)
    }

    /// Goes on to the next part that has any, if there is nothing to read of this one.
    async fn fill(&mut self) -> Result<()> {
        while self.rest() == 0 {
            self.current = None;
            self.current = match self.next().await {
                Ok(Some(bytes)) => Some((bytes, 0)),
                Ok(None) => return Err(Error::Internal("a file's parts are not all of it".into())),
                Err(fault) => return Err(self.failed(fault)),
            };
        }
        Ok(())
    }

    /// The error for a reader that knows of no restarts.
    fn failed(&mut self, fault: Fault) -> Error {
        match fault {
            Fault::Final(error) | Fault::Passing { error, .. } => error,
            Fault::Restart(cause) => {
                self.restart = Some(cause);
                Error::Network { what: "the file".into(), why: cause.why().into() }
            }
        }
    }

    /// The next bytes of the current part, at most `len`; `into` gets them.
    fn take(&mut self, len: u64, into: Option<&mut Vec<u8>>) {
        let len = len.min(u64::from(self.rest())) as u32;
        let Some((bytes, read)) = &mut self.current else { return };
        match into {
            // Most reads lie within a part: then this is the only copy.
            Some(into) if into.is_empty() => *into = bytes.view(*read..*read + len).to_vec(),
            Some(into) => into.extend(bytes.view(*read..*read + len).to_vec()),
            None => {}
        }
        *read += len;
        self.position += u64::from(len);
    }

    /// Reads what the model did not need, so that hash and storage have seen the whole file. The
    /// hash, if there is one.
    pub(super) async fn drain(&mut self) -> Result<Option<String>> {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(self.hasher.take().map(Hasher::finish)),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
    }

    /// Whether the length that the server claimed turns out to be wrong.
    pub(super) async fn claim_is_wrong(&mut self) -> bool {
        match &mut self.feed {
            Feed::Line(line) => line.claim_is_wrong().await,
            Feed::Parts { .. } => false,
        }
    }
}

async fn get(
    part: Part,
    shelf: Option<Shelf>,
    fetcher: Option<Rc<Fetcher>>,
) -> Result<Bytes, Fault> {
    let range = part.range();
    if let (Part::Stored(chunk), Some(shelf)) = (&part, &shelf)
        && let Some(bytes) = shelf.read(chunk).await
    {
        return Ok(bytes);
    }
    match (part, fetcher) {
        (_, Some(fetcher)) => fetcher.part(range).await,
        (Part::Stored(_), None) => Err(Fault::Restart(Cause::Damaged)),
        (part, None) => Err(Error::Internal(format!("nowhere to get {part:?} from")).into()),
    }
}

impl Source for Supply {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        while self.position < range.start {
            self.fill().await?;
            self.take(range.start - self.position, None);
        }
        if self.position != range.start {
            let at = self.position;
            return Err(Error::Internal(format!("read of {range:?}, already at {at}")));
        }
        let len = (range.end - range.start) as usize;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            self.fill().await?;
            self.take((len - bytes.len()) as u64, Some(&mut bytes));
        }
        Ok(bytes)
    }
}
