//! Downloads.

use std::rc::Rc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{Request, RequestCache, RequestInit, Response};

use super::abort::AbortOnDrop;
use super::error::text;
use super::progress::Meter;
use super::stream::Chunks;
use crate::error::{Error, Result};

#[wasm_bindgen]
extern "C" {
    // A global of pages and workers alike.
    fn fetch(resource: &JsValue, init: &RequestInit) -> Promise;
}

/// What to download: an address, or a whole `Request`.
pub(super) struct Address {
    /// The address, without a fragment: the name under which the file is stored.
    pub(super) url: String,
    resource: JsValue,
}

impl Address {
    pub(super) fn from_url(url: &str) -> Self {
        Self { url: strip_fragment(url), resource: url.into() }
    }

    pub(super) fn from_request(request: &Request) -> Self {
        Self { url: strip_fragment(&request.url()), resource: request.into() }
    }

    /// Whether the address means the same tomorrow: `blob:` and `data:` are not worth storing.
    pub(super) fn is_lasting(&self) -> bool {
        self.url.starts_with("http://") || self.url.starts_with("https://")
    }
}

fn strip_fragment(url: &str) -> String {
    url.split('#').next().unwrap_or_default().to_owned()
}

/// How long a response says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// So many bytes.
    Known(u64),
    /// So many bytes on the wire, which are more or fewer if the response was compressed; another
    /// origin's page is not shown whether it was.
    Claimed(u64),
    /// It does not say.
    Unknown,
}

/// A response that has begun.
pub(super) struct Download {
    pub(super) chunks: Chunks,
    pub(super) length: Length,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl Download {
    /// Asks for `address`. With `stored`, this crate stores the file, and a second copy in the
    /// browser's HTTP cache would be a gigabyte for nothing.
    pub(super) async fn begin(address: &Address, stored: bool, meter: Rc<Meter>) -> Result<Self> {
        let failed = |why: JsValue| Error::Network { what: address.url.clone(), why: text(&why) };
        let request = AbortOnDrop::new().map_err(failed)?;
        let init = RequestInit::new();
        init.set_signal(Some(&request.signal()));
        if stored {
            init.set_cache(RequestCache::NoStore);
        }
        let response: Response =
            JsFuture::from(fetch(&address.resource, &init)).await.map_err(failed)?.unchecked_into();
        if !response.ok() {
            return Err(Error::Http { status: response.status(), url: address.url.clone() });
        }
        let header = |name: &str| response.headers().get(name).ok().flatten();
        let bytes = header("content-length").and_then(|text| text.parse().ok());
        let compressed = header("content-encoding").is_some_and(|coding| coding != "identity");
        let length = match bytes {
            // A stream of no bytes needs no special way.
            None | Some(0) => Length::Unknown,
            Some(_) if compressed => Length::Unknown,
            Some(bytes) if response.type_() == web_sys::ResponseType::Cors => {
                Length::Claimed(bytes)
            }
            Some(bytes) => Length::Known(bytes),
        };
        let body = response.body().ok_or_else(|| failed("the response has no body".into()))?;
        let expected = match length {
            Length::Known(bytes) | Length::Claimed(bytes) => bytes,
            Length::Unknown => 0,
        };
        let chunks = Chunks::new(&body, address.url.clone(), expected, meter, Some(request))?;
        let (etag, last_modified) = (header("etag"), header("last-modified"));
        Ok(Self { chunks, length, etag, last_modified })
    }
}
