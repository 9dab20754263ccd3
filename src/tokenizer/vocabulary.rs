//! The token list of a GGUF file: texts and kinds.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::gguf::{Metadata, Strings};

/// The texts of tokens that end an answer even if the metadata does not name them. The file of
/// 2B-4T, for one, does not name `<|eot_id|>`. The list is llama.cpp's.
pub(super) const STOP_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
];

/// The kind of a token, `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Normal,
    /// Control tokens and the unknown token. They stand for no text.
    Control,
    UserDefined,
    Unused,
    /// One byte, written `<0x0A>`.
    Byte,
}

/// The tokens of a file, in the order of their ids.
pub(super) struct Vocabulary<'a> {
    pub(super) texts: &'a Strings,
    pub(super) kinds: Vec<Kind>,
}

impl<'a> Vocabulary<'a> {
    /// Errors: `unsupported-model` if types are missing, or two tokens have the same text.
    pub(super) fn new(metadata: &'a Metadata) -> Result<Self> {
        let texts = metadata.require("tokenizer.ggml.tokens", Metadata::strings)?;
        // Without types, a control token would be taken for a word.
        let types = metadata.require("tokenizer.ggml.token_type", Metadata::numbers)?;
        if types.len() != texts.len() {
            return unsupported(format!("{} token types for {} tokens", types.len(), texts.len()));
        }
        let mut seen = HashSet::with_capacity(texts.len());
        let mut kinds = Vec::with_capacity(texts.len());
        for (id, (text, kind)) in texts.iter().zip(types.iter()).enumerate() {
            if !text.is_empty() && !seen.insert(text) {
                let text = String::from_utf8_lossy(text);
                return unsupported(format!("two tokens are {text:?}, the second is {id}"));
            }
            kinds.push(match kind.integer() {
                // Some files call such a token normal. It ends an answer nevertheless.
                Some(1 | 4) if STOP_TEXTS.iter().any(|stop| stop.as_bytes() == text) => {
                    Kind::Control
                }
                Some(1) => Kind::Normal,
                Some(2 | 3) => Kind::Control,
                Some(4) => Kind::UserDefined,
                Some(5) => Kind::Unused,
                Some(6) => Kind::Byte,
                _ => return unsupported(format!("token {id} has the unknown type {kind}")),
            });
        }
        Ok(Self { texts, kinds })
    }

    /// The id, text and kind of each token whose text is UTF-8.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &'a str, Kind)> {
        let tokens = (0u32..).zip(self.texts.iter()).zip(&self.kinds);
        tokens.filter_map(|((id, text), &kind)| Some((id, std::str::from_utf8(text).ok()?, kind)))
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
