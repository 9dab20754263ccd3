//! What the page is told while a model loads.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::rc::{Rc, Weak};

use js_sys::Function;
use serde::Serialize;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::timer::sleep;
use crate::session;
use crate::transfer::Manifest;

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

/// What a page may want to tell its visitor beside figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Note {
    /// So many bytes were here from an earlier attempt.
    Resumed { bytes: u64 },
    /// Another model was deleted to make room.
    Evicted { url: String, bytes: u64 },
    /// The model will not be on this device for the next time.
    NotStored { why: String },
    /// A download that breaks off begins anew.
    NotResumable { why: String },
    /// Another tab is loading the same model; its progress is shown.
    Waiting,
    /// What had come so far could not be used.
    Restarted { why: String },
}

/// What `onProgress` gets.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    phase: Phase,
    loaded: u64,
    total: u64,
    fraction: f64,
    from_cache: bool,
    bytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<f64>,
    notes: &'a [Note],
}

/// Turns what the loader does into reports whose `fraction` never goes back.
pub(super) struct Meter {
    callback: Option<Function>,
    state: RefCell<State>,
    /// For what is reported later, unless the load has ended by then.
    this: Weak<Self>,
}

/// Is told `loaded` and `total` of a download.
type Follower = Box<dyn Fn(u64, u64)>;

#[derive(Default)]
struct State {
    phase: Option<Phase>,
    loaded: u64,
    /// 0 while nobody knows.
    total: u64,
    /// Of `loaded`, bytes that say nothing of the rate: they lay in the storage while the others
    /// come from the network.
    aside: u64,
    /// Of `total`, the same.
    aside_total: u64,
    fraction: f64,
    /// The part of `fraction` that the present stage fills.
    stage: (f64, f64),
    from_cache: bool,
    notes: Vec<Note>,
    reported: f64,
    /// What has come since then will be reported, also if nothing more comes.
    late: bool,
    /// When how many bytes were there that tell the rate.
    samples: VecDeque<(f64, u64)>,
    follower: Option<Follower>,
}

impl Meter {
    pub(super) fn new(callback: Option<Function>) -> Rc<Self> {
        Rc::new_cyclic(|this| Self { callback, state: RefCell::default(), this: this.clone() })
    }

    /// A stage of `total` bytes begins, 0 if nobody knows how many. `aside` of them do not count
    /// for the rate. It fills `share` of what is left of the bytes' part of the fraction.
    pub(super) fn begin(&self, phase: Phase, total: u64, aside: u64, share: f64) {
        let mut state = self.state.borrow_mut();
        let left = (BYTES_SHARE - state.fraction).max(0.0);
        state.stage = (state.fraction, left * share);
        state.phase = Some(phase);
        state.from_cache = phase == Phase::Cache;
        (state.loaded, state.total) = (0, total);
        (state.aside, state.aside_total) = (0, aside);
        state.samples.clear();
        drop(state);
        self.moved(true);
    }

    /// So many bytes more.
    pub(super) fn advance(&self, bytes: u64) {
        self.state.borrow_mut().loaded += bytes;
        self.moved(false);
    }

    /// So many bytes more that do not count for the rate.
    pub(super) fn advance_aside(&self, bytes: u64) {
        self.state.borrow_mut().aside += bytes;
        self.advance(bytes);
    }

    /// So many bytes of those that were not to count for the rate come like the others after all.
    pub(super) fn not_aside(&self, bytes: u64) {
        let mut state = self.state.borrow_mut();
        state.aside_total = state.aside_total.saturating_sub(bytes);
    }

    /// So many bytes of `total`, by somebody else's count.
    pub(super) fn set(&self, loaded: u64, total: u64) {
        let mut state = self.state.borrow_mut();
        (state.loaded, state.total) = (loaded, total);
        drop(state);
        self.moved(false);
    }

    /// The session's own progress; its bytes count for sources that do not count themselves.
    pub(super) fn session(&self, counts: bool, progress: session::Progress) {
        match progress {
            session::Progress::Upload { loaded, total } if counts => self.set(loaded, total),
            session::Progress::Upload { .. } => {}
            session::Progress::Compile => self.phase(Phase::Compile),
        }
    }

    /// The model answers now.
    pub(super) fn ready(&self) {
        self.state.borrow_mut().fraction = 1.0;
        self.phase(Phase::Ready);
    }

