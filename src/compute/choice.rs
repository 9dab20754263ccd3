//! How a token is chosen, and the token.

use std::rc::Rc;

use crate::sampling::{LogitBias, Logprobs, Sampling};

/// In place of a token's id: there is none, because no logit is a number.
pub const NO_TOKEN: u32 = u32::MAX;

/// How tokens are chosen, and what is told of them. The default is greedy.
#[derive(Clone, Debug, Default)]
pub struct Choosing {
    /// The settings.
    pub sampling: Sampling,
    /// What is added to the logits of some tokens.
    pub bias: Rc<LogitBias>,
    /// Whether to tell the log-probability of each token, and those of how many of the likeliest
    /// ones: at most [`MAX_LOGPROBS`](crate::sampling::MAX_LOGPROBS).
    pub logprobs: Option<usize>,
}

impl From<Sampling> for Choosing {
    fn from(sampling: Sampling) -> Self {
        Self { sampling, ..Self::default() }
    }
}

impl Choosing {
    /// Whether other logits than the model's decide.
    pub fn is_adjusted(&self) -> bool {
        self.sampling.is_penalized() || !self.bias.is_empty()
    }

    /// Whether a token is drawn from those alone that top-k, top-p and min-p keep.
    pub fn is_filtered(&self) -> bool {
        self.sampling.is_filtered() && !self.sampling.is_greedy()
    }
}

/// A chosen token.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its id; [`NO_TOKEN`] where no logit is a number.
    pub id: u32,
    /// If [`Choosing::logprobs`] asks for them.
    pub logprobs: Option<Logprobs>,
}

impl From<u32> for Choice {
    fn from(id: u32) -> Self {
        Self { id, logprobs: None }
    }
}
