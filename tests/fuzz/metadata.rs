//! Target: the getters of metadata, and the model's sizes that are read with them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tritloom::Error;
use tritloom::gguf::Metadata;
use tritloom::model::Config;

use crate::gguf::{BASES, damage, float, number, spoil};
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{File, Kv, read};

/// Settings of architectures whose readers know them; not every file has them.
const KEYS: &[&str] = &[
    "attention.causal",
    "attention.clamp_kqv",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.max_alibi_bias",
    "attention.scale",
    "attention.sliding_window",
    "attention.value_length",
    "context_length",
    "embedding_scale",
    "expert_count",
    "logit_scale",
    "residual_scale",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_log_multiplier",
    "vocab_size",
];

/// Texts that mean something to a reader.
const WORDS: &[&str] = &["none", "linear", "yarn", "longrope", "llama", "minicpm", "qwen3"];

/// A value of any type, right or wrong.
pub(crate) fn value() -> impl Strategy<Value = Kv> {
    prop_oneof![
        3 => number().prop_map(|n| Kv::U32(n as u32)),
        2 => number().prop_map(|n| Kv::I32(n as i32)),
        3 => number().prop_map(Kv::U64),
        2 => float().prop_map(Kv::F32),
        1 => any::<bool>().prop_map(Kv::Bool),
        1 => ".{0,40}".prop_map(Kv::Str),
        1 => select(WORDS).prop_map(|word| Kv::Str(word.into())),
        1 => vec(vec(any::<u8>(), 0..20), 0..20).prop_map(Kv::Strs),
        1 => vec(any::<i32>(), 0..20).prop_map(Kv::I32s),
    ]
}

/// Which key of the metadata.
#[derive(Clone, Debug)]
enum Key {
    /// One that the file has.
    Its(Index),
    /// One of [`KEYS`].
    Known(&'static str),
    Any(String),
}

/// A change to the metadata: a key and its new value, or none.
#[derive(Clone, Debug)]
pub(crate) struct Setting(Key, Option<Kv>);

pub(crate) fn setting() -> impl Strategy<Value = Setting> {
    let key = prop_oneof![
        5 => any::<Index>().prop_map(Key::Its),
        5 => select(KEYS).prop_map(Key::Known),
        1 => "[a-z._]{1,30}".prop_map(Key::Any),
        1 => select(vec!["split.count", "prism.hadamard.block", "general.alignment"])
            .prop_map(|key| Key::Any(key.into())),
    ];
    (key, prop::option::weighted(0.9, value())).prop_map(|(key, value)| Setting(key, value))
}

impl Setting {
    pub(crate) fn apply(self, file: &mut File) {
        let Self(key, value) = self;
        let keys = || file.metadata.iter().map(|(key, _)| key);
        let key = match key {
            Key::Its(at) => keys().nth(at.index(file.metadata.len())).unwrap().clone(),
            Key::Any(key) => key,
            // Its prefix is that of a key that no file lacks.
            Key::Known(name) => {
                let prefix = keys().find_map(|key| key.strip_suffix("block_count"));
                format!("{}{name}", prefix.unwrap_or_default())
            }
        };
        match value {
            Some(value) => drop(file.set(&key, value)),
            None => file.metadata.retain(|(other, _)| *other != key),
        }
    }
}

fn inputs() -> impl Strategy<Value = Input> {
    let damaged = prop::option::weighted(0.3, damage());
    (any::<Index>(), vec(setting(), 0..6), damaged).prop_map(|(base, settings, damaged)| {
        // The sizes of a model depend on no tensor but the embedding.
        let mut file = base.get(&BASES).clone();
        file.tensors.retain(|tensor| tensor.name == "token_embd.weight");
        settings.into_iter().for_each(|setting| setting.apply(&mut file));
        let mut bytes = file.build();
        damaged.iter().for_each(|damage| spoil(&mut bytes, damage));
        Input(bytes)
    })
}

fn named<T>(key: &str, result: Result<T, Error>) {
    if let Err(error) = result {
        assert_named(&error);
        assert!(error.to_string().contains(key), "{error} does not name {key}");
    }
}

fn target(bytes: &[u8]) {
    let Ok(gguf) = read(bytes) else { return };
    let metadata: &Metadata = &gguf.metadata;
    for (key, value) in metadata.iter() {
        // Long values are shortened.
        assert!(value.to_string().len() < 4096);
        let _ = value.integer();
        named(key, metadata.integer(key));
        named(key, metadata.float(key));
        named(key, metadata.boolean(key));
        named(key, metadata.text(key));
        named(
            key,
            metadata.strings(key).map(|strings| {
                strings.map(|strings| assert_eq!(strings.iter().count(), strings.len()))
            }),
        );
        named(
            key,
            metadata.numbers(key).map(|numbers| {
                numbers.map(|numbers| assert_eq!(numbers.iter().count(), numbers.len()))
            }),
        );
        named(key, metadata.require(key, Metadata::integer));
    }
    named("absent", metadata.require("absent", Metadata::text));
    if let Err(error) = Config::from_gguf(&gguf) {
        assert_named(&error);
    }
}

#[test]
fn metadata() {
    fuzz("metadata", &Limits { memory: 4 << 20, memory_per_byte: 32 }, inputs(), target);
}
