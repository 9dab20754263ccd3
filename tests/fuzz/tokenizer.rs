//! Target: the tokenizer, with absurd vocabularies.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tritloom::model::Config;
use tritloom::tokenizer::{Part, Rules, Special, TextStream, Tokenizer};

use crate::gguf::{BASE, damage, number, spoil};
use crate::metadata::value;
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{File, Kv, byte_char, read};

/// The values of `tokenizer.ggml.pre` that have rules of their own, and one that has none.
const PRE_TOKENIZERS: &[&str] =
    &["llama-bpe", "qwen2", "gpt-2", "falcon", "falcon3", "falcon_e", "default", "other"];

/// Texts with every kind of character that the pre-tokenizer tells apart.
const TEXTS: &[&str] = &[
    "",
    "hello world, it's 1234567 o'clock",
    "<|begin_of_text|>hello<|eot_id|><|eot_id|> <|end_of_text|",
    "  \t\n\r\n \u{a0}\u{3000}  x",
    "é e\u{301} ß 汉字 🦀👩‍👩‍👧 \u{0}\u{7f}\u{feff} \u{1112}\u{1161}\u{11ab}",
    "▁▁a <0x0A><s> the   the <think>the",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];

fn token() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-hĠĊ]{1,6}".prop_map(String::into_bytes),
        2 => any::<u8>().prop_map(|byte| byte_char(byte).to_string().into_bytes()),
        1 => ".{0,8}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..8),
        1 => select(vec!["<|eot_id|>", "<|begin_of_text|>", "<", "", "[UNK]", "<0x0A>", "▁a"])
            .prop_map(Into::into),
    ]
}

fn merge() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        5 => "[a-hĠ]{1,3} [a-hĠ]{1,3}".prop_map(String::into_bytes),
        1 => "[a-c ]{0,6}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..8),
    ]
}

/// A score, rarely one that no file may have.
fn score() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => (-40..4i8).prop_map(f32::from),
        1 => any::<f32>(),
        1 => select(vec![0.0, -0.0, -1e9, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE]),
    ]
}

/// The base file with a vocabulary of sentencepiece: all bytes, then tokens that can be joined.
fn sentencepiece() -> File {
    let joined = ["▁", "t", "h", "e", "a", "b", "th", "the", "▁the", "▁▁", "▁▁▁", "▁a", "ab", "é"];
    let special = ["<unk>", "<s>", "</s>", "<think>"];
    let bytes = (0..256).map(|byte| format!("<0x{byte:02X}>"));
    let texts = special.map(String::from).into_iter().chain(bytes);
    let tokens: Vec<_> = texts.chain(joined.map(String::from)).map(String::into_bytes).collect();
    let kinds = [vec![2, 3, 3, 4], vec![6; 256], vec![1; joined.len()]].concat();
    let scores = (0..tokens.len()).map(|id| -((id / 2) as f32)).collect();
    let mut file = File { tensors: Vec::new(), ..BASE.clone() };
    file.set("tokenizer.ggml.model", Kv::Str("llama".into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(tokens));
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("tokenizer.ggml.scores", Kv::F32s(scores));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(1));
    file.set("tokenizer.ggml.eos_token_id", Kv::U32(2));
    file
}

