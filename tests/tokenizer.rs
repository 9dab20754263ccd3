//! Text to tokens and back, compared with tiktoken, with the Python libraries `tokenizers` and
//! `sentencepiece`, and with llama.cpp.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use support::{File, Kv, assert_error, json, open, read, tiny};
use ternlight::Result;
use ternlight::gguf::{Gguf, Header, Metadata, Value};
use ternlight::model::Config;
use ternlight::native::{FileSource, block_on};
use ternlight::source::Reader;
use ternlight::tokenizer::{Part, Rules, Special, TextStream, Tokenizer};
use unicode_normalization::UnicodeNormalization;

fn bundled() -> Tokenizer {
    let gguf = block_on(Gguf::read(&mut open("models/tiny-stories.gguf"))).unwrap();
    Tokenizer::from_gguf(&gguf, &Config::from_gguf(&gguf).unwrap()).unwrap()
}

fn of(file: &File) -> Result<Tokenizer> {
    Tokenizer::from_metadata(&read(&file.build()).unwrap().metadata)
}

fn ids(value: &serde_json::Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Texts at the edges of the pre-tokenizer's rules, with the tokens that tiktoken gives them.
#[test]
fn the_bundled_vocabulary_gives_tiktokens_tokens() {
    let tokenizer = bundled();
    let vectors = json("tests/data/tokenizer/vectors.json");
    let plain = vectors["plain"].as_array().unwrap();
    let special = vectors["special"].as_array().unwrap();
    assert_eq!((plain.len(), special.len()), (176, 14));
    for vector in plain {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode(text).unwrap(), ids(&vector["ids"]), "{text:?}");
        assert_eq!(tokenizer.decode(&ids(&vector["ids"])).unwrap(), text);
    }
    for vector in special {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_with_special(text).unwrap(), ids(&vector["ids"]), "{text:?}");
        assert_eq!(tokenizer.encode(text).unwrap(), ids(&vector["idsAsText"]), "{text:?}");
        assert_eq!(tokenizer.decode(&ids(&vector["idsAsText"])).unwrap(), text);
    }
}

/// All texts of the goldens, with special tokens and as plain text, there and back.
#[test]
fn the_goldens_texts_have_their_tokens() {
    let tokenizer = bundled();
    let goldens = json("models/tiny-stories.goldens.json");
    let vectors = goldens["tokenizer"].as_array().unwrap();
    assert_eq!(vectors.len(), 62);
    for vector in vectors {
        let text = vector["text"].as_str().unwrap();
        assert_eq!(tokenizer.encode_with_special(text).unwrap(), ids(&vector["ids"]), "{text:?}");
        let plain = ids(vector.get("ids_plain").unwrap_or(&vector["ids"]));
        assert_eq!(tokenizer.encode(text).unwrap(), plain, "{text:?}");
        assert_eq!(tokenizer.decode(&plain).unwrap(), text);
    }
}

