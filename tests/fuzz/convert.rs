//! Target: the readers of a folder from Hugging Face. `tests/fuzz/safetensors.rs` tries the header of the
//! weights by itself.
#![allow(dead_code, unreachable_pub, reason = "the targets use a part of the command line")]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

use crate::gguf::{damage, number, spoil};
use crate::run::{Input, Limits, assert_named, fuzz_for, join, split};
use crate::support::path;

// The command line's own readers: they are part of no library.
#[path = "../../src/bin/tritloom/convert/checkpoint.rs"]
mod checkpoint;
#[path = "../../src/bin/tritloom/convert/config.rs"]
mod config;
#[path = "../../src/bin/tritloom/convert/object.rs"]
mod object;
#[path = "../../src/bin/tritloom/convert/pre_tokenizer.rs"]
mod pre_tokenizer;
#[path = "../../src/bin/tritloom/convert/safetensors.rs"]
pub(crate) mod safetensors;
#[path = "../../src/bin/tritloom/convert/tokenizer.rs"]
mod tokenizer;

/// The two targets of `tritloom convert` share one second.
pub(crate) const SECONDS: f64 = 0.5;

const INDEX: &str = "model.safetensors.index.json";

/// The files of an input, in this order. All but the index are read for every model.
const FILES: [&str; 5] =
    ["config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json", INDEX];

/// The JSON files of valid folders. One that a folder lacks is an empty object.
static BASES: LazyLock<Vec<[Value; 5]>> = LazyLock::new(|| {
    let folder = |name: &&str| {
        let folder = path("tests/data/convert").join(name);
        FILES.map(|file| match fs::read_to_string(folder.join(file)) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => json!({}),
        })
    };
    ["bitnet", "llama", "minicpm", "qwen3"].iter().map(folder).collect()
});

/// Words that mean something to a reader.
const WORDS: &[&str] = &[
    "BitnetForCausalLM",
    "MiniCPMForCausalLM",
    "silu",
    "relu2",
    "default",
    "linear",
    "yarn",
    "llama3",
    "longrope",
    "bitnet",
    "autobitlinear",
    "offline",
    "online",
    "full_attention",
    "BPE",
    "Sequence",
    "ByteLevel",
    "Metaspace",
    "Split",
    "Prepend",
    "Replace",
    "TemplateProcessing",
    "NFC",
    "\u{2581}",
    "<s>",
    "<0x0A>",
    "model-00001-of-00002.safetensors",
    "../config.json",
];

/// Keys that a folder may lack.
const KEYS: &[&str] = &[
    "head_dim",
    "rope_scaling",
    "rope_parameters",
    "rope_type",
    "type",
    "factor",
    "original_max_position_embeddings",
    "attention_factor",
    "beta_fast",
    "truncate",
    "low_freq_factor",
    "high_freq_factor",
    "short_factor",
    "long_factor",
    "scale_emb",
    "scale_depth",
    "dim_model_base",
    "layer_types",
    "quantization_config",
    "quantization_mode",
    "linear_class",
    "eos_token_id",
    "unk_token",
    "byte_fallback",
    "dropout",
    "normalizer",
    "pre_tokenizer",
    "post_processor",
    "added_tokens",
    "add_eos_token",
    "bos_token",
    "weight_map",
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => number().prop_map(Value::from),
        2 => any::<f64>().prop_map(Value::from),
        1 => select(vec![0.0, 0.5, 1.0, -1.0, 1e300]).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        4 => select(WORDS).prop_map(Value::from),
        1 => ".{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(KEYS), inner), 0..4).prop_map(|pairs| {
                Value::from(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect::<Map<_, _>>())
            }),
        ]
    })
}

/// A change to a value within a file.
#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    /// Gives an object this key.
    Put(&'static str, Value),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => value().prop_map(Change::Replace),
        1 => Just(Change::Remove),
        2 => (select(KEYS), value()).prop_map(|(key, value)| Change::Put(key, value)),
    ]
}

/// Changes the value to which `way` leads: each step of it chooses a child.
fn apply(value: &mut Value, way: &[Index], change: &Change) {
    let Some((step, rest)) = way.split_first() else {
        match (change, value) {
            (Change::Replace(new), value) => value.clone_from(new),
            (Change::Put(key, new), Value::Object(map)) => {
                drop(map.insert((*key).into(), new.clone()))
            }
            _ => {}
        }
        return;
    };
    let removes = rest.is_empty() && matches!(change, Change::Remove);
    match value {
        Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(step.index(map.len())).unwrap().clone();
            match removes {
                true => drop(map.remove(&key)),
                false => apply(&mut map[&key], rest, change),
            }
        }
        Value::Array(list) if !list.is_empty() => {
            let at = step.index(list.len());
            match removes {
                true => drop(list.remove(at)),
                false => apply(&mut list[at], rest, change),
            }
        }
        _ => apply(value, &[], change),
    }
}

fn inputs() -> impl Strategy<Value = Input> {
    let file = || 0..FILES.len();
    let changes = vec((file(), vec(any::<Index>(), 0..5), change()), 0..4);
    let damaged = prop::option::weighted(0.2, (file(), damage()));
    (any::<Index>(), changes, damaged).prop_map(|(base, changes, damaged)| {
        let mut files = BASES[base.index(BASES.len())].clone();
        for (file, way, change) in &changes {
            apply(&mut files[*file], way, change);
        }
        let mut files = files.map(|file| file.to_string().into_bytes());
        if let Some((file, damage)) = damaged {
            spoil(&mut files[file], &damage);
        }
        join(files)
    })
}

/// Reads a folder as `tritloom convert` does before it looks at the weights.
fn read(folder: &Path) -> tritloom::Result<()> {
    let map: Map<String, Value> = checkpoint::json(folder, "config.json")?;
    for embeds in [false, true] {
        let model = config::model(map.clone(), "fuzz", embeds)?;
        let (metadata, _) = tokenizer::metadata(folder, &map, model.n_vocab, embeds)?;
        for (key, value) in metadata {
            use tritloom::gguf::Value::{Numbers, Strings};
            let len = match value {
                Strings(strings) if key.ends_with(".tokens") => strings.len(),
                Numbers(numbers) => numbers.len(),
                _ => continue,
            };
            assert_eq!(len as u64, model.n_vocab, "{key}");
        }
    }
    Ok(())
}

fn target(bytes: &[u8]) {
    let folder = path("target/tmp/fuzz-convert");
    // Some file systems wait for the disk when a file is overwritten.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let files = split(bytes);
    for (index, name) in FILES.iter().enumerate() {
        fs::write(folder.join(name), files.get(index).copied().unwrap_or_default()).unwrap();
    }
    if let Err(error) = read(&folder) {
        assert_named(&error);
    }
    // None of the files in the index exists. Files of another folder are never opened.
    let Err(error) = checkpoint::Checkpoint::open(&folder) else { return };
    assert_named(&error);
    assert_eq!(error.code(), "io", "{error}");
}

#[test]
fn convert() {
    // A model may have four million tokens.
    let limits = Limits { memory: 512 << 20, memory_per_byte: 256 };
    fuzz_for(SECONDS, "convert", &limits, inputs(), target);
}
