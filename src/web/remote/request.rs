//! One request: asks for a file or a part of it, checks the response, and reads its body.

use std::ops::Range;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{
    AbortController, Headers, Request, RequestCache, RequestInit, Response, ResponseType, Url,
};

use crate::error::{Error, Result};
use crate::transfer::{Cause, Content, Fault, ResponseFacts, Version};
use crate::web::bytes::{ArrayPool, StreamReader};
use crate::web::error::{bad_option, text};
use crate::web::timer::Watchdog;

#[wasm_bindgen]
extern "C" {
    // A global of pages and of workers.
    fn fetch(resource: &JsValue, init: &RequestInit) -> Promise;
}

/// The address of a download, as a string or as a whole `Request`.
#[derive(Clone)]
pub(in crate::web) struct Address {
    /// The address, without a fragment: the name under which the file is stored.
    pub(in crate::web) url: String,
    resource: JsValue,
}

impl Address {
    /// The address in `value`: an absolute URL or a `Request`. Errors call it `name`.
    pub(in crate::web) fn parse(name: &str, value: &JsValue) -> Result<Self> {
        let url = match (value.as_string(), value.dyn_ref::<Request>()) {
            (Some(url), _) if Url::new(&url).is_ok() => url,
            (Some(url), _) => {
                return Err(bad_option(name, format!("`{url}` is not a valid absolute URL")));
            }
            (None, Some(request)) => request.url(),
            (None, None) => {
                return Err(bad_option(
                    name,
                    "must be a URL, Request, Blob, ArrayBuffer, Uint8Array or ReadableStream",
                ));
            }
        };
        let url = url.split('#').next().unwrap_or_default().to_owned();
        Ok(Self { url, resource: value.clone() })
    }

    /// Another address, asked for in the same way.
    pub(super) fn beside(&self, url: &str) -> Result<Self> {
        let resource = match self.resource.dyn_ref::<Request>() {
            // A `Request` serves as the options of another one.
            Some(request) => Request::new_with_str_and_init(url, request.unchecked_ref())
                .map_err(|thrown| bad_option("source", text(&thrown)))?
                .into(),
            None => url.into(),
        };
        Ok(Self { url: url.to_owned(), resource })
    }

    /// Whether a thread can ask for it. A `Request` cannot be sent to a thread.
    pub(super) fn is_plain(&self) -> bool {
        self.resource.is_string()
    }

    /// Whether the address will mean the same tomorrow. `blob:` and `data:` do not, so they are not
    /// stored.
    pub(in crate::web) fn is_lasting(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }

    /// Whether parts of the file can be requested. They cannot if the `Request` has an `integrity`,
    /// because the browser compares it with every response. Parts of a `blob:` or `data:` address
    /// would gain nothing.
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

/// A response whose headers have come.
pub(super) struct FileResponse {
    pub(super) content: Content,
    pub(super) version: Version,
    /// The address that it came from, after redirects.
    pub(super) final_url: String,
    pub(super) body: Body,
}

/// The bytes and the version that a request asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct FileRequest {
    /// The bytes wanted; `None` for all of them.
    pub(super) range: Option<Range<u64>>,
    /// The version that they must have, if the header `If-Range` may be sent.
    pub(super) if_range: Option<String>,
    /// Whether we store the file. A second copy in the browser's HTTP cache would waste a gigabyte.
    pub(super) stored: bool,
    /// The milliseconds without a byte after which the request is given up.
    pub(super) stall_timeout: f64,
}

impl FileRequest {
    /// Errors: the exception that the `Request` of the address throws.
    pub(super) fn headers(&self, address: &Address) -> Result<Headers, JsValue> {
        let headers = address.headers()?;
        if let Some(range) = &self.range {
            headers.set("range", &format!("bytes={}-{}", range.start, range.end - 1))?;
            if let Some(validator) = &self.if_range {
                headers.set("if-range", validator)?;
            }
        }
        Ok(headers)
    }
}

