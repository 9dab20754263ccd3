//! Adapters on small models, with logits that another program computed.
#![allow(dead_code, unreachable_pub, reason = "each test crate uses a part")]

use std::collections::BTreeMap;
use std::io::Write;

use half::f16;
use serde::Deserialize;
use tritloom::gguf::{Header, TensorEntry, Value, type_id};

use super::{Random, floats, json};

/// A model with adapters, and the logits that it must have.
#[derive(Clone, Debug)]
pub struct Adapted {
    /// The name of the expectation.
    pub name: String,
    /// The model's file in `tests/data/models`, without its extension.
    pub model: String,
    /// The adapters' files in `tests/data/lora`, without their extensions, and their scales.
    pub adapters: Vec<(String, f32)>,
    /// The tokens.
    pub ids: Vec<u32>,
    /// The context that the model is opened with.
    pub context: usize,
    /// The logits after each token, `[ids][n_vocab]`.
    pub logits: Vec<f32>,
}

impl Adapted {
    /// The path of an adapter's file.
    pub fn path(adapter: &str) -> String {
        format!("tests/data/lora/{adapter}.gguf")
    }

    /// Whether the inputs of products are int8: the weights are of I2_S.
    pub fn rounds_inputs(&self) -> bool {
        self.model.starts_with("bitnet")
    }
}

#[derive(Deserialize)]
struct Manifest {
    tokens: Vec<u32>,
    bases: BTreeMap<String, Base>,
}

#[derive(Deserialize)]
struct Base {
    n_vocab: usize,
    ctx: usize,
    runs: BTreeMap<String, Run>,
}

#[derive(Deserialize)]
struct Run {
    adapters: Vec<(String, f32)>,
}

/// Every expectation.
pub fn adapted() -> Vec<Adapted> {
    let manifest: Manifest = serde_json::from_value(json("tests/data/lora/manifest.json"))
        .expect("the manifest of adapters");
    let mut all = Vec::new();
    for (model, base) in manifest.bases {
        for (name, run) in base.runs {
            let logits = floats(&format!("tests/data/lora/{name}.numpy.f32"));
            assert_eq!(logits.len(), manifest.tokens.len() * base.n_vocab, "{name}");
            all.push(Adapted {
                name,
                model: model.clone(),
                adapters: run.adapters,
                ids: manifest.tokens.clone(),
                context: base.ctx,
                logits,
            });
        }
    }
    assert_eq!(all.len(), 11);
    all
}

/// The files in `tests/data/lora/bad`, without their extensions. Those that begin with `ok` are to be
/// accepted.
pub fn good_and_bad() -> Vec<String> {
    let manifest = json("tests/data/lora/bad/manifest.json");
    let all: BTreeMap<String, serde_json::Value> =
        serde_json::from_value(manifest).expect("a table of files");
    assert_eq!(all.len(), 20);
    all.into_keys().collect()
}

/// The rank of random pairs.
const RANK: u64 = 4;

/// The shapes of a pair on a matrix of `[in, out]`, after the matrix's name.
pub fn on_matrix(name: &str, [n_in, n_out]: [u64; 2]) -> (String, [[u64; 2]; 2]) {
    (name.into(), [[n_in, RANK], [RANK, n_out]])
}

/// The shapes of a pair on the embedding `[n_embd, n_vocab]`, which is read by rows.
pub fn on_embedding([n_embd, n_vocab]: [u64; 2]) -> (String, [[u64; 2]; 2]) {
    ("token_embd.weight".into(), [[RANK, n_vocab], [RANK, n_embd]])
}

/// An adapter of random pairs, in f32. f16 holds their values too.
pub fn random(architecture: &str, pairs: &[(String, [[u64; 2]; 2])], seed: u64) -> Vec<u8> {
    random_times(architecture, pairs, seed, [1.0, 1.0])
}

/// Like [`random`], with the first and the second half of each pair multiplied by `times`.
pub fn random_times(
    architecture: &str,
    pairs: &[(String, [[u64; 2]; 2])],
    seed: u64,
    times: [f32; 2],
) -> Vec<u8> {
    let text = |value: &str| Value::String(value.as_bytes().to_vec());
    let metadata = [
        ("general.type", text("adapter")),
        ("general.architecture", text(architecture)),
        ("adapter.type", text("lora")),
        ("adapter.lora.alpha", Value::F32(8.0)),
    ];
    let halves = |(name, shapes): &(String, [[u64; 2]; 2])| {
        ["lora_a", "lora_b"]
            .into_iter()
            .zip(*shapes)
            .map(|(half, ne)| TensorEntry {
                name: format!("{name}.{half}"),
                len: 4 * ne[0] * ne[1],
                ne: ne.into(),
                type_id: type_id::F32,
            })
            .collect::<Vec<_>>()
    };
    let tensors: Vec<TensorEntry> = pairs.iter().flat_map(halves).collect();
    let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
    let header = Header { version: 3, alignment: 32, metadata, tensors };
    let mut random = Random(seed);
    let mut file = Vec::new();
    let written = header.write_file(&mut file, |index, out| {
        let n = header.tensors[index].len / 4;
        let mut value = || f16::from_f32(random.float() - 0.5).to_f32() * times[index % 2];
        (0..n).try_for_each(|_| out.write_all(&value().to_le_bytes()))
    });
    written.expect("memory takes everything");
    file
}
