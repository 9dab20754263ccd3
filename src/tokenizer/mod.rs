//! Text to tokens and back, from the vocabulary in a GGUF file.
//!
//! The `tokenizers` crate matches the pre-tokenizer's regular expression and merges. Special tokens
//! are handled here, so that a user's text can never become one.

mod bytes;
mod special;
mod stream;

use std::borrow::Cow;

use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::utils::SysRegex;

pub use stream::TextStream;

use crate::error::{Error, Result};
use crate::gguf::{Gguf, Metadata, Strings};
use crate::model::Config;
use bytes::ByteAlphabet;
use special::{Span, SpecialTokens};

/// How Llama 3 splits text into words, which are then encoded one by one. It matches every text.
const LLAMA_BPE: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The texts of tokens that end an answer, even if the metadata does not name them: the file of
/// 2B-4T does not name `<|eot_id|>`.
const STOP_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
];

/// A vocabulary with its merges.
pub struct Tokenizer {
    bpe: BPE,
    regex: SysRegex,
    alphabet: ByteAlphabet,
    /// The bytes of each token; empty if it stands for no text.
    bytes: Strings,
    /// Tokens that are recognised in every text.
    user_defined: SpecialTokens,
    /// Tokens that are recognised only where the caller asks for it: control tokens and the
    /// user-defined ones.
    special: SpecialTokens,
    bos: Option<u32>,
    add_bos: bool,
    stop: Vec<u32>,
}

/// What a token is, `tokenizer.ggml.token_type`.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Normal,
    /// Control tokens and the unknown token, which stand for no text.
    Control,
    UserDefined,
    Unused,
}

impl Tokenizer {
    /// The tokenizer of a model.
    ///
    /// Errors: `unsupported-model`.
    pub fn from_gguf(gguf: &Gguf, config: &Config) -> Result<Self> {
        let tokenizer = Self::from_metadata(&gguf.metadata)?;
        if tokenizer.n_vocab() != config.n_vocab {
            let (tokens, n_vocab) = (tokenizer.n_vocab(), config.n_vocab);
            return unsupported(format!("{tokens} tokens for a vocabulary of {n_vocab}"));
        }
        Ok(tokenizer)
    }

    /// The tokenizer that `metadata` describes, of any model.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        match metadata.require("tokenizer.ggml.model", Metadata::text)? {
            "gpt2" => {}
            other => return unsupported(format!("tokenizer model `{other}`, expected `gpt2`")),
        }
        // The official 2B-4T file has no `pre`; its tokenizer is Llama 3's.
        match metadata.text("tokenizer.ggml.pre")? {
            None | Some("llama-bpe" | "llama3" | "llama-v3") => {}
            Some(other) => {
                return unsupported(format!("pre-tokenizer `{other}`, expected `llama-bpe`"));
            }
        }
        let tokens = metadata.require("tokenizer.ggml.tokens", Metadata::strings)?;
        let kinds = kinds(metadata, tokens.len())?;
        let alphabet = ByteAlphabet::new();
        let bpe = bpe(metadata, tokens, &kinds, &alphabet)?;

        let mut bytes = Strings::default();
        let (mut special, mut user_defined) = (Vec::new(), Vec::new());
        for ((id, token), &kind) in (0u32..).zip(tokens.iter()).zip(&kinds) {
            bytes.push(&token_bytes(token, kind, &alphabet));
            if let (Kind::Control | Kind::UserDefined, Ok(text)) =
                (kind, std::str::from_utf8(token))
            {
                special.push((text.to_owned(), id));
                if kind == Kind::UserDefined {
                    user_defined.push((text.to_owned(), id));
                }
            }
        }
        let special = SpecialTokens::new(special);

        let named = |name: &str| token_id(metadata, name, tokens.len());
        let mut stop = Vec::new();
        for name in ["eos", "eot", "eom"] {
            stop.extend(named(name)?);
        }
        stop.extend(STOP_TEXTS.iter().filter_map(|text| special.id(text)));
        stop.sort_unstable();
        stop.dedup();

        Ok(Self {
            bpe,
            regex: SysRegex::new(LLAMA_BPE).map_err(internal)?,
            alphabet,
            bytes,
            user_defined: SpecialTokens::new(user_defined),
            special,
            bos: named("bos")?,
            add_bos: metadata.boolean("tokenizer.ggml.add_bos_token")?.unwrap_or(true),
            stop,
        })
    }

    /// The tokens of a user's text: no beginning-of-text token is added, and no text becomes a
    /// control token.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_spans(self.user_defined.split(text))
    }

    /// The tokens of a text in which `<|eot_id|>` and the like mean the special tokens.
    pub fn encode_with_special(&self, text: &str) -> Result<Vec<u32>> {
        self.encode_spans(self.special.split(text))
    }

    /// The text of tokens. Control tokens have none; bytes that are not UTF-8 become U+FFFD.
    ///
    /// Errors: `bad-option` (`ids`) for an id outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<String> {
        let mut text = Vec::new();
        for &id in ids {
            text.extend_from_slice(self.bytes(id)?);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The bytes of a token, which may end in the middle of a character.
    pub fn bytes(&self, id: u32) -> Result<&[u8]> {
        self.bytes.get(id as usize).ok_or_else(|| Error::BadOption {
            name: "ids".into(),
            why: format!("token {id} is outside the vocabulary of {}", self.n_vocab()),
        })
    }

    /// The beginning-of-text token.
    pub fn bos(&self) -> Option<u32> {
        self.bos
    }

    /// Whether raw text should begin with [`bos`](Self::bos).
    pub fn add_bos(&self) -> bool {
        self.add_bos
    }

    /// Whether a generation ends at this token.
    pub fn is_stop(&self, id: u32) -> bool {
        self.stop.binary_search(&id).is_ok()
    }

    /// The special token with this text.
    pub fn special(&self, text: &str) -> Option<u32> {
        self.special.id(text)
    }

    /// Tokens in the vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.bytes.len()
    }

    fn encode_spans(&self, spans: Vec<Span<'_>>) -> Result<Vec<u32>> {
        let mut ids = Vec::new();
        for span in spans {
            match span {
                Span::Token(id) => ids.push(id),
                Span::Text(text) => self.encode_text(text, &mut ids)?,
            }
        }
        Ok(ids)
    }

    fn encode_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let mut end = 0;
        for (start, stop) in self.regex.find_iter(text) {
            if start != end {
                break;
            }
            end = stop;
            let word = self.alphabet.encode(&text[start..stop]);
            ids.extend(self.bpe.tokenize(&word).map_err(internal)?.iter().map(|token| token.id));
        }
        if end != text.len() {
            // When the engine of the regular expression gives up, the iterator ends without an
            // error.
            return Err(Error::BadOption {
                name: "prompt".into(),
                why: format!("after byte {end} there are too many spaces"),
            });
        }
        Ok(())
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("n_vocab", &self.n_vocab()).finish_non_exhaustive()
    }
}

