//! Tokens in, text out, never half a character.

use super::Tokenizer;
use crate::error::Result;

/// The text of a growing sequence of tokens. A character can take several tokens: its first
/// bytes are held until the rest has come.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    held: Vec<u8>,
}

impl TextStream {
    /// At the beginning of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that `id` completes, which may be none.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        self.held.extend_from_slice(tokenizer.bytes(id)?);
        let keep = incomplete_tail(&self.held);
        let tail = self.held.split_off(self.held.len() - keep);
        let whole = std::mem::replace(&mut self.held, tail);
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }

    /// What is left at the end: U+FFFD where a character stayed incomplete.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// How many bytes at the end could become a character with more to come; at most three.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for start in 0..tail.len() {
        let rest = &tail[start..];
        // Not valid, yet without a wrong byte: `error_len` is `None` when only the end is missing.
        if let Err(error) = std::str::from_utf8(rest)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return rest.len();
        }
    }
    0
}
