//! Tokenizers of Hugging Face as GGUF has them.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use tritloom::tokenizer::Tokenizer;

use crate::{Folder, header, support};

/// The pre-tokenizers as Hugging Face's files have them, and their names in `rules.json`.
fn pre_tokenizers() -> Vec<(&'static str, Value)> {
    let bytes =
        |regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "use_regex": regex});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    let inverted = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Removed", "invert": true});
    let punctuation = json!({"type": "Punctuation", "behavior": "Contiguous"});
    let digits = json!({"type": "Digits", "individual_digits": true});
    let llama_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let qwen_2 = llama_3.replace("{1,3}", "");
    let sequence = |steps: &[Value]| json!({"type": "Sequence", "pretokenizers": steps});
    vec![
        ("llama-bpe", sequence(&[split(llama_3), bytes(false)])),
        ("llama-bpe", sequence(&[inverted(llama_3), bytes(false)])),
        ("qwen2", sequence(&[split(&qwen_2), bytes(false)])),
        ("gpt-2", bytes(true)),
        ("falcon", sequence(&[punctuation.clone(), bytes(true), split("[0-9][0-9][0-9]")])),
        ("falcon3", sequence(&[punctuation.clone(), bytes(true), split("[0-9]")])),
        ("falcon3", sequence(&[punctuation, bytes(true), digits, split("[0-9][0-9][0-9]")])),
    ]
}

/// tokenizer.json of a vocabulary in `rules.json`.
fn tokenizer_json(data: &Value, merges: Vec<Value>) -> Value {
    let texts = data["tokens"].as_array().unwrap();
    let types: Vec<i64> = serde_json::from_value(data["types"].clone()).unwrap();
    let (mut vocab, mut added) = (serde_json::Map::new(), Vec::new());
    let mut unknown = Value::Null;
    for (id, (text, kind)) in texts.iter().zip(types).enumerate() {
        match kind {
            1 | 6 => drop(vocab.insert(text.as_str().unwrap().into(), json!(id))),
            5 => {}
            _ => added.push(json!({"id": id, "content": text, "special": kind != 4})),
        }
        if kind == 2 {
            unknown = text.clone();
            vocab.insert(text.as_str().unwrap().into(), json!(id));
        }
    }
    json!({"added_tokens": added,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": unknown}})
}

/// Compares a converted tokenizer with the tokens in `rules.json`.
fn check_tokens(name: &str, folder: &Folder, rules: &Value) {
    let gguf = header(&folder.converted(&[]));
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    let ids = |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    let plain = rules["plain"].as_array().unwrap();
    assert!(plain.len() > 100);
    for vector in plain {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_text(text).unwrap(), ids(&vector["ids"]), "{name}: {text:?}");
    }
    for vector in rules["special"].as_array().unwrap() {
        let text = vector["text"].as_str().unwrap();
        let found = tokenizer.encode_with_special(text).unwrap();
        assert_eq!(found, ids(&vector["all"]), "{name}: {text:?}");
    }
}

/// A folder of a model whose embedding has `rows` rows, without options of the tokenizer.
fn with_vocabulary(test: &str, rows: usize) -> Folder {
    let folder = Folder::new(test, "qwen3");
    folder.remove("tokenizer_config.json");
    folder.edit_json("config.json", |config| {
        config["vocab_size"] = json!(rows);
        config["bos_token_id"] = Value::Null;
        config["eos_token_id"] = Value::Null;
    });
    folder.edit_tensors(|tensors| {
        let (_, shape, bytes) = tensors.get_mut("model.embed_tokens.weight").unwrap();
        shape[0] = rows;
        bytes.resize(rows * 64 * 2, 0);
    });
    folder
}

#[test]
fn byte_level_tokenizers_give_the_tokens_of_hugging_face() {
    let data = &support::json("tests/data/tokenizer/rules.json")["bpe"];
    let rows = data["tokens"].as_array().unwrap().len();
    let mut file = tokenizer_json(data, data["merges"].as_array().unwrap().clone());
    for (name, pre) in pre_tokenizers() {
        file["pre_tokenizer"] = pre;
        file["normalizer"] = if name == "qwen2" { json!({"type": "NFC"}) } else { Value::Null };
        file["model"]["ignore_merges"] = json!(name == "llama-bpe");
        let folder = with_vocabulary("byte-level", rows);
        fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
        let rules = data["rules"].as_array().unwrap();
        let rules = rules.iter().find(|rules| rules["pre"] == name).unwrap();
        check_tokens(name, &folder, rules);
    }
}

/// The merges that transformers makes of Sentencepiece's scores: all ways to split each token, the
/// best scores first.
fn merges(data: &Value) -> Vec<Value> {
    let texts: Vec<String> = serde_json::from_value(data["tokens"].clone()).unwrap();
    let types: Vec<i64> = serde_json::from_value(data["types"].clone()).unwrap();
    let scores: Vec<f32> = serde_json::from_value(data["scores"].clone()).unwrap();
    let normal: BTreeMap<&str, f32> =
        (0..texts.len()).filter(|&id| types[id] == 1).map(|id| (&*texts[id], scores[id])).collect();
    let mut merges = Vec::new();
    for (text, score) in &normal {
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            if normal.contains_key(left) && normal.contains_key(right) {
                merges.push((*score, left, right));
            }
        }
    }
    merges.sort_by(|(a, left, right), (b, other_left, other_right)| {
        let lengths = |left: &str, right: &str| (left.chars().count(), right.chars().count());
        b.total_cmp(a).then(lengths(other_left, other_right).cmp(&lengths(left, right)))
    });
    merges.into_iter().map(|(_, left, right)| json!([left, right])).collect()
}

