//! The reports to a page while a model loads: the figures, and when they are due.

use std::collections::VecDeque;
use std::mem;

use serde::Serialize;

/// The rate is a mean over so many milliseconds, so that it follows a connection that changes.
const RATE_WINDOW: f64 = 3000.0;
/// Milliseconds until the first rate is reported. The first bytes were buffered on the way and come
/// in a burst, so their rate is far too high.
const MIN_RATE_TIME: f64 = 500.0;
/// Milliseconds between two reports. More reports would only keep the page busy.
const INTERVAL: f64 = 50.0;
/// The share of `fraction` that the bytes fill. Compiling fills the rest, and its duration is
/// unknown.
const BYTES_SHARE: f64 = 0.98;

/// The work that the load is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Bytes come from the network and go to the GPU as they come.
    Download,
    /// Bytes come from the browser's storage.
    Cache,
    /// Bytes come from memory or a local file.
    Upload,
    /// Kernels are compiled.
    Compile,
    /// The model can be used.
    Ready,
    /// The model can be used, and the rest of it is being stored.
    Storing,
    /// The model can be used, and all of it is stored.
    Stored,
}

/// Something that a page may want to tell its visitor besides the figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Note {
    /// The download continues an earlier one.
    Resumed {
        /// Bytes that were stored already.
        bytes: u64,
    },
    /// Another model was deleted to make room.
    Evicted {
        /// Its address.
        url: String,
        /// Bytes that were deleted.
        bytes: u64,
    },
    /// The model is not kept on this device.
    NotStored {
        /// The reason, for people.
        why: String,
    },
    /// The stored model is used, although the load could not find out whether the server has
    /// another.
    NotRevalidated {
        /// The reason, for people.
        why: String,
    },
    /// If the download breaks off, it has to start from the beginning.
    NotResumable {
        /// The reason, for people.
        why: String,
    },
    /// Another tab is downloading the same model. Its progress is shown.
    Waiting,
    /// The bytes so far could not be used, and the load has started again.
    Restarted {
        /// The reason, for people.
        why: String,
    },
}

/// A report to `onProgress`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report<'a> {
    /// The work that the load is doing.
    pub phase: Phase,
    /// Bytes of the phase that are here.
    pub loaded: u64,
    /// Bytes of the phase in all; 0 if unknown.
    pub total: u64,
    /// How much of the whole load is done, from 0 to 1.
    pub fraction: f64,
    /// Whether the bytes come from the browser's storage.
    pub from_cache: bool,
    /// The present rate; 0 until it was measured for long enough.
    pub bytes_per_second: f64,
    /// Seconds until the bytes are here, at this rate; `None` if that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<f64>,
    /// All notes so far.
    pub notes: &'a [Note],
}

/// When the next report is due.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum Due {
    /// At once.
    Now,
    /// After so many milliseconds, if [`Meter::is_overdue`] still says so then.
    Later {
        /// Milliseconds to wait.
        wait: f64,
        /// The argument for [`Meter::is_overdue`].
        since: f64,
    },
    /// Never: nothing has changed, or a later report is planned already.
    Not,
}

/// Turns the loader's events into reports whose `fraction` never goes back. Times are milliseconds
/// of any clock.
#[derive(Debug, Default)]
pub struct Meter {
    phase: Option<Phase>,
    loaded: u64,
    /// Bytes of the present stage in all; 0 if unknown.
    total: u64,
    /// Bytes of `loaded` that came from storage while the others were downloaded. They say nothing
    /// about the rate of the download.
    stored: u64,
    /// Bytes of `total` that come from storage.
    stored_total: u64,
    fraction: f64,
    /// Where the present stage begins in `fraction`, and how much of `fraction` it fills.
    stage: (f64, f64),
    from_cache: bool,
    notes: Vec<Note>,
    /// When the last report was made.
    reported: f64,
    /// Bytes have come since the last report, and a later report is planned.
    late: bool,
    /// Bytes that are here and will be stored.
    waiting: u64,
    /// Times, and the downloaded bytes at each.
    samples: VecDeque<(f64, u64)>,
}

