//! Gives the parts of a file in order, from storage and network. A few of them are ahead of the
//! reader.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use futures_util::future::RemoteHandle;
use futures_util::stream::FuturesOrdered;
use futures_util::{FutureExt, StreamExt};
use wasm_bindgen_futures::spawn_local;

use super::fetcher::{Fetcher, SequentialReader};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::transfer::{Cause, Fault, Hasher, Part};
use crate::web::bytes::Bytes;
use crate::web::store::StoredFile;

/// The most parts of a file that are fetched at the same time.
const REQUESTED: usize = 4;
/// Bytes of the parts that are requested or read from storage at the same time. They are in memory,
/// and enough for the threads that read them. All files of a model share them, but each file may
/// always have one part.
const MAX_AHEAD: u64 = 12 << 20;
/// The same two limits while threads make the requests. A request then has two parts. Two threads
/// have one request each, and the next request is prepared.
const THREADED: usize = 6;
const MAX_AHEAD_THREADED: u64 = 24 << 20;

/// The bytes in memory that are ahead of the reader, in all files of a model.
#[derive(Clone, Default)]
pub(super) struct Ahead(Rc<Cell<u64>>);

impl Ahead {
    fn fits(&self, bytes: u64, most: u64) -> bool {
        self.0.get() + bytes <= most
    }

    fn count(&self, bytes: u64) -> Counted {
        self.0.set(self.0.get() + bytes);
        Counted(self.clone(), bytes)
    }
}

/// Bytes that count as in memory until this is dropped.
pub(super) struct Counted(Ahead, u64);

impl Drop for Counted {
    fn drop(&mut self) {
        let Self(Ahead(all), bytes) = self;
        all.set(all.get() - *bytes);
    }
}

/// The source of the bytes of a load.
pub(super) enum Feed {
    /// Each part separately, and several at a time. Stored parts come from the storage, others by
    /// requests. On a fast connection one request asks for several parts, which then come one after
    /// the other.
    Parts {
        stored: Option<StoredFile>,
        fetcher: Option<Rc<Fetcher>>,
        ahead: Ahead,
        in_flight: FuturesOrdered<RemoteHandle<(Result<Bytes, Fault>, Counted)>>,
    },
    /// The whole file in one response. Stored parts are not stored again.
    Sequential(SequentialReader),
}

impl Feed {
    /// See [`Feed::Parts`].
    pub(super) fn parts(
        stored: Option<StoredFile>,
        fetcher: Option<Rc<Fetcher>>,
        ahead: &Ahead,
    ) -> Self {
        Self::Parts { stored, fetcher, ahead: ahead.clone(), in_flight: FuturesOrdered::new() }
    }
}

/// A file of known length as a [`Source`].
pub(super) struct PartSource {
    feed: Feed,
    /// The parts that have not been requested yet.
    parts: VecDeque<Part>,
    len: u64,
    /// The offset of the next byte to read.
    position: u64,
    /// The part that is being read, and how many of its bytes have been read.
    current: Option<(Bytes, u32)>,
    hasher: Option<Hasher>,
    /// The cause, if the load has to start again.
    pub(super) restart: Rc<Cell<Option<Cause>>>,
    /// Whether only one part may be in memory.
    patient: bool,
}

impl PartSource {
    /// The file that consists of `parts`. `hashed` says whether its hash is computed.
    pub(super) fn new(feed: Feed, parts: Vec<Part>, len: u64, hashed: bool) -> Self {
        Self {
            feed,
            parts: parts.into(),
            len,
            position: 0,
            current: None,
            hasher: hashed.then(Hasher::default),
            restart: Rc::default(),
            patient: false,
        }
    }

    /// The same file, but only its first part is in memory until the reader needs another one.
    pub(super) fn patient(self) -> Self {
        Self { patient: true, ..self }
    }