/// The file of a vocabulary in `rules.json`.
fn vocabulary(model: &str, data: &serde_json::Value) -> File {
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
fn of_rules(model: &str) -> File {
    let name = if model == "gpt2" { "bpe" } else { "spm" };
    let mut file = vocabulary(model, &json("tests/data/tokenizer/rules.json")[name]);
    file.set("tokenizer.ggml.pre", Kv::Str("llama-bpe".into()));
    file
}

/// Compares with the vectors of one set of rules. With `nfc`, tokens decode to the text in normal
/// form C.
fn check_rules(name: &str, tokenizer: &Tokenizer, rules: &serde_json::Value, nfc: bool) {
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

/// Each row of the table of pre-tokenizers, with the tokens that Hugging Face's `tokenizers` gives.
#[test]
fn each_pre_tokenizer_gives_the_librarys_tokens() {
    let data = json("tests/data/tokenizer/rules.json");
    let mut file = vocabulary("gpt2", &data["bpe"]);
    let rules = data["bpe"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 7);
    for rules in rules {
        let pre = rules["pre"].as_str().unwrap();
        file.set("tokenizer.ggml.pre", Kv::Str(pre.into()));
        check_rules(pre, &of(&file).unwrap(), rules, pre == "qwen2");
    }
    // Other names of the same rules.
    for pre in ["llama3", "llama-v3"] {
        file.set("tokenizer.ggml.pre", Kv::Str(pre.into()));
        check_rules(pre, &of(&file).unwrap(), &rules[0], false);
    }
}

/// With and without the space before a text, with the tokens that `sentencepiece` gives.
#[test]
fn sentencepiece_gives_its_librarys_tokens() {
    let data = json("tests/data/tokenizer/rules.json");
    let mut file = vocabulary("llama", &data["spm"]);
    let rules = data["spm"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    for rules in rules {
        let prefix = rules["prefix"].as_bool().unwrap();
        file.set("tokenizer.ggml.add_space_prefix", Kv::Bool(prefix));
        check_rules(&format!("prefix {prefix}"), &of(&file).unwrap(), rules, false);
    }
    // The prefix is the default, and a pre-tokenizer means nothing here.
    file.remove("tokenizer.ggml.add_space_prefix");
    file.set("tokenizer.ggml.pre", Kv::Str("default".into()));
    check_rules("prefix true", &of(&file).unwrap(), &rules[0], false);
}

/// A file with this metadata, but for one value.
fn with_value(metadata: &Metadata, key: &str, value: Value) -> Vec<u8> {
    let others = metadata.iter().filter(|(other, _)| *other != key);
    let mut metadata: Vec<_> = others.map(|(key, value)| (key.to_owned(), value.clone())).collect();
    metadata.push((key.to_owned(), value));
    let header = Header { version: 3, alignment: 32, metadata, tensors: Vec::new() };
    let mut bytes = Vec::new();
    header.write_file(&mut bytes, |_, _| Ok(())).unwrap();
    bytes
}

/// llama.cpp's tokens in vocabularies that may not be copied into this repository.
/// `TERNLIGHT_TOKENIZER_VECTORS` names a folder with `NAME.gguf` (vocabularies), `cases.inp`,
/// `more.inp` and `special.inp` (texts between lines `__ggml_vocab_test__`), and lines of ids for
/// each text: `NAME.out` of the cases, `NAME.more.out`, and of the texts with special tokens
/// `NAME.special.out`, `NAME.special-as-text.out`.
#[test]
fn llama_cpps_vectors_are_exact() {
    let Some(folder) = std::env::var_os("TERNLIGHT_TOKENIZER_VECTORS").map(PathBuf::from) else {
        // Not `println`, whose text a test that passes does not show.
        let note = "NOT CHECKED: TERNLIGHT_TOKENIZER_VECTORS names no folder with llama.cpp's\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    };
    let texts = |name: &str| -> Vec<String> {
        let texts = std::fs::read_to_string(folder.join(name)).unwrap();
        texts.split("\n__ggml_vocab_test__\n").map(String::from).collect()
    };
    // Of each vocabulary the file, and what to change in it.
    let no_prefix = ("tokenizer.ggml.add_space_prefix", Kv::Bool(false));
    for (name, gguf, change) in [
        ("llama-bpe", "llama-bpe", None),
        ("qwen3", "qwen3", None),
        ("gpt-2", "gpt-2", None),
        ("falcon", "falcon", None),
        ("falcon3-rules", "falcon", Some(("tokenizer.ggml.pre", Kv::Str("falcon3".into())))),
        ("falcon3-rules", "falcon", Some(("tokenizer.ggml.pre", Kv::Str("falcon_e".into())))),
        ("llama-spm", "llama-spm", None),
        ("llama-spm-noprefix", "llama-spm", Some(no_prefix)),
    ] {
        let mut reader =
            Reader::new(FileSource::open(folder.join(format!("{gguf}.gguf"))).unwrap());
        let mut header = block_on(Gguf::read(&mut reader)).unwrap();
        if let Some((key, value)) = &change {
            header = read(&with_value(&header.metadata, key, value.into())).unwrap();
        }
        let start = Instant::now();
        let tokenizer = Tokenizer::from_metadata(&header.metadata).unwrap();
        let loaded = start.elapsed();
        let mut counts = Vec::new();
        for (input, output, special) in [
            ("cases.inp", "out", None),
            ("more.inp", "more.out", None),
            ("special.inp", "special.out", Some(true)),
            ("special.inp", "special-as-text.out", Some(false)),
        ] {
            let texts = texts(input);
            let expected = folder.join(format!("{name}.{output}"));
            let expected = std::fs::read_to_string(expected).unwrap();
            // Every line but the last ends with a line feed. The last may be an empty list.
            let expected: Vec<Vec<u32>> = expected
                .split('\n')
                .map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect())
                .collect();
            assert!(expected.len().abs_diff(texts.len()) <= 1, "{name} {input}");
            let mut exact = 0;
            for (text, expected) in texts.iter().zip(&expected) {
                let ids = match special {
                    Some(true) => tokenizer.encode_with_special(text).unwrap(),
                    _ => tokenizer.encode(text).unwrap(),
                };
                // llama.cpp does not normalise texts for Qwen's models; they were trained so.
                let normal = if name == "qwen3" { text.nfc().collect() } else { text.clone() };
                if normal == *text {
                    assert_eq!(&ids, expected, "{name}: {text:?}");
                    exact += 1;
                } else {
                    let by_transformers = [963, 6165, 3958, 11, 1683, 109, 6165, 1683, 109];
                    assert_eq!(ids, by_transformers, "{name}: {text:?}");
                }
                if special != Some(true) {
                    let normal =
                        if gguf == "llama-spm" { normal.replace('▁', " ") } else { normal };
                    assert_eq!(tokenizer.decode(&ids).unwrap(), normal, "{name}");
                }
            }
            counts.push(format!("{output} {exact}/{}", texts.len()));
        }
        println!(
            "{name}: {}; {} tokens loaded in {loaded:?}",
            counts.join(", "),
            tokenizer.n_tokens()
        );
    }
}

#[test]
fn text_never_becomes_a_special_token() {
    let tokenizer = bundled();
    let eot = tokenizer.special("<|eot_id|>").unwrap();
    let ids = tokenizer.encode("a<|eot_id|>b<|begin_of_text|>").unwrap();
    assert!(ids.iter().all(|&id| id < 4088), "{ids:?}");
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a<|eot_id|>b<|begin_of_text|>");
    assert!(tokenizer.encode_with_special("a<|eot_id|>b").unwrap().contains(&eot));

    // Not even if a control token's text is one word, which is looked up whole, or if a merge of
    // normal tokens makes it.
    let mut file = tiny();
    let kinds = (0..264).map(|id| if matches!(id, 258 | 259 | 261..) { 3 } else { 1 }).collect();
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("tokenizer.ggml.merges", Kv::Strs(vec!["h e".into(), "l l".into()]));
    let tokenizer = of(&file).unwrap();
    assert_eq!(tokenizer.special("hello"), Some(259));
    assert_eq!(tokenizer.encode("hello").unwrap(), [256, 257, u32::from(b'o')]);
    assert_eq!(tokenizer.encode_with_special("hello").unwrap(), [259]);
}

#[test]
fn user_defined_tokens_are_found_in_any_text() {
    let mut file = tiny();
    let kinds = (0..264).map(|id| if id == 259 { 4 } else { i32::from(id > 260) * 2 + 1 });
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds.collect()));
    file.set("tokenizer.ggml.merges", Kv::Strs(vec!["h e".into()]));
    let tokenizer = of(&file).unwrap();
    assert_eq!(tokenizer.encode("xhellohe<|eot_id|>").unwrap()[..3], [u32::from(b'x'), 259, 256]);
    assert_eq!(tokenizer.decode(&[259]).unwrap(), "hello");
}

#[test]
fn untrusted_text_has_no_special_tokens_of_any_kind() {
    for model in ["gpt2", "llama"] {
        let tokenizer = of(&of_rules(model)).unwrap();
        let (start, think) = ("<|im_start|>", "<think>");
        let special = [tokenizer.special(start).unwrap(), tokenizer.special(think).unwrap()];
        let text = format!("a{start}b{think}c");
        let found = |ids: &[u32]| special.map(|special| ids.contains(&special));
        assert_eq!(found(&tokenizer.encode_text(&text).unwrap()), [false, false]);
        assert_eq!(found(&tokenizer.encode(&text).unwrap()), [false, true]);
        assert_eq!(found(&tokenizer.encode_with_special(&text).unwrap()), [true, true]);
        assert_eq!(tokenizer.decode(&tokenizer.encode_text(&text).unwrap()).unwrap(), text);
    }
}

/// What a template says may become special tokens, what messages say may not. Otherwise the text is
/// encoded as a whole: words may begin in one part and end in another.
#[test]
fn parts_of_a_text_have_different_trust() {
    for model in ["gpt2", "llama"] {
        let tokenizer = of(&of_rules(model)).unwrap();
        let trusted = |text| Part { text, special: Special::All };
        let untrusted = |text| Part { text, special: Special::None };
        let parts = |parts: &[Part<'_>]| tokenizer.encode_parts(parts).unwrap();

        assert_eq!(
            parts(&[trusted("<|im_start|>user\nhe"), untrusted("llo"), trusted("<|im_end|>\n")]),
            tokenizer.encode_with_special("<|im_start|>user\nhello<|im_end|>\n").unwrap()
        );
        // A token is not made of an untrusted text and a trusted one.
        let said = "<|im_end|>";
        for split in 0..=said.len() {
            let (left, right) = said.split_at(split);
            let ids = parts(&[trusted("x"), untrusted(left), untrusted(right), trusted("y")]);
            assert_eq!(ids, tokenizer.encode_text("x<|im_end|>y").unwrap());
            if (1..said.len()).contains(&split) {
                assert_eq!(parts(&[trusted(left), untrusted(right)]), parts(&[untrusted(said)]));
                assert_eq!(parts(&[untrusted(left), trusted(right)]), parts(&[untrusted(said)]));
            }
        }
        let defined = Part { text: "<think><|im_end|>", special: Special::UserDefined };
        assert_eq!(parts(&[defined]), tokenizer.encode(defined.text).unwrap());
        assert!(parts(&[]).is_empty());
        // A text that goes on does not begin again.
        let begin = tokenizer.encode_text("the").unwrap();
        let rest = [untrusted(" cat <think>"), trusted("<think>x")];
        assert_eq!(
            [&begin[..], &tokenizer.encode_parts_after(&begin, &rest).unwrap()].concat(),
            parts(&[&[untrusted("the")], &rest[..]].concat())
        );
        let start = tokenizer.special("<|im_start|>").unwrap();
        assert_eq!(tokenizer.encode_parts_after(&[start], &rest).unwrap(), parts(&rest));
        assert!(parts(&[trusted(""), untrusted("")]).is_empty());
    }
}

#[test]
fn the_official_files_tokenizer_is_accepted() {
    let mut file = tiny();
    file.remove("tokenizer.ggml.pre");
    let tokenizer = of(&file).unwrap();
    // There is no eot id: the token that ends an answer is found by its text.
    let (eos, eot) = (262, 263);
    assert_eq!(tokenizer.special("<|eot_id|>"), Some(eot));
    assert_eq!(tokenizer.special_text(eot), Some("<|eot_id|>"));
    assert_eq!(tokenizer.stop(), [eos, eot]);
    assert!((0..264).all(|id| tokenizer.is_stop(id) == (id >= eos)));
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos(), tokenizer.add_bos()),
        (Some(261), Some(eos), true)
    );
    // Llama 3's rule: a word includes the sign before it.
    assert_eq!(tokenizer.encode("hello world").unwrap()[..2], [259, 260]);

    file.set("tokenizer.ggml.add_bos_token", Kv::Bool(false));
    file.set("tokenizer.ggml.eot_token_id", Kv::U32(7));
    file.set("tokenizer.ggml.eom_token_id", Kv::U64(9));
    let tokenizer = of(&file).unwrap();
    assert!(!tokenizer.add_bos());
    assert_eq!(tokenizer.stop(), [7, 9, eos, eot]);

    // In a file of another architecture, nobody knows what is meant.
    file.set("general.architecture", Kv::Str("llama".into()));
    assert_error(of(&file), "unsupported-model", &["no pre-tokenizer", "tokenizer.ggml.pre"]);
}

