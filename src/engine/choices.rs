//! Chosen tokens on their way from the GPU.

use super::state::SLOT_WORDS;
use crate::compute::{Choice, NO_TOKEN};
use crate::error::{Error, Result};
use crate::gpu::MAX_BATCH_STEPS;
use crate::gpu::Readback;
use crate::kernels::{BestOfBlock, N_RECORDS, Record};

/// Tokens chosen by steps, one after the other. Several may be in flight.
pub struct Chosen(pub(super) Reading);

pub(super) enum Reading {
    Ids(Readback<u32>),
    Records { all: Readback<Record>, recorded: Recorded },
}

/// Where the log-probabilities of a slot's chosen tokens are.
pub(super) struct Recorded {
    /// The position of the token before the first one.
    pub(super) pos: usize,
    /// The number of tokens.
    pub(super) n: usize,
    /// How many of the likeliest tokens each record has.
    pub(super) n_top: usize,
}

impl Recorded {
    /// The records of these tokens, out of all records of the slot.
    fn records<'a>(&self, all: &'a [Record]) -> impl Iterator<Item = Result<&'a Record>> {
        let missing = || Error::Internal("a record is missing".into());
        (self.pos..self.pos + self.n).map(move |pos| all.get(pos % N_RECORDS).ok_or_else(missing))
    }

    /// The tokens that were chosen, with the log-probabilities in the slot's records.
    fn choices(&self, all: &[Record]) -> Result<Vec<Choice>> {
        let choice =
            |record: &Record| Choice { id: record.id, logprobs: Some(record.logprobs(self.n_top)) };
        self.records(all).map(|record| record.map(choice)).collect()
    }
}

impl Chosen {
    /// Waits for the tokens.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<Vec<Choice>> {
        match self.0 {
            Reading::Ids(ids) => Ok(ids.take().await?.into_iter().map(Choice::from).collect()),
            Reading::Records { all, recorded } => recorded.choices(&all.take().await?),
        }
    }
}

/// The tokens that `Engine::decode_and_choose` chose. Several may be in flight.
pub struct Choices {
    /// `[n_tokens, vocab_blocks]`.
    pub(super) best: Readback<BestOfBlock>,
    pub(super) vocab_blocks: usize,
    pub(super) records: Option<(Readback<Record>, Recorded)>,
}

impl Choices {
    /// Waits for the chosen tokens, one after each token of the pass.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<Vec<Choice>> {
        let best = self.best.take().await?;
        let chosen = best.chunks(self.vocab_blocks).map(best_of);
        let Some((records, recorded)) = self.records else {
            return Ok(chosen.map(|best| Choice::from(best.id)).collect());
        };
        let records = records.take().await?;
        let choice = |(best, record): (BestOfBlock, Result<&Record>)| {
            let logprobs = record?.logprobs_of(best.logit, recorded.n_top);
            Ok(Choice { id: best.id, logprobs: Some(logprobs) })
        };
        chosen.zip(recorded.records(&records)).map(choice).collect()
    }
}

/// The tokens that `Engine::decode_batch` chose. Several may be in flight.
pub struct Sampled {
    /// The tokens that were chosen last in each slot.
    pub(super) all: Readback<u32>,
    /// The records of each slot, if any sequence asks for log-probabilities.
    pub(super) records: Option<Readback<Record>>,
    /// The slots of the sequences, and where their records are.
    pub(super) slots: Vec<(usize, Option<Recorded>)>,
    /// The number of steps.
    pub(super) n: usize,
}

impl Sampled {
    /// Waits for the tokens of each sequence. There is one for each step.
    ///
    /// Errors: `device-lost`.
    pub async fn take(self) -> Result<Vec<Vec<Choice>>> {
        let all = self.all.take().await?;
        let records = match self.records {
            Some(records) => records.take().await?,
            None => Vec::new(),
        };
        let of = |(slot, recorded): &(usize, Option<Recorded>)| match recorded {
            Some(recorded) => recorded.choices(records.get(slot * N_RECORDS..).unwrap_or_default()),
            None => {
                let end = slot * SLOT_WORDS + MAX_BATCH_STEPS;
                Ok(all[end - self.n..end].iter().copied().map(Choice::from).collect())
            }
        };
        self.slots.iter().map(of).collect()
    }
}

/// The best token of all blocks; of equal ones, the one with the lowest id.
fn best_of(blocks: &[BestOfBlock]) -> BestOfBlock {
    let numbers = blocks.iter().copied().filter(|best| best.id != NO_TOKEN);
    let best = numbers.reduce(|a, b| if b.value > a.value { b } else { a });
    best.unwrap_or(BestOfBlock { value: 0.0, id: NO_TOKEN, logit: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_all_blocks_is_the_lowest_id_among_equals() {
        let best = |of: &[(f32, u32)]| {
            let blocks: Vec<_> =
                of.iter().map(|&(value, id)| BestOfBlock { value, id, logit: -value }).collect();
            best_of(&blocks).id
        };
        let none = (0.0, NO_TOKEN);
        assert_eq!(best(&[(-2.0, 7), (-1.0, 1030), (-1.0, 2050)]), 1030);
        assert_eq!(best(&[none, (f32::NEG_INFINITY, 1100), none]), 1100);
        assert_eq!(best(&[none, (-0.5, 1100), (0.5, 2100)]), 2100);
        assert_eq!(best(&[none, none]), NO_TOKEN);
    }
}