fn kinds(metadata: &Metadata, n_vocab: usize) -> Result<Vec<Kind>> {
    let Some(numbers) = metadata.numbers("tokenizer.ggml.token_type")? else {
        return Ok(vec![Kind::Normal; n_vocab]);
    };
    if numbers.len() != n_vocab {
        let types = numbers.len();
        return unsupported(format!("{types} token types for {n_vocab} tokens"));
    }
    Ok(numbers
        .iter()
        .map(|kind| match kind.integer() {
            Some(2 | 3) => Kind::Control,
            Some(4) => Kind::UserDefined,
            Some(5) => Kind::Unused,
            _ => Kind::Normal,
        })
        .collect())
}

/// The bytes that a token stands for.
fn token_bytes<'a>(token: &'a [u8], kind: Kind, alphabet: &ByteAlphabet) -> Cow<'a, [u8]> {
    match kind {
        Kind::Control | Kind::Unused => Cow::Borrowed(&[]),
        Kind::UserDefined => Cow::Borrowed(token),
        // A token that is not in the alphabet stands for its own bytes.
        Kind::Normal => std::str::from_utf8(token)
            .ok()
            .and_then(|text| alphabet.decode(text))
            .map_or(Cow::Borrowed(token), Cow::Owned),
    }
}

fn bpe(
    metadata: &Metadata,
    tokens: &Strings,
    kinds: &[Kind],
    alphabet: &ByteAlphabet,
) -> Result<BPE> {
    // Only normal tokens: whatever the file says, no merge makes a control token of text.
    let mut vocab = Vocab::with_capacity(tokens.len());
    for ((id, token), kind) in (0u32..).zip(tokens.iter()).zip(kinds) {
        if let (Kind::Normal, Ok(text)) = (kind, std::str::from_utf8(token)) {
            vocab.entry(text.to_owned()).or_insert(id);
        }
    }
    // A byte without a token would be lost.
    for byte in 0..=255u8 {
        if !vocab.contains_key(alphabet.char(byte).encode_utf8(&mut [0; 4]) as &str) {
            return unsupported(format!("the vocabulary has no token for the byte {byte:#04x}"));
        }
    }
    let merges = metadata.require("tokenizer.ggml.merges", Metadata::strings)?;
    let merges = merges.iter().map(|merge| {
        let text = std::str::from_utf8(merge).ok();
        // The left token may be a space: the first byte never separates the two.
        let pair = text.and_then(|text| {
            let space = text.bytes().skip(1).position(|byte| byte == b' ')? + 1;
            Some((text.get(..space)?.to_owned(), text.get(space + 1..)?.to_owned()))
        });
        pair.ok_or_else(|| {
            let merge = String::from_utf8_lossy(merge);
            Error::UnsupportedModel(format!("the merge {merge:?} is not two tokens"))
        })
    });
    BPE::builder()
        .vocab_and_merges(vocab, merges.collect::<Result<_>>()?)
        .ignore_merges(true)
        .build()
        .map_err(|error| Error::UnsupportedModel(format!("the merges do not fit: {error}")))
}

/// `tokenizer.ggml.NAME_token_id`, which must be in the vocabulary.
fn token_id(metadata: &Metadata, name: &str, n_vocab: usize) -> Result<Option<u32>> {
    let key = format!("tokenizer.ggml.{name}_token_id");
    match metadata.integer(&key)? {
        Some(id) if id >= n_vocab as u64 => {
            unsupported(format!("`{key}` is {id}, outside the vocabulary of {n_vocab}"))
        }
        id => Ok(id.map(|id| id as u32)),
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("tokenizers: {error}"))
}
