//! Tokens as tiktoken, `tokenizers`, `sentencepiece` and llama.cpp give them.

use std::time::Instant;

use tritloom::gguf::Gguf;
use tritloom::native::{FileSource, block_on};
use tritloom::source::Reader;
use tritloom::tokenizer::Tokenizer;
use unicode_normalization::UnicodeNormalization;

use crate::support::{Kv, json, outside, read};
use crate::{bundled, check_rules, ids, of, vocabulary, with_value};

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

/// llama.cpp's tokens in vocabularies that may not be copied into this repository.
/// `TRITLOOM_TOKENIZER_VECTORS` names a folder with `NAME.gguf` (vocabularies), `cases.inp`,
/// `more.inp` and `special.inp` (texts between lines `__ggml_vocab_test__`), and lines of ids for
/// each text: `NAME.out` of the cases, `NAME.more.out`, and of the texts with special tokens
/// `NAME.special.out`, `NAME.special-as-text.out`.
#[test]
fn llama_cpps_vectors_are_exact() {
    let Some(folder) = outside("TRITLOOM_TOKENIZER_VECTORS", "llama.cpp's vocabularies") else {
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

/// On long runs many regular expressions give up: no text may be lost, and none may take for ever.
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
    // However long a run is, its last space belongs to the word after it.
    let run = "x".to_owned() + &" ".repeat(2_999_999);
    let apart = [tokenizer.encode(&run).unwrap(), tokenizer.encode(" y").unwrap()];
    assert_eq!(tokenizer.encode(&(run + " y")).unwrap(), apart.concat());
}
