//! The tokens of a model.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::toktrie::{INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use send_wrapper::SendWrapper;

use crate::error::Error;
use crate::limits::{limits, without_panics};

/// The longest token that a grammar uses, in bytes. The trie holds no longer ones.
const MAX_TOKEN_BYTES: usize = 1000;

/// The most tokens.
const MAX_TOKENS: usize = 1 << 20;
/// The most bytes of all tokens together. The trie counts its nodes with 22 bits, and a byte can need a
/// node.
const MAX_BYTES: usize = (1 << 22) - (1 << 16);

/// How a token is spelled in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling<'a> {
    /// The bytes that it adds to the text. They may end within a character.
    Text(&'a [u8]),
    /// It adds no text, or it means more than its text: a control token such as `<|im_end|>`. No
    /// grammar allows it unless it ends the answer, or a Lark grammar names it.
    Special(&'a str),
    /// It is never chosen.
    Unused,
}

/// The tokens of a model. It is made once for each model, and takes the time of some hundred masks.
pub struct Vocabulary {
    pub(crate) factory: ParserFactory,
    pub(crate) n_tokens: usize,
    pub(crate) stop: Vec<u32>,
}

impl Vocabulary {
    /// `tokens` are the spellings of the tokens in the order of their ids, as many as the model has
    /// logits. Any of `stop` ends an answer.
    ///
    /// `encode` gives the tokens that the model's own tokenizer has for a part from within a text:
    /// no begin-of-text token, no space before it, no special tokens. Text that a grammar forces is
    /// put in as these tokens, because a model has seldom seen others. A tokenizer that normalises
    /// may give tokens that do not spell the text. Then the longest tokens that fit are used.
    ///
    /// Errors: [`Error::Vocabulary`].
    pub fn new<'a>(
        tokens: impl IntoIterator<Item = Spelling<'a>>,
        stop: &[u32],
        encode: impl Fn(&str) -> Vec<u32> + 'static,
    ) -> Result<Self, Error> {
        let mut words: Vec<Vec<u8>> = tokens.into_iter().map(word).collect();
        let n_tokens = words.len();
        if n_tokens > MAX_TOKENS || words.iter().map(Vec::len).sum::<usize>() > MAX_BYTES {
            return Err(Error::Vocabulary(format!(
                "{n_tokens} tokens, or their bytes, are too many"
            )));
        }
        let mut stop = stop.to_vec();
        stop.retain(|id| (*id as usize) < n_tokens);
        for &id in &stop {
            // A file may say that such a token is a text. As one, it could end an answer anywhere.
            if words[id as usize].first() != Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
                words[id as usize].clear();
            }
        }
        let encode: Encode = Box::new(encode);
        let made = without_panics(|| {
            let info = TokRxInfo::new(n_tokens as u32, INVALID_TOKEN);
            let mut trie = TokTrie::from(&info, &words);
            if !stop.is_empty() {
                trie = trie.with_eos_tokens(&stop);
            }
            let tokens: TokEnv = Arc::new(Tokens { trie, encode: SendWrapper::new(encode) });
            let mut factory = ParserFactory::new_simple(&tokens).map_err(|e| e.to_string())?;
            factory.quiet();
            *factory.limits_mut() = limits();
            Ok(factory)
        });
        let factory = made.map_err(Error::Vocabulary)?;
        Ok(Self { factory, n_tokens, stop })
    }

    /// The same from bytes: the number of tokens and of those of `stop`, the ids of these, and then
    /// each token: its kind in a byte (0 for a text, 1 for a special token, all else for one that is
    /// not used), the length of its spelling in two, and its spelling. Numbers have four bytes, and the
    /// lowest comes first.
    ///
    /// Errors: [`Error::Vocabulary`], also if bytes are missing.
    pub fn unpacked(
        packed: &[u8],
        encode: impl Fn(&str) -> Vec<u32> + 'static,
    ) -> Result<Self, Error> {
        let mut rest = packed;
        let tokens = read(&mut rest);
        let (tokens, stop) =
            tokens.ok_or_else(|| Error::Vocabulary("bytes of it are missing".into()))?;
        Self::new(tokens, &stop, encode)
    }

    /// The tokens of a part of an answer; `None` if no tokens spell it.
    pub(crate) fn tokens(&self, text: &str) -> Option<Vec<u32>> {
        let ids = self.factory.tok_env().tokenize_bytes(text.as_bytes());
        self.spells(&ids, text).then_some(ids)
    }

    /// The longest tokens that spell a character, if there are any.
    pub(crate) fn spelled(&self, c: char) -> Option<Vec<u32>> {
        let text = c.to_string();
        let ids = self.factory.tok_env().tok_trie().greedy_tokenize(text.as_bytes());
        self.spells(&ids, &text).then_some(ids)
    }

    fn spells(&self, ids: &[u32], text: &str) -> bool {
        self.factory.tok_env().tok_trie().decode_raw(ids) == text.as_bytes()
    }

    /// Whether a token has no bytes, or is none.
    pub(crate) fn is_empty(&self, id: u32) -> bool {
        let tokens = self.factory.tok_env().tok_trie();
        id as usize >= self.n_tokens || tokens.token(id).is_empty()
    }

    /// Whether a special token has this name.
    pub(crate) fn is_special(&self, name: &str) -> bool {
        self.factory.tok_env().tok_trie().get_special_token(name).is_some()
    }

    /// How many words of 32 bits a mask has.
    pub fn n_words(&self) -> usize {
        self.n_tokens.div_ceil(32)
    }
}

