//! What the page is told while a model loads.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use js_sys::Function;
use serde::Serialize;
use wasm_bindgen::JsValue;

use crate::session;

/// The rate is that of so many milliseconds, so that it follows a changing connection.
const WINDOW: f64 = 3000.0;
/// Milliseconds between two reports: more would only keep the page busy.
const INTERVAL: f64 = 50.0;
/// The share of the bytes in the whole; the rest is compiling, whose length nobody knows.
const BYTES_SHARE: f64 = 0.98;

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Phase {
    /// Bytes come from the network, and go on to the GPU as they come.
    Download,
    /// Bytes come from the browser's storage.
    Cache,
    /// Bytes come from memory or a local file.
    Upload,
    /// Kernels are compiled.
    Compile,
    /// Done.
    Ready,
}

/// What `onProgress` gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    phase: Phase,
    loaded: u64,
    total: u64,
    fraction: f64,
    from_cache: bool,
    bytes_per_second: f64,
}

/// Turns what the loader does into reports whose `fraction` never goes back.
pub(super) struct Meter {
    callback: Option<Function>,
    phase: Cell<Option<Phase>>,
    loaded: Cell<u64>,
    total: Cell<u64>,
    fraction: Cell<f64>,
    from_cache: Cell<bool>,
    reported: Cell<f64>,
    samples: RefCell<VecDeque<(f64, u64)>>,
}

impl Meter {
    pub(super) fn new(callback: Option<Function>) -> Self {
        Self {
            callback,
            phase: Cell::new(None),
            loaded: Cell::new(0),
            total: Cell::new(0),
            fraction: Cell::new(0.0),
            from_cache: Cell::new(false),
            reported: Cell::new(0.0),
            samples: RefCell::default(),
        }
    }

    /// So many bytes of `total` are there; a `total` of 0 is not known yet.
    pub(super) fn bytes(&self, phase: Phase, loaded: u64, total: u64) {
        let now = js_sys::Date::now();
        let begins = self.phase.replace(Some(phase)) != Some(phase);
        self.loaded.set(loaded);
        self.total.set(total);
        self.from_cache.set(phase == Phase::Cache);
        if total > 0 {
            let fraction = BYTES_SHARE * (loaded as f64 / total as f64).min(1.0);
            self.fraction.set(self.fraction.get().max(fraction));
        }
        let mut samples = self.samples.borrow_mut();
        if begins {
            samples.clear();
        }
        samples.push_back((now, loaded));
        while samples.len() > 2 && samples.front().is_some_and(|(time, _)| now - time > WINDOW) {
            samples.pop_front();
        }
        drop(samples);
        let ends = total > 0 && loaded >= total;
        if begins || ends || now - self.reported.get() >= INTERVAL {
            self.report(now);
        }
    }

    /// The session's own progress, for sources that do not count what they deliver.
    pub(super) fn session(&self, source: Option<Phase>, progress: session::Progress) {
        match (progress, source) {
            (session::Progress::Upload { loaded, total }, Some(phase)) => {
                self.bytes(phase, loaded, total);
            }
            (session::Progress::Upload { .. }, None) => {}
            (session::Progress::Compile, _) => self.phase(Phase::Compile),
        }
    }

    /// The model answers now.
    pub(super) fn ready(&self) {
        self.fraction.set(1.0);
        self.phase(Phase::Ready);
    }

    fn phase(&self, phase: Phase) {
        if self.phase.replace(Some(phase)) != Some(phase) {
            self.report(js_sys::Date::now());
        }
    }

    fn bytes_per_second(&self) -> f64 {
        let samples = self.samples.borrow();
        let (Some(first), Some(last)) = (samples.front(), samples.back()) else { return 0.0 };
        let seconds = (last.0 - first.0) / 1000.0;
        if seconds <= 0.0 { 0.0 } else { last.1.saturating_sub(first.1) as f64 / seconds }
    }

    fn report(&self, now: f64) {
        let (Some(callback), Some(phase)) = (&self.callback, self.phase.get()) else { return };
        self.reported.set(now);
        let report = Report {
            phase,
            loaded: self.loaded.get(),
            total: self.total.get(),
            fraction: self.fraction.get(),
            from_cache: self.from_cache.get(),
            bytes_per_second: self.bytes_per_second(),
        };
        if let Ok(report) = serde_wasm_bindgen::to_value(&report) {
            // What the page's callback throws is its own affair; the TypeScript side reports it.
            let _ = callback.call1(&JsValue::NULL, &report);
        }
    }
}