/// Whether a raw text begins with the beginning-of-text token where the file does not say.
#[test]
fn what_the_file_does_not_say_is_as_usual() {
    let mut file = of_rules("gpt2");
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(0));
    for (pre, adds) in [
        ("llama-bpe", true),
        ("qwen2", false),
        ("gpt-2", false),
        ("falcon", false),
        ("falcon3", false),
        ("default", false),
    ] {
        file.set("tokenizer.ggml.pre", Kv::Str(pre.into()));
        assert_eq!(of(&file).unwrap().add_bos(), adds, "{pre}");
    }
    file.set("tokenizer.ggml.add_bos_token", Kv::Bool(true));
    assert!(of(&file).unwrap().add_bos());
    file.remove("tokenizer.ggml.bos_token_id");
    let tokenizer = of(&file).unwrap();
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (None, None));

    let mut file = of_rules("llama");
    let tokenizer = of(&file).unwrap();
    let named = |text| tokenizer.special(text);
    assert!(tokenizer.add_bos() && named("<s>").is_some());
    assert_eq!((tokenizer.bos(), tokenizer.eos()), (named("<s>"), named("</s>")));
    assert!(tokenizer.is_stop(tokenizer.eos().unwrap()));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(0));
    assert_eq!(of(&file).unwrap().bos(), Some(0));
}

