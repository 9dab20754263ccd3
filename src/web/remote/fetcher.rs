//! Fetches the bytes of one version of a file, with as many requests as that takes.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use futures_channel::oneshot;
use js_sys::Uint8Array;

use super::request::{Address, Body, FileRequest, FileResponse, ask};
use super::threads::{PartsRequest, Threads};
use crate::transfer::{Backoff, Cause, Content, Fault, Length, Version};
use crate::web::bytes::{ArrayPool, Bytes};
use crate::web::progress::Reporter;
use crate::web::store::{Reservation, Writer};
use crate::web::timer::sleep;

/// After so many milliseconds, the bytes of an unfinished part are stored. So a slow connection
/// that breaks for good loses only the bytes of this time.
const STORE_AFTER: f64 = 10_000.0;

/// The milliseconds that a request should take. A request costs the browser as much as the copies
/// of some MiB. So on a fast connection each request asks for several parts.
const REQUEST_TIME: f64 = 100.0;
/// The most bytes that a request asks for. Without this limit, a load took 178 MiB of memory
/// instead of 106, because the browser reads a long response ahead.
const MAX_REQUEST: u64 = 16 << 20;
/// The most bytes that a request of a thread asks for. Its bytes wait in memory until the bytes
/// before them have come with another request.
const MAX_OF_THREAD: u64 = 8 << 20;
/// Threads start only if at least this many bytes are left to fetch.
const WORTH_THREADS: u64 = 32 << 20;
/// The fewest bytes by which the speed of the connection is measured. Fewer may have waited in a
/// buffer.
const MEASURED: u32 = 4 << 20;

/// Fetches one version of a file.
pub(super) struct Fetcher {
    pub(super) address: Address,
    /// The version of the file. Bytes of another version are refused.
    pub(super) version: Version,
    /// Bytes in the file; `None` if the server does not say it.
    pub(super) total: Option<u64>,
    /// Whether `If-Range` may be sent. A server of another origin would have to allow it.
    pub(super) conditional: bool,
    /// Milliseconds without a byte after which a request is given up.
    pub(super) stall_timeout: f64,
    pub(super) reporter: Rc<Reporter>,
    pub(super) pool: ArrayPool,
    /// Stores the bytes that are fetched, if they are to be stored.
    pub(super) writer: Option<Rc<Writer>>,
    /// The response with which the load began, until it is used.
    pub(super) first: RefCell<Option<FileResponse>>,
    /// Whether some bytes of the file have come, in this load or an earlier one.
    pub(super) begun: Cell<bool>,
    /// How many bytes come in [`REQUEST_TIME`], up to [`MAX_REQUEST`]; 0 if that is not known.
    pub(super) reach: Cell<u64>,
    /// Threads that make requests, once the connection is known to be fast.
    pub(super) threads: RefCell<Option<Rc<Threads>>>,
    /// Whether threads may be started.
    pub(super) may_thread: Cell<bool>,
    /// Receives the response of the last part, if the next part may go on reading it. It fails if
    /// the next part has to make a request of its own.
    pub(super) passed: Cell<Option<oneshot::Receiver<Passed>>>,
}

/// A response that goes on after the bytes of a part.
pub(super) enum Passed {
    Body(Body),
    Request(Rc<PartsRequest>),
}

/// Waits before another attempt. If there are to be no more attempts, gives the fault back.
pub(super) async fn wait(backoff: &mut Backoff, begun: bool, fault: Fault) -> Result<(), Fault> {
    let Fault::Transient { error, retry_after } = fault else { return Err(fault) };
    match backoff.failed(begun, retry_after, js_sys::Math::random()) {
        Some(milliseconds) => sleep(milliseconds).await,
        None => return Err(Fault::Permanent(error)),
    }
    Ok(())
}

impl Fetcher {
    fn request(&self, range: Option<Range<u64>>) -> FileRequest {
        let validator = || self.version.validator().map(Into::into);
        FileRequest {
            if_range: self.conditional.then(validator).flatten(),
            range,
            stored: self.writer.is_some(),
            stall_timeout: self.stall_timeout,
        }
    }

