//! A file's parts in order, from the storage or the network, a few ahead of who reads them.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesOrdered;
use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::fetcher::{Fetcher, Line};
use super::request::{Cause, Fault};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::transfer::{Chunk, Part};
use crate::web::digest::{Hasher, sha256};
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
    /// Whether other bytes come from the network meanwhile, whose rate counts.
    pub(super) aside: bool,
}

impl Shelf {
    /// A chunk's bytes, if they are those that were stored.
    async fn read(&self, chunk: Chunk) -> Result<Uint8Array, Fault> {
        match read(&self.storage, &self.id, &chunk).await? {
            Some(bytes) if self.aside => {
                self.meter.advance_aside(chunk.length);
                Ok(bytes)
            }
            Some(bytes) => {
                self.meter.advance(chunk.length);
                Ok(bytes)
            }
            None => {
                // It fails if the whole file was deleted meanwhile, which comes to the same.
                let _ = self.storage.forget(&self.id, vec![chunk.start]).await;
                Err(Fault::Restart(Cause::Damaged))
            }
        }
    }
}

/// A chunk's bytes; `None` if they are gone, or not those that were stored.
pub(in crate::web) async fn read(
    storage: &Storage,
    id: &str,
    chunk: &Chunk,
) -> Result<Option<Uint8Array>> {
    let Some(blob) = storage.chunk(id, chunk.key).await? else { return Ok(None) };
    // A blob whose file the browser has lost cannot be read.
    let Ok(buffer) = JsFuture::from(blob.array_buffer()).await else { return Ok(None) };
    let bytes = Uint8Array::new(buffer.unchecked_ref::<ArrayBuffer>());
    let is_whole = u64::from(bytes.length()) == chunk.length
        && match &chunk.sha256 {
            Some(expected) => sha256(&bytes).await? == *expected,
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
        under_way: FuturesOrdered<LocalBoxFuture<'static, Result<Uint8Array, Fault>>>,
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
    /// Where `rest` begins in the file.
    position: u64,
    /// What is left of the part before.
    rest: Uint8Array,
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
            rest: Uint8Array::new_with_length(0),
            hasher: hashed.then(Hasher::default),
            restart: None,
        }
    }

    /// The next part; `None` at the end.
    async fn next(&mut self) -> Result<Option<Uint8Array>, Fault> {
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
                    under_way.push_back(get(part, shelf.clone(), fetcher.clone()));
                }
                under_way.next().await.transpose()?
            }
        };
        if let (Some(bytes), Some(hasher)) = (&bytes, &mut self.hasher) {
            hasher.update(&bytes.to_vec());
        }
        Ok(bytes)
    }

    /// Makes `rest` hold at least one byte.
    async fn fill(&mut self) -> Result<()> {
        while self.rest.length() == 0 {
            self.rest = match self.next().await {
                Ok(Some(bytes)) => bytes,
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

    /// At most `len` of the bytes in `rest`.
    fn take(&mut self, len: u64) -> Uint8Array {
        let len = len.min(u64::from(self.rest.length()));
        let taken = self.rest.subarray(0, len as u32);
        self.rest = self.rest.subarray(len as u32, self.rest.length());
        self.position += len;
        taken
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

fn get(
    part: Part,
    shelf: Option<Shelf>,
    fetcher: Option<Rc<Fetcher>>,
) -> LocalBoxFuture<'static, Result<Uint8Array, Fault>> {
    Box::pin(async move {
        match (part, shelf, fetcher) {
            (Part::Stored(chunk), Some(shelf), _) => shelf.read(chunk).await,
            (Part::Missing(range), _, Some(fetcher)) => fetcher.part(range).await,
            (part, ..) => Err(Error::Internal(format!("nowhere to get {part:?} from")).into()),
        }
    })
}

impl Source for Supply {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        while self.position < range.start {
            self.fill().await?;
            self.take(range.start - self.position);
        }
        if self.position != range.start {
            let at = self.position;
            return Err(Error::Internal(format!("read of {range:?}, already at {at}")));
        }
        let len = (range.end - range.start) as usize;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            self.fill().await?;
            let more = self.take((len - bytes.len()) as u64);
            if bytes.is_empty() {
                // Most reads lie within a part: then this is the only copy.
                bytes = more.to_vec();
            } else {
                bytes.extend(more.to_vec());
            }
        }
        Ok(bytes)
    }
}
