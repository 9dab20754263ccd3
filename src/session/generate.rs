//! The options of a generation.

use std::rc::Rc;

use super::constraint::Constraints;
use crate::compute::Choosing;
use crate::error::{Error, Result};
use crate::sampling::{LogitBias, MAX_LOGPROBS, Sampling};

/// The options of a generation.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// The most tokens to generate; `None`: as many as the context holds.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Biases, which are added to the logits of some tokens.
    pub logit_bias: Rc<LogitBias>,
    /// If log-probabilities are wanted: how many of the likeliest tokens come with the
    /// log-probability of each token, at most [`MAX_LOGPROBS`].
    pub logprobs: Option<usize>,
    /// Texts that end the generation. They are not part of the generated text.
    pub stop: Vec<String>,
    /// Whether greedy tokens may be drafted from text that repeats itself, so that one pass checks
    /// several; `None`: if that is faster.
    pub prompt_lookup: Option<bool>,
    /// The most tokens of reasoning, in a chat, at least 1. When they are spent, `</think>` is put into the
    /// context, and the answer begins. `max_tokens` counts them too. `None`: no other limit.
    pub max_thinking_tokens: Option<usize>,
    /// Makes the constraint that decides which tokens may follow in the answer. It holds for the
    /// whole answer, also for the text with which that is begun.
    pub constraints: Option<Constraints>,
}

impl GenerateOptions {
    /// Refuses options out of range, for a vocabulary of `n_vocab` tokens.
    ///
    /// Errors: `bad-option` with the option's name.
    pub fn check(&self, n_vocab: usize) -> Result<()> {
        self.sampling.check()?;
        self.logit_bias.check(n_vocab)?;
        if self.logprobs > Some(MAX_LOGPROBS) {
            let why = format!("must be at most {MAX_LOGPROBS}");
            return Err(Error::BadOption { name: "logprobs".into(), why });
        }
        if self.max_thinking_tokens == Some(0) {
            let why = "must be at least 1; a conversation without reasoning has thinking off";
            return Err(Error::BadOption { name: "maxThinkingTokens".into(), why: why.into() });
        }
        Ok(())
    }

    /// How the engine chooses tokens, with a mask or without.
    pub(super) fn choosing(&self, masked: bool) -> Choosing {
        Choosing {
            sampling: self.sampling,
            bias: Rc::clone(&self.logit_bias),
            logprobs: self.logprobs,
            masked,
        }
    }
}