/// A change to the vocabulary.
#[derive(Clone, Debug)]
enum Change {
    /// Adds tokens.
    More(Vec<(Vec<u8>, i32)>, Vec<Vec<u8>>),
    /// Replaces all tokens.
    Tokens(Vec<Vec<u8>>),
    Merges(Vec<Vec<u8>>),
    /// Replaces one token; the vocabulary may then have it twice.
    Token(Index, Vec<u8>),
    Merge(Index, Vec<u8>),
    Kinds(Vec<i32>),
    Kind(Index, i32),
    Scores(Vec<f32>),
    Score(Index, f32),
    Pre(&'static str),
    /// Replaces a setting of the tokenizer.
    Setting(String, Kv),
}

fn change() -> impl Strategy<Value = Change> {
    let setting = select(vec![
        "model",
        "pre",
        "bos_token_id",
        "eos_token_id",
        "eot_token_id",
        "eom_token_id",
        "add_bos_token",
        "add_space_prefix",
        "remove_extra_whitespaces",
        "precompiled_charsmap",
        "scores",
        "tokens",
        "token_type",
        "merges",
        "unknown_token_id",
    ])
    .prop_map(|name| format!("tokenizer.ggml.{name}"));
    let more = (vec((token(), select(vec![1, 1, 3, 4, 6])), 0..40), vec(merge(), 0..40));
    prop_oneof![
        6 => more.prop_map(|(tokens, merges)| Change::More(tokens, merges)),
        1 => vec(token(), 0..80).prop_map(Change::Tokens),
        2 => vec(merge(), 0..80).prop_map(Change::Merges),
        4 => (any::<Index>(), token()).prop_map(|(at, token)| Change::Token(at, token)),
        4 => (any::<Index>(), merge()).prop_map(|(at, merge)| Change::Merge(at, merge)),
        1 => vec(-1..8i32, 0..300).prop_map(Change::Kinds),
        3 => (any::<Index>(), prop_oneof![-1..8i32, any::<i32>()])
            .prop_map(|(at, kind)| Change::Kind(at, kind)),
        2 => select(PRE_TOKENIZERS).prop_map(Change::Pre),
        1 => vec(score(), 0..300).prop_map(Change::Scores),
        2 => (any::<Index>(), score()).prop_map(|(at, score)| Change::Score(at, score)),
        1 => (select(vec!["add_space_prefix", "add_bos_token"]), any::<bool>()).prop_map(
            |(name, value)| Change::Setting(format!("tokenizer.ggml.{name}"), Kv::Bool(value))
        ),
        2 => (setting.clone(), value()).prop_map(|(key, value)| Change::Setting(key, value)),
        2 => (setting, number()).prop_map(|(key, n)| Change::Setting(key, Kv::U32(n as u32))),
    ]
}

fn list<'a>(file: &'a mut File, name: &str) -> Option<&'a mut Kv> {
    let key = format!("tokenizer.ggml.{name}");
    file.metadata.iter_mut().find(|(other, _)| *other == key).map(|(_, value)| value)
}

fn put<T>(list: &mut [T], at: &Index, value: T) {
    if !list.is_empty() {
        list[at.index(list.len())] = value;
    }
}

fn apply(file: &mut File, change: Change) {
    match change {
        Change::Tokens(tokens) => drop(file.set("tokenizer.ggml.tokens", Kv::Strs(tokens))),
        Change::Merges(merges) => drop(file.set("tokenizer.ggml.merges", Kv::Strs(merges))),
        Change::Kinds(kinds) => drop(file.set("tokenizer.ggml.token_type", Kv::I32s(kinds))),
        Change::Setting(key, value) => drop(file.set(&key, value)),
        Change::Scores(scores) => drop(file.set("tokenizer.ggml.scores", Kv::F32s(scores))),
        Change::Pre(pre) => drop(file.set("tokenizer.ggml.pre", Kv::Str(pre.into()))),
        Change::More(more, more_merges) => {
            if let Some(Kv::Strs(tokens)) = list(file, "tokens") {
                tokens.extend(more.iter().map(|(token, _)| token.clone()));
            }
            if let Some(Kv::I32s(kinds)) = list(file, "token_type") {
                kinds.extend(more.iter().map(|(_, kind)| kind));
            }
            if let Some(Kv::F32s(scores)) = list(file, "scores") {
                scores.extend((0..more.len()).map(|i| -(i as f32)));
            }
            if let Some(Kv::Strs(merges)) = list(file, "merges") {
                merges.extend(more_merges);
            }
        }
        Change::Token(at, token) => {
            if let Some(Kv::Strs(tokens)) = list(file, "tokens") {
                put(tokens, &at, token);
            }
        }
        Change::Merge(at, merge) => {
            if let Some(Kv::Strs(merges)) = list(file, "merges") {
                put(merges, &at, merge);
            }
        }
        Change::Score(at, score) => {
            if let Some(Kv::F32s(scores)) = list(file, "scores") {
                put(scores, &at, score);
            }
        }
        Change::Kind(at, kind) => {
            if let Some(Kv::I32s(kinds)) = list(file, "token_type") {
                put(kinds, &at, kind);
            }
        }
    }
}

