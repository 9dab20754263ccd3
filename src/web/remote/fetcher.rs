//! The bytes of one version of a file from the network, whatever happens on the way.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use js_sys::Uint8Array;

use super::request::{Address, Answer, Body, Cause, Content, Fault, Length, Question, ask};
use crate::transfer::{Backoff, Version};
use crate::web::bytes::{Arrays, Bytes};
use crate::web::progress::Meter;
use crate::web::store::{Place, Writer};
use crate::web::timer::sleep;

/// Bytes that came so long ago are stored, though their part is not whole: a slow connection that
/// is broken off for good has lost no more than this. Milliseconds.
const STORE_AFTER: f64 = 10_000.0;

/// What all requests for a file have in common.
pub(super) struct Fetcher {
    pub(super) address: Address,
    /// The version of which bytes are taken.
    pub(super) version: Version,
    /// Bytes in the file; `None` if the server does not say.
    pub(super) total: Option<u64>,
    /// Whether `If-Range` may be sent: a server of another origin would have to allow it.
    pub(super) conditional: bool,
    pub(super) patience: f64,
    pub(super) meter: Rc<Meter>,
    pub(super) arrays: Arrays,
    /// Where what is fetched is kept, if it is.
    pub(super) writer: Option<Rc<Writer>>,
    /// The answer with which the load began, until somebody reads it.
    pub(super) first: RefCell<Option<Answer>>,
    /// Whether bytes of it are here, of this load or of an earlier one.
    pub(super) begun: Cell<bool>,
}

/// Waits until another attempt makes sense; gives the fault back if none does.
pub(super) async fn wait(backoff: &mut Backoff, begun: bool, fault: Fault) -> Result<(), Fault> {
    let Fault::Passing { error, after } = fault else { return Err(fault) };
    match backoff.failed(begun, after, js_sys::Math::random()) {
        Some(milliseconds) => sleep(milliseconds).await,
        None => return Err(Fault::Final(error)),
    }
    Ok(())
}

impl Fetcher {
    fn question(&self, range: Option<Range<u64>>) -> Question {
        let validator = || self.version.validator().map(Into::into);
        Question {
            if_range: self.conditional.then(validator).flatten(),
            range,
            stored: self.writer.is_some(),
            patience: self.patience,
        }
    }

    async fn ask(&self, range: Option<Range<u64>>) -> Result<Answer, Fault> {
        ask(&self.address, &self.question(range), &self.arrays).await
    }

    /// The bytes of a range, by requests of its own; they are stored as well.
    pub(super) async fn part(&self, range: Range<u64>) -> Result<Bytes, Fault> {
        let mut piece = Piece::new(self, self.writer.as_ref(), range).await;
        let mut backoff = Backoff::default();
        loop {
            let had = piece.bytes.length();
            let step = match self.body_of(piece.missing()).await {
                Ok(mut body) => piece.fill(&mut body).await,
                Err(fault) => Err(fault),
            };
            match step {
                Ok(()) => return Ok(piece.finish()),
                Err(fault) => {
                    if piece.bytes.length() > had {
                        backoff.progressed();
                    }
                    let waited = wait(&mut backoff, self.begun.get(), fault).await;
                    if waited.is_err() {
                        piece.store();
                    }
                    waited?;
                }
            }
        }
    }

    async fn body_of(&self, range: Range<u64>) -> Result<Body, Fault> {
        let first = self.first.borrow_mut().take_if(|first| match &first.content {
            Content::Part(part) => part.range.start == range.start,
            Content::Whole(_) => false,
        });
        let answer = match first {
            Some(first) => first,
            None => self.ask(Some(range)).await?,
        };
        match &answer.content {
            _ if !answer.version.is_same(&self.version) => Err(Fault::Restart(Cause::Changed)),
            Content::Part(part) if Some(part.total) == self.total => Ok(answer.body),
            Content::Part(_) => Err(Fault::Restart(Cause::Changed)),
            // The whole file, of the same version: ranges were to be had, and now are not.
            Content::Whole(_) => Err(Fault::Restart(Cause::NoRanges)),
        }
    }
}

/// The bytes of a range as they gather.
struct Piece<'a> {
    fetcher: &'a Fetcher,
    /// Where it is stored from, if it is.
    place: Option<Rc<Place>>,
    /// Where they begin in the file.
    start: u64,
    bytes: Bytes,
    /// Of them, bytes that were given to the storage.
    stored: u32,
    since: f64,
}

impl<'a> Piece<'a> {
    /// An empty one, when there is a place for it.
    async fn new(fetcher: &'a Fetcher, writer: Option<&Rc<Writer>>, range: Range<u64>) -> Self {
        let place = match writer {
            Some(writer) => Some(writer.place().await),
            None => None,
        };
        let bytes = fetcher.arrays.take((range.end - range.start) as u32);
        let since = js_sys::Date::now();
        Self { fetcher, place, start: range.start, bytes, stored: 0, since }
    }

    fn missing(&self) -> Range<u64> {
        let from = self.start + u64::from(self.bytes.length());
        from..from + u64::from(self.bytes.missing())
    }

    /// Takes a body's bytes until the piece is whole.
    async fn fill(&mut self, body: &mut Body) -> Result<(), Fault> {
        while self.bytes.missing() > 0 {
            let Some(bytes) = body.next().await? else {
                let (found, missing) = (self.bytes.length(), self.bytes.missing());
                let expected = found + missing;
                return Err(body.fault(format!("a part ended after {found} of {expected} bytes")));
            };
            self.take(&bytes);
        }
        Ok(())
    }