impl Meter {
    /// Starts a stage of `total` bytes, 0 if unknown. `stored` of them come from storage while the
    /// others are downloaded. The stage fills `share` of the part of `fraction` that is left for
    /// bytes.
    pub fn begin(
        &mut self,
        now: f64,
        phase: Phase,
        (total, stored): (u64, u64),
        share: f64,
    ) -> Due {
        let left = (BYTES_SHARE - self.fraction).max(0.0);
        self.stage = (self.fraction, left * share);
        self.phase = Some(phase);
        self.from_cache = phase == Phase::Cache;
        (self.loaded, self.total) = (0, total);
        (self.stored, self.stored_total) = (0, stored);
        self.samples.clear();
        let _ = self.moved(now);
        Due::Now
    }

    /// Counts bytes that have come.
    pub fn advance(&mut self, now: f64, bytes: u64) -> Due {
        self.loaded += bytes;
        self.moved(now)
    }

    /// Counts bytes that have come from storage while others are downloaded.
    pub fn advance_stored(&mut self, now: f64, bytes: u64) -> Due {
        self.stored += bytes;
        self.advance(now, bytes)
    }

    /// Notes that these stored bytes will be downloaded after all, so they count in the rate.
    pub fn stored_lost(&mut self, bytes: u64) {
        self.stored_total = self.stored_total.saturating_sub(bytes);
    }

    /// Takes over the count of another tab or part of the program.
    pub fn set(&mut self, now: f64, loaded: u64, total: u64) -> Due {
        (self.loaded, self.total) = (loaded, total);
        self.moved(now)
    }

    /// Changes the phase without a new count of bytes.
    pub fn phase(&mut self, phase: Phase) -> Due {
        if phase == Phase::Ready {
            self.fraction = 1.0;
        }
        if self.phase.replace(phase) == Some(phase) { Due::Not } else { Due::Now }
    }

    /// Counts bytes that are here and will be stored.
    pub fn waits(&mut self, bytes: u64) {
        self.waiting += bytes;
    }

    /// Notes that `bytes` that waited are stored now, or given up.
    pub fn stored(&mut self, now: f64, bytes: u64) -> Due {
        self.waiting = self.waiting.saturating_sub(bytes);
        if self.phase == Some(Phase::Storing) { self.moved(now) } else { Due::Not }
    }

    /// Adds a note to this report and all later ones. Adding the same note again changes nothing.
    pub fn note(&mut self, note: Note) -> Due {
        if self.notes.contains(&note) {
            return Due::Not;
        }
        self.notes.push(note);
        // Before the first byte there is no phase yet.
        self.phase.get_or_insert(Phase::Download);
        Due::Now
    }

    /// Whether the report that [`Due::Later`] planned is still needed.
    pub fn is_overdue(&self, since: f64) -> bool {
        self.late && self.reported == since
    }