/// Asks for the file at `address`. Its bytes pass through arrays of `pool`.
///
/// Faults: those of [`ResponseFacts::content`]; transient `network` if no response comes.
pub(super) async fn ask(
    address: &Address,
    request: &FileRequest,
    pool: &ArrayPool,
) -> Result<FileResponse, Fault> {
    let url = &address.url;
    let failed = |why: JsValue| Error::Network { what: url.clone(), why: text(&why) };
    let controller = AbortController::new().map_err(failed)?;
    let init = RequestInit::new();
    init.set_signal(Some(&controller.signal()));
    let headers = request.headers(address).map_err(failed)?;
    init.set_headers(&headers);
    // Once Chromium's HTTP cache has a part of a file, it answers a request for the whole file with
    // 206.
    if request.stored || request.range.is_some() {
        init.set_cache(RequestCache::NoStore);
    }
    let watchdog = Watchdog::new(controller.clone(), request.stall_timeout);
    let connection = Connection { controller, watchdog, url: url.clone() };
    let response = connection.watch(fetch(&address.resource, &init)).await?;
    let response: Response = response.unchecked_into();
    let (content, version) = head(&response, request, url)?;
    let range = match &content {
        Content::Part(part) => part.range.clone(),
        Content::Whole(_) => 0..u64::MAX,
    };
    let body = response.body().ok_or_else(|| failed("the response has no body".into()))?;
    let reader = StreamReader::new(&body, pool).map_err(failed)?;
    let body = Body { reader, connection, range };
    Ok(FileResponse { content, version, final_url: response.url(), body })
}

/// The bytes that a response to `request` brings, and their version.
///
/// Faults: those of [`ResponseFacts::content`].
pub(super) fn head(
    response: &Response,
    request: &FileRequest,
    url: &str,
) -> Result<(Content, Version), Fault> {
    let header = |name: &str| response.headers().get(name).ok().flatten();
    let facts = ResponseFacts {
        status: response.status(),
        content_range: header("content-range"),
        content_length: header("content-length"),
        content_encoding: header("content-encoding"),
        retry_after: header("retry-after").and_then(|text| retry_after(&text)),
        is_cors: response.type_() == ResponseType::Cors,
    };
    let content = facts.content(request.range.as_ref(), url)?;
    let version = Version { etag: header("etag"), last_modified: header("last-modified") };
    Ok((content, version))
}

/// The milliseconds in a `Retry-After`, which gives seconds or a date.
fn retry_after(text: &str) -> Option<f64> {
    let wait = match text.trim().parse::<u32>() {
        Ok(seconds) => f64::from(seconds) * 1000.0,
        Err(_) => js_sys::Date::parse(text) - js_sys::Date::now(),
    };
    wait.is_finite().then_some(wait.max(0.0))
}

/// A request in flight. Dropping it aborts the request.
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
            transient(&self.url, why)
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.controller.abort();
    }
}

/// The body of a response, read from front to back.
pub(super) struct Body {
    reader: StreamReader,
    connection: Connection,
    /// The range in the file of the bytes to come, which are at most so many.
    range: Range<u64>,
}

impl Body {
    /// The next bytes, at most `most`; `None` at the end. They are valid until the next call.
    pub(super) async fn next(&mut self, most: u64) -> Result<Option<Uint8Array>, Fault> {
        let connection = &self.connection;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let read = self.reader.next(most, async |promise| connection.watch(promise).await).await?;
        let Some(bytes) = read else { return Ok(None) };
        self.range.start += u64::from(bytes.length());
        // More bytes have come than the response promised, and it is unknown where they belong.
        if self.range.start > self.range.end {
            return Err(Fault::Restart(Cause::NoRanges));
        }
        Ok(Some(bytes))
    }

    /// The offset in the file of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.range.start
    }

    /// The offset in the file after the last byte. For a whole file it may be larger than that.
    pub(super) fn end(&self) -> u64 {
        self.range.end
    }

    /// A fault in the bytes that came. Another attempt may help.
    pub(super) fn fault(&self, why: String) -> Fault {
        transient(&self.connection.url, why)
    }
}

fn transient(url: &str, why: String) -> Fault {
    let error = Error::Network { what: url.into(), why };
    Fault::Transient { error, retry_after: None }
}