/// Reads a packed vocabulary; `None` if bytes are missing.
fn read<'a>(rest: &mut &'a [u8]) -> Option<(Vec<Spelling<'a>>, Vec<u32>)> {
    fn bytes<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
        let (first, others) = rest.split_at_checked(n)?;
        *rest = others;
        Some(first)
    }
    fn number(rest: &mut &[u8], n: usize) -> Option<usize> {
        let bytes = bytes(rest, n)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }
    let (n_tokens, n_stop) = (number(rest, 4)?, number(rest, 4)?);
    let stop: Option<Vec<u32>> = (0..n_stop).map(|_| Some(number(rest, 4)? as u32)).collect();
    let token = |_| {
        let (kind, len) = (number(rest, 1)?, number(rest, 2)?);
        let bytes = bytes(rest, len)?;
        Some(match kind {
            0 => Spelling::Text(bytes),
            1 => std::str::from_utf8(bytes).map_or(Spelling::Unused, Spelling::Special),
            _ => Spelling::Unused,
        })
    };
    let tokens: Option<Vec<Spelling<'a>>> = (0..n_tokens).map(token).collect();
    Some((tokens?, stop?))
}

/// The bytes of a token in the trie.
fn word(spelling: Spelling<'_>) -> Vec<u8> {
    match spelling {
        // A token that begins with the marker would be taken for a special one. No text has it.
        Spelling::Text([TokTrie::SPECIAL_TOKEN_MARKER, ..]) | Spelling::Unused => Vec::new(),
        Spelling::Text(bytes) if bytes.len() > MAX_TOKEN_BYTES => Vec::new(),
        Spelling::Text(bytes) => bytes.to_vec(),
        Spelling::Special(name) => {
            let name = name.bytes().take(MAX_TOKEN_BYTES);
            [TokTrie::SPECIAL_TOKEN_MARKER].into_iter().chain(name).collect()
        }
    }
}

type Encode = Box<dyn Fn(&str) -> Vec<u32>>;

/// The tokens as llguidance asks for them. It would use them in several threads, but a grammar stays
/// in the thread of its vocabulary: that is why [`crate::Grammar`] is not `Send`.
struct Tokens {
    trie: TokTrie,
    encode: SendWrapper<Encode>,
}

impl TokenizerEnv for Tokens {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let ids = self.trie.tokenize_with_greedy_fallback(bytes, |text| (self.encode)(text));
        match self.trie.decode_raw(&ids) == bytes {
            true => ids,
            false => self.trie.greedy_tokenize(bytes),
        }
    }
}
