//! What pipelining and drafting share: the engine behind a trait, and how far a generation is.

use super::pace::Pace;
use super::stats::Stats;
use crate::compute::Choice;
use crate::engine::{Choices, Chosen, Engine};
use crate::error::Result;

/// What a generation needs of the engine. Tests use a model that needs no GPU instead.
pub(super) trait Model {
    /// Chosen tokens that are not here yet.
    type Tokens;
    /// The tokens chosen in a draft pass that are not here yet.
    type Choices;

    /// Computes `ids` from position `pos` on and chooses the next token.
    fn prefill_and_sample(&self, ids: &[u32], pos: usize) -> Self::Tokens;

    /// Computes `steps` tokens from position `pos` on. The first is the last token that a step
    /// chose, each other one the token that the step before it chose.
    fn decode_and_sample(&self, pos: usize, steps: usize) -> Self::Tokens;

    /// Computes `ids` from position `pos` on and chooses greedily after each of them. `uncertain`: the
    /// tokens before them that are drafts too, in a pass that is still in flight.
    fn decode_and_choose(&self, ids: &[u32], pos: usize, uncertain: &[u32]) -> Self::Choices;

    /// Counts tokens for the penalties: those that a draft pass was right to compute. The text that
    /// ends with them is `prompt` and `output`. Steps count theirs by themselves.
    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]);

    /// Most tokens of a draft pass at `pos`; 0 if there can be none.
    fn max_draft_pass(&self, pos: usize) -> usize;

    /// Waits for tokens.
    async fn tokens(&self, tokens: Self::Tokens) -> Result<Vec<Choice>>;

    /// Waits for the tokens chosen in a draft pass.
    async fn choices(&self, choices: Self::Choices) -> Result<Vec<Choice>>;
}

impl Model for Engine {
    type Tokens = Chosen;
    type Choices = Choices;

    fn prefill_and_sample(&self, ids: &[u32], pos: usize) -> Chosen {
        self.prefill_and_sample(ids, pos)
    }

    fn decode_and_sample(&self, pos: usize, steps: usize) -> Chosen {
        self.decode_and_sample(pos, steps)
    }

    fn decode_and_choose(&self, ids: &[u32], pos: usize, uncertain: &[u32]) -> Choices {
        self.decode_and_choose(ids, pos, uncertain)
    }

    fn recount(&self, ids: &[u32], prompt: &[u32], output: &[u32]) {
        self.recount(ids, prompt, output);
    }

    fn max_draft_pass(&self, pos: usize) -> usize {
        self.few_at(pos)
    }

    async fn tokens(&self, tokens: Chosen) -> Result<Vec<Choice>> {
        tokens.take(self.gpu()).await
    }

    async fn choices(&self, choices: Choices) -> Result<Vec<Choice>> {
        choices.take(self.gpu()).await
    }
}

/// How far a generation is.
pub(super) struct Run<'a, M> {
    pub(super) model: &'a M,
    /// The prompt and the tokens after it.
    pub(super) tokens: &'a mut Vec<u32>,
    /// How many of them are the prompt.
    pub(super) prompt: usize,
    /// Positions of the KV cache that are filled, or will be by the steps in flight.
    pub(super) filled: &'a mut usize,
    pub(super) pace: &'a mut Pace,
    pub(super) stats: Stats,
    /// Tokens that may still be submitted.
    pub(super) left: usize,
    /// Whether the token that the next step computes is on the GPU, where a step has put it. After
    /// a draft pass it is not.
    pub(super) last_is_on_gpu: bool,
}