    async fn ask(&self, range: Option<Range<u64>>) -> Result<FileResponse, Fault> {
        ask(&self.address, &self.request(range), &self.pool).await
    }

    fn running_threads(&self) -> Option<Rc<Threads>> {
        self.threads.borrow().clone().filter(|threads| threads.are_running())
    }

    /// Whether several threads may make the requests. Then several parts come at the same time.
    pub(super) fn has_threads(&self) -> bool {
        self.writer.is_none() && self.running_threads().is_some()
    }

    /// Measures the connection, by the milliseconds that `came` bytes took. `left` bytes are still
    /// to come.
    fn measure(&self, came: u32, milliseconds: f64, left: u64) {
        let reach = (f64::from(came) * REQUEST_TIME / milliseconds.max(1.0)) as u64;
        if reach >= MAX_REQUEST && left >= WORTH_THREADS && self.may_thread.take() {
            // One thread is as fast as the disk, but not as fast as the GPU.
            let threads = if self.writer.is_some() { 1 } else { 2 };
            self.threads.replace(Threads::start(threads).map(Rc::new));
        }
        self.reach.set(reach.min(MAX_REQUEST));
    }

    /// How many bytes a request should ask for. It always asks for a whole part.
    pub(super) fn reach(&self) -> u64 {
        let threads = self.running_threads().is_some();
        self.reach.get().min(if threads { MAX_OF_THREAD } else { MAX_REQUEST })
    }

    /// Makes all further requests in this thread. They may succeed where those of threads failed,
    /// because a page may have changed `fetch` here.
    fn give_up_threads(&self) {
        self.reach.set(0);
        self.threads.take();
    }

    /// Fetches and stores the bytes of `range`. Its request asks for all bytes before `until`. The
    /// parts that follow read on in its response, one after the other, so they must be asked for in
    /// order. Parts with requests of their own come at the same time.
    pub(super) async fn part(&self, range: Range<u64>, mut until: u64) -> Result<Bytes, Fault> {
        let (pass_on, passed) = oneshot::channel();
        let (passed, mut pass_on) = (self.passed.replace(Some(passed)), Some(pass_on));
        let passed = match passed {
            Some(passed) => passed.await.ok(),
            None => None,
        };
        let mut part = PartBuffer::new(self, self.writer.as_ref(), range.clone()).await;
        let mut backoff = Backoff::default();
        let (mut body, run) = match passed {
            Some(Passed::Body(body)) => (Some(body), None),
            Some(Passed::Request(run)) => (None, Some(run)),
            None => (None, self.run_elsewhere(range.start..until)),
        };
        if let Some(run) = run.filter(|run| run.continues_with(&range)) {
            let filled = run.fill(&mut part.bytes);
            if let Some(pass_on) = pass_on.take()
                && !run.is_ordered()
            {
                // This fails after the last part, because there is no receiver.
                let _ = pass_on.send(Passed::Request(Rc::clone(&run)));
            }
            filled.await;
            let brings = run.brings(&self.version, self.total).await;
            if !matches!(brings, Ok(true)) {
                part.bytes.clear();
            }
            part.advance();
            if part.bytes.missing() == 0 {
                return Ok(part.finish());
            }
            self.give_up_threads();
            until = range.end;
            if let Err(fault) = brings {
                wait(&mut backoff, self.begun.get(), fault).await?;
            }
        }
        // A server may send fewer bytes than it was asked for.
        body.take_if(|body| body.position() != range.start || body.end() < range.end);
        loop {
            let (had, since) = (part.bytes.length(), js_sys::Date::now());
            // If the body ends with this part, the next part need not wait for it.
            pass_on.take_if(|_| body.as_ref().map_or(until, Body::end) <= range.end);
            let body = match body.take() {
                Some(body) => Ok(body),
                None => self.body_of(part.missing().start..until).await,
            };
            let step = match body {
                Ok(mut body) => part.fill(&mut body).await.map(|()| body),
                Err(fault) => Err(fault),
            };
            let came = part.bytes.length() - had;
            match step {
                Ok(body) => {
                    if came >= MEASURED {
                        let left = self.total.unwrap_or(0).saturating_sub(range.end);
                        self.measure(came, js_sys::Date::now() - since, left);
                    }
                    if let Some(pass_on) = pass_on {
                        // This fails after the last part, because there is no receiver.
                        let _ = pass_on.send(Passed::Body(body));
                    }
                    return Ok(part.finish());
                }
                Err(fault) => {
                    self.reach.set(0);
                    if came > 0 {
                        backoff.progressed();
                    }
                    let waited = wait(&mut backoff, self.begun.get(), fault).await;
                    if waited.is_err() {
                        part.store();
                    }
                    waited?;
                }
            }
        }
    }

