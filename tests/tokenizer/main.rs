//! Text to tokens and back, compared with tiktoken, with the Python libraries `tokenizers` and
//! `sentencepiece`, and with llama.cpp.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

#[path = "../support/mod.rs"]
mod support;

mod decoding;
mod libraries;
mod metadata;
mod special;

use support::{File, Kv, json, open, read};
use tritloom::Result;
use tritloom::gguf::{Gguf, Header, Metadata, Value};
use tritloom::model::Config;
use tritloom::native::block_on;
use tritloom::tokenizer::Tokenizer;
use unicode_normalization::UnicodeNormalization;

/// The tokenizer of the bundled model.
pub(crate) fn bundled() -> Tokenizer {
    let gguf = block_on(Gguf::read(&mut open("models/tiny-stories.gguf"))).unwrap();
    Tokenizer::from_gguf(&gguf, &Config::from_gguf(&gguf).unwrap()).unwrap()
}

/// The tokenizer that a file describes.
pub(crate) fn of(file: &File) -> Result<Tokenizer> {
    Tokenizer::from_metadata(&read(&file.build()).unwrap().metadata)
}

pub(crate) fn ids(value: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The file of a vocabulary in `rules.json`.
pub(crate) fn vocabulary(model: &str, data: &serde_json::Value) -> File {
    let texts = |value: &serde_json::Value| -> Vec<Vec<u8>> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().into()).collect()
    };
    let mut file = File::empty();
    file.set("general.architecture", Kv::Str("llama".into()));
    file.set("tokenizer.ggml.model", Kv::Str(model.into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(texts(&data["tokens"])));
    let types = serde_json::from_value(data["types"].clone()).unwrap();
    file.set("tokenizer.ggml.token_type", Kv::I32s(types));
    if model == "gpt2" {
        file.set("tokenizer.ggml.merges", Kv::Strs(texts(&data["merges"])));
    } else {
        let scores = serde_json::from_value(data["scores"].clone()).unwrap();
        file.set("tokenizer.ggml.scores", Kv::F32s(scores));
    }
    file
}

/// A vocabulary of `rules.json` with the first of its rules.
pub(crate) fn of_rules(model: &str) -> File {
    let name = if model == "gpt2" { "bpe" } else { "spm" };
    let mut file = vocabulary(model, &json("tests/data/tokenizer/rules.json")[name]);
    file.set("tokenizer.ggml.pre", Kv::Str("llama-bpe".into()));
    file
}

/// Compares with the vectors of one set of rules. With `nfc`, tokens decode to the text in normal
/// form C.
pub(crate) fn check_rules(name: &str, tokenizer: &Tokenizer, rules: &serde_json::Value, nfc: bool) {
    let normal = |text: &str| if nfc { text.nfc().collect() } else { text.to_owned() };
    let plain = rules["plain"].as_array().unwrap();
    let special = rules["special"].as_array().unwrap();
    assert!(plain.len() > 150 && special.len() >= 8);
    for vector in plain {
        let text = vector["text"].as_str().unwrap();
        let expected = ids(&vector["ids"]);
        assert_eq!(tokenizer.encode_text(text).unwrap(), expected, "{name}: {text:?}");
        // U+2581 stands for a space.
        let decoded = if name.contains("prefix") { text.replace('▁', " ") } else { normal(text) };
        assert_eq!(tokenizer.decode(&expected).unwrap(), decoded, "{name}");
    }
    for vector in special {
        let text = vector["text"].as_str().unwrap();
        let as_text = tokenizer.encode_text(text).unwrap();
        assert_eq!(as_text, ids(&vector["text_only"]), "{name}: {text:?}");
        assert_eq!(tokenizer.decode(&as_text).unwrap(), normal(text), "{name}");
        let user_defined = tokenizer.encode(text).unwrap();
        assert_eq!(user_defined, ids(&vector["user_defined"]), "{name}: {text:?}");
        assert_eq!(tokenizer.decode(&user_defined).unwrap(), normal(text), "{name}");
        let all = tokenizer.encode_with_special(text).unwrap();
        assert_eq!(all, ids(&vector["all"]), "{name}: {text:?}");
    }
}

/// A file with this metadata, but for one value.
pub(crate) fn with_value(metadata: &Metadata, key: &str, value: Value) -> Vec<u8> {
    let others = metadata.iter().filter(|(other, _)| *other != key);
    let mut metadata: Vec<_> = others.map(|(key, value)| (key.to_owned(), value.clone())).collect();
    metadata.push((key.to_owned(), value));
    let header = Header { version: 3, alignment: 32, metadata, tensors: Vec::new() };
    let mut bytes = Vec::new();
    header.write_file(&mut bytes, |_, _| Ok(())).unwrap();
    bytes
}

/// The texts in a list of the file's tokenizer.
pub(crate) fn list(file: &File, name: &str) -> Vec<Vec<u8>> {
    match file.metadata.iter().find(|(key, _)| *key == format!("tokenizer.ggml.{name}")) {
        Some((_, Kv::Strs(strings))) => strings.clone(),
        other => panic!("{other:?}"),
    }
}

/// The types of the file's tokens.
pub(crate) fn kinds_of(file: &File) -> Vec<i32> {
    match file.metadata.iter().find(|(key, _)| key == "tokenizer.ggml.token_type") {
        Some((_, Kv::I32s(kinds))) => kinds.clone(),
        other => panic!("{other:?}"),
    }
}