fn inputs() -> impl Strategy<Value = Input> {
    let base = any::<bool>().prop_map(|scored| match scored {
        true => sentencepiece(),
        // Tokenizing needs no weights.
        false => File { tensors: Vec::new(), ..BASE.clone() },
    });
    let damage = prop::option::weighted(0.3, damage());
    (base, vec(change(), 0..4), damage).prop_map(|(mut file, changes, damaged)| {
        changes.into_iter().for_each(|change| apply(&mut file, change));
        let mut bytes = file.build();
        damaged.iter().for_each(|damage| spoil(&mut bytes, damage));
        Input(bytes)
    })
}

fn target(bytes: &[u8]) {
    let Ok(gguf) = read(bytes) else { return };
    if let Ok(config) = Config::from_gguf(&gguf)
        && let Err(error) = Tokenizer::from_gguf(&gguf, &config)
    {
        assert_named(&error);
    }
    let strict = Tokenizer::from_metadata(&gguf.metadata);
    let closest = Tokenizer::from_metadata_with(&gguf.metadata, Rules::Closest);
    if let Err(error) = &strict {
        assert_named(error);
    }
    let tokenizer = match closest {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            assert!(strict.is_err(), "refused only if asked for the closest: {error}");
            return assert_named(&error);
        }
    };
    assert_eq!(strict.is_ok(), tokenizer.notes().is_empty());
    let n_vocab = tokenizer.n_vocab() as u32;
    assert!(tokenizer.bos().is_none_or(|id| id < n_vocab));
    // Part of the file serves as a text.
    let own = String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]);
    for text in TEXTS.iter().copied().chain([&*own]) {
        let untrusted = Part { text, special: Special::None };
        let template = Part { text: "<|eot_id|>a", special: Special::All };
        for encoded in [
            tokenizer.encode(text),
            tokenizer.encode_with_special(text),
            tokenizer.encode_parts(&[untrusted, template, untrusted]),
        ] {
            match encoded {
                Err(error) => assert_named(&error),
                Ok(ids) => {
                    assert!(
                        ids.iter().all(|&id| id < n_vocab),
                        "{text:?} gives {ids:?} of {n_vocab}"
                    );
                    let decoded = tokenizer.decode(&ids).unwrap();
                    let mut stream = TextStream::new();
                    let mut streamed: String =
                        ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap()).collect();
                    streamed += &stream.finish();
                    assert_eq!(streamed, decoded);
                }
            }
        }
        // An untrusted text has no special token in it, for any file.
        for id in tokenizer.encode_text(text).unwrap_or_default() {
            assert_eq!(tokenizer.special_text(id), None);
        }
    }
    let mut stream = TextStream::new();
    for id in (0..n_vocab.min(400)).chain([n_vocab, u32::MAX]) {
        let pushed = stream.push(&tokenizer, id);
        assert_eq!(pushed.is_ok(), id < n_vocab);
        assert_eq!(tokenizer.bytes(id).is_ok(), id < n_vocab);
        let _ = tokenizer.is_stop(id);
    }
    stream.finish();
}

#[test]
fn tokenizer() {
    fuzz("tokenizer", &Limits { memory: 16 << 20, memory_per_byte: 256 }, inputs(), target);
}
