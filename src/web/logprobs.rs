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

#[derive(Serialize)]
struct Alternative {
    id: u32,
    text: String,
    logprob: f32,
}

impl<'a> Logprobs<'a> {
    /// The fields of a token, if `logprobs` asked for them.
    pub(super) fn of(tokenizer: &'a Tokenizer, token: &Token) -> Result<Option<Self>> {
        let (Some(id), Some(logprobs)) = (token.id, &token.logprobs) else { return Ok(None) };
        let bytes = |id| tokenizer.bytes_after(token.after, id);
        let alternative = |&(id, logprob): &(u32, f32)| {
            let text = String::from_utf8_lossy(bytes(id)?).into_owned();
            Ok(Alternative { id, text, logprob })
        };
        let top = logprobs.top.iter().map(alternative).collect::<Result<_>>()?;
        Ok(Some(Self { logprob: logprobs.logprob, bytes: bytes(id)?, top }))
    }
}
