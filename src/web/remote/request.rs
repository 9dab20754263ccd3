//! One request, and what its answer says and brings.

use std::ops::Range;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{
    AbortController, Headers, Request, RequestCache, RequestInit, Response, ResponseType,
};

use crate::error::{Error, Result};
use crate::transfer::{ContentRange, MAX_TOTAL, Version};
use crate::web::bytes::{Arrays, StreamReader};
use crate::web::error::text;
use crate::web::timer::Watchdog;

#[wasm_bindgen]
extern "C" {
    // A global of pages and workers alike.
    fn fetch(resource: &JsValue, init: &RequestInit) -> Promise;
}

/// What to download: an address, or a whole `Request`.
#[derive(Clone)]
pub(in crate::web) struct Address {
    /// The address, without a fragment: the name under which the file is stored.
    pub(in crate::web) url: String,
    resource: JsValue,
}

impl Address {
    pub(in crate::web) fn from_url(url: &str) -> Self {
        Self { url: strip_fragment(url), resource: url.into() }
    }

    pub(in crate::web) fn from_request(request: &Request) -> Self {
        Self { url: strip_fragment(&request.url()), resource: request.into() }
    }

    /// Whether the address means the same tomorrow: `blob:` and `data:` are not worth storing.
    pub(in crate::web) fn is_lasting(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }

    /// Whether a part of the file may be asked for. The browser compares a Request's own
    /// `integrity` with whatever comes, and parts of `blob:` and `data:` are not worth the trouble.
    pub(super) fn has_ranges(&self) -> bool {
        let request = self.resource.dyn_ref::<Request>();
        self.is_lasting() && request.is_none_or(|request| request.integrity().is_empty())
    }

    fn headers(&self) -> Result<Headers, JsValue> {
        match self.resource.dyn_ref::<Request>() {
            Some(request) => Headers::new_with_headers(&request.headers()),
            None => Headers::new(),
        }
    }
}

fn strip_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
}

/// What keeps bytes from coming.
#[derive(Debug)]
pub(in crate::web) enum Fault {
    /// It may pass. `after`: milliseconds that the server asks to wait.
    Passing { error: Error, after: Option<f64> },
    /// The load has to begin anew, in another way.
    Restart(Cause),
    /// It will not.
    Final(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

/// Why a load begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum Cause {
    /// The file is another than that of which there are bytes already.
    Changed,
    /// The connection broke, and the server does not give what it takes to go on: a version of the
    /// file, and its length.
    Broken,
    /// The server's ranges are none, or not those that were asked for.
    NoRanges,
    /// The length that the server gave is not that of the file.
    WrongLength,
    /// Stored bytes are damaged or gone.
    Damaged,
    /// What is stored is not what the caller's `integrity` asks for.
    OtherFile,
}

impl Cause {
    /// For people.
    pub(in crate::web) fn why(self) -> &'static str {
        match self {
            Self::Changed => "the file has changed on the server",
            Self::Broken => "the connection broke, and the server does not say enough to go on",
            Self::NoRanges => "the server gives no parts of the file",
            Self::WrongLength => "the server gave a wrong length",
            Self::Damaged => "stored bytes were damaged or gone",
            Self::OtherFile => "the stored file has another hash",
        }
    }
}

/// How long a response says the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) enum Length {
    /// So many bytes.
    Known(u64),
    /// So many bytes on the wire, which are more or fewer if the response was compressed; another
    /// origin's page is not shown whether it was.
    Claimed(u64),
    /// It does not say.
    Unknown,
}

/// What a body holds.
pub(super) enum Content {
    Part(ContentRange),
    Whole(Length),
}

/// A response that has begun.
pub(super) struct Answer {
    pub(super) content: Content,
    pub(super) version: Version,
    /// Where it came from, after redirects.
    pub(super) final_url: String,
    pub(super) body: Body,
}

/// How to ask.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// The bytes wanted; `None` for all of them.
    pub(super) range: Option<Range<u64>>,
    /// The version they must be of, where it may be said.
    pub(super) if_range: Option<String>,
    /// This crate stores the file: a second copy in the browser's HTTP cache would be a gigabyte
    /// for nothing.
    pub(super) stored: bool,
    /// Milliseconds without a byte after which the request is given up.
    pub(super) patience: f64,
}