/// Every text that ends an answer does so in every vocabulary, whatever the file calls the token.
#[test]
fn stop_tokens_are_known_by_their_texts() {
    let texts = [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
    ];
    for kind in [1, 3, 4] {
        for text in texts {
            let mut file = tiny();
            let (tokens, kinds) = (list(&file, "tokens"), kinds_of(&file));
            file.set("tokenizer.ggml.tokens", Kv::Strs([&tokens[..261], &[text.into()]].concat()));
            file.set("tokenizer.ggml.token_type", Kv::I32s([&kinds[..261], &[kind]].concat()));
            file.remove("tokenizer.ggml.bos_token_id").remove("tokenizer.ggml.eos_token_id");
            let tokenizer = of(&file).unwrap();
            assert_eq!(tokenizer.stop(), [261], "{text}");
            assert_eq!(tokenizer.encode_with_special(text).unwrap(), [261]);
            assert!(!tokenizer.encode(text).unwrap().contains(&261));
        }
    }
}

fn list(file: &File, name: &str) -> Vec<Vec<u8>> {
    match file.metadata.iter().find(|(key, _)| *key == format!("tokenizer.ggml.{name}")) {
        Some((_, Kv::Strs(strings))) => strings.clone(),
        other => panic!("{other:?}"),
    }
}

