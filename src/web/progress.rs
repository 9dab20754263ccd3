//! Reports the progress of a load to the page: a [`Meter`] with a callback, a clock and a timer.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use js_sys::Function;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::spawn_local;

use super::timer::sleep;
use crate::session;
use crate::transfer::{Due, Meter, Note, Phase, StoredModel};

/// Reports the progress of a load to a page, and to a follower.
pub(super) struct Reporter {
    callback: Option<Function>,
    meter: RefCell<Meter>,
    follower: RefCell<Option<Follower>>,
    /// For reports that are made later, if the load has not ended by then.
    this: Weak<Self>,
}

/// Called with the `loaded` and `total` bytes of a download.
type Follower = Box<dyn Fn(u64, u64)>;

impl Reporter {
    /// Reports to `callback`.
    pub(super) fn new(callback: Option<Function>) -> Rc<Self> {
        Rc::new_cyclic(|this| Self {
            callback,
            meter: RefCell::default(),
            follower: RefCell::default(),
            this: this.clone(),
        })
    }

    /// See [`Meter::begin`].
    pub(super) fn begin(&self, phase: Phase, (total, stored): (u64, u64), share: f64) {
        self.update(|meter, now| meter.begin(now, phase, (total, stored), share));
    }

    /// See [`Meter::advance`].
    pub(super) fn advance(&self, bytes: u64) {
        self.update(|meter, now| meter.advance(now, bytes));
    }

    /// See [`Meter::advance_stored`].
    pub(super) fn advance_stored(&self, bytes: u64) {
        self.update(|meter, now| meter.advance_stored(now, bytes));
    }

    /// See [`Meter::stored_lost`].
    pub(super) fn stored_lost(&self, bytes: u64) {
        self.meter.borrow_mut().stored_lost(bytes);
    }

    /// See [`Meter::set`].
    pub(super) fn set(&self, loaded: u64, total: u64) {
        self.update(|meter, now| meter.set(now, loaded, total));
    }

    /// Reports the session's own progress. `counts` says that the session's count of bytes is
    /// taken, because the source does not count its bytes itself.
    pub(super) fn session(&self, counts: bool, progress: session::Progress) {
        match progress {
            session::Progress::Upload { loaded, total } if counts => self.set(loaded, total),
            session::Progress::Upload { .. } | session::Progress::Header => {}
            session::Progress::Compile => self.update(|meter, _| meter.phase(Phase::Compile)),
        }
    }

    /// Reports that the model can be used, and whether it is being stored or was stored.
    pub(super) fn phase(&self, phase: Phase) {
        self.update(|meter, _| meter.phase(phase));
    }

    /// See [`Meter::waits`].
    pub(super) fn waits(&self, bytes: u64) {
        self.meter.borrow_mut().waits(bytes);
    }

    /// See [`Meter::stored`].
    pub(super) fn stored(&self, bytes: u64) {
        self.update(|meter, now| meter.stored(now, bytes));
    }

    /// See [`Meter::note`].
    pub(super) fn note(&self, note: Note) {
        self.update(|meter, _| meter.note(note));
    }

    /// Reports that so many bytes have come with an earlier download.
    pub(super) fn resumed(&self, bytes: u64) {
        if bytes > 0 {
            self.note(Note::Resumed { bytes });
        }
    }

    /// Reports that these models were deleted to make room.
    pub(super) fn evicted(&self, models: Vec<StoredModel>) {
        for model in models {
            self.note(Note::Evicted { bytes: model.bytes(), url: model.url });
        }
    }

    /// Calls `follower` with each report of a download from now on.
    pub(super) fn follow(&self, follower: Option<Follower>) {
        self.follower.replace(follower);
    }

    fn update(&self, change: impl FnOnce(&mut Meter, f64) -> Due) {
        let now = js_sys::Date::now();
        let due = change(&mut self.meter.borrow_mut(), now);
        match due {
            Due::Now => self.report(now),
            Due::Later { wait, since } => self.report_later(wait, since),
            Due::Not => {}
        }
    }

    fn report_later(&self, wait: f64, since: f64) {
        let this = self.this.clone();
        spawn_local(async move {
            sleep(wait).await;
            let Some(reporter) = this.upgrade() else { return };
            let overdue = reporter.meter.borrow().is_overdue(since);
            if overdue {
                reporter.report(js_sys::Date::now());
            }
        });
    }

    fn report(&self, now: f64) {
        let mut meter = self.meter.borrow_mut();
        let Some(report) = meter.report(now) else { return };
        if let (Phase::Download, Some(follower)) = (report.phase, &*self.follower.borrow()) {
            follower(report.loaded, report.total);
        }
        let report = serde_wasm_bindgen::to_value(&report);
        // The callback may do anything, and may even start something that reports again.
        drop(meter);
        if let (Some(callback), Ok(report)) = (&self.callback, report) {
            // If the page's callback throws, the TypeScript side reports it.
            let _ = callback.call1(&JsValue::NULL, &report);
        }
    }
}
