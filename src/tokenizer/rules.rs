//! Which rules a file's tokenizer follows: the kind of model, and the table of pre-tokenizers.

use crate::error::{Error, Result};
use crate::gguf::Metadata;

/// What to do with a file that names a tokenizer this crate does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Refuse it.
    #[default]
    Strict,
    /// Take the closest rules. Some texts then get other tokens than in training; a note says so.
    Closest,
}

/// How the tokens of a text are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Model {
    /// Byte-level BPE: a pre-tokenizer splits the text into words, and merges join bytes.
    Bpe(&'static PreTokenizer),
    /// Sentencepiece's BPE: scores say which neighbours are joined.
    Sentencepiece,
}

/// How text is split into words, which are then encoded one by one.
#[derive(Debug, PartialEq)]
pub(super) struct PreTokenizer {
    /// The values of `tokenizer.ggml.pre` that mean this one.
    pub(super) names: &'static [&'static str],
    /// Each splits the words of the one before it into its matches and what is between them.
    pub(super) regexes: &'static [&'static str],
    /// Whether the text is brought into Unicode's normal form C first.
    pub(super) nfc: bool,
    /// Whether a word that is a token is taken whole, whatever the merges make of it.
    pub(super) ignore_merges: bool,
    /// Whether a text begins with the beginning-of-text token where the file does not say.
    pub(super) add_bos: bool,
}

const GPT_2_WORDS: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const FALCON_SIGNS: &str = r"[\p{P}\$\+<=>\^~\|`]+";

static LLAMA_BPE: PreTokenizer = PreTokenizer {
    names: &["llama-bpe", "llama3", "llama-v3"],
    regexes: &[
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    nfc: false,
    ignore_merges: true,
    add_bos: true,
};

/// Llama's, but for digits, which are words of their own.
static QWEN_2: PreTokenizer = PreTokenizer {
    names: &["qwen2"],
    regexes: &[
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // As in training. llama.cpp does without.
    nfc: true,
    ignore_merges: false,
    add_bos: false,
};

static GPT_2: PreTokenizer = PreTokenizer {
    names: &["gpt-2"],
    regexes: &[GPT_2_WORDS],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

static FALCON: PreTokenizer = PreTokenizer {
    names: &["falcon"],
    regexes: &[FALCON_SIGNS, GPT_2_WORDS, "[0-9][0-9][0-9]"],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

/// As in Microsoft's bitnet.cpp and in training. llama.cpp takes Llama's for `falcon3`.
static FALCON_3: PreTokenizer = PreTokenizer {
    names: &["falcon3", "falcon_e"],
    regexes: &[FALCON_SIGNS, GPT_2_WORDS, "[0-9]"],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

/// llama.cpp's for files that name none, or one that it does not know.
static DEFAULT: PreTokenizer = PreTokenizer {
    names: &["default"],
    regexes: &[r"[\p{P}\$\+<=>\^~\|]+", GPT_2_WORDS, r"\p{N}+", "[0-9][0-9][0-9]"],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

static PRE_TOKENIZERS: &[&PreTokenizer] =
    &[&LLAMA_BPE, &QWEN_2, &GPT_2, &FALCON, &FALCON_3, &DEFAULT];

/// The rules that `metadata` names, and a note if they are only the closest ones.
///
/// Errors: `unsupported-model`.
pub(super) fn choose(metadata: &Metadata, rules: Rules) -> Result<(Model, Option<String>)> {
    let name = metadata.require("tokenizer.ggml.model", Metadata::text)?;
    match (name, rules) {
        ("llama", _) => Ok((Model::Sentencepiece, None)),
        ("gpt2", _) => {
            let (pre, note) = pre_tokenizer(metadata, rules)?;
            Ok((Model::Bpe(pre), note))
        }
        (_, Rules::Closest) if metadata.strings("tokenizer.ggml.merges")?.is_some() => {
            let (pre, note) = pre_tokenizer(metadata, rules)?;
            let note = note.unwrap_or_default();
            Ok((Model::Bpe(pre), Some(format!("{}; {note}", read_as(name, "gpt2")))))
        }
        (_, Rules::Closest) if metadata.numbers("tokenizer.ggml.scores")?.is_some() => {
            Ok((Model::Sentencepiece, Some(read_as(name, "llama"))))
        }
        _ => unsupported(format!(
            "tokenizer model `{name}` (`tokenizer.ggml.model`); this crate knows `gpt2` and `llama`"
        )),
    }
}

fn pre_tokenizer(
    metadata: &Metadata,
    rules: Rules,
) -> Result<(&'static PreTokenizer, Option<String>)> {
    let name = metadata.text("tokenizer.ggml.pre")?;
    let known = match name {
        Some(name) => PRE_TOKENIZERS.iter().find(|known| known.names.contains(&name)).copied(),
        // The official files of 2B-4T name none. Their tokenizer is Llama 3's.
        None => is_llama_3(metadata)?.then_some(&LLAMA_BPE),
    };
    if let Some(known) = known {
        return Ok((known, None));
    }
    let what = match name {
        Some(name) => format!("pre-tokenizer `{name}`"),
        None => "the file names no pre-tokenizer (`tokenizer.ggml.pre`)".into(),
    };
    if rules == Rules::Closest {
        return Ok((&DEFAULT, Some(format!("{what}; `default` is used instead"))));
    }
    let names: Vec<_> = PRE_TOKENIZERS.iter().flat_map(|known| known.names).collect();
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    unsupported(format!(
        "{what}; this crate knows {}. The option `tokenizer` with the value `closest` takes \
         `default`'s rules instead",
        names.join(", ")
    ))
}

/// Whether a file without `tokenizer.ggml.pre` has the tokenizer of Llama 3.
fn is_llama_3(metadata: &Metadata) -> Result<bool> {
    if let Some("bitnet-b1.58" | "bitnet-25") = metadata.text("general.architecture")? {
        return Ok(true);
    }
    let tokens = metadata.strings("tokenizer.ggml.tokens")?;
    Ok(tokens.is_some_and(|tokens| {
        tokens.len() == 128_256 && tokens.get(128_000) == Some(b"<|begin_of_text|>")
    }))
}

fn read_as(name: &str, model: &str) -> String {
    format!("tokenizer model `{name}` is read as `{model}`")
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