    /// A request for `range` in another thread, if threads run.
    fn run_elsewhere(&self, range: Range<u64>) -> Option<Rc<PartsRequest>> {
        let run = self.running_threads()?.ask(&self.address, self.request(Some(range)))?;
        Some(Rc::new(run))
    }

    async fn body_of(&self, range: Range<u64>) -> Result<Body, Fault> {
        let first = self.first.borrow_mut().take_if(|first| match &first.content {
            Content::Part(part) => part.range.start == range.start,
            Content::Whole(_) => false,
        });
        let response = match first {
            Some(first) => first,
            None => self.ask(Some(range)).await?,
        };
        match &response.content {
            _ if !response.version.is_same(&self.version) => Err(Fault::Restart(Cause::Changed)),
            Content::Part(part) if Some(part.total) == self.total => Ok(response.body),
            Content::Part(_) => Err(Fault::Restart(Cause::Changed)),
            // The server sent ranges before. Now it sends the whole file, of the same version.
            Content::Whole(_) => Err(Fault::Restart(Cause::NoRanges)),
        }
    }
}

/// A buffer for the bytes of a range.
struct PartBuffer<'a> {
    fetcher: &'a Fetcher,
    /// The memory for the part, if it is stored.
    reservation: Option<Rc<Reservation>>,
    /// Offset in the file.
    start: u64,
    bytes: Bytes,
    /// How many of the bytes the writer has.
    stored: u32,
    /// When the writer last got bytes.
    since: f64,
}

impl<'a> PartBuffer<'a> {
    /// An empty buffer. Waits until the writer has memory for it.
    async fn new(fetcher: &'a Fetcher, writer: Option<&Rc<Writer>>, range: Range<u64>) -> Self {
        let reservation = match writer {
            Some(writer) => Some(writer.reserve(range.end - range.start).await),
            None => None,
        };
        let bytes = fetcher.pool.take((range.end - range.start) as u32);
        let since = js_sys::Date::now();
        Self { fetcher, reservation, start: range.start, bytes, stored: 0, since }
    }

    fn missing(&self) -> Range<u64> {
        let from = self.start + u64::from(self.bytes.length());
        from..from + u64::from(self.bytes.missing())
    }

    /// Reads a body until the buffer is full.
    async fn fill(&mut self, body: &mut Body) -> Result<(), Fault> {
        while self.bytes.missing() > 0 {
            let Some(bytes) = body.next(self.bytes.missing().into()).await? else {
                let (found, missing) = (self.bytes.length(), self.bytes.missing());
                let expected = found + missing;
                return Err(body.fault(format!("a part ended after {found} of {expected} bytes")));
            };
            self.take(&bytes);
        }
        Ok(())
    }

    /// Reports the bytes that have come into the buffer, which was empty.
    fn advance(&self) {
        let came = self.bytes.length();
        if came > 0 {
            self.fetcher.begun.set(true);
            self.fetcher.reporter.advance(came.into());
        }
    }

    /// Appends `bytes`, which must fit.
    fn take(&mut self, bytes: &Uint8Array) {
        self.bytes.push(bytes);
        self.fetcher.begun.set(true);
        self.fetcher.reporter.advance(bytes.length().into());
        if js_sys::Date::now() - self.since > STORE_AFTER {
            self.store();
        }
    }

    /// Gives the writer the bytes that it does not have yet.
    fn store(&mut self) {
        self.since = js_sys::Date::now();
        let length = self.bytes.length();
        if let Some(reservation) = &self.reservation
            && length > self.stored
        {
            let start = self.start + u64::from(self.stored);
            Writer::put(reservation, start, &self.bytes.view(self.stored..length));
            self.stored = length;
        }
    }

