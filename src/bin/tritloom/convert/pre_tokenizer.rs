//! The rules of tokenizer.json by which text becomes words, and their names in GGUF.

use serde_json::{Value as Json, json};

use tritloom::{Error, Result};

/// The kind of a tokenizer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Byte-level BPE, with the name of its pre-tokenizer.
    ByteLevel(&'static str),
    /// Sentencepiece's BPE.
    Sentencepiece {
        /// Whether a space is put before a text.
        space_prefix: bool,
    },
}

/// A step of a pre-tokenizer.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// Splits a text into the matches of this regex and the texts between them.
    Split(String),
    /// Splits as GPT-2 does.
    Gpt2,
    /// Makes a word of every run of punctuation.
    Punctuation,
    /// Makes a word of every digit.
    Digits,
}

/// A pre-tokenizer that GGUF has a name for.
struct Known {
    name: &'static str,
    nfc: bool,
    ignore_merges: bool,
    is: fn(&[Step]) -> bool,
}

const KNOWN: &[Known] = &[
    Known {
        name: "llama-bpe",
        nfc: false,
        ignore_merges: true,
        is: |steps| is_split(steps, LLAMA_3),
    },
    Known { name: "qwen2", nfc: true, ignore_merges: false, is: |steps| is_split(steps, QWEN_2) },
    Known { name: "gpt-2", nfc: false, ignore_merges: false, is: |steps| steps == [Step::Gpt2] },
    Known {
        name: "falcon",
        nfc: false,
        ignore_merges: false,
        is: |steps| match steps {
            [Step::Punctuation, Step::Gpt2, rest @ ..] => is_split(rest, &["[0-9][0-9][0-9]"]),
            _ => false,
        },
    },
    Known {
        name: "falcon3",
        nfc: false,
        ignore_merges: false,
        is: |steps| match steps {
            // A word of one digit cannot have three digits, so the regex for three digits does not
            // matter.
            [Step::Punctuation, Step::Gpt2, Step::Digits, rest @ ..] => {
                rest.is_empty() || is_split(rest, &["[0-9][0-9][0-9]"])
            }
            [Step::Punctuation, Step::Gpt2, rest @ ..] => is_split(rest, &["[0-9]"]),
            _ => false,
        },
    },
];