    /// As many of `bytes` as it lacks; gives the rest back.
    fn take(&mut self, bytes: &Uint8Array) -> Uint8Array {
        let rest = self.bytes.push(bytes);
        let taken = bytes.length() - rest.length();
        if taken > 0 {
            self.fetcher.begun.set(true);
            self.fetcher.meter.advance(u64::from(taken));
        }
        if js_sys::Date::now() - self.since > STORE_AFTER {
            self.store();
        }
        rest
    }

    /// Gives to the storage what it has not got yet.
    fn store(&mut self) {
        self.since = js_sys::Date::now();
        let length = self.bytes.length();
        if let Some(place) = &self.place
            && length > self.stored
        {
            let start = self.start + u64::from(self.stored);
            Writer::put(place, start, &self.bytes.view(self.stored..length));
            self.stored = length;
        }
    }

    fn finish(mut self) -> Bytes {
        self.store();
        self.bytes
    }
}

/// The whole file by one request, read from front to back. Where that breaks off, it goes on by
/// asking for the rest, or by reading up to there once more; a server that names no version
/// cannot be trusted with either.
pub(super) struct Line {
    fetcher: Rc<Fetcher>,
    body: Option<Body>,
    /// Where `rest` begins in the file.
    position: u64,
    /// What came beyond the part before.
    rest: Uint8Array,
    /// What the first answer said.
    length: Length,
}

impl Line {
    pub(super) fn new(fetcher: Rc<Fetcher>, length: Length) -> Self {
        let body = fetcher.first.borrow_mut().take().map(|first| first.body);
        Self { fetcher, body, position: 0, rest: Uint8Array::new_with_length(0), length }
    }

    /// The next bytes, which are those of `range`; fewer at the end of a file whose length nobody
    /// knows. `missing`: the storage lacks them.
    pub(super) async fn part(&mut self, range: Range<u64>, missing: bool) -> Result<Bytes, Fault> {
        let fetcher = Rc::clone(&self.fetcher);
        let writer = fetcher.writer.as_ref().filter(|_| missing);
        let mut piece = Piece::new(&fetcher, writer, range).await;
        let mut backoff = Backoff::default();
        loop {
            let had = self.position;
            match self.fill(&mut piece).await {
                Ok(()) => return Ok(piece.finish()),
                Err(fault) => {
                    self.body = None;
                    if self.position > had {
                        backoff.progressed();
                    }
                    let is_known = self.length != Length::Unknown;
                    if !is_known || fetcher.version.validator().is_none() {
                        return Err(no_way_on(fault));
                    }
                    let waited = wait(&mut backoff, fetcher.begun.get(), fault).await;
                    if waited.is_err() {
                        piece.store();
                    }
                    waited?;
                }
            }
        }
    }

    async fn fill(&mut self, piece: &mut Piece<'_>) -> Result<(), Fault> {
        if self.body.is_none() {
            self.reconnect().await?;
        }
        loop {
            let before = self.rest.length();
            self.rest = piece.take(&self.rest);
            self.position += u64::from(before - self.rest.length());
            let Some(body) = &mut self.body else { return Ok(()) };
            if piece.bytes.missing() == 0 {
                return Ok(());
            }
            match body.next().await? {
                Some(bytes) => self.rest = bytes,
                None => return self.ended(),
            }
        }
    }

    fn ended(&self) -> Result<(), Fault> {
        match (self.length, &self.body) {
            (Length::Known(total), Some(body)) => {
                Err(body.fault(format!("it ended after {} of {total} bytes", self.position)))
            }
            (Length::Claimed(_), _) => Err(Fault::Restart(Cause::WrongLength)),
            _ => Ok(()),
        }
    }

    /// A new body, at the position reached.
    async fn reconnect(&mut self) -> Result<(), Fault> {
        let fetcher = &self.fetcher;
        let range = fetcher.total.map(|total| self.position..total);
        let answer = match fetcher.ask(range).await {
            Err(Fault::Restart(Cause::NoRanges)) => fetcher.ask(None).await?,
            answer => answer?,
        };
        if !answer.version.is_same(&fetcher.version) {
            return Err(Fault::Restart(Cause::Changed));
        }
        let mut body = answer.body;
        let mut skip = match &answer.content {
            Content::Part(_) => 0,
            Content::Whole(_) => self.position,
        };
        while skip > 0 {
            let Some(bytes) = body.next().await? else {
                return Err(Fault::Restart(Cause::Changed));
            };
            let skipped = skip.min(u64::from(bytes.length()));
            self.rest = bytes.subarray(skipped as u32, bytes.length());
            skip -= skipped;
        }
        self.body = Some(body);
        Ok(())
    }

    /// Whether the file turns out to have another length than the server claimed; reads no further
    /// than it takes to know.
    pub(super) async fn claim_is_wrong(&mut self) -> bool {
        let (Length::Claimed(claimed), Some(body)) = (self.length, &mut self.body) else {
            return false;
        };
        let mut length = self.position + u64::from(self.rest.length());
        while length <= claimed {
            match body.next().await {
                Ok(Some(bytes)) => length += u64::from(bytes.length()),
                Ok(None) => return length != claimed,
                Err(_) => return false,
            }
        }
        true
    }
}

/// What cannot go on begins anew.
fn no_way_on(fault: Fault) -> Fault {
    match fault {
        Fault::Passing { .. } => Fault::Restart(Cause::Broken),
        fault => fault,
    }
}
