//! Models of well-known shapes with random weights: as heavy as the real ones, for timing.

mod shapes;
mod tensors;
mod vocabulary;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use tritloom::blocks::block_type;
use tritloom::gguf::{Header, TensorType, Value};
use tritloom::model::{Config, RopeScaling};
use tritloom::{Error, Result};

use crate::options::{number, whole_number};

pub(crate) use shapes::{Shape, Sizes};
pub(crate) use tensors::DEVIATIONS;
use tensors::{Noise, Tensor, tensors};

#[derive(Args)]
pub(crate) struct Random {
    /// The shape of the model
    #[arg(long, value_enum, default_value_t = Shape::Bitnet2b4t)]
    shape: Shape,
    /// Layers [default: as many as the shape has]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=MAX_LAYERS))]
    #[arg(allow_negative_numbers = true)]
    layers: Option<usize>,
    /// The type of the embedding, and of the LM head if that is a tensor of its own [default: the
    /// shape's]
    #[arg(long, value_name = "TYPE", value_enum)]
    embedding: Option<Embedding>,
    /// Draw the values of the embedding, and of the LM head if that is a tensor of its own, from a
    /// normal distribution of this standard deviation. Both must be F16 [default: uniform values,
    /// with a deviation of about 0.6]
    #[arg(long, value_name = "D", value_parser = number(DEVIATIONS), conflicts_with = "counting")]
    #[arg(allow_negative_numbers = true)]
    embedding_deviation: Option<f32>,
    /// Make a model that counts: after each token comes the next one, up to a multiple of the
    /// width. If the prompt counts too, the answer copies it
    #[arg(long)]
    counting: bool,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// The file to write
    file: PathBuf,
}

/// A type that the embedding can get.
#[derive(Clone, Copy, ValueEnum)]
enum Embedding {
    /// 16 bits for each value
    F16,
    /// 8.5 bits for each value
    #[value(name = "q8_0")]
    Q8_0,
    /// 6.6 bits for each value
    #[value(name = "q6_k")]
    Q6K,
}

impl From<Embedding> for TensorType {
    fn from(embedding: Embedding) -> Self {
        match embedding {
            Embedding::F16 => Self::F16,
            Embedding::Q8_0 => Self::Q8_0,
            Embedding::Q6K => Self::Q6K,
        }
    }
}

/// The most layers. The loader refuses models with more.
const MAX_LAYERS: usize = 1 << 10;

pub(crate) fn random(args: &Random) -> Result<()> {
    let mut sizes = args.shape.sizes();
    sizes.n_layer = args.layers.unwrap_or(sizes.n_layer);
    if let Some(embedding) = args.embedding {
        sizes.embedding = embedding.into();
        sizes.head = sizes.head.map(|_| embedding.into());
    }
    if args.counting {
        sizes.check_counting("counting")?;
    }
    let rows = Rows::new(args.counting, args.embedding_deviation);
    write(&sizes, rows, &args.file, args.force)
}

/// The values of the vocabulary's rows.
#[derive(Clone, Copy)]
pub(crate) enum Rows {
    /// The usual values of their type.
    Usual,
    /// Values that make the model count.
    Counting,
    /// Values of a normal distribution of this standard deviation.
    Normal(f32),
}

impl Rows {
    /// The two options exclude each other.
    pub(crate) fn new(counting: bool, deviation: Option<f32>) -> Self {
        match deviation {
            _ if counting => Self::Counting,
            Some(deviation) => Self::Normal(deviation),
            None => Self::Usual,
        }
    }
}

/// Writes a model to `path`, with the same bytes every time. If the file exists, that is an error,
/// unless `overwrite` is true.
pub(crate) fn write(sizes: &Sizes, rows: Rows, path: &Path, overwrite: bool) -> Result<()> {
    let model = RandomModel::new(sizes, rows)?;
    let failed = |error: io::Error| Error::unwritable(path.display().to_string(), error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!overwrite);
    let file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::BadOption {
            name: "file".into(),
            why: format!("{} exists; --force overwrites it", path.display()),
        },
        _ => failed(error),
    })?;
    model.write(BufWriter::with_capacity(1 << 20, file)).map_err(failed)
}

/// A model that is to be written.
struct RandomModel {
    header: Header,
    tensors: Vec<Tensor>,
}

impl RandomModel {
    fn new(sizes: &Sizes, rows: Rows) -> Result<Self> {
        let config = sizes.config()?;
        let mut tensors = tensors(sizes, &config)?;
        let name = match rows {
            Rows::Usual => "random".into(),
            Rows::Counting => {
                tensors.iter_mut().for_each(Tensor::count);
                "random, counting".into()
            }
            Rows::Normal(deviation) => {
                sizes.check_deviation()?;
                tensors.iter_mut().for_each(|tensor| tensor.deviate(deviation));
                format!("random, embedding deviation {deviation}")
            }
        };
        let mut metadata = metadata(&config, &name);
        metadata.extend(sizes.vocabulary.metadata(sizes.n_vocab));
        let entries = tensors.iter().map(Tensor::entry).collect();
        let header = Header { version: 3, alignment: 32, metadata, tensors: entries };
        Ok(Self { header, tensors })
    }

