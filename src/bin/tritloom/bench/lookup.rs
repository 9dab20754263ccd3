//! Measures how much faster prompt lookup makes an answer that copies its prompt.

use std::ops::ControlFlow;

use serde::Serialize;

use tritloom::session::{GenerateOptions, Session, Stats, Token};
use tritloom::{Error, Result};

use super::figure::Figure;
use super::{TURN, without_lookup};

/// For each measurement: one in this many tokens of the prompt differs from the answer, or none.
const CHANGED: [Option<usize>; 2] = [None, Some(20)];

/// The speeds of one answer with prompt lookup and without. The text alone decides how many drafts
/// are accepted, so every run has the same number.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LookupGain {
    /// One in this many tokens of the prompt differs from the answer of a model that counts;
    /// `None`: none does.
    pub(super) changed: Option<usize>,
    pub(super) prompt_tokens: usize,
    /// Tokens of the answer.
    pub(super) tokens: usize,
    pub(super) plain: Figure,
    pub(super) lookup: Figure,
    /// The median speed with lookup, divided by that without.
    pub(super) gain: f64,
    pub(super) drafted_tokens: usize,
    pub(super) accepted_tokens: usize,
    pub(super) draft_passes: usize,
    pub(super) accepted_per_pass: f64,
}

/// Measures answers of `tokens` to prompts that count up and then start again. A model that
/// `tritloom random --counting` wrote goes on counting.
///
/// Errors: `internal` if lookup changes an answer.
pub(super) async fn lookups(
    session: &mut Session,
    tokens: usize,
    runs: usize,
) -> Result<Vec<LookupGain>> {
    let mut gains = Vec::new();
    for changed in CHANGED {
        let text = text(tokens, changed, session.info().vocab_size);
        if text.len() + tokens <= session.info().context_length {
            gains.push(gain(session, changed, &text, tokens, runs).await?);
        }
    }
    Ok(gains)
}

/// Ids that count up from 0, more than the answer will have, and then the first ids again.
fn text(tokens: usize, changed: Option<usize>, vocabulary: usize) -> Vec<u32> {
    let other = |i: usize| changed.is_some_and(|every| i % every == every - 1);
    let all = (0..tokens + TURN).map(|i| if other(i) { i + vocabulary / 2 } else { i });
    all.chain(0..TURN).map(|id| (id % vocabulary) as u32).collect()
}

async fn gain(
    session: &mut Session,
    changed: Option<usize>,
    text: &[u32],
    tokens: usize,
    runs: usize,
) -> Result<LookupGain> {
    let [mut plain, mut lookup] = [const { Vec::new() }; 2];
    // Warms up.
    let mut found = answer(session, text, tokens, true).await?;
    let (expected, _) = answer(session, text, tokens, false).await?;
    for _ in 0..runs {
        plain.push(answer(session, text, tokens, false).await?.1.decode_tokens_per_second);
        found = answer(session, text, tokens, true).await?;
        lookup.push(found.1.decode_tokens_per_second);
        if found.0 != expected {
            return Err(Error::Internal("prompt lookup changed an answer".into()));
        }
    }
    let Stats { drafted_tokens, accepted_tokens, draft_passes, .. } = found.1;
    let plain = Figure::new("without prompt lookup", "tok/s", plain);
    let lookup = Figure::new("with prompt lookup", "tok/s", lookup);
    Ok(LookupGain {
        changed,
        prompt_tokens: text.len(),
        tokens: expected.len(),
        gain: lookup.median / plain.median,
        plain,
        lookup,
        drafted_tokens,
        accepted_tokens,
        draft_passes,
        accepted_per_pass: accepted_tokens as f64 / draft_passes.max(1) as f64,
    })
}

async fn answer(
    session: &mut Session,
    text: &[u32],
    tokens: usize,
    lookup: bool,
) -> Result<(Vec<u32>, Stats)> {
    let mut ids = Vec::new();
    let mut on_token = |token: Token| {
        ids.extend(token.id);
        ControlFlow::Continue(())
    };
    let options = GenerateOptions { prompt_lookup: Some(lookup), ..without_lookup(tokens) };
    let stats = session.generate(text, &options, &mut on_token).await?;
    Ok((ids, stats))
}