    fn finish(mut self) -> Bytes {
        self.store();
        self.bytes
    }
}

/// Reads the whole file with one request, from front to back. If the response breaks off, it
/// requests the rest, or reads the file again up to where it was. It can do neither if the server
/// names no version of the file.
pub(super) struct SequentialReader {
    fetcher: Rc<Fetcher>,
    body: Option<Body>,
    /// Offset in the file of the next byte.
    position: u64,
    /// The length according to the first response.
    length: Length,
}

impl SequentialReader {
    pub(super) fn new(fetcher: Rc<Fetcher>, length: Length) -> Self {
        let body = fetcher.first.borrow_mut().take().map(|first| first.body);
        Self { fetcher, body, position: 0, length }
    }

    /// The next bytes, which are those of `range`. There may be fewer at the end of a file of
    /// unknown length. `missing` says that they are not stored yet.
    pub(super) async fn part(&mut self, range: Range<u64>, missing: bool) -> Result<Bytes, Fault> {
        let fetcher = Rc::clone(&self.fetcher);
        let writer = fetcher.writer.as_ref().filter(|_| missing);
        let mut part = PartBuffer::new(&fetcher, writer, range).await;
        let mut backoff = Backoff::default();
        loop {
            let had = self.position;
            match self.fill(&mut part).await {
                Ok(()) => return Ok(part.finish()),
                Err(fault) => {
                    self.body = None;
                    if self.position > had {
                        backoff.progressed();
                    }
                    let is_known = self.length != Length::Unknown;
                    if !is_known || fetcher.version.validator().is_none() {
                        return Err(cannot_continue(fault));
                    }
                    let waited = wait(&mut backoff, fetcher.begun.get(), fault).await;
                    if waited.is_err() {
                        part.store();
                    }
                    waited?;
                }
            }
        }
    }

    async fn fill(&mut self, part: &mut PartBuffer<'_>) -> Result<(), Fault> {
        if self.body.is_none() {
            self.reconnect().await?;
        }
        while let Some(body) = &mut self.body
            && part.bytes.missing() > 0
        {
            match body.next(part.bytes.missing().into()).await? {
                Some(bytes) => {
                    part.take(&bytes);
                    self.position += u64::from(bytes.length());
                }
                None => return self.ended(),
            }
        }
        Ok(())
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

    /// Requests a new body, which begins at the present offset.
    async fn reconnect(&mut self) -> Result<(), Fault> {
        let fetcher = &self.fetcher;
        let range = fetcher.total.map(|total| self.position..total);
        let response = match fetcher.ask(range).await {
            Err(Fault::Restart(Cause::NoRanges)) => fetcher.ask(None).await?,
            response => response?,
        };
        if !response.version.is_same(&fetcher.version) {
            return Err(Fault::Restart(Cause::Changed));
        }
        let mut body = response.body;
        let mut skip = match &response.content {
            Content::Part(_) => 0,
            Content::Whole(_) => self.position,
        };
        while skip > 0 {
            let Some(bytes) = body.next(skip).await? else {
                return Err(Fault::Restart(Cause::Changed));
            };
            skip -= u64::from(bytes.length());
        }
        self.body = Some(body);
        Ok(())
    }

    /// Whether the length of the file differs from the length that the server claimed. Reads only
    /// as far as needed to know.
    pub(super) async fn claim_is_wrong(&mut self) -> bool {
        let (Length::Claimed(claimed), Some(body)) = (self.length, &mut self.body) else {
            return false;
        };
        let mut length = self.position;
        while length <= claimed {
            match body.next(u64::MAX).await {
                Ok(Some(bytes)) => length += u64::from(bytes.length()),
                Ok(None) => return length != claimed,
                Err(_) => return false,
            }
        }
        true
    }
}

/// If a load cannot continue, it has to start again.
fn cannot_continue(fault: Fault) -> Fault {
    match fault {
        Fault::Transient { .. } => Fault::Restart(Cause::Broken),
        fault => fault,
    }
}
