//! Sentencepiece's BPE: joins two neighbours if their text together is a token, the best score
//! first.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;

use super::symbols::join;
use super::vocabulary::{Kind, Vocabulary};
use crate::error::{Error, Result};
use crate::gguf::{Metadata, Value};

/// Stands for a space within tokens.
const SPACE: &str = "\u{2581}";

/// Tokens with their scores.
pub(super) struct Sentencepiece {
    /// The normal tokens. Only these: text becomes no other token.
    ids: HashMap<String, u32>,
    /// The score of each token, by its id.
    scores: Vec<f32>,
    /// The token of each byte.
    bytes: [u32; 256],
    /// Bytes of the longest token.
    max_len: usize,
    /// Whether a space is put before a text.
    space_prefix: bool,
}

/// A score that can be ordered by its value.
#[derive(Clone, Copy, PartialEq)]
struct Score(f32);

impl Sentencepiece {
    /// Errors: `unsupported-model` if a score is missing or not a number, if a byte has no token,
    /// or if the file asks for a normaliser.
    pub(super) fn new(metadata: &Metadata, vocabulary: &Vocabulary<'_>) -> Result<Self> {
        if metadata.boolean("tokenizer.ggml.remove_extra_whitespaces")? == Some(true) {
            return unsupported("`tokenizer.ggml.remove_extra_whitespaces` is true".into());
        }
        let charsmap = metadata.numbers("tokenizer.ggml.precompiled_charsmap")?;
        if charsmap.is_some_and(|map| !map.is_empty()) {
            return unsupported("`tokenizer.ggml.precompiled_charsmap`, a normaliser".into());
        }
        let mut ids = HashMap::new();
        let mut bytes = [None; 256];
        for (id, text, kind) in vocabulary.iter() {
            match kind {
                Kind::Normal if !text.is_empty() => drop(ids.insert(text.to_owned(), id)),
                Kind::Byte => bytes[usize::from(byte(text)?)] = Some(id),
                _ => {}
            }
        }
        // A character without a token becomes its bytes, so every byte must have a token.
        let mut found = [0; 256];
        for (byte, id) in bytes.into_iter().enumerate() {
            let lacks = || format!("the vocabulary has no token for the byte {byte:#04x}");
            found[byte] = id.ok_or_else(|| Error::UnsupportedModel(lacks()))?;
        }
        Ok(Self {
            max_len: ids.keys().map(String::len).max().unwrap_or(0),
            ids,
            scores: scores(metadata, vocabulary.kinds.len())?,
            bytes: found,
            space_prefix: metadata.boolean("tokenizer.ggml.add_space_prefix")?.unwrap_or(true),
        })
    }

    /// See [`Tokenizer::max_token_bytes`](super::Tokenizer::max_token_bytes). A space has more bytes in a token.
    pub(super) fn max_token_bytes(&self) -> usize {
        self.max_len.max(1)
    }

    /// Whether a space is put before a text at its beginning and after special tokens.
    pub(super) fn space_prefix(&self) -> bool {
        self.space_prefix
    }

    /// Adds the tokens of `text` to `ids`. `first` says that it begins a text or follows a special
    /// token.
    pub(super) fn encode(&self, text: &str, first: bool, ids: &mut Vec<u32>) {
        let prefix = if first && self.space_prefix { SPACE } else { "" };
        let text = prefix.to_owned() + &text.replace(' ', SPACE);
        let score = |pair: &str, _| {
            let known = pair.len() <= self.max_len;
            let id = *known.then(|| self.ids.get(pair)).flatten()?;
            Some(Score(self.scores[id as usize]))
        };
        for part in join(&text, score) {
            match self.ids.get(part) {
                Some(&id) => ids.push(id),
                None => ids.extend(part.bytes().map(|byte| self.bytes[usize::from(byte)])),
            }
        }
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Score {}

/// The bytes that a token stands for.
pub(super) fn token_bytes(text: &[u8], kind: Kind) -> Result<Cow<'_, [u8]>> {
    Ok(match (kind, std::str::from_utf8(text)) {
        (Kind::Control | Kind::Unused, _) => Cow::Borrowed(&[]),
        (Kind::Byte, text) => Cow::Owned(vec![byte(text.unwrap_or_default())?]),
        (Kind::Normal, Ok(text)) if text.contains(SPACE) => {
            Cow::Owned(text.replace(SPACE, " ").into_bytes())
        }
        (Kind::Normal | Kind::UserDefined, _) => Cow::Borrowed(text),
    })
}

/// The byte that `<0x0A>` stands for.
fn byte(text: &str) -> Result<u8> {
    let digits = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
    digits
        .filter(|digits| digits.len() == 2 && digits.bytes().all(|c| c.is_ascii_hexdigit()))
        .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        .ok_or_else(|| {
            Error::UnsupportedModel(format!("the token {text:?} is a byte, but not as `<0x0A>`"))
        })
}

fn scores(metadata: &Metadata, n_tokens: usize) -> Result<Vec<f32>> {
    let scores = metadata.require("tokenizer.ggml.scores", Metadata::numbers)?;
    if scores.len() != n_tokens {
        return unsupported(format!("{} scores for {n_tokens} tokens", scores.len()));
    }
    let score = |(id, value)| {
        let score = match value {
            Value::F32(score) => score,
            Value::F64(score) => score as f32,
            ref other => match other.integer() {
                Some(score) => score as f32,
                None => f32::NAN,
            },
        };
        // Adding zero turns -0 into 0, because the two are equal scores.
        let score = score.is_finite().then_some(score + 0.0);
        score.ok_or_else(|| Error::UnsupportedModel(format!("the score of token {id} is {value}")))
    };
    scores.iter().enumerate().map(score).collect()
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
