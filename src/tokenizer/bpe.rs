//! Byte-level BPE, as in GPT-2.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::bytes::ByteAlphabet;
use super::nfc::nfc;
use super::rules::PreTokenizer;
use super::symbols::join;
use super::vocabulary::{Kind, Vocabulary};
use super::words::Splitter;
use crate::error::{Error, Result};
use crate::gguf::{Metadata, Strings};

/// Words, and the merges within them.
pub(super) struct Bpe {
    nfc: bool,
    splitters: Vec<Splitter>,
    alphabet: ByteAlphabet,
    /// The bytes that the vocabulary lacks. A text loses them.
    lacks: Vec<u8>,
    /// The normal tokens. Only these: no merge in a file can make a control token of text.
    ids: HashMap<String, u32>,
    /// The ranks of merges. The key is the token that a merge makes and the bytes of its left part.
    /// The rank is the number of merges that go first.
    ranks: HashMap<(u32, usize), usize>,
    /// Whether a word that is a token becomes that token, without merges.
    ignore_merges: bool,
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
        let normal = |kind| matches!(kind, Kind::Normal | Kind::Byte);
        let ids: HashMap<String, u32> = vocabulary
            .iter()
            .filter(|&(.., kind)| normal(kind))
            .map(|(id, text, _)| (text.to_owned(), id))
            .collect();
        let known = |byte| ids.contains_key(alphabet.char(byte).encode_utf8(&mut [0; 4]) as &str);
        let lacks: Vec<u8> = (0..=255).filter(|&byte| !known(byte)).collect();
        if let Some(byte) = lacks.iter().find(|&&byte| is_needed(byte)) {
            return unsupported(format!("the vocabulary has no token for the byte {byte:#04x}"));
        }
        let others: HashSet<&str> = vocabulary
            .iter()
            .filter_map(|(_, text, kind)| (!normal(kind)).then_some(text))
            .collect();
        let merges = metadata.require("tokenizer.ggml.merges", Metadata::strings)?;
        let ranks = ranks(merges, &ids, &others)?;
        let splitters = pre.regexes.iter().map(|regex| Splitter::new(regex));
        let splitters = splitters.collect::<Result<_>>()?;
        let (nfc, ignore_merges) = (pre.nfc, pre.ignore_merges);
        Ok(Self { nfc, splitters, alphabet, lacks, ids, ranks, ignore_merges })
    }

    /// See [`Tokenizer::max_token_bytes`](super::Tokenizer::max_token_bytes).
    pub(super) fn max_token_bytes(&self) -> Option<usize> {
        // Normal form C may have a quarter of a text's bytes.
        let of_text = if self.nfc { 4 } else { 1 };
        // A character of the alphabet is a byte.
        let longest = self.ids.keys().map(|text| text.chars().count()).max()?;
        let keeps_all = self.lacks.iter().all(|&byte| matches!(byte, 0xc0 | 0xc1 | 0xf5..));
        keeps_all.then_some(of_text * longest)
    }

    /// Adds the tokens of `text` to `ids`.
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let text = if self.nfc { nfc(text) } else { Cow::Borrowed(text) };
        for word in self.words(&text)? {
            let bytes = text[word].bytes().filter(|byte| !self.lacks.contains(byte));
            let word: String = bytes.map(|byte| self.alphabet.char(byte)).collect();
            if self.ignore_merges
                && let Some(&id) = self.ids.get(&word)
            {
                ids.push(id);
                continue;
            }
            let rank = |pair: &str, left| {
                let id = *self.ids.get(pair)?;
                self.ranks.get(&(id, left)).copied().map(Reverse)
            };
            ids.extend(join(&word, rank).filter_map(|part| self.ids.get(part)));
        }
        Ok(())
    }

    /// The ranges of the words of `text`.
    fn words(&self, text: &str) -> Result<Vec<Range<usize>>> {
        let mut words: Vec<_> = std::iter::once(0..text.len()).collect();
        for splitter in &self.splitters {
            let mut parts = Vec::with_capacity(words.len());
            for word in words {
                splitter.split(text, word, &mut parts)?;
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
        // A token with characters outside of the alphabet stands for its own bytes.
        Kind::Normal | Kind::Byte => std::str::from_utf8(text)
            .ok()
            .and_then(|text| alphabet.decode(text))
            .map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// The ranks of the merges, without those that need one of the `others` or make one.
fn ranks(
    merges: &Strings,
    ids: &HashMap<String, u32>,
    others: &HashSet<&str>,
) -> Result<HashMap<(u32, usize), usize>> {
    let mut ranks = HashMap::with_capacity(merges.len());
    let mut joined = String::new();
    for (rank, merge) in merges.iter().enumerate() {
        let text = std::str::from_utf8(merge).ok();
        // The space after the left token separates the two. It is never the first byte, because the
        // left token may itself be a space.
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
            parts.into_iter().find(|&part| !ids.contains_key(part) && !others.contains(part))
        {
            let merge = format!("{left} {right}");
            return unsupported(format!(
                "the merge {merge:?} needs {unknown:?}, which is no token"
            ));
        }
        if let [Some(_), Some(_), Some(&id)] = parts.map(|part| ids.get(part)) {
            ranks.insert((id, left.len()), rank);
        }
    }
    Ok(ranks)
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
