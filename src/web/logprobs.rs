//! The log-probabilities of a token, for the page.

use serde::Serialize;

use crate::error::Result;
use crate::session::Token;
use crate::tokenizer::Tokenizer;

/// `logprob`, `bytes` and `top` of the package's `Token`.
#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    logprob: f32,
    bytes: &'a [u8],
    top: Vec<Alternative>,
}

/// One of the likeliest tokens: the package's `TokenAlternative`.
#[derive(Serialize)]
pub(super) struct Alternative {
    id: u32,
    text: String,
    logprob: f32,
}

impl<'a> Logprobs<'a> {
    /// The fields of a token, if `logprobs` asked for them.
    pub(super) fn of(tokenizer: &'a Tokenizer, token: &Token) -> Result<Option<Self>> {
        let (Some(id), Some(logprobs)) = (token.id, &token.logprobs) else { return Ok(None) };
        let bytes = tokenizer.bytes_after(token.after, id)?;
        let text = |id| {
            let bytes = tokenizer.bytes_after(token.after, id)?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };
        let top = alternatives(&logprobs.top, &text)?;
        Ok(Some(Self { logprob: logprobs.logprob, bytes, top }))
    }
}

/// The tokens of `top`, each with its `text`.
pub(super) fn alternatives(
    top: &[(u32, f32)],
    text: &dyn Fn(u32) -> Result<String>,
) -> Result<Vec<Alternative>> {
    let alternative =
        |&(id, logprob): &(u32, f32)| Ok(Alternative { id, text: text(id)?, logprob });
    top.iter().map(alternative).collect()
}
