//! The rules of a file's tokenizer: the kind of model, and the table of pre-tokenizers.

use crate::error::{Error, Result};
use crate::gguf::Metadata;

/// How to treat a file whose tokenizer this crate does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Refuse it.
    #[default]
    Strict,
    /// Take the closest rules. Some texts then get other tokens than in training, and a note says
    /// so.
    Closest,
}

/// How a text becomes tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// Byte-level BPE: a pre-tokenizer splits the text into words, and merges join bytes.
    Bpe(&'static PreTokenizer),
    /// Sentencepiece's BPE: scores say which neighbours are joined.
    Sentencepiece,
}

/// How text is split into words, which are then encoded one by one.
#[derive(Debug, PartialEq)]
pub(super) struct PreTokenizer {
    /// The values of `tokenizer.ggml.pre` that name this pre-tokenizer.
    pub(super) names: &'static [&'static str],
    /// Each regex splits the words of the one before it into its matches and the texts between
    /// them.
    pub(super) regexes: &'static [&'static str],
    /// Whether the text is brought into Unicode's normal form C first.
    pub(super) nfc: bool,
    /// Whether a word that is a token becomes that token, without merges.
    pub(super) ignore_merges: bool,
    /// Whether a text begins with the beginning-of-text token if the file does not say it.
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

/// Like Llama's, but each digit is a word of its own.
static QWEN_2: PreTokenizer = PreTokenizer {
    names: &["qwen2"],
    regexes: &[
        r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    // The model was trained with normal form C. llama.cpp does not apply it.
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

/// The rules of Microsoft's bitnet.cpp and of training. llama.cpp takes Llama's rules for
/// `falcon3`.
static FALCON_3: PreTokenizer = PreTokenizer {
    names: &["falcon3", "falcon_e"],
    regexes: &[FALCON_SIGNS, GPT_2_WORDS, "[0-9]"],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

/// The pre-tokenizer of llama.cpp for a file that names none, or one that llama.cpp does not know.
static DEFAULT: PreTokenizer = PreTokenizer {
    names: &["default"],
    regexes: &[r"[\p{P}\$\+<=>\^~\|]+", GPT_2_WORDS, r"\p{N}+", "[0-9][0-9][0-9]"],
    nfc: false,
    ignore_merges: false,
    add_bos: false,
};

static PRE_TOKENIZERS: &[&PreTokenizer] =
    &[&LLAMA_BPE, &QWEN_2, &GPT_2, &FALCON, &FALCON_3, &DEFAULT];

/// The rules that `metadata` names, with a note for each that is only the closest to them.
///
/// Errors: `unsupported-model`.
pub(super) fn choose(metadata: &Metadata, rules: Rules) -> Result<(Rule, Vec<String>)> {
    let name = metadata.require("tokenizer.ggml.model", Metadata::text)?;
    let mut notes = Vec::new();
    let closest = match name {
        "gpt2" | "llama" => name,
        _ if rules == Rules::Strict => "",
        _ if metadata.strings("tokenizer.ggml.merges")?.is_some() => "gpt2",
        _ if metadata.numbers("tokenizer.ggml.scores")?.is_some() => "llama",
        _ => "",
    };
    if closest.is_empty() {
        return unsupported(format!(
            "tokenizer model `{name}` (`tokenizer.ggml.model`); this crate knows `gpt2` and `llama`"
        ));
    }
    if closest != name {
        notes.push(format!("tokenizer model `{name}` is read as `{closest}`"));
    }
    let model = match closest {
        "llama" => Rule::Sentencepiece,
        _ => Rule::Bpe(pre_tokenizer(metadata, rules, &mut notes)?),
    };
    Ok((model, notes))
}

fn pre_tokenizer(
    metadata: &Metadata,
    rules: Rules,
    notes: &mut Vec<String>,
) -> Result<&'static PreTokenizer> {
    let mut closest = |what: String, instead: &str| {
        if rules == Rules::Closest {
            notes.push(format!("{what}; {instead}"));
            return Ok(());
        }
        let names = PRE_TOKENIZERS.iter().flat_map(|known| known.names);
        let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
        unsupported(format!(
            "{what}; this crate knows {}. With the option `tokenizer: closest`, {instead}",
            names.join(", ")
        ))
    };
    if metadata.boolean("tokenizer.ggml.add_space_prefix")? == Some(true) {
        closest(
            "a space before each text (`tokenizer.ggml.add_space_prefix`)".into(),
            "none is put there",
        )?;
    }
    let name = metadata.text("tokenizer.ggml.pre")?;
    let known = match name {
        Some(name) => PRE_TOKENIZERS.iter().find(|known| known.names.contains(&name)).copied(),
        // The official files of 2B-4T name none. Their tokenizer is that of Llama 3.
        None => is_llama_3(metadata)?.then_some(&LLAMA_BPE),
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let what = match name {
        Some(name) => format!("pre-tokenizer `{name}`"),
        None => "the file names no pre-tokenizer (`tokenizer.ggml.pre`)".into(),
    };
    closest(what, "`default` is used instead")?;
    Ok(&DEFAULT)
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

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
