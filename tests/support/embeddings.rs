//! Small embedding models, with vectors that another program computed.
#![allow(dead_code, reason = "each test crate uses a part")]

use std::fs;

use tritloom::model::Pooling;
use tritloom::native::block_on;
use tritloom::session::{EmbedOptions, EmbedText, Session};

use crate::setup::Setup;
use crate::support::{floats, json, path};

/// The model of BitNet's kind: a norm before each matrix.
pub(crate) const BITNET: &str = "tests/data/embed/bitnet-embd-i2_s.gguf";

/// The vectors of a model with one pooling.
pub(crate) struct Expected {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) pooling: Pooling,
    /// Whether the program rounded the inputs of products to int8.
    pub(crate) rounded: bool,
    /// Whether the weights are I2_S, which take inputs of int8 wherever they are computed.
    pub(crate) is_i2s: bool,
    /// One for each of [`sequences`], of length 1.
    pub(crate) vectors: Vec<Vec<f32>>,
}

/// The tokens of nine texts. The last three have texts, see [`texts`].
pub(crate) fn sequences() -> Vec<Vec<u32>> {
    serde_json::from_value(json("tests/data/embed/tokens.json")["sequences"].clone()).unwrap()
}

/// Texts, and which of [`sequences`] are their tokens.
pub(crate) fn texts() -> Vec<(usize, String)> {
    let tokens = json("tests/data/embed/tokens.json");
    let texts = tokens["texts"].as_object().unwrap().iter();
    texts.map(|(n, text)| (n.parse().unwrap(), text.as_str().unwrap().into())).collect()
}

/// Numbers of [`sequences`] that are embedded together.
pub(crate) fn batches() -> Vec<Vec<usize>> {
    serde_json::from_value(json("tests/data/embed/tokens.json")["batches"].clone()).unwrap()
}

pub(crate) fn expectations() -> Vec<Expected> {
    let tokens = json("tests/data/embed/tokens.json");
    let mut all = Vec::new();
    for (model, facts) in tokens["models"].as_object().unwrap() {
        let n_embd = facts["n_embd"].as_u64().unwrap() as usize;
        for (name, file) in facts["files"].as_object().unwrap() {
            let values = floats(&format!("tests/data/embed/{name}"));
            all.push(Expected {
                file: format!("tests/data/embed/{model}.gguf"),
                name: name.clone(),
                pooling: Pooling::named(file["pooling"].as_str().unwrap()).unwrap(),
                rounded: file["act"] == "int8",
                is_i2s: model.ends_with("i2_s"),
                vectors: values.chunks(n_embd).map(<[f32]>::to_vec).collect(),
            });
        }
    }
    assert_eq!(all.len(), 10);
    all
}

pub(crate) fn load(setup: &Setup, file: &str) -> Session {
    setup.load(&fs::read(path(file)).unwrap()).unwrap()
}

pub(crate) fn ids(sequences: &[Vec<u32>]) -> Vec<EmbedText> {
    sequences.iter().cloned().map(EmbedText::Ids).collect()
}

pub(crate) fn embed(
    session: &mut Session,
    texts: &[EmbedText],
    options: &EmbedOptions,
) -> Vec<Vec<f32>> {
    block_on(session.embed(texts, options, &mut |_| {})).unwrap().vectors
}

/// How far two vectors of length 1 are apart: 1 less their cosine, and the largest difference.
pub(crate) fn apart(found: &[f32], expected: &[f32]) -> (f64, f32) {
    assert_eq!(found.len(), expected.len());
    let pairs = || found.iter().zip(expected);
    let cosine: f64 = pairs().map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    (1.0 - cosine, pairs().map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}

/// Compares the vectors of every model and pooling with the other program's. `floats` says that only I2_S
/// has inputs of int8, and that keys and values are f32.
pub(crate) fn check_vectors(setup: impl Fn() -> Setup, floats: bool) {
    let mut bad = Vec::new();
    let mut loaded: Option<(String, Session)> = None;
    // The same weights without rounding have a vector of their own, for programs that do not round.
    for expected in expectations().iter().filter(|expected| expected.rounded == expected.is_i2s) {
        let known = loaded.take().filter(|(file, _)| *file == expected.file);
        let (_, session) = loaded.insert(
            known.unwrap_or_else(|| (expected.file.clone(), load(&setup(), &expected.file))),
        );
        let options = EmbedOptions { pooling: Some(expected.pooling), ..EmbedOptions::default() };
        let found = embed(session, &ids(&sequences()), &options);
        // A rounding that tips moves the cosine by some 4e-5. Inputs of int8 where the model was not trained
        // with them move it by 6e-4.
        let (cosine, largest) = match (expected.is_i2s, floats) {
            (true, true) => (1e-4, 4e-3),
            (false, true) => (1e-7, 1e-4),
            (_, false) => (1e-3, 1e-2),
        };
        for (n, (found, expected_vector)) in found.iter().zip(&expected.vectors).enumerate() {
            let length: f64 = found.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            assert!((length - 1.0).abs() < 1e-5, "{length}");
            let (off, most) = apart(found, expected_vector);
            if off > cosine || most > largest {
                bad.push(format!("{}, {n}: {off:.2e}, {most:.2e}", expected.name));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
