//! How to generate.

use crate::sampling::Sampling;

/// How to generate.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// Most tokens to generate; `None`: as many as the context holds.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Texts that end the generation. They are not part of the generated text.
    pub stop: Vec<String>,
    /// Whether greedy tokens may be drafted from text that repeats itself, and several checked in
    /// one pass; `None`: where that is faster. With a penalty there are no drafts: each token
    /// changes the logits of the next.
    pub prompt_lookup: Option<bool>,
    /// Most tokens of reasoning, in a chat. When they are spent, `</think>` is put into the context,
    /// and the answer begins. `max_tokens` counts them too. `None`: no other limit.
    pub max_thinking_tokens: Option<usize>,
}
