//! Turns tokens into text, in whole characters only.

use super::Tokenizer;
use crate::error::Result;

/// The text of a growing sequence of tokens. A character can take several tokens. Its first bytes
/// are held back until the rest has come.
///
/// Sentencepiece may put a space before a text and after special tokens. The stream leaves that
/// space out.
#[derive(Clone, Debug, Default)]
pub struct TextStream {
    held: Vec<u8>,
    /// The token before; `None` at the beginning.
    last: Option<u32>,
}

impl TextStream {
    /// A stream at the beginning of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// A stream that goes on after the tokens of `prompt`.
    pub fn after(prompt: &[u32]) -> Self {
        Self { held: Vec::new(), last: prompt.last().copied() }
    }

    /// The token before the next one; `None` at the beginning.
    pub fn last(&self) -> Option<u32> {
        self.last
    }

    /// Whether no part of a character is held back.
    pub fn is_whole(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds a token. Gives the text that is complete now, which may be empty.
    ///
    /// Errors: `bad-option` (`ids`) for an id outside the vocabulary.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        self.held.extend_from_slice(tokenizer.bytes_after(self.last, id)?);
        self.last = Some(id);
        let keep = incomplete_tail(&self.held);
        let tail = self.held.split_off(self.held.len() - keep);
        let whole = std::mem::replace(&mut self.held, tail);
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }

    /// Gives the rest at the end: U+FFFD for a character that is incomplete.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// The number of bytes at the end that could be the beginning of a character. They are at most
/// three.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    for start in 0..tail.len() {
        let rest = &tail[start..];
        // `error_len` is `None` if no byte is wrong and only the end is missing.
        if let Err(error) = std::str::from_utf8(rest)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return rest.len();
        }
    }
    0
}
