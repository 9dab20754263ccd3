#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

use std::ops::Range;

use half::f16;
use sha2::{Digest, Sha256};
use tritloom::gguf::Gguf;
use tritloom::model::weights;
use tritloom::native::block_on;
use tritloom::source::{Reader, Source};
use tritloom::tokenizer::Tokenizer;

use super::*;

/// A file of which only the header exists.
struct Unfilled {
    header: Vec<u8>,
    len: u64,
}

impl Source for Unfilled {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let byte = |at: u64| self.header.get(at as usize).copied().unwrap_or(0);
        Ok(range.map(byte).collect())
    }
}

/// The header of a model, with the padding after it.
fn header(model: &RandomFile) -> Vec<u8> {
    let mut header = Vec::new();
    let stopped = model.header.write_file(&mut header, |_, _| Err(io::Error::other("enough")));
    assert_eq!(stopped.unwrap_err().to_string(), "enough");
    header
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_loader_takes_every_shape_with_every_embedding() {
    for shape in Shape::value_variants() {
        let sizes = shape.sizes();
        let (f16, q8_0, q6_k) = (TensorType::F16, TensorType::Q8_0, TensorType::Q6K);
        for embedding in [sizes.embedding, f16, q8_0, q6_k] {
            let sizes = Sizes { embedding, ..sizes };
            let model = RandomFile::model(&sizes, Rows::Usual).unwrap();
            let header = header(&model);
            let padded = model.header.tensors.iter().map(|t| t.len.next_multiple_of(32));
            let len = header.len() as u64 + padded.sum::<u64>();
            let mut reader = Reader::new(Unfilled { header, len });

            let gguf = block_on(Gguf::read(&mut reader)).unwrap();
            let config = Config::from_gguf(&gguf).unwrap();
            let expected = Config { name: "random".into(), ..sizes.config().unwrap() };
            assert_eq!(config, expected, "{shape:?}");
            let weights = weights::weights(&config, &gguf).unwrap();
            assert_eq!(weights.len(), gguf.tensors.len(), "{shape:?}");
            let tokenizer = Tokenizer::from_gguf(&gguf, &config).unwrap();
            assert_eq!(tokenizer.n_tokens(), config.n_vocab);
            assert_eq!(tokenizer.notes(), &[] as &[String]);
            assert!(tokenizer.is_stop(tokenizer.eos().unwrap()), "{shape:?}");
            let text = "Three words: 1 é";
            assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()).unwrap(), text);
        }
    }
}

/// A file is as large as its publisher says, but for the vocabulary, which has made-up words.
#[test]
fn shapes_are_as_heavy_as_the_published_models() {
    for (shape, published) in [
        (Shape::Bitnet2b4t, 1.18e9),
        (Shape::Bonsai1_7b, 0.484e9),
        (Shape::Bonsai4b, 1.13e9),
        (Shape::Bonsai8b, 2.30e9),
        (Shape::Bonsai1_7bQ1_0, 0.24e9),
        (Shape::Bonsai4bQ1_0, 0.57e9),
        (Shape::Bonsai8bQ1_0, 1.15e9),
        (Shape::BitnetEmbedding0_6b, 0.428e9),
        (Shape::Bitcpm0_5b, 0.245e9),
        (Shape::Bitcpm1b, 0.551e9),
        (Shape::FalconE3b, 1.0e9),
    ] {
        let model = RandomFile::model(&shape.sizes(), Rows::Usual).unwrap();
        let bytes: u64 = model.header.tensors.iter().map(|tensor| tensor.len).sum();
        let ratio = bytes as f64 / published;
        assert!((0.98..1.02).contains(&ratio), "{shape:?}: {bytes} bytes");
    }
}

/// The values of the rows, except those of special tokens.
fn embedding(deviation: f32) -> Vec<f32> {
    let sizes = Sizes { n_layer: 1, ..Shape::Tiny.sizes() };
    let model = RandomFile::model(&sizes, Rows::Normal(deviation)).unwrap();
    let mut bytes = Vec::new();
    model.tensors[0].write(&mut Noise::new(), &mut bytes).unwrap();
    bytes.truncate(2 * (sizes.n_vocab - sizes.vocabulary.special.len()) * sizes.n_embd);
    let halves = bytes.chunks_exact(2).map(|half| f16::from_le_bytes([half[0], half[1]]));
    halves.map(f32::from).collect()
}

#[test]
fn an_embedding_has_the_deviation_that_was_asked_for() {
    let values = embedding(0.5);
    let mean = |of: &dyn Fn(f64) -> f64| {
        values.iter().map(|&value| of(value.into())).sum::<f64>() / values.len() as f64
    };
    assert!(mean(&|x| x).abs() < 0.002);
    assert!((mean(&|x| x * x).sqrt() - 0.5).abs() < 0.002);
    // Of normal values one in 15 787 lies beyond four deviations. Of uniform values none would.
    let beyond = 15_787.0 * mean(&|x| if x.abs() >= 2.0 { 1.0 } else { 0.0 });
    assert!((0.7..1.3).contains(&beyond), "{beyond} of what is expected");
    for deviation in [*DEVIATIONS.start(), *DEVIATIONS.end()] {
        let values = embedding(deviation);
        assert!(values.iter().all(|value| value.is_finite()), "{deviation}");
        let zeros = values.iter().filter(|&&value| value == 0.0).count();
        assert!(zeros < values.len() / 100, "{zeros} zeros at {deviation}");
    }
}

/// Figures that were measured with these files are compared over the years, so the files must
/// not change.
#[test]
fn the_shapes_of_bitnet_stay_byte_for_byte() {
    let with_layers = |shape: Shape, n_layer: usize| Sizes { n_layer, ..shape.sizes() };
    for (layers, rows, expected) in [
        (1, Rows::Usual, "d3871c87f5815669abcff058033f69f790feeea6b3cf70bb5cdfbd4e1a8e33af"),
        (2, Rows::Counting, "6e1e1032c94a66548b97a8d97efbd61636bc4b2b24c28e31e99db0a3ffad6337"),
    ] {
        let model = RandomFile::model(&with_layers(Shape::Tiny, layers), rows).unwrap();
        let mut bytes = Vec::new();
        model.write(&mut bytes).unwrap();
        assert_eq!(digest(&bytes), expected, "{layers} layers");
    }
    let model = RandomFile::model(&with_layers(Shape::Bitnet2b4t, 1), Rows::Usual).unwrap();
    assert_eq!(
        digest(&header(&model)),
        "43d6b27cd5ac8de8b11611e09bf206f443758d9fab276e8ec9df5148b4177962"
    );
}