/// Hugging Face's files have the first form. GGUF's readers have the second.
const LLAMA_3: &[&str] = &[
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

const QWEN_2: &[&str] = &[
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

fn is_split(steps: &[Step], regexes: &[&str]) -> bool {
    matches!(steps, [Step::Split(regex)] if regexes.contains(&&**regex))
}

/// The kind of a tokenizer, and a note if its rules differ a little from those of GGUF.
///
/// Errors: `unsupported-model`, with the rules that are not known.
pub(super) fn kind(
    normalizer: Option<&Json>,
    pre_tokenizer: Option<&Json>,
    byte_fallback: bool,
    ignore_merges: bool,
) -> Result<(Kind, Option<String>)> {
    let is_byte_level = pre_tokenizer.is_some_and(|pre| {
        list(pre, "pretokenizers").iter().any(|step| step["type"] == "ByteLevel")
    });
    if !is_byte_level {
        if !byte_fallback {
            return unsupported("tokenizer.json has neither bytes as characters nor byte tokens");
        }
        if ignore_merges {
            return unsupported("tokenizer.json has `ignore_merges` without bytes as characters");
        }
        return Ok((sentencepiece(normalizer, pre_tokenizer)?, None));
    }
    let nfc = match normalizer {
        None => false,
        Some(normalizer) => match list(normalizer, "normalizers")[..] {
            [] => false,
            [only] if only["type"] == "NFC" => true,
            _ => return unknown("normalizer", normalizer),
        },
    };
    let pre = pre_tokenizer.unwrap_or(&Json::Null);
    let Some(steps) = steps(pre) else { return unknown("pre_tokenizer", pre) };
    let known = KNOWN.iter().find(|known| (known.is)(&steps));
    let Some(known) = known else { return unknown("pre_tokenizer", pre) };
    for (name, found, usual) in [
        ("an NFC normalizer", nfc, known.nfc),
        ("`ignore_merges`", ignore_merges, known.ignore_merges),
    ] {
        if found != usual {
            let which = if usual { "without" } else { "with" };
            let name = format!("the pre-tokenizer `{}` {which} {name}", known.name);
            return unsupported(&format!("tokenizer.json has {name}"));
        }
    }
    // These rules look for digits after bytes have become characters. Some of these characters are
    // digits too.
    let note = steps.contains(&Step::Digits).then(|| {
        format!(
            "note: pre-tokenizer `{}`, but the model was trained to split bytes that look like \
             digits from letters that are not English; such texts may get other tokens",
            known.name
        )
    });
    Ok((Kind::ByteLevel(known.name), note))
}

/// The steps of a byte-level pre-tokenizer, without the one that makes characters of bytes; `None`
/// if one is not known.
fn steps(pre: &Json) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for step in list(pre, "pretokenizers") {
        steps.push(match step["type"].as_str()? {
            "ByteLevel" => {
                // With `add_prefix_space`, the first word would begin with a space.
                (step["add_prefix_space"] == json!(false)).then_some(())?;
                match step["use_regex"].as_bool() {
                    Some(false) => continue,
                    _ => Step::Gpt2,
                }
            }
            "Split" => {
                let regex = step["pattern"]["Regex"].as_str()?;
                let inverted = step["invert"].as_bool().unwrap_or(false);
                // Both behaviors keep the matches. They differ in the text between matches, and
                // there is none: the regexes in use match everything.
                let keeps = match step["behavior"].as_str()? {
                    "Isolated" => !inverted,
                    "Removed" => inverted && regex.len() > 20,
                    _ => false,
                };
                keeps.then_some(())?;
                Step::Split(regex.into())
            }
            "Punctuation" if step["behavior"] == "Contiguous" => Step::Punctuation,
            "Digits" if step["individual_digits"] == json!(true) => Step::Digits,
            _ => return None,
        });
    }
    Some(steps)
}

/// Sentencepiece's rules: a space is U+2581, and one may be put before a text.
fn sentencepiece(normalizer: Option<&Json>, pre_tokenizer: Option<&Json>) -> Result<Kind> {
    let mut space_prefix = false;
    let mut replaced = false;
    if let Some(normalizer) = normalizer {
        for step in list(normalizer, "normalizers") {
            match step["type"].as_str() {
                Some("Prepend") if step["prepend"] == "\u{2581}" => space_prefix = true,
                Some("Replace")
                    if step["pattern"]["String"] == " " && step["content"] == "\u{2581}" =>
                {
                    replaced = true;
                }
                _ => return unknown("normalizer", normalizer),
            }
        }
    }
    if let Some(pre) = pre_tokenizer {
        match list(pre, "pretokenizers")[..] {
            [] => {}
            [only] if only["type"] == "Metaspace" && only["replacement"] == "\u{2581}" => {
                if only["split"] == json!(true) || replaced {
                    return unknown("pre_tokenizer", pre);
                }
                replaced = true;
                space_prefix = match only["prepend_scheme"].as_str() {
                    // GGUF's readers put a space after a special token too.
                    Some("always" | "first") => true,
                    Some("never") => false,
                    _ => return unknown("pre_tokenizer", pre),
                };
            }
            _ => return unknown("pre_tokenizer", pre),
        }
    }
    if !replaced {
        return unsupported("tokenizer.json does not write spaces as U+2581");
    }
    Ok(Kind::Sentencepiece { space_prefix })
}

/// The steps of a sequence, or the only one.
fn list<'a>(rules: &'a Json, of: &str) -> Vec<&'a Json> {
    match rules["type"].as_str() {
        None => Vec::new(),
        Some("Sequence") => rules[of].as_array().into_iter().flatten().collect(),
        Some(_) => vec![rules],
    }
}

fn unknown<T>(what: &str, rules: &Json) -> Result<T> {
    // Long enough for a whole regex, which must be seen to its end.
    let rules: String = rules.to_string().chars().take(2000).collect();
    unsupported(&format!("the `{what}` in tokenizer.json is not known: {rules}"))
}

fn unsupported<T>(why: &str) -> Result<T> {
    Err(Error::UnsupportedModel(why.into()))
}
