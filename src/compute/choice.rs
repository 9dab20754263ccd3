//! How a token is chosen, and the token.

use std::rc::Rc;

use crate::sampling::{LogitBias, Logprobs, Sampling};

/// Stands for a token's id where there is no token, because no logit is a number.
pub const NO_TOKEN: u32 = u32::MAX;

/// How tokens are chosen, and which log-probabilities come with them. The default is greedy.
#[derive(Clone, Debug, Default)]
pub struct Choosing {
    /// The settings for sampling.
    pub sampling: Sampling,
    /// Biases, which are added to the logits of some tokens.
    pub bias: Rc<LogitBias>,
    /// If log-probabilities are wanted: how many of the likeliest tokens come with the
    /// log-probability of each token, at most [`MAX_LOGPROBS`](crate::sampling::MAX_LOGPROBS).
    pub logprobs: Option<usize>,
    /// Whether a mask says which tokens can be chosen.
    /// [`Steps::write_masks`](super::Steps::write_masks) has to be called before a token is
    /// chosen.
    pub masked: bool,
}

/// Which token is chosen by its logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The best one.
    Best,
    /// One that is drawn from all.
    Drawn,
    /// One that is drawn from those that top-k, top-p and min-p keep.
    Kept,
}

impl From<Sampling> for Choosing {
    fn from(sampling: Sampling) -> Self {
        Self { sampling, ..Self::default() }
    }
}

impl Choosing {
    /// Whether biases, penalties or a mask change the model's logits.
    pub fn adjusts(&self) -> bool {
        self.masked || self.sampling.is_penalized() || !self.bias.is_empty()
    }

    /// Which token is chosen.
    pub fn pick(&self) -> Pick {
        match (self.sampling.is_greedy(), self.sampling.is_filtered()) {
            (true, _) => Pick::Best,
            (false, false) => Pick::Drawn,
            (false, true) => Pick::Kept,
        }
    }
}

/// A chosen token.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its id; [`NO_TOKEN`] if no logit is a number.
    pub id: u32,
    /// Its log-probabilities, if [`Choosing::logprobs`] asks for them.
    pub logprobs: Option<Logprobs>,
}

impl From<u32> for Choice {
    fn from(id: u32) -> Self {
        Self { id, logprobs: None }
    }
}
