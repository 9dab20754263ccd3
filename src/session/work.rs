//! The work that was submitted, which is awaited in its order.

use std::collections::VecDeque;

use super::chunks::Chunk;
use super::lookup::STEPS_PER_PASS;
use crate::compute::{Choice, Pending};

/// Work that was submitted.
pub(super) enum Work {
    /// A chunk of a prompt.
    Chunk(Chunk),
    /// `n` steps that choose tokens of the generations of these serials.
    Steps {
        serials: Vec<u64>,
        tokens: Pending<Vec<Vec<Choice>>>,
        n: usize,
        /// Whether these steps end a prompt, which takes longer than a step.
        ends_prompt: bool,
    },
    /// A draft pass: the last token of a sequence, and the tokens drafted after it. The last token
    /// may be drafted too, while the steps that choose it are in flight. If they choose another,
    /// the pass is useless.
    Draft { serial: u64, ids: Vec<u32>, choices: Pending<Vec<Choice>> },
}

/// All work in flight, the oldest first.
#[derive(Default)]
pub(super) struct InFlight(VecDeque<Work>);

impl Work {
    /// Steps of one generation.
    pub(super) fn of_one(
        serial: u64,
        tokens: Pending<Vec<Choice>>,
        n: usize,
        ends_prompt: bool,
    ) -> Self {
        let tokens = Pending::new(async { Ok(vec![tokens.take().await?]) });
        Self::Steps { serials: vec![serial], tokens, n, ends_prompt }
    }

    /// The number of steps that take as long as this work.
    fn steps(&self) -> usize {
        match self {
            Self::Chunk(_) => 1,
            Self::Steps { n, .. } => *n,
            Self::Draft { .. } => STEPS_PER_PASS,
        }
    }
}

impl InFlight {
    pub(super) fn push(&mut self, work: Work) {
        self.0.push_back(work);
    }

    /// Takes the oldest work.
    pub(super) fn pop(&mut self) -> Option<Work> {
        self.0.pop_front()
    }

    /// The oldest work.
    pub(super) fn first(&self) -> Option<&Work> {
        self.0.front()
    }

    /// The number of batches in flight, and of the steps that take as long as they do.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.0.len(), self.0.iter().map(Work::steps).sum())
    }

    /// The number of chunks of prompts in flight.
    pub(super) fn chunks(&self) -> usize {
        self.0.iter().filter(|work| matches!(work, Work::Chunk(_))).count()
    }

    /// Whether some work in flight chooses tokens.
    pub(super) fn chooses(&self) -> bool {
        self.0.len() > self.chunks()
    }

    /// Whether a draft pass is in flight.
    pub(super) fn has_draft(&self) -> bool {
        self.0.iter().any(|work| matches!(work, Work::Draft { .. }))
    }

    /// Drops the next draft pass. Gives the serial of its generation, and its number of tokens.
    pub(super) fn drop_draft(&mut self) -> Option<(u64, usize)> {
        let at = self.0.iter().position(|work| matches!(work, Work::Draft { .. }))?;
        match self.0.remove(at)? {
            Work::Draft { serial, ids, .. } => Some((serial, ids.len())),
            _ => None,
        }
    }
}