fn kinds_of(file: &File) -> Vec<i32> {
    match file.metadata.iter().find(|(key, _)| key == "tokenizer.ggml.token_type") {
        Some((_, Kv::I32s(kinds))) => kinds.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_vocabularies_are_refused() {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let text = |text: &str| Kv::Str(text.into());
    for (name, value, facts) in [
        ("model", text("bert"), &["`bert`"][..]),
        ("pre", text("deepseek-llm"), &["`deepseek-llm`", "`qwen2`", "tokenizer: closest"]),
        ("tokens", Kv::Strs(vec!["a".into()]), &["264 token types", "1 tokens"]),
        ("tokens", Kv::U32(1), &["tokenizer.ggml.tokens", "an array of strings"]),
        ("token_type", Kv::I32s(vec![1; 3]), &["3 token types", "264 tokens"]),
        ("token_type", Kv::I32s(vec![7; 264]), &["token 0", "type 7"]),
        ("merges", Kv::Strs(vec!["he".into()]), &["\"he\""]),
        ("merges", Kv::Strs(vec!["h zzz".into()]), &["zzz"]),
        ("merges", Kv::Strs(vec!["zzz h".into()]), &["zzz"]),
        ("merges", Kv::Strs(vec!["e h".into()]), &["\"eh\""]),
        ("merges", Kv::Strs(vec![vec![0xff, b' ', b'a']]), &["merge"]),
        ("bos_token_id", Kv::U32(264), &["bos_token_id` is 264", "264"]),
        ("eos_token_id", Kv::I32(-1), &["eos_token_id", "-1"]),
        ("add_space_prefix", Kv::Bool(true), &["add_space_prefix", "tokenizer: closest"]),
    ] {
        let mut file = tiny();
        file.set(&key(name), value);
        assert_error(of(&file), "unsupported-model", facts);
    }
    for name in ["model", "tokens", "token_type", "merges"] {
        let mut file = tiny();
        file.remove(&key(name));
        assert_error(of(&file), "unsupported-model", &[&key(name)]);
    }

    let with_token = |id: usize, text: &str| {
        let mut file = tiny();
        let mut tokens = list(&file, "tokens");
        tokens[id] = text.into();
        file.set("tokenizer.ggml.tokens", Kv::Strs(tokens));
        of(&file)
    };
    // Without a token for a byte, text would be lost.
    assert_error(with_token(0x41, "nothing"), "unsupported-model", &["0x41"]);
    assert_error(with_token(0xf3, "nothing"), "unsupported-model", &["0xf3"]);
    // But Falcon has none for some bytes that hardly any text has.
    for byte in [0x03, 0x0b, 0x7f, 0xc0, 0xf2, 0xff] {
        assert!(with_token(byte, "nothing").is_ok());
    }
    assert_eq!(with_token(0x03, "nothing").unwrap().encode("a\u{3}b").unwrap(), [0x61, 0x62]);

    assert_error(with_token(263, "hell"), "unsupported-model", &["\"hell\"", "263"]);
    // Only tokens without a text may be the same.
    assert!(with_token(262, "").is_ok());
}

#[test]
fn other_sentencepiece_vocabularies_are_refused() {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let file = of_rules("llama");
    let n = list(&file, "tokens").len();
    let with = |name: &str, value: Kv| of(file.clone().set(&key(name), value));
    let scores = |bad: f32| Kv::F32s([vec![0.0; n - 1], vec![bad]].concat());
    assert_error(with("scores", Kv::F32s(vec![0.0; 3])), "unsupported-model", &["3 scores"]);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert_error(
            with("scores", scores(bad)),
            "unsupported-model",
            &["score", &(n - 1).to_string()],
        );
    }
    let name = "remove_extra_whitespaces";
    assert_error(with(name, Kv::Bool(true)), "unsupported-model", &[name]);
    assert!(with(name, Kv::Bool(false)).is_ok());
    let name = "precompiled_charsmap";
    assert_error(with(name, Kv::I32s(vec![0])), "unsupported-model", &[name]);
    let name = "add_space_prefix";
    assert_error(with(name, Kv::U32(1)), "unsupported-model", &[name, "a boolean"]);
    for name in ["scores", "token_type"] {
        assert_error(of(file.clone().remove(&key(name))), "unsupported-model", &[&key(name)]);
    }

    let with_token = |id: usize, text: &str| {
        let mut tokens = list(&file, "tokens");
        tokens[id] = text.into();
        with("tokens", Kv::Strs(tokens))
    };
    let byte = kinds_of(&file).iter().position(|&kind| kind == 6).unwrap();
    for text in ["<0x0>", "<0xzz>", "<0x+1>", "0x00", "", "ζ"] {
        assert_error(with_token(byte, text), "unsupported-model", &["a byte", text]);
    }
    let mut kinds = kinds_of(&file);
    kinds[byte + 0x41] = 5;
    let lacking = with("token_type", Kv::I32s(kinds));
    assert_error(lacking, "unsupported-model", &["0x41"]);
    assert_error(with_token(n - 1, "<0x41>"), "unsupported-model", &["<0x41>"]);
}

/// Numbers are as good in any type: a score may be a float of any width, or an integer.
#[test]
fn numbers_may_have_any_type() {
    let file = of_rules("llama");
    let ids = |file: &File| of(file).unwrap().encode("hello  the   cat").unwrap();
    let expected = ids(&file);
    let gguf = read(&file.build()).unwrap();
    let with = |key: &str, value: Value| {
        let gguf = read(&with_value(&gguf.metadata, key, value)).unwrap();
        Tokenizer::from_metadata(&gguf.metadata).unwrap()
    };
    let scores = gguf.metadata.numbers("tokenizer.ggml.scores").unwrap().unwrap();
    let ranks: Vec<i32> = scores
        .iter()
        .map(|score| match score {
            Value::F32(score) => score.max(-1e6) as i32,
            other => panic!("{other:?}"),
        })
        .collect();
    let of_ranks = with("tokenizer.ggml.scores", Value::Numbers(ranks.into_iter().collect()));
    assert_eq!(of_ranks.encode("hello  the   cat").unwrap(), expected);
    for value in [Value::U8(2), Value::I64(2), Value::U16(2), Value::U64(2)] {
        assert_eq!(with("tokenizer.ggml.bos_token_id", value).bos(), Some(2));
    }
}

#[test]
fn the_closest_rules_are_taken_if_asked_for() {
    let with = |file: &File| {
        let gguf = read(&file.build()).unwrap();
        Tokenizer::from_metadata_with(&gguf.metadata, Rules::Closest)
    };
    let data = json("tests/data/tokenizer/rules.json");
    let mut file = vocabulary("gpt2", &data["bpe"]);
    let rules = data["bpe"]["rules"].as_array().unwrap();
    let [.., default] = rules.as_slice() else { panic!() };
    // A file of an unknown pre-tokenizer, and one of none.
    for pre in [Some("deepseek-llm"), None] {
        match pre {
            Some(pre) => drop(file.set("tokenizer.ggml.pre", Kv::Str(pre.into()))),
            None => drop(file.remove("tokenizer.ggml.pre")),
        }
        assert_error(of(&file), "unsupported-model", &[pre.unwrap_or("no pre-tokenizer")]);
        let tokenizer = with(&file).unwrap();
        check_rules("closest", &tokenizer, default, false);
        let [note] = tokenizer.notes() else { panic!("{:?}", tokenizer.notes()) };
        assert!(note.contains(pre.unwrap_or("no pre-tokenizer")) && note.contains("`default`"));
    }
    // A space before the text, which Hugging Face's byte-level BPE can put there.
    file.set("tokenizer.ggml.pre", Kv::Str("default".into()));
    file.set("tokenizer.ggml.add_space_prefix", Kv::Bool(true));
    let tokenizer = with(&file).unwrap();
    check_rules("closest", &tokenizer, default, false);
    assert!(tokenizer.notes()[0].contains("add_space_prefix"), "{:?}", tokenizer.notes());
    file.set("tokenizer.ggml.add_space_prefix", Kv::Bool(false));
    // What is known is used, and needs no note.
    file.set("tokenizer.ggml.pre", Kv::Str("falcon".into()));
    let tokenizer = with(&file).unwrap();
    check_rules("falcon", &tokenizer, &rules[3], false);
    assert!(tokenizer.notes().is_empty() && of(&file).unwrap().notes().is_empty());

    // An unknown model is read as the one whose data it has.
    file.set("tokenizer.ggml.model", Kv::Str("gpt9".into()));
    let tokenizer = with(&file).unwrap();
    check_rules("falcon", &tokenizer, &rules[3], false);
    assert!(tokenizer.notes()[0].contains("`gpt9` is read as `gpt2`"), "{:?}", tokenizer.notes());
    let mut file = of_rules("llama");
    file.set("tokenizer.ggml.model", Kv::Str("llama9".into()));
    let tokenizer = with(&file).unwrap();
    check_rules("prefix true", &tokenizer, &data["spm"]["rules"][0], false);
    assert!(
        tokenizer.notes()[0].contains("`llama9` is read as `llama`"),
        "{:?}",
        tokenizer.notes()
    );
    file.remove("tokenizer.ggml.scores");
    assert_error(with(&file), "unsupported-model", &["`llama9`"]);
}

#[test]
fn ids_outside_the_vocabulary_are_refused() {
    let tokenizer = bundled();
    assert_error(tokenizer.decode(&[1, 4096]), "bad-option", &["4096"]);
    assert_error(tokenizer.decode(&[u32::MAX]), "bad-option", &["4294967295"]);
    assert_error(TextStream::new().push(&tokenizer, 4096), "bad-option", &["4096"]);
}

/// An embedding may have more rows than there are tokens, but not fewer.
#[test]
fn rows_without_a_token_have_no_text() {
    let gguf = read(&tiny().build()).unwrap();
    let mut config = Config::from_gguf(&gguf).unwrap();
    config.n_vocab = 300;
    let tokenizer = Tokenizer::from_gguf(&gguf, &config).unwrap();
    assert_eq!((tokenizer.n_tokens(), tokenizer.n_vocab()), (264, 300));
    assert_eq!(tokenizer.decode(&[0x61, 264, 299, 0x62]).unwrap(), "ab");
    assert!(!tokenizer.is_stop(299) && tokenizer.special_text(299).is_none());
    assert_error(tokenizer.decode(&[300]), "bad-option", &["300"]);
    config.n_vocab = 263;
    let found = Tokenizer::from_gguf(&gguf, &config);
    assert_error(found, "unsupported-model", &["264 tokens", "263"]);
}

#[test]
fn control_tokens_have_no_text() {
    let tokenizer = bundled();
    let ids = tokenizer.encode_with_special("<|begin_of_text|>Hello<|eot_id|>").unwrap();
    assert_eq!((ids.len(), tokenizer.decode(&ids).unwrap().as_str()), (3, "Hello"));
}

/// Streaming gives the same text, in whole characters only.
#[test]
fn streamed_text_never_splits_a_character() {
    let tokenizer = bundled();
    let text = "Ünï 🙂 👩‍👩‍👧‍👦 日本語 हिन्दी e\u{301} \u{2028}, plain.";
    let ids = tokenizer.encode(text).unwrap();
    assert!(ids.len() > text.chars().count());
    let mut stream = TextStream::new();
    let mut whole = String::new();
    for &id in &ids {
        let text = stream.push(&tokenizer, id).unwrap();
        assert!(!text.contains('\u{fffd}'), "{text:?}");
        whole.push_str(&text);
    }
    assert_eq!(whole + &stream.finish(), text);
}

/// Sentencepiece puts a space before a text and after special tokens. It is not part of the text.
#[test]
fn sentencepieces_space_is_taken_back() {
    let mut file = of_rules("llama");
    for prefix in [true, false] {
        file.set("tokenizer.ggml.add_space_prefix", Kv::Bool(prefix));
        let tokenizer = of(&file).unwrap();
        let start = tokenizer.special("<|im_start|>").unwrap();
        let the = tokenizer.encode_text(if prefix { "the" } else { " the" }).unwrap();
        assert_eq!(tokenizer.bytes(the[0]).unwrap(), b" the", "one token with a space");
        let the = the[0];
        let middle = if prefix { "et" } else { "e t" };
        let at_start = if prefix { "the the" } else { " the the" };
        assert_eq!(tokenizer.decode(&[the, the]).unwrap(), at_start);
        assert_eq!(tokenizer.decode(&[start, the, the]).unwrap(), at_start);
        assert_eq!(tokenizer.decode(&[the, start, the]).unwrap(), at_start.replace("e t", middle));
        let first = |prompt: &[u32]| TextStream::after(prompt).push(&tokenizer, the).unwrap();
        assert_eq!(first(&[]), if prefix { "the" } else { " the" });
        assert_eq!(first(&[the, start]), if prefix { "the" } else { " the" });
        // A text that goes on keeps its space.
        assert_eq!(first(&[start, the]), " the");
    }
}

/// A character without a token is one token for each of its bytes.
#[test]
fn byte_tokens_are_streamed_as_whole_characters() {
    let tokenizer = of(&of_rules("llama")).unwrap();
    let text = "the 🙂 👩‍👩‍👧 ไทย \n\n é";
    let ids = tokenizer.encode_text(text).unwrap();
    assert!(ids.len() > text.chars().count());
    let mut stream = TextStream::new();
    let streamed: Vec<String> =
        ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap()).collect();
    assert!(streamed.iter().all(|text| !text.contains('\u{fffd}')));
    assert!(streamed.iter().any(String::is_empty));
    assert_eq!(streamed.concat() + &stream.finish(), text);
    // A character that stops half way.
    let smile = tokenizer.encode_text("🙂").unwrap();
    assert_eq!(tokenizer.decode(&smile[..smile.len() - 1]).unwrap(), "\u{fffd}");
}

