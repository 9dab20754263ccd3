//! Text to tokens and back, from the vocabulary in a GGUF file.
//!
//! A file has byte-level BPE (`gpt2`) with one of several pre-tokenizers, or Sentencepiece's BPE
//! (`llama`). `rules` has the table of both. Special tokens are handled here, so that no text
//! becomes one unless the caller allows it.

mod bpe;
mod bytes;
mod nfc;
mod packed;
mod rules;
mod sentencepiece;
mod special;
mod stream;
mod symbols;
mod vocabulary;
mod words;

use std::borrow::Cow;

pub use rules::Rules;
pub use stream::TextStream;

use crate::error::{Error, Result};
use crate::gguf::{Gguf, Metadata, Strings};
use crate::model::Config;
use bpe::Bpe;
use bytes::ByteAlphabet;
use sentencepiece::Sentencepiece;
use special::SpecialTokens;
use vocabulary::{Kind, STOP_TEXTS, Vocabulary};

/// A vocabulary, and the rules that turn text into its tokens.
pub struct Tokenizer {
    encoder: Encoder,
    /// The bytes of each token; empty if it stands for no text.
    bytes: Strings,
    kinds: Vec<Kind>,
    /// User-defined tokens, which are recognised in every text but an untrusted one.
    user_defined: SpecialTokens,
    /// Control tokens and the user-defined ones.
    special: SpecialTokens,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    stop: Vec<u32>,
    n_vocab: usize,
    notes: Vec<String>,
}

enum Encoder {
    Bpe(Box<Bpe>),
    Sentencepiece(Box<Sentencepiece>),
}

/// Which special tokens a text may contain. The texts of all others are text like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// None: the text is not trusted.
    None,
    /// The tokens that the file calls user-defined, such as `<think>`, as in llama.cpp.
    UserDefined,
    /// User-defined tokens, and control tokens such as `<|eot_id|>`.
    All,
}

/// A part of a text.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The text.
    pub text: &'a str,
    /// Which special tokens it may contain.
    pub special: Special,
}

impl Tokenizer {
    /// The tokenizer of a model.
    ///
    /// Errors: `unsupported-model`.
    pub fn from_gguf(gguf: &Gguf, config: &Config) -> Result<Self> {
        Self::from_gguf_with(gguf, config, Rules::Strict)
    }

    /// The tokenizer of a model. `rules` says what happens if this crate does not know the file's
    /// rules.
    ///
    /// Errors: `unsupported-model`.
    pub fn from_gguf_with(gguf: &Gguf, config: &Config, rules: Rules) -> Result<Self> {
        let mut tokenizer = Self::from_metadata_with(&gguf.metadata, rules)?;
        let (tokens, n_vocab) = (tokenizer.n_tokens(), config.n_vocab);
        if tokens > n_vocab {
            return unsupported(format!("{tokens} tokens for a vocabulary of {n_vocab}"));
        }
        tokenizer.n_vocab = n_vocab;
        Ok(tokenizer)
    }

