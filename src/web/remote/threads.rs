//! Requests that other threads make. On a fast connection, a thread needs as much time to read
//! responses as for all the rest of a load. If a request fails here, the load's own thread repeats
//! it.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, Shared};
use js_sys::{ArrayBuffer, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortController;

use super::request::{Address, FileRequest, head};
use crate::transfer::{Content, Fault, Version};
use crate::web::bytes::Bytes;
use crate::web::timer::Watchdog;

mod browser {
    use web_sys::{AbortSignal, Headers};

    use super::*;

    #[wasm_bindgen(raw_module = "./threads/fetching.js")]
    extern "C" {
        pub(super) type FetchThreads;
        #[wasm_bindgen(static_method_of = FetchThreads)]
        pub(super) fn help() -> bool;
        #[wasm_bindgen(constructor)]
        pub(super) fn new(threads: u32) -> FetchThreads;
        #[wasm_bindgen(method, getter)]
        pub(super) fn running(this: &FetchThreads) -> bool;
        #[wasm_bindgen(method)]
        pub(super) fn ask(
            this: &FetchThreads,
            url: &str,
            headers: &Headers,
            patience: f64,
            signal: &AbortSignal,
        ) -> ThreadRequest;
        #[wasm_bindgen(method)]
        pub(super) fn end(this: &FetchThreads);

        pub(super) type ThreadRequest;
        #[wasm_bindgen(method, getter)]
        pub(super) fn response(this: &ThreadRequest) -> Promise;
        #[wasm_bindgen(method)]
        pub(super) fn fill(this: &ThreadRequest, array: &ArrayBuffer, length: u32) -> Promise;

        pub(super) type Filled;
        #[wasm_bindgen(method, getter)]
        pub(super) fn array(this: &Filled) -> ArrayBuffer;
        #[wasm_bindgen(method, getter)]
        pub(super) fn length(this: &Filled) -> u32;
    }
}

use browser::{FetchThreads, Filled, ThreadRequest};

/// The stall timeout is so many times as long as a part may take. So a thread gives up a slow part
/// before the load takes the request for stalled.
const PATIENCE: f64 = 4.0;

/// The bytes and the version that a response brings; or the server's refusal, if there is a
/// response.
type Parts = Result<(Content, Version), Option<Fault>>;

/// Threads that make requests. They end when this is dropped.
pub(super) struct Threads(FetchThreads);

impl Threads {
    /// Starts this number of threads; `None` if the machine has too few processors.
    pub(super) fn start(threads: u32) -> Option<Self> {
        FetchThreads::help().then(|| Self(FetchThreads::new(threads)))
    }

    /// Whether any of the threads runs by now.
    pub(super) fn are_running(&self) -> bool {
        self.0.running()
    }

    /// Asks for a range of the file at `address`; `None` if the request cannot be made.
    pub(super) fn ask(
        self: &Rc<Self>,
        address: &Address,
        request: FileRequest,
    ) -> Option<PartsRequest> {
        let controller = AbortController::new().ok()?;
        let range = request.range.clone()?;
        let headers = request.headers(address).ok()?;
        let (stall_timeout, url) = (request.stall_timeout, address.url.clone());
        let patience = stall_timeout / PATIENCE;
        let asked = self.0.ask(&url, &headers, patience, &controller.signal());
        let response = JsFuture::from(asked.response());
        let answer = async move {
            let response = response.await.map_err(|_| None)?;
            head(response.unchecked_ref(), &request, &url).map_err(Some)
        };
        Some(PartsRequest {
            threads: Rc::clone(self),
            request: asked,
            controller,
            stall_timeout,
            answer: answer.boxed_local().shared(),
            ordered: Cell::new(range.start),
            end: range.end,
        })
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A request for several parts, which come one after the other. Dropping it aborts the request.
pub(super) struct PartsRequest {
    /// The threads must not end before their requests.
    #[expect(dead_code, reason = "it is held")]
    threads: Rc<Threads>,
    request: ThreadRequest,
    controller: AbortController,
    stall_timeout: f64,
    answer: Shared<LocalBoxFuture<'static, Parts>>,
    /// The offset in the file of the first byte that was not ordered yet.
    ordered: Cell<u64>,
    /// The offset in the file after the last byte.
    end: u64,
}

impl PartsRequest {
    /// Whether the bytes to order next are those of `range`.
    pub(super) fn continues_with(&self, range: &Range<u64>) -> bool {
        self.ordered.get() == range.start && range.end <= self.end
    }

    /// Whether no more bytes are to be ordered.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered.get() == self.end
    }

    /// Whether its response has all requested bytes, of this version of a file of `total` bytes.
    ///
    /// Errors: the server's refusal, if another attempt may help.
    pub(super) async fn brings(
        &self,
        version: &Version,
        total: Option<u64>,
    ) -> Result<bool, Fault> {
        match self.answer.clone().await {
            Ok((Content::Part(part), found)) => {
                let is_whole = Some(part.total) == total && part.range.end == self.end;
                Ok(is_whole && found.is_same(version))
            }
            Err(Some(fault @ Fault::Transient { .. })) => Err(fault),
            _ => Ok(false),
        }
    }

    /// Orders the next bytes, as many as the empty buffer `bytes` has room for. At the end the
    /// bytes that came are in it, even if the response broke off.
    pub(super) fn fill(&self, bytes: &mut Bytes) -> impl Future<Output = ()> {
        let length = bytes.missing();
        self.ordered.set(self.ordered.get() + u64::from(length));
        let filled = self.request.fill(&bytes.lend(), length);
        let watchdog = Watchdog::new(self.controller.clone(), self.stall_timeout);
        async move {
            // The promise does not reject.
            if let Ok(filled) = watchdog.watch(filled).await {
                let filled: Filled = filled.unchecked_into();
                bytes.give_back(filled.array(), filled.length());
            }
        }
    }
}

impl Drop for PartsRequest {
    fn drop(&mut self) {
        self.controller.abort();
    }
}