    fn write(&self, out: impl Write) -> io::Result<()> {
        let mut noise = Noise::new();
        self.header.write_file(out, |index, out| self.tensors[index].write(&mut noise, out))
    }
}

/// The metadata of a model without that of its tokenizer.
fn metadata(config: &Config, name: &str) -> Vec<(String, Value)> {
    let size = |n: usize| Value::U32(n as u32);
    let text = |text: &str| Value::String(text.into());
    let architecture = config.architecture;
    let mut keys = vec![
        ("vocab_size", size(config.n_vocab)),
        ("context_length", size(config.n_ctx)),
        ("embedding_length", size(config.n_embd)),
        ("block_count", size(config.n_layer)),
        ("feed_forward_length", size(config.n_ff)),
        ("rope.dimension_count", size(config.head_dim)),
        ("attention.head_count", size(config.n_head)),
        ("attention.head_count_kv", size(config.n_head_kv)),
        ("attention.layer_norm_rms_epsilon", Value::F32(config.eps)),
        ("rope.freq_base", Value::F32(config.rope.base as f32)),
    ];
    if config.n_embd_q() != config.n_embd {
        keys.push(("attention.key_length", size(config.head_dim)));
        keys.push(("attention.value_length", size(config.head_dim)));
    }
    match config.rope.scaling {
        RopeScaling::Linear { .. } => {}
        RopeScaling::Yarn { factor, original } => keys.extend([
            ("rope.scaling.type", text("yarn")),
            ("rope.scaling.factor", Value::F32(factor as f32)),
            ("rope.scaling.original_context_length", size(original as usize)),
        ]),
        RopeScaling::LongRope { .. } => keys.push(("rope.scaling.type", text("longrope"))),
    }
    if architecture.scales {
        keys.extend([
            ("embedding_scale", Value::F32(config.embedding_scale)),
            ("residual_scale", Value::F32(config.residual_scale)),
            ("logit_scale", Value::F32(config.logit_scale)),
        ]);
    }
    let general = [("architecture", text(architecture.name)), ("name", text(name))];
    let general = general.map(|(key, value)| (format!("general.{key}"), value));
    let own = keys.into_iter().map(|(key, value)| (format!("{}.{key}", architecture.name), value));
    general.into_iter().chain(own).collect()
}

/// Bytes of a row of `columns` elements of a type that is not I2_S.
fn row_bytes(ty: TensorType, columns: usize) -> Result<usize> {
    match (ty, block_type(ty)) {
        (TensorType::F32, _) => Ok(4 * columns),
        (TensorType::F16, _) => Ok(2 * columns),
        (_, Some(block)) if columns.is_multiple_of(block.elements) => {
            Ok(columns / block.elements * block.bytes)
        }
        _ => Err(Error::Internal(format!("a row of {columns} elements of {ty}"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "this is how tests fail")]
mod tests {
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
    fn header(model: &RandomModel) -> Vec<u8> {
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
                let model = RandomModel::new(&sizes, Rows::Usual).unwrap();
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
            (Shape::Bitcpm0_5b, 0.245e9),
            (Shape::Bitcpm1b, 0.551e9),
            (Shape::FalconE3b, 1.0e9),
        ] {
            let model = RandomModel::new(&shape.sizes(), Rows::Usual).unwrap();
            let bytes: u64 = model.header.tensors.iter().map(|tensor| tensor.len).sum();
            let ratio = bytes as f64 / published;
            assert!((0.98..1.02).contains(&ratio), "{shape:?}: {bytes} bytes");
        }
    }

    /// The values of the rows, except those of special tokens.
    fn embedding(deviation: f32) -> Vec<f32> {
        let sizes = Sizes { n_layer: 1, ..Shape::Tiny.sizes() };
        let model = RandomModel::new(&sizes, Rows::Normal(deviation)).unwrap();
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
            let model = RandomModel::new(&with_layers(Shape::Tiny, layers), rows).unwrap();
            let mut bytes = Vec::new();
            model.write(&mut bytes).unwrap();
            assert_eq!(digest(&bytes), expected, "{layers} layers");
        }
        let model = RandomModel::new(&with_layers(Shape::Bitnet2b4t, 1), Rows::Usual).unwrap();
        assert_eq!(
            digest(&header(&model)),
            "43d6b27cd5ac8de8b11611e09bf206f443758d9fab276e8ec9df5148b4177962"
        );
    }
}