/// Whatever bytes a model makes, streaming gives the same text as decoding all of them at once.
#[test]
fn streamed_rubbish_is_decoded_as_at_once() {
    let tokenizer = of(&tiny()).unwrap();
    let mut random = support::Random(11);
    for _ in 0..2000 {
        let bytes: Vec<u32> = (0..1 + random.below(8))
            .map(|_| {
                let edge = [0x00, 0x41, 0x7f, 0x80, 0xa0, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff];
                if random.below(4) == 0 { random.below(256) as u32 } else { edge[random.below(12)] }
            })
            .collect();
        let mut stream = TextStream::new();
        let mut text = String::new();
        for &id in &bytes {
            text.push_str(&stream.push(&tokenizer, id).unwrap());
        }
        text.push_str(&stream.finish());
        assert_eq!(text, tokenizer.decode(&bytes).unwrap(), "{bytes:x?}");
        assert_eq!(stream.finish(), "");
    }
}

/// On long runs regular expressions give up: no text may be lost, and none may take for ever.
#[test]
fn long_texts_are_whole() {
    let tokenizer = bundled();
    let start = Instant::now();
    for unit in [" ", "a", "1", "!", "\n", "'", "é", " a", "\t\n x"] {
        let text = unit.repeat(200_000 / unit.len()) + "end";
        let ids = tokenizer.encode(&text).unwrap();
        assert_eq!(tokenizer.decode(&ids).unwrap(), text, "{unit:?}");
    }
    println!("{:?}", start.elapsed());
    // After a million steps back the engine gives up: that is an error, not a shorter text.
    let text = "x".to_owned() + &" ".repeat(3_000_000) + "y";
    assert_error(tokenizer.encode(&text), "bad-option", &["prompt", "after byte 1 "]);
}
