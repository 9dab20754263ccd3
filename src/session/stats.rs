//! The statistics of a generation.

use serde::Serialize;

/// The statistics of a generation. The default is that of a generation that has not begun.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Tokens of the prompt whose keys and values were still in the cache.
    pub reused_tokens: usize,
    /// Tokens generated, of the reasoning and of the answer. The stop token does not count.
    pub completion_tokens: usize,
    /// Tokens of the reasoning, including those that begin and end it.
    pub reasoning_tokens: usize,
    /// Tokens that the format of the answer put in without asking the model.
    pub forced_tokens: usize,
    /// Tokens guessed by prompt lookup.
    pub drafted_tokens: usize,
    /// Drafted tokens that the model chose too.
    pub accepted_tokens: usize,
    /// Steps that checked drafted tokens, several in each.
    pub draft_passes: usize,
    /// Tokens that were computed or submitted, but not needed when the generation ended.
    pub unused_tokens: usize,
    /// The most generations that shared a step, including this one. 1 if it ran alone.
    pub batch: usize,
    /// Milliseconds from the call to the first token.
    pub time_to_first_token: f64,
    /// Prompt tokens computed per second.
    pub prefill_tokens_per_second: f64,
    /// Tokens per second after the first.
    pub decode_tokens_per_second: f64,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// A stop token or a stop text.
    Stop,
    /// `max_tokens`, or the context is full.
    #[default]
    Length,
    /// The caller stopped it.
    Abort,
    /// The model has called tools, and waits for their results.
    ToolCalls,
}