    /// The tokenizer that `metadata` describes, of any model.
    ///
    /// Errors: `unsupported-model`.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        Self::from_metadata_with(metadata, Rules::Strict)
    }

    /// The tokenizer that `metadata` describes. `rules` says what happens if this crate does not
    /// know the file's rules.
    ///
    /// Errors: `unsupported-model`.
    pub fn from_metadata_with(metadata: &Metadata, rules: Rules) -> Result<Self> {
        let (rule, notes) = rules::choose(metadata, rules)?;
        let vocabulary = Vocabulary::new(metadata)?;
        let (encoder, add_bos, bytes) = match rule {
            rules::Rule::Bpe(pre) => {
                let alphabet = ByteAlphabet::new();
                let bytes = token_bytes(&vocabulary, |text, kind| {
                    Ok(bpe::token_bytes(text, kind, &alphabet))
                })?;
                let model = Bpe::new(metadata, &vocabulary, pre)?;
                (Encoder::Bpe(Box::new(model)), pre.add_bos, bytes)
            }
            rules::Rule::Sentencepiece => {
                let model = Sentencepiece::new(metadata, &vocabulary)?;
                let bytes = token_bytes(&vocabulary, sentencepiece::token_bytes)?;
                (Encoder::Sentencepiece(Box::new(model)), true, bytes)
            }
        };
        let of_kind = |kinds: &[Kind]| {
            let tokens = vocabulary.iter().filter(|(.., kind)| kinds.contains(kind));
            SpecialTokens::new(tokens.map(|(id, text, _)| (text.to_owned(), id)).collect())
        };
        let special = of_kind(&[Kind::Control, Kind::UserDefined]);

        let n_tokens = vocabulary.kinds.len();
        // llama.cpp knows these tokens of Sentencepiece's models even if the file does not name
        // them.
        let usual = |name: &str| match (&encoder, name) {
            (Encoder::Sentencepiece(_), "bos") => special.id("<s>"),
            (Encoder::Sentencepiece(_), "eos") => special.id("</s>"),
            _ => None,
        };
        let named = |name: &str| Ok(token_id(metadata, name, n_tokens)?.or_else(|| usual(name)));
        let mut stop = Vec::new();
        for name in ["eos", "eot", "eom"] {
            stop.extend(named(name)?);
        }
        stop.extend(STOP_TEXTS.iter().filter_map(|text| special.id(text)));
        stop.sort_unstable();
        stop.dedup();

        let (bos, eos) = (named("bos")?, named("eos")?);
        Ok(Self {
            encoder,
            bytes,
            user_defined: of_kind(&[Kind::UserDefined]),
            special,
            bos,
            eos,
            add_bos: metadata.boolean("tokenizer.ggml.add_bos_token")?.unwrap_or(add_bos),
            add_eos: metadata.boolean("tokenizer.ggml.add_eos_token")?.unwrap_or(false),
            stop,
            n_vocab: n_tokens,
            notes,
            kinds: vocabulary.kinds,
        })
    }

    /// The most bytes of a text that become one token; `None` if a text may lose any number of them.
    pub fn max_token_bytes(&self) -> Option<usize> {
        match &self.encoder {
            Encoder::Bpe(model) => model.max_token_bytes(),
            Encoder::Sentencepiece(model) => Some(model.max_token_bytes()),
        }
    }

    /// The tokens of a text. User-defined tokens such as `<think>` are recognised, as in llama.cpp.
    /// Control tokens are not, and no beginning-of-text token is added. Qwen's texts are brought
    /// into normal form C. Bytes that the vocabulary lacks, such as control characters in Falcon's,
    /// are left out.
    ///
    /// Errors: `bad-option` (`prompt`) for a text with millions of spaces in a row.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_parts(&[Part { text, special: Special::UserDefined }])
    }

    /// The tokens of a text in which `<|eot_id|>` and the like mean the special tokens.
    ///
    /// Errors: as [`encode`](Self::encode).
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_parts(&[Part { text, special: Special::All }])
    }

    /// The tokens of an untrusted text: nothing in it becomes a special token of any kind.
    ///
    /// Errors: as [`encode`](Self::encode).
    pub fn encode_text(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_parts(&[Part { text, special: Special::None }])
    }

    /// The tokens of a part from within a text: no space is put before it, and nothing in it becomes
    /// a special token.
    ///
    /// Errors: as [`encode`](Self::encode).
    pub fn encode_within(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        match &self.encoder {
            Encoder::Bpe(model) => model.encode(text, &mut ids)?,
            Encoder::Sentencepiece(model) => model.encode(text, false, &mut ids),
        }
        Ok(ids)
    }

    /// The tokens of a text made of trusted and untrusted parts, such as a template filled with
    /// messages. A special token must be whole within one part. All other text is encoded as if
    /// there were no parts.
    ///
    /// Errors: as [`encode`](Self::encode).
    pub fn encode_parts(&self, parts: &[Part<'_>]) -> Result<Vec<u32>> {
        self.encode_parts_after(&[], parts)
    }

    /// The tokens of a text that continues after the tokens of `prompt`, which are not repeated.
    /// Sentencepiece puts a space before a text only where it begins.
    ///
    /// Errors: as [`encode`](Self::encode).
    pub fn encode_parts_after(&self, prompt: &[u32], parts: &[Part<'_>]) -> Result<Vec<u32>> {
        let text = match parts {
            [only] => Cow::Borrowed(only.text),
            _ => Cow::Owned(parts.iter().map(|part| part.text).collect()),
        };
        let mut ids = Vec::new();
        // The beginning of the text that is not encoded yet, and the beginning of the part.
        let (mut start, mut part_start) = (0, 0);
        let mut first = self.begins_text(prompt.last().copied());
        let encode = |text: &str, first: bool, ids: &mut Vec<u32>| match &self.encoder {
            _ if text.is_empty() => Ok(()),
            Encoder::Bpe(model) => model.encode(text, ids),
            Encoder::Sentencepiece(model) => {
                model.encode(text, first, ids);
                Ok(())
            }
        };
        for part in parts {
            let found = match part.special {
                Special::None => Vec::new(),
                Special::UserDefined => self.user_defined.find(part.text),
                Special::All => self.special.find(part.text),
            };
            for (range, id) in found {
                encode(&text[start..part_start + range.start], first, &mut ids)?;
                ids.push(id);
                start = part_start + range.end;
                first = true;
            }
            part_start += part.text.len();
        }
        encode(&text[start..], first, &mut ids)?;
        Ok(ids)
    }

    /// The text of tokens. Control tokens have none; bytes that are not UTF-8 become U+FFFD.
    ///
    /// Errors: `bad-option` (`ids`) for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let mut text = Vec::new();
        let mut last = None;
        for &id in ids {
            text.extend_from_slice(self.bytes_after(last, id)?);
            last = Some(id);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The bytes of a token, which may end in the middle of a character.
    ///
    /// Errors: `bad-option` (`ids`) for an id outside the vocabulary.
    pub fn bytes(&self, id: u32) -> Result<&[u8]> {
        let outside = || Error::BadOption {
            name: "ids".into(),
            why: format!("token {id} is outside the vocabulary of {}", self.n_vocab),
        };
        // Some ids are only rows of the embedding. They stand for no text.
        let bytes = self.bytes.get(id as usize);
        bytes.or(((id as usize) < self.n_vocab).then_some(&[])).ok_or_else(outside)
    }

    /// The beginning-of-text token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// The end-of-text token.
    pub fn eos(&self) -> Option<u32> {
        self.eos
    }

    /// Whether raw text should begin with [`bos`](Self::bos).
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether a text to be embedded ends with `eos`.
    pub fn add_eos(&self) -> bool {
        self.add_eos
    }

    /// Whether a generation ends at this token.
    pub fn is_stop(&self, id: u32) -> bool {
        self.stop.binary_search(&id).is_ok()
    }

    /// The tokens at which a generation ends, in increasing order.
    pub fn stop(&self) -> &[u32] {
        &self.stop
    }

    /// The special token with this text.
    pub fn special(&self, text: &str) -> Option<u32> {
        self.special.id(text)
    }

    /// The text by which a special token is written, such as `<|eot_id|>`.
    pub fn special_text(&self, id: u32) -> Option<&str> {
        self.special.text(id)
    }

    /// The number of tokens. Ids from this one to [`n_vocab`](Self::n_vocab) have no token and must
    /// not be generated.
    pub fn n_tokens(&self) -> usize {
        self.bytes.len()
    }

    /// Rows of the embedding, which may be more than there are tokens.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Notes for the user: rules that are only the closest to those of the file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The bytes of a token that follows `last`; with `None`, of one that begins a text. The space
    /// that Sentencepiece put there is left out. The bytes may end in the middle of a character.
    ///
    /// Errors: `bad-option` (`ids`) for an id outside the vocabulary.
    pub fn bytes_after(&self, last: Option<u32>, id: u32) -> Result<&[u8]> {
        let bytes = self.bytes(id)?;
        let Encoder::Sentencepiece(model) = &self.encoder else { return Ok(bytes) };
        let space: &[u8] = if model.space_prefix() && self.begins_text(last) { b" " } else { b"" };
        Ok(bytes.strip_prefix(space).unwrap_or(bytes))
    }

    /// The text of a token that follows `last`, for people who look at tokens. Unlike in a text, a special token
    /// has the one by which it is written. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// Errors: as [`bytes`](Self::bytes).
    pub fn text_after(&self, last: Option<u32>, id: u32) -> Result<Cow<'_, str>> {
        let bytes = self.bytes_after(last, id)?;
        Ok(self.special_text(id).map_or_else(|| String::from_utf8_lossy(bytes), Cow::Borrowed))
    }

    /// Whether a text begins after `last`: `last` is a special token, or there is none.
    fn begins_text(&self, last: Option<u32>) -> bool {
        let kind = |id: u32| self.kinds.get(id as usize);
        last.is_none_or(|last| matches!(kind(last), Some(Kind::Control | Kind::UserDefined)))
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("n_vocab", &self.n_vocab).finish_non_exhaustive()
    }
}

/// The bytes of all tokens.
fn token_bytes<'a>(
    vocabulary: &Vocabulary<'a>,
    bytes: impl Fn(&'a [u8], Kind) -> Result<Cow<'a, [u8]>>,
) -> Result<Strings> {
    let mut all = Strings::default();
    for (text, &kind) in vocabulary.texts.iter().zip(&vocabulary.kinds) {
        all.push(&bytes(text, kind)?);
    }
    Ok(all)
}

/// `tokenizer.ggml.NAME_token_id`, which must be one of the tokens.
fn token_id(metadata: &Metadata, name: &str, n_tokens: usize) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    match metadata.integer(&key)? {
        Some(id) if id >= n_tokens as u64 => {
            unsupported(format!("`{key}` is {id}, outside the vocabulary of {n_tokens}"))
        }
        id => Ok(id.map(|id| id as u32)),
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
