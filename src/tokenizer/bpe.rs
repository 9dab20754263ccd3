//! Byte-level BPE, as in GPT-2. The `tokenizers` crate merges.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use fancy_regex::Regex;
use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::bytes::ByteAlphabet;
use super::nfc::nfc;
use super::rules::PreTokenizer;
use super::vocabulary::{Kind, Vocabulary};
use crate::error::{Error, Result};
use crate::gguf::{Metadata, Strings};

/// Words, and the merges within them.
pub(super) struct Bpe {
    nfc: bool,
    regexes: Vec<Regex>,
    alphabet: ByteAlphabet,
    merges: BPE,
}

impl Bpe {
    /// Errors: `unsupported-model` if a byte of usual text has no token, or the merges do not fit
    /// the tokens.
    pub(super) fn new(
        metadata: &Metadata,
        vocabulary: &Vocabulary<'_>,
        pre: &PreTokenizer,
    ) -> Result<Self> {
        let alphabet = ByteAlphabet::new();
        // Only normal tokens: whatever the file says, no merge makes a control token of text.
        let normal = |kind| matches!(kind, Kind::Normal | Kind::Byte);
        let vocab: Vocab = vocabulary
            .iter()
            .filter(|&(.., kind)| normal(kind))
            .map(|(id, text, _)| (text.to_owned(), id))
            .collect();
        for byte in (0..=255u8).filter(|&byte| is_needed(byte)) {
            if !vocab.contains_key(alphabet.char(byte).encode_utf8(&mut [0; 4]) as &str) {
                return unsupported(format!(
                    "the vocabulary has no token for the byte {byte:#04x}"
                ));
            }
        }
        let others: HashSet<&str> = vocabulary
            .iter()
            .filter_map(|(_, text, kind)| (!normal(kind)).then_some(text))
            .collect();
        let merges = metadata.require("tokenizer.ggml.merges", Metadata::strings)?;
        let merges = pairs(merges, &vocab, &others)?;
        let merges = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .ignore_merges(pre.ignore_merges)
            .build()
            .map_err(|error| Error::UnsupportedModel(format!("the merges do not fit: {error}")))?;
        let regexes = pre.regexes.iter().map(|regex| Regex::new(regex).map_err(internal));
        Ok(Self { nfc: pre.nfc, regexes: regexes.collect::<Result<_>>()?, alphabet, merges })
    }

    /// Adds the tokens of `text` to `ids`.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let text = if self.nfc { nfc(text) } else { Cow::Borrowed(text) };
        for word in self.words(&text)? {
            let word = self.alphabet.encode(&text[word]);
            ids.extend(self.merges.tokenize(&word).map_err(internal)?.iter().map(|token| token.id));
        }
        Ok(())
    }

    /// Where the words of `text` are.
    fn words(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let mut words: Vec<_> = std::iter::once(0..text.len()).collect();
        for regex in &self.regexes {
            let mut parts = Vec::with_capacity(words.len());
            for word in words {
                let mut end = word.start;
                for found in regex.find_iter(&text[word.clone()]) {
                    let found = found.map_err(|_| Error::BadOption {
                        name: "prompt".into(),
                        why: format!("after byte {end} there are too many spaces"),
                    })?;
                    let start = word.start + found.start();
                    parts.push(end..start);
                    end = word.start + found.end();
                    parts.push(start..end);
                }
                parts.push(end..word.end);
            }
            parts.retain(|part| !part.is_empty());
            words = parts;
        }
        Ok(words)
    }
}

/// Whether a vocabulary must have this byte. Falcon's lacks some control characters, and bytes that
/// are in no character of today's Unicode. Its own tokenizer leaves them out of a text too.
fn is_needed(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..=0xbf | 0xc2..=0xf0 | 0xf3)
}

/// The bytes that a token stands for.
pub(super) fn token_bytes<'a>(
    text: &'a [u8],
    kind: Kind,
    alphabet: &ByteAlphabet,
) -> Cow<'a, [u8]> {
    match kind {
        Kind::Control | Kind::Unused => Cow::Borrowed(&[]),
        Kind::UserDefined => Cow::Borrowed(text),
        // A token that is not in the alphabet stands for its own bytes.
        Kind::Normal | Kind::Byte => std::str::from_utf8(text)
            .ok()
            .and_then(|text| alphabet.decode(text))
            .map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// The merges in order of their rank, without those that need or make one of the `others`.
fn pairs(merges: &Strings, vocab: &Vocab, others: &HashSet<&str>) -> Result<Vec<(String, String)>> {
    let mut pairs = Vec::with_capacity(merges.len());
    let mut joined = String::new();
    for merge in merges.iter() {
        let text = std::str::from_utf8(merge).ok();
        // The left token may be a space: the first byte never separates the two.
        let pair = text.and_then(|text| {
            let space = text.bytes().skip(1).position(|byte| byte == b' ')? + 1;
            Some((text.get(..space)?, text.get(space + 1..)?))
        });
        let Some((left, right)) = pair else {
            let merge = String::from_utf8_lossy(merge);
            return unsupported(format!("the merge {merge:?} is not two tokens"));
        };
        joined.clear();
        joined.extend([left, right]);
        let parts = [left, right, &joined];
        if let Some(unknown) =
            parts.into_iter().find(|&part| !vocab.contains_key(part) && !others.contains(part))
        {
            let merge = format!("{left} {right}");
            return unsupported(format!(
                "the merge {merge:?} needs {unknown:?}, which is no token"
            ));
        }
        if parts.into_iter().all(|part| vocab.contains_key(part)) {
            pairs.push((left.to_owned(), right.to_owned()));
        }
    }
    Ok(pairs)
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("tokenizer: {error}"))
}