    /// The next part; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        let bytes = match &mut self.feed {
            Feed::Sequential(reader) => match self.parts.pop_front() {
                Some(part) => {
                    let missing = matches!(part, Part::Missing(_));
                    Some(reader.part(part.range(), missing).await?)
                }
                None => None,
            },
            Feed::Parts { stored, fetcher, ahead, in_flight } => {
                let (requested, most) =
                    match fetcher.as_ref().is_some_and(|fetcher| fetcher.has_threads()) {
                        true => (THREADED, MAX_AHEAD_THREADED),
                        false => (REQUESTED, MAX_AHEAD),
                    };
                while let Some(part) = self.parts.pop_front_if(|part| {
                    let may = match part {
                        _ if self.patient => false,
                        Part::Missing(_) => in_flight.len() < requested,
                        Part::Stored(_) => true,
                    };
                    in_flight.is_empty() || may && ahead.fits(part.length(), most)
                }) {
                    let counted = ahead.count(part.length());
                    let reach = fetcher.as_ref().map_or(0, |fetcher| fetcher.reach());
                    let until = run_end(&part.range(), &self.parts, reach);
                    let got = get(part, until, stored.clone(), fetcher.clone());
                    // A task of its own goes on while the reader waits for something else. Dropping
                    // its handle ends it.
                    let (task, handle) = async { (got.await, counted) }.remote_handle();
                    spawn_local(task);
                    in_flight.push_back(handle);
                }
                // The tasks in flight hold the fetcher. Its threads end with the last task.
                fetcher.take_if(|_| self.parts.is_empty());
                let next = in_flight.next().await.map(|(got, _)| got).transpose()?;
                self.patient = false;
                next
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

    /// Makes sure that the current part has bytes to read.
    async fn fill(&mut self) -> Result<()> {
        while self.rest() == 0 {
            self.current = None;
            self.current = match self.next().await {
                Ok(Some(bytes)) => Some((bytes, 0)),
                Ok(None) => {
                    return Err(Error::Internal("the parts do not make up the file".into()));
                }
                Err(fault) => return Err(self.failed(fault)),
            };
        }
        Ok(())
    }

    /// The error for the reader. The reader does not know about restarts.
    fn failed(&mut self, fault: Fault) -> Error {
        match fault {
            Fault::Permanent(error) | Fault::Transient { error, .. } => error,
            Fault::Restart(cause) => {
                self.restart.set(Some(cause));
                Error::Network { what: "the file".into(), why: cause.why().into() }
            }
        }
    }

    /// Reads at most `len` bytes of the current part, and appends them to `into` if there is one.
    fn take(&mut self, len: u64, into: Option<&mut Vec<u8>>) {
        let len = len.min(u64::from(self.rest())) as u32;
        let Some((bytes, read)) = &mut self.current else { return };
        match into {
            // Most reads are within one part. This is their only copy.
            Some(into) if into.is_empty() => *into = bytes.view(*read..*read + len).to_vec(),
            Some(into) => into.extend(bytes.view(*read..*read + len).to_vec()),
            None => {}
        }
        *read += len;
        self.position += u64::from(len);
    }

    /// Reads the bytes that the model did not need, so that all of the file is hashed and stored.
    /// Returns the hash if it was computed.
    pub(super) async fn drain(&mut self) -> Result<Option<String>> {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(self.hasher.take().map(Hasher::finish)),
                Err(fault) => return Err(self.failed(fault)),
            }
        }
    }

    /// Whether the length of the file differs from the length that the server claimed.
    pub(super) async fn claim_is_wrong(&mut self) -> bool {
        match &mut self.feed {
            Feed::Sequential(reader) => reader.claim_is_wrong().await,
            Feed::Parts { .. } => false,
        }
    }
}

/// The end of a run of missing parts. It begins with `range`, and includes the missing `parts`
/// right after it as long as the run has at most `reach` bytes.
fn run_end(range: &Range<u64>, parts: &VecDeque<Part>, reach: u64) -> u64 {
    let ends = parts.iter().map_while(|part| match part {
        Part::Missing(missing) => Some(missing.end),
        Part::Stored(_) => None,
    });
    ends.take_while(|end| end - range.start <= reach).last().unwrap_or(range.end)
}

async fn get(
    part: Part,
    until: u64,
    stored: Option<StoredFile>,
    fetcher: Option<Rc<Fetcher>>,
) -> Result<Bytes, Fault> {
    let range = part.range();
    if let (Part::Stored(part), Some(stored)) = (&part, &stored)
        && let Some(bytes) = stored.read(part).await
    {
        return Ok(bytes);
    }
    match (part, fetcher) {
        (_, Some(fetcher)) => fetcher.part(range, until).await,
        (Part::Stored(_), None) => Err(Fault::Restart(Cause::Damaged)),
        (part, None) => Err(Error::Internal(format!("nowhere to get {part:?} from")).into()),
    }
}

impl Source for PartSource {
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
