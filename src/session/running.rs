//! The calls that run.

use super::caches::Cached;
use super::foresight::Foresight;
use super::generation::Generation;
use super::pace::Pace;
use super::run::Run;
use super::work::InFlight;
use crate::compute::{Compute, Seat};

/// The generations that run, and the work in flight.
pub(super) struct Running<'a> {
    pub(super) all: Vec<Generation<'a>>,
    pub(super) in_flight: InFlight,
    /// The sequences whose next tokens are computed ahead, by the serials of their generations. The
    /// last of the work in flight chooses these tokens.
    pub(super) ahead: Vec<(u64, Seat)>,
    /// The pace of steps of several sequences.
    pub(super) pace: Pace,
    pub(super) serials: u64,
    /// Whether there was no room for the first of the waiting calls.
    pub(super) blocked: bool,
    /// Whether a generation waits for more room. Until it has that, no call begins, because calls
    /// that come one after another could keep it waiting for ever.
    pub(super) full: bool,
}

impl Running<'_> {
    /// Must be called when others may have room that had none.
    pub(super) fn try_again(&mut self) {
        (self.blocked, self.full) = (false, false);
    }

    /// Drops the draft passes in flight.
    pub(super) fn drop_drafts(&mut self) {
        while let Some((serial, tokens)) = self.in_flight.drop_draft() {
            let one = self.all.iter_mut().find(|one| one.serial == serial);
            one.into_iter().for_each(|one| {
                one.in_flight -= tokens;
                one.drafted = 0;
            });
        }
    }
}

/// The progress of a generation.
pub(super) fn run<'a>(
    model: &'a dyn Compute,
    one: &'a mut Generation<'_>,
    sequence: &'a mut Cached,
    pace: &'a mut Pace,
) -> Run<'a> {
    let (most, most_drafted) = (one.most_filled(sequence), one.most_drafted(sequence));
    Run {
        model,
        serial: one.serial,
        prompt: one.prompt,
        most,
        most_drafted,
        foresight: Foresight {
            constraint: one.constraint.as_deref().filter(|_| !one.is_free),
            mask: one.mask.as_ref().or(one.guess.allowed()),
            masked: one.masked,
            slot: one.slot,
            drafted: &mut one.drafted,
        },
        tokens: &sequence.tokens,
        filled: &mut sequence.filled,
        pace,
        stats: &mut one.stats,
        last_is_on_gpu: &mut one.decodes,
        awaited: &mut one.in_flight,
    }
}
