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
        let top = alternatives(tokenizer, token.after, &logprobs.top)?;
        Ok(Some(Self { logprob: logprobs.logprob, bytes, top }))
    }
}

/// The tokens of `top` after the token `after`.
pub(super) fn alternatives(
    tokenizer: &Tokenizer,
    after: Option<u32>,
    top: &[(u32, f32)],
) -> Result<Vec<Alternative>> {
    let alternative = |&(id, logprob): &(u32, f32)| {
        let text = String::from_utf8_lossy(tokenizer.bytes_after(after, id)?).into_owned();
        Ok(Alternative { id, text, logprob })
    };
    top.iter().map(alternative).collect()
}