    /// Something that a page may want to tell, at once and in all reports to come.
    pub(super) fn note(&self, note: Note) {
        let mut state = self.state.borrow_mut();
        if state.notes.contains(&note) {
            return;
        }
        state.notes.push(note);
        // Before the first byte there is no phase yet.
        state.phase.get_or_insert(Phase::Download);
        drop(state);
        self.report(js_sys::Date::now());
    }

    /// Models that were deleted to make room.
    pub(super) fn evicted(&self, files: Vec<Manifest>) {
        for file in files {
            self.note(Note::Evicted { bytes: file.bytes(), url: file.url });
        }
    }

    /// Tells `follower` whatever is reported of a download, from now on.
    pub(super) fn follow(&self, follower: Option<Follower>) {
        self.state.borrow_mut().follower = follower;
    }

    fn moved(&self, begins: bool) {
        let now = js_sys::Date::now();
        let mut state = self.state.borrow_mut();
        let (from, span) = state.stage;
        if state.total > 0 {
            let fraction = from + span * (state.loaded as f64 / state.total as f64).min(1.0);
            state.fraction = state.fraction.max(fraction);
        }
        let rated = state.loaded.saturating_sub(state.aside);
        state.samples.push_back((now, rated));
        while state.samples.len() > 2
            && state.samples.front().is_some_and(|(time, _)| now - time > WINDOW)
        {
            state.samples.pop_front();
        }
        let ends = state.total > 0 && state.loaded >= state.total;
        let due = begins || ends || now - state.reported >= INTERVAL;
        let first_late = !due && !mem::replace(&mut state.late, true);
        let since = state.reported;
        drop(state);
        if due {
            self.report(now);
        } else if first_late {
            self.report_late(since);
        }
    }

    /// Reports in a while, unless there has been a report after that of `since` by then.
    fn report_late(&self, since: f64) {
        let this = self.this.clone();
        spawn_local(async move {
            sleep(INTERVAL).await;
            let Some(meter) = this.upgrade() else { return };
            let (late, reported) = {
                let state = meter.state.borrow();
                (state.late, state.reported)
            };
            if late && reported == since {
                meter.report(js_sys::Date::now());
            }
        });
    }

    fn phase(&self, phase: Phase) {
        let changed = self.state.borrow_mut().phase.replace(phase) != Some(phase);
        if changed {
            self.report(js_sys::Date::now());
        }
    }

    fn report(&self, now: f64) {
        let mut state = self.state.borrow_mut();
        (state.reported, state.late) = (now, false);
        let Some(phase) = state.phase else { return };
        if let (Phase::Download, Some(follower)) = (phase, &state.follower) {
            follower(state.loaded, state.total);
        }
        let bytes_per_second = state.bytes_per_second();
        let report = Report {
            phase,
            loaded: state.loaded,
            total: state.total,
            fraction: state.fraction,
            from_cache: state.from_cache,
            bytes_per_second,
            seconds_left: state.seconds_left(phase, bytes_per_second),
            notes: &state.notes,
        };
        let report = serde_wasm_bindgen::to_value(&report);
        // The callback may do anything, also what ends here again.
        drop(state);
        if let (Some(callback), Ok(report)) = (&self.callback, report) {
            // What the page's callback throws is its own affair; the TypeScript side reports it.
            let _ = callback.call1(&JsValue::NULL, &report);
        }
    }
}

impl State {
    fn bytes_per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let seconds = (last.0 - first.0) / 1000.0;
        if seconds <= 0.0 { 0.0 } else { last.1.saturating_sub(first.1) as f64 / seconds }
    }

    /// At the present rate; `None` while nobody can know. What lies in the storage takes no time
    /// beside what the network has yet to bring.
    fn seconds_left(&self, phase: Phase, bytes_per_second: f64) -> Option<f64> {
        match phase {
            Phase::Ready => Some(0.0),
            Phase::Compile => None,
            _ if self.total == 0 || bytes_per_second <= 0.0 => None,
            _ => {
                let aside = self.aside_total.saturating_sub(self.aside);
                let left = self.total.saturating_sub(self.loaded).saturating_sub(aside);
                Some(left as f64 / bytes_per_second)
            }
        }
    }
}
