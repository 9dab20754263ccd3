//! The tokenizer's metadata: what a file says, what it leaves out, and what is refused.

use tritloom::gguf::Value;
use tritloom::model::Config;
use tritloom::tokenizer::{Rules, Tokenizer};

use crate::support::{File, Kv, assert_error, json, read, tiny};
use crate::{check_rules, kinds_of, list, of, of_rules, vocabulary, with_value};

#[test]
fn the_official_files_tokenizer_is_accepted() {
    let mut file = tiny();
    file.remove("tokenizer.ggml.pre");
    let tokenizer = of(&file).unwrap();
    // There is no eot id: the token that ends an answer is found by its text.
    let (eos, eot) = (262, 263);
    assert_eq!(tokenizer.special("<|eot_id|>"), Some(eot));
    assert_eq!(tokenizer.special_text(eot), Some("<|eot_id|>"));
    // It has no bytes in a text, but people see it by itself.
    assert_eq!(tokenizer.decode(&[259, eot, 260]).unwrap(), "hello w");
    let shown = |id| tokenizer.text_after(Some(259), id).unwrap().into_owned();
    assert_eq!([shown(eot), shown(260), shown(0x80)], ["<|eot_id|>", " w", "\u{fffd}"]);
    assert_error(tokenizer.text_after(None, 9999), "bad-option", &["9999"]);
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

    // In a file of another architecture, it is unknown what is meant.
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
    // A known name is used, and needs no note.
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