    /// The report of this moment. `None` before the first stage.
    pub fn report(&mut self, now: f64) -> Option<Report<'_>> {
        (self.reported, self.late) = (now, false);
        let phase = self.phase?;
        let is_behind = matches!(phase, Phase::Storing | Phase::Stored);
        let bytes_per_second = if is_behind { 0.0 } else { self.bytes_per_second() };
        let loaded = match phase {
            // Fewer than all bytes may have come, because the model did not need all.
            Phase::Storing => self.loaded.saturating_sub(self.waiting),
            // All bytes are stored, even those that the load did not read.
            Phase::Stored => self.total,
            _ => self.loaded,
        };
        Some(Report {
            phase,
            loaded,
            total: self.total,
            fraction: self.fraction,
            from_cache: self.from_cache,
            bytes_per_second,
            seconds_left: self.seconds_left(phase, bytes_per_second),
            notes: &self.notes,
        })
    }

    fn moved(&mut self, now: f64) -> Due {
        let (from, span) = self.stage;
        if self.total > 0 {
            let fraction = from + span * (self.loaded as f64 / self.total as f64).min(1.0);
            self.fraction = self.fraction.max(fraction);
        }
        self.samples.push_back((now, self.loaded.saturating_sub(self.stored)));
        while self.samples.len() > 2
            && self.samples.front().is_some_and(|(time, _)| now - time > RATE_WINDOW)
        {
            self.samples.pop_front();
        }
        let ends = self.total > 0 && self.loaded >= self.total;
        if ends || now - self.reported >= INTERVAL {
            Due::Now
        } else if mem::replace(&mut self.late, true) {
            Due::Not
        } else {
            Due::Later { wait: INTERVAL, since: self.reported }
        }
    }

    fn bytes_per_second(&self) -> f64 {
        let (Some(first), Some(last)) = (self.samples.front(), self.samples.back()) else {
            return 0.0;
        };
        let time = last.0 - first.0;
        if time < MIN_RATE_TIME {
            return 0.0;
        }
        last.1.saturating_sub(first.1) as f64 * 1000.0 / time
    }

    /// Counts only what is still to be downloaded: reading the storage takes no extra time.
    fn seconds_left(&self, phase: Phase, bytes_per_second: f64) -> Option<f64> {
        match phase {
            Phase::Ready | Phase::Stored => Some(0.0),
            Phase::Compile => None,
            _ if self.total == 0 || bytes_per_second <= 0.0 => None,
            _ => {
                let stored = self.stored_total.saturating_sub(self.stored);
                let left = self.total.saturating_sub(self.loaded).saturating_sub(stored);
                Some(left as f64 / bytes_per_second)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(meter: &mut Meter, now: f64) -> (u64, f64, f64, Option<f64>) {
        let report = meter.report(now).expect("a phase");
        (report.loaded, report.fraction, report.bytes_per_second, report.seconds_left)
    }

    #[test]
    fn nothing_is_reported_before_the_first_stage_or_note() {
        let mut meter = Meter::default();
        assert_eq!(meter.report(5.0), None);
        assert_eq!(meter.note(Note::Waiting), Due::Now);
        let report = meter.report(5.0).expect("a note");
        assert_eq!((report.phase, report.notes), (Phase::Download, &[Note::Waiting][..]));
    }

    #[test]
    fn the_rate_is_that_of_the_last_three_seconds() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (1_000_000, 0), 1.0);
        for second in 1..=10 {
            let _ = meter.advance(f64::from(second) * 1000.0, 10_000);
        }
        assert_eq!(report(&mut meter, 10_000.0), (100_000, 0.098, 10_000.0, Some(90.0)));
        // From now on it is twice as fast. After three seconds the earlier rate is forgotten.
        for second in 11..=14 {
            let _ = meter.advance(f64::from(second) * 1000.0, 20_000);
        }
        assert_eq!(report(&mut meter, 14_000.0).2, 20_000.0);
    }

    #[test]
    fn the_first_bytes_have_no_rate() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (1_000_000, 0), 1.0);
        // Bytes that were buffered on the way come at once, the rest at 10 kB a second.
        let _ = meter.advance(20.0, 50_000);
        assert_eq!(report(&mut meter, 20.0), (50_000, 0.98 * 0.05, 0.0, None));
        let _ = meter.advance(499.0, 4_000);
        assert_eq!(report(&mut meter, 499.0).2, 0.0);
        let _ = meter.advance(500.0, 1_000);
        assert_eq!(report(&mut meter, 500.0).2, 110_000.0);
        let _ = meter.advance(2000.0, 15_000);
        assert_eq!(report(&mut meter, 2000.0).2, 35_000.0);
        // A new stage begins without a rate.
        let _ = meter.begin(3000.0, Phase::Upload, (1000, 0), 1.0);
        let _ = meter.advance(3001.0, 1000);
        assert_eq!(report(&mut meter, 3001.0).2, 0.0);
    }

    #[test]
    fn stored_bytes_count_for_the_fraction_but_not_for_the_rate() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (1000, 600), 1.0);
        let _ = meter.advance_stored(500.0, 300);
        let _ = meter.advance(1000.0, 100);
        // 300 bytes are left to download at 100 a second; 300 stored ones take no time.
        assert_eq!(report(&mut meter, 1000.0), (400, 0.98 * 0.4, 100.0, Some(3.0)));
        // Damaged bytes have to be downloaded.
        meter.stored_lost(200);
        assert_eq!(report(&mut meter, 1000.0).3, Some(5.0));
    }

    #[test]
    fn the_fraction_never_goes_back_and_ends_at_one() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (100, 0), 0.8);
        let _ = meter.advance(1.0, 50);
        let half = report(&mut meter, 1.0).1;
        assert!((half - 0.98 * 0.8 / 2.0).abs() < 1e-9);
        // The load starts again, and another tab's count is lower than ours was.
        let _ = meter.begin(2.0, Phase::Download, (100, 0), 1.0);
        assert_eq!(report(&mut meter, 2.0).1, half);
        let _ = meter.set(3.0, 40, 100);
        let now = report(&mut meter, 3.0).1;
        assert!(now > half);
        let _ = meter.set(4.0, 10, 100);
        assert_eq!(report(&mut meter, 4.0).1, now);
        // The server sends more than it said.
        let _ = meter.set(5.0, 1000, 100);
        assert!((report(&mut meter, 5.0).1 - 0.98).abs() < 1e-9);
        assert_eq!(meter.phase(Phase::Compile), Due::Now);
        assert_eq!(meter.phase(Phase::Compile), Due::Not);
        assert_eq!(report(&mut meter, 6.0).3, None);
        assert_eq!(meter.phase(Phase::Ready), Due::Now);
        let last = report(&mut meter, 7.0);
        assert_eq!((last.1, last.3), (1.0, Some(0.0)));
    }

    #[test]
    fn what_waits_to_be_stored_is_told_once_the_model_can_be_used() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (100, 0), 1.0);
        let _ = meter.advance(1000.0, 100);
        meter.waits(100);
        assert_eq!(meter.stored(1000.0, 30), Due::Not);
        assert_eq!(report(&mut meter, 1000.0).0, 100);
        assert_eq!(meter.phase(Phase::Ready), Due::Now);
        assert_eq!(report(&mut meter, 1001.0).0, 100);
        assert_eq!(meter.phase(Phase::Storing), Due::Now);
        assert_eq!(report(&mut meter, 1002.0), (30, 1.0, 0.0, None));
        assert_eq!(meter.stored(2000.0, 50), Due::Now);
        assert_eq!(report(&mut meter, 2000.0), (80, 1.0, 0.0, None));
        let _ = meter.stored(2001.0, 20);
        assert_eq!(meter.phase(Phase::Stored), Due::Now);
        assert_eq!(report(&mut meter, 2002.0), (100, 1.0, 0.0, Some(0.0)));
    }

    #[test]
    fn what_has_not_come_yet_does_not_count_as_stored() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (100, 0), 1.0);
        let _ = meter.advance(1000.0, 80);
        meter.waits(80);
        let _ = meter.phase(Phase::Ready);
        let _ = meter.phase(Phase::Storing);
        let _ = meter.stored(1001.0, 30);
        assert_eq!(report(&mut meter, 1001.0).0, 30);
        // The other bytes come after the load.
        meter.waits(20);
        let _ = meter.advance(1002.0, 20);
        assert_eq!(report(&mut meter, 1002.0).0, 30);
        let _ = meter.stored(1003.0, 70);
        let _ = meter.phase(Phase::Stored);
        assert_eq!(report(&mut meter, 1003.0).0, 100);
    }

    #[test]
    fn a_length_that_is_unknown_gives_no_fraction_and_no_time_left() {
        let mut meter = Meter::default();
        let _ = meter.begin(0.0, Phase::Download, (0, 0), 0.8);
        let _ = meter.advance(1000.0, 5000);
        assert_eq!(report(&mut meter, 1000.0), (5000, 0.0, 5000.0, None));
    }

    #[test]
    fn reports_are_at_least_an_interval_apart_and_the_last_bytes_are_reported() {
        let mut meter = Meter::default();
        assert_eq!(meter.begin(1000.0, Phase::Download, (100, 0), 1.0), Due::Now);
        assert!(meter.report(1000.0).is_some());
        let Due::Later { since, .. } = meter.advance(1010.0, 10) else { panic!("too early") };
        assert_eq!(meter.advance(1020.0, 10), Due::Not);
        // No more bytes come. The planned report tells of these.
        assert!(meter.is_overdue(since));
        assert!(meter.report(1060.0).is_some());
        assert!(!meter.is_overdue(since));
        // Bytes come after the interval. They are reported at once, and the planned report is not
        // needed any more.
        let Due::Later { since, .. } = meter.advance(1070.0, 10) else { panic!("too early") };
        assert_eq!(meter.advance(1120.0, 10), Due::Now);
        assert!(meter.report(1120.0).is_some());
        assert!(!meter.is_overdue(since));
        // The last byte is reported at once.
        assert_eq!(meter.advance(1121.0, 60), Due::Now);
    }

    #[test]
    fn a_note_is_told_once() {
        let mut meter = Meter::default();
        let note = || Note::NotStored { why: "full".into() };
        assert_eq!(meter.note(note()), Due::Now);
        assert_eq!(meter.note(note()), Due::Not);
        assert_eq!(meter.report(0.0).map(|report| report.notes.len()), Some(1));
    }
}
