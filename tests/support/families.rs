//! Small models of all families, with logits that other programs computed.
#![allow(dead_code, unreachable_pub, reason = "each test crate uses a part")]

use serde_json::Value;

use super::{floats, json};

/// The results that a model must compute.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The model's file in `tests/data/models`, without its extension.
    pub model: String,
    /// The name of the expectation: a model can have several.
    pub name: String,
    /// The tokens.
    pub ids: Vec<u32>,
    /// The context that the model is opened with.
    pub context: usize,
    /// The first token after which the logits are given.
    pub first: usize,
    /// The logits, `[ids - first][n_vocab]`.
    pub logits: Vec<f32>,
    /// How far the program for which the file was made is off from the same logits.
    pub others: f64,
    /// Whether the inputs of its products are int8: the weights are of I2_S.
    pub rounds_inputs: bool,
}

impl Expected {
    /// How far the logits may be off where nothing is rounded.
    pub fn of_floats(&self) -> f64 {
        if self.rounds_inputs { self.of_int8() } else { 1e-4 }
    }

    /// How far they may be off with inputs of int8: hardly further than other programs.
    pub fn of_int8(&self) -> f64 {
        1.1 * self.others
    }
}

/// A file of each architecture; llama and bitnet with scales in blocks and without.
pub const OF_EACH_ARCHITECTURE: [&str; 7] = [
    "bitnet-b1.58-embd-q6_k",
    "bitnet-i2_s",
    "bitnet-tq2_0",
    "llama-i2_s",
    "llama-tq2_0",
    "minicpm-tq2_0",
    "qwen3-q2_0",
];

/// Every expectation. Models of the same weights in other types share theirs.
pub fn expectations() -> Vec<Expected> {
    let manifest = json("tests/data/models/manifest.json");
    let list = |value: &Value| -> Vec<u32> { serde_json::from_value(value.clone()).unwrap() };
    let mut all = Vec::new();
    for (name, model) in manifest["models"].as_object().unwrap() {
        let same = model["same_weights"].as_array().unwrap().iter();
        for file in same.map(|same| same.as_str().unwrap()).chain([name.as_str()]) {
            for (stem, logits) in model["logits"].as_object().unwrap() {
                let number = |key: &str| logits[key].as_u64().unwrap() as usize;
                let measured = &manifest["measured"][stem];
                let program = ["llamacpp_vs_numpy", "bitnetcpp_vs_numpy"]
                    .into_iter()
                    .find(|program| !measured[program].is_null())
                    .unwrap();
                let measured = &measured[program];
                let [rms, std] =
                    ["rms", "std_of_logits"].map(|key| measured[key].as_f64().unwrap());
                let ids = match logits["list"].as_str().unwrap() {
                    "tokens" => list(&manifest["tokens"]),
                    _ => list(&manifest["long_tokens"]),
                };
                let expected = floats(&format!("tests/data/models/{stem}.numpy.f32"));
                let n_vocab = model["n_vocab"].as_u64().unwrap() as usize;
                assert_eq!(expected.len(), number("count") * n_vocab, "{stem}");
                all.push(Expected {
                    model: file.into(),
                    name: if file == name { stem.clone() } else { format!("{file}, {stem}") },
                    ids,
                    context: number("ctx"),
                    first: number("first"),
                    logits: expected,
                    others: rms / std,
                    rounds_inputs: program == "bitnetcpp_vs_numpy",
                });
            }
        }
    }
    assert_eq!(all.len(), 24);
    all
}

/// The root of the mean square of the difference, over the standard deviation of `expected`.
pub fn distance(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let n = expected.len() as f64;
    let mean = expected.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
    let square = |x: f64| x * x;
    let variance: f64 = expected.iter().map(|&x| square(f64::from(x) - mean)).sum();
    let error: f64 =
        found.iter().zip(expected).map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
    assert!(found.iter().all(|x| x.is_finite()));
    (error / variance).sqrt()
}