/// Asks for `address`; what comes passes through `arrays`. Errors: [`Fault::Passing`] where another attempt may help;
/// [`Cause::NoRanges`] for a range that is not what was asked for.
pub(super) async fn ask(
    address: &Address,
    question: &Question,
    arrays: &Arrays,
) -> Result<Answer, Fault> {
    let url = &address.url;
    let failed = |why: JsValue| Error::Network { what: url.clone(), why: text(&why) };
    let controller = AbortController::new().map_err(failed)?;
    let init = RequestInit::new();
    init.set_signal(Some(&controller.signal()));
    let headers = address.headers().map_err(failed)?;
    if let Some(range) = &question.range {
        let range = format!("bytes={}-{}", range.start, range.end - 1);
        headers.set("range", &range).map_err(failed)?;
        if let Some(validator) = &question.if_range {
            headers.set("if-range", validator).map_err(failed)?;
        }
    }
    init.set_headers(&headers);
    // Chromium's HTTP cache, once it has a part, answers a request for the whole with 206.
    if question.stored || question.range.is_some() {
        init.set_cache(RequestCache::NoStore);
    }
    let watchdog = Watchdog::new(controller.clone(), question.patience);
    let connection = Connection { controller, watchdog, url: url.clone() };
    let response = connection.watch(fetch(&address.resource, &init)).await?;
    let response: Response = response.unchecked_into();

    let header = |name: &str| response.headers().get(name).ok().flatten();
    let content = match (response.status(), &question.range) {
        (206, Some(asked)) => {
            // Another origin may hide the header: a part of who knows what is of no use.
            let part = header("content-range").and_then(|text| ContentRange::parse(&text));
            let is_asked = |part: &ContentRange| {
                part.range.start == asked.start && part.range.end <= asked.end
            };
            match part.filter(|part| is_asked(part) && !is_compressed(&response)) {
                Some(part) => Content::Part(part),
                None => return Err(Fault::Restart(Cause::NoRanges)),
            }
        }
        (416, Some(_)) => return Err(Fault::Restart(Cause::NoRanges)),
        (200, _) => Content::Whole(length(&response).map_err(failed)?),
        (status, _) => {
            let error = Error::Http { status, url: url.clone() };
            let passes = matches!(status, 408 | 429 | 500..);
            let after = header("retry-after").and_then(|text| retry_after(&text));
            return Err(if passes { Fault::Passing { error, after } } else { Fault::Final(error) });
        }
    };
    let left = match &content {
        Content::Part(part) => part.range.end - part.range.start,
        Content::Whole(_) => u64::MAX,
    };
    let body = response.body().ok_or_else(|| failed("the response has no body".into()))?;
    let reader = StreamReader::new(&body, arrays).map_err(failed)?;
    Ok(Answer {
        content,
        version: Version { etag: header("etag"), last_modified: header("last-modified") },
        final_url: response.url(),
        body: Body { reader, connection, left },
    })
}

fn is_compressed(response: &Response) -> bool {
    let coding = response.headers().get("content-encoding").ok().flatten();
    coding.is_some_and(|coding| coding != "identity")
}

/// Fails for a length that no file has: the rest of it would be waited for in vain.
fn length(response: &Response) -> Result<Length, JsValue> {
    let text = response.headers().get("content-length").ok().flatten();
    Ok(match text.and_then(|text| text.parse().ok()) {
        Some(bytes) if bytes > MAX_TOTAL => {
            return Err(format!("the server says that it has {bytes} bytes").into());
        }
        // A file of no bytes needs no special way.
        None | Some(0) => Length::Unknown,
        Some(_) if is_compressed(response) => Length::Unknown,
        Some(bytes) if response.type_() == ResponseType::Cors => Length::Claimed(bytes),
        Some(bytes) => Length::Known(bytes),
    })
}

/// Milliseconds to wait: the header has seconds, or a date.
fn retry_after(text: &str) -> Option<f64> {
    let wait = match text.trim().parse::<u32>() {
        Ok(seconds) => f64::from(seconds) * 1000.0,
        Err(_) => js_sys::Date::parse(text) - js_sys::Date::now(),
    };
    wait.is_finite().then_some(wait.max(0.0))
}

/// A request under way; ends when it is dropped.
struct Connection {
    controller: AbortController,
    watchdog: Watchdog,
    url: String,
}

impl Connection {
    async fn watch(&self, promise: Promise) -> Result<JsValue, Fault> {
        self.watchdog.watch(promise).await.map_err(|thrown| {
            let why = if self.watchdog.stalled() {
                "no byte came for too long".into()
            } else {
                text(&thrown)
            };
            Fault::Passing { error: Error::Network { what: self.url.clone(), why }, after: None }
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

/// The bytes of a response, one after the other.
pub(super) struct Body {
    reader: StreamReader,
    connection: Connection,
    /// Bytes that may still come.
    left: u64,
}

impl Body {
    /// The next bytes, good until the next call; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Uint8Array>, Fault> {
        let connection = &self.connection;
        let read = self.reader.next(async |promise| connection.watch(promise).await).await?;
        let Some(bytes) = read else { return Ok(None) };
        // More than a part was to have: who knows where these are from.
        let left = self.left.checked_sub(u64::from(bytes.length()));
        self.left = left.ok_or(Fault::Restart(Cause::NoRanges))?;
        Ok(Some(bytes))
    }

    /// A fault in what came, which another attempt may mend.
    pub(super) fn fault(&self, why: String) -> Fault {
        let error = Error::Network { what: self.connection.url.clone(), why };
        Fault::Passing { error, after: None }
    }
}
