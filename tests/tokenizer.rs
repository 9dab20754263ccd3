//! Text to tokens and back, compared with tiktoken, the `tokenizers` library in Python, and
//! llama.cpp.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::path::PathBuf;
use std::time::Instant;

use support::{File, Kv, assert_error, json, open, read, tiny};
use ternlight::Result;
use ternlight::gguf::Gguf;
use ternlight::model::Config;
use ternlight::native::{FileSource, block_on};
use ternlight::source::Reader;
use ternlight::tokenizer::{TextStream, Tokenizer};

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

/// The 47 cases of llama.cpp's `ggml-vocab-llama-bpe.gguf`. Llama's vocabulary may not be copied
/// into this repository. `TERNLIGHT_LLAMA_BPE` names a folder with `llama-bpe.gguf` (the
/// vocabulary), `cases.inp` (texts between lines `__ggml_vocab_test__`) and `llama-bpe.out` (a line
/// of ids for each text), as in llama.cpp's `models/`.
#[test]
fn llama_cpps_cases_are_exact() {
    let Some(folder) = std::env::var_os("TERNLIGHT_LLAMA_BPE").map(PathBuf::from) else {
        println!("NOT CHECKED: TERNLIGHT_LLAMA_BPE names no folder with llama.cpp's cases");
        return;
    };
    let mut reader = Reader::new(FileSource::open(folder.join("llama-bpe.gguf")).unwrap());
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    let start = Instant::now();
    let tokenizer = Tokenizer::from_metadata(&gguf.metadata).unwrap();
    println!("{} tokens loaded in {:?}", tokenizer.n_vocab(), start.elapsed());
    let texts = std::fs::read_to_string(folder.join("cases.inp")).unwrap();
    let expected = std::fs::read_to_string(folder.join("llama-bpe.out")).unwrap();
    let texts: Vec<&str> = texts.split("\n__ggml_vocab_test__\n").collect();
    // Each line ends with a line feed, but for the last: an empty list may be an empty line there.
    let expected: Vec<Vec<u32>> = expected
        .split('\n')
        .map(|line| line.split_whitespace().map(|id| id.parse().unwrap()).collect())
        .collect();
    assert_eq!((texts.len(), expected.len()), (47, 47));
    for (text, expected) in texts.iter().zip(&expected) {
        let ids = tokenizer.encode(text).unwrap();
        assert_eq!(&ids, expected, "{text:?}");
        assert_eq!(tokenizer.decode(&ids).unwrap(), *text);
    }
    println!("{} cases of llama.cpp are exact", texts.len());
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
fn the_official_files_tokenizer_is_accepted() {
    let mut file = tiny();
    file.remove("tokenizer.ggml.pre");
    let tokenizer = of(&file).unwrap();
    // There is no eot id: the token that ends an answer is found by its text.
    let (eos, eot) = (262, 263);
    assert_eq!(tokenizer.special("<|eot_id|>"), Some(eot));
    let stops: Vec<u32> = (0..264).filter(|&id| tokenizer.is_stop(id)).collect();
    assert_eq!(stops, [eos, eot]);
    assert_eq!((tokenizer.bos(), tokenizer.add_bos()), (Some(261), true));
    // Llama 3's rule: a word includes the sign before it.
    assert_eq!(tokenizer.encode("hello world").unwrap()[..2], [259, 260]);

    file.set("tokenizer.ggml.add_bos_token", Kv::Bool(false));
    file.set("tokenizer.ggml.eot_token_id", Kv::U32(7));
    let tokenizer = of(&file).unwrap();
    assert!(!tokenizer.add_bos() && tokenizer.is_stop(7) && tokenizer.is_stop(eot));
}

#[test]
fn other_vocabularies_are_refused() {
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    let text = |text: &str| Kv::Str(text.into());
    for (name, value, facts) in [
        ("model", text("llama"), &["`llama`"][..]),
        ("pre", text("falcon3"), &["`falcon3`"]),
        ("tokens", Kv::Strs(vec!["a".into()]), &["264 token types", "1 tokens"]),
        ("tokens", Kv::U32(1), &["tokenizer.ggml.tokens", "an array of strings"]),
        ("token_type", Kv::I32s(vec![1; 3]), &["3 token types", "264 tokens"]),
        ("merges", Kv::Strs(vec!["he".into()]), &["\"he\""]),
        ("merges", Kv::Strs(vec!["h zzz".into()]), &["zzz"]),
        ("merges", Kv::Strs(vec![vec![0xff, b' ', b'a']]), &["merge"]),
        ("bos_token_id", Kv::U32(264), &["bos_token_id` is 264", "264"]),
        ("eos_token_id", Kv::I32(-1), &["eos_token_id", "-1"]),
    ] {
        let mut file = tiny();
        file.set(&key(name), value);
        assert_error(of(&file), "unsupported-model", facts);
    }
    for name in ["model", "tokens", "merges"] {
        let mut file = tiny();
        file.remove(&key(name));
        assert_error(of(&file), "unsupported-model", &[&key(name)]);
    }

    // Without a token for a byte, text would be lost.
    let mut file = tiny();
    let Some((_, Kv::Strs(tokens))) =
        file.metadata.iter_mut().find(|(k, _)| k == "tokenizer.ggml.tokens")
    else {
        panic!()
    };
    tokens[0x41] = "nothing".into();
    assert_error(of(&file), "unsupported-model", &["0x41"]);
}

#[test]
fn ids_outside_the_vocabulary_are_refused() {
    let tokenizer = bundled();
    assert_error(tokenizer.decode(&[1, 4096]), "bad-option", &["4096"]);
    assert_error(tokenizer.decode(&[u32::MAX]), "bad-option", &["4294967295"]);
    assert_error(TextStream::new().push(&tokenizer, 4096), "bad-option", &["4096"]);
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