#[test]
fn sentencepieces_tokenizers_give_its_tokens() {
    let data = &support::json("tests/data/tokenizer/rules.json")["spm"];
    let rows = data["tokens"].as_array().unwrap().len();
    let mut file = tokenizer_json(data, merges(data));
    file["model"]["byte_fallback"] = json!(true);
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let prepend = json!({"type": "Prepend", "prepend": "▁"});
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": false});
    let sequence = |steps: &[&Value]| json!({"type": "Sequence", "normalizers": steps});
    for (prefix, normalizer, pre_tokenizer) in [
        (true, sequence(&[&prepend, &replace]), Value::Null),
        (false, replace.clone(), Value::Null),
        (true, Value::Null, metaspace("always")),
        (false, Value::Null, metaspace("never")),
    ] {
        file["normalizer"] = normalizer;
        file["pre_tokenizer"] = pre_tokenizer;
        let folder = with_vocabulary("sentencepiece", rows);
        fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
        let rules = data["rules"].as_array().unwrap();
        let rules = rules.iter().find(|rules| rules["prefix"] == prefix).unwrap();
        check_tokens(&format!("prefix {prefix}"), &folder, rules);
    }

    // Merges that only some ways to split a token have.
    let merges = file["model"]["merges"].as_array_mut().unwrap();
    let removed = merges.pop().unwrap();
    let token = format!("{}{}", removed[0].as_str().unwrap(), removed[1].as_str().unwrap());
    let folder = with_vocabulary("sentencepiece", rows);
    fs::write(folder.0.join("tokenizer.json"), file.to_string()).unwrap();
    folder.refused(&[], "unsupported-model", &[&format!("{token:?}"), "not the BPE"]);
}

#[test]
fn tokenizers_that_gguf_has_no_name_for_are_refused() {
    let edit = |edit: &dyn Fn(&mut Value), facts: &[&str]| {
        let folder = Folder::new("tokenizers", "qwen3");
        folder.edit_json("tokenizer.json", edit);
        folder.refused(&[], "unsupported-model", facts);
    };
    let set = |path: &'static str, value: Value, facts: &[&str]| {
        edit(&|file| *file.pointer_mut(path).unwrap() = value.clone(), facts);
    };
    let regex = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
    set(regex, json!(r"\w+|\s+"), &["pre_tokenizer", r"\\w+|\\s+"]);
    set("/pre_tokenizer/pretokenizers/0/behavior", json!("Removed"), &["pre_tokenizer"]);
    set("/pre_tokenizer/pretokenizers/1/add_prefix_space", json!(true), &["pre_tokenizer"]);
    set("/pre_tokenizer/pretokenizers/1/type", json!("Whitespace"), &["byte"]);
    set("/normalizer", json!({"type": "NFKC"}), &["normalizer", "NFKC"]);
    set("/normalizer", Value::Null, &["qwen2", "NFC"]);
    set("/model/ignore_merges", json!(true), &["qwen2", "ignore_merges"]);
    set("/model/type", json!("Unigram"), &["Unigram"]);
    set("/model/end_of_word_suffix", json!("</w>"), &["end_of_word_suffix"]);
    set("/model/merges/0", json!("h"), &["not two tokens"]);
    set("/model/merges/0", json!(["h", "Q Q"]), &["not two tokens"]);
    set("/model/merges/0", json!(["h", "nowhere"]), &["nowhere"]);
    set("/added_tokens/0/id", json!(288), &["288"]);
    set("/added_tokens/0/id", json!(3), &["token 3"]);
    set("/added_tokens/0/content", json!("h"), &["\"h\"", "two ids"]);
    set("/added_tokens/0/rstrip", json!(true), &["<|endoftext|>", "spaces"]);
    set("/post_processor/processors/0/type", json!("RobertaProcessing"), &["RobertaProcessing"]);
    let eos = json!([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|endoftext|>"}}]);
    let adds_eos = json!({"type": "TemplateProcessing", "single": eos});
    set("/post_processor/processors/0", adds_eos, &["post-processor", "<|endoftext|>"]);
    edit(&|file| file["model"]["vocab"] = json!({}), &["no tokens"]);
    edit(&|file| drop(file["model"]["vocab"].as_object_mut().unwrap().remove("a")), &["0x61"]);

    let option = |key: &str, value: Value, facts: &[&str]| {
        let folder = Folder::new("tokenizers", "qwen3");
        folder.edit_json("tokenizer_config.json", |options| options[key] = value);
        folder.refused(&[], "unsupported-model", facts);
    };
    option("eos_token", json!("<nothing>"), &["eos_token", "<nothing>"]);
    option("add_eos_token", json!(true), &["add_eos_token"]);
    option("chat_template", json!([{"name": "tools", "template": ""}]), &["default"]);
    let folder = Folder::new("tokenizers", "qwen3");
    fs::write(folder.0.join("generation_config.json"), r#"{"eos_token_id": [1, 2, 3]}"#).unwrap();
    folder.refused(&[], "unsupported-model", &["4 tokens"]);
}
