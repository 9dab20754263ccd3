//! Models of well-known shapes with random weights: as heavy as the real ones, for timing.

mod shapes;
mod tensors;
mod vocabulary;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use tritloom::blocks::block_type;
use tritloom::gguf::{Header, TensorType, Value};
use tritloom::model::adapter::MAX_RANK;
use tritloom::model::{Config, RopeScaling};
use tritloom::{Error, Result};

use crate::options::{number, whole_number};

pub(crate) use shapes::{Shape, Sizes};
pub(crate) use tensors::DEVIATIONS;
use tensors::{Noise, Tensor, adapter_tensors, tensors};

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
    /// Write an adapter for such a model instead, with pairs of this rank on all matrices of its layers
    #[arg(long, value_name = "N", value_parser = whole_number(RANKS), allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["counting", "embedding_deviation", "embedding"])]
    adapter_rank: Option<usize>,
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

/// The ranks that a random adapter can get.
pub(crate) const RANKS: RangeInclusive<usize> = 1..=MAX_RANK;

pub(crate) fn random(args: &Random) -> Result<()> {
    let mut sizes = args.shape.sizes();
    sizes.n_layer = args.layers.unwrap_or(sizes.n_layer);
    if let Some(embedding) = args.embedding {
        sizes.embedding = embedding.into();
        sizes.head = sizes.head.map(|_| embedding.into());
    }
    if let Some(rank) = args.adapter_rank {
        return write_file(&RandomFile::adapter(&sizes.config()?, rank), &args.file, args.force);
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
    write_file(&RandomFile::model(sizes, rows)?, path, overwrite)
}

/// The bytes of an adapter for the model of `config`, with pairs of this `rank` on all matrices of its
/// blocks.
pub(crate) fn adapter(config: &Config, rank: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    RandomFile::adapter(config, rank).write(&mut bytes)?;
    Ok(bytes)
}

fn write_file(random: &RandomFile, path: &Path, overwrite: bool) -> Result<()> {
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
    random.write(BufWriter::with_capacity(1 << 20, file)).map_err(failed)
}

/// A model or an adapter that is to be written.
struct RandomFile {
    header: Header,
    tensors: Vec<Tensor>,
}

impl RandomFile {
    fn model(sizes: &Sizes, rows: Rows) -> Result<Self> {
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
        Ok(Self::new(metadata, tensors))
    }

    fn adapter(config: &Config, rank: usize) -> Self {
        let text = |text: &str| Value::String(text.into());
        let metadata = [
            ("general.type", text("adapter")),
            ("general.architecture", text(config.architecture.name)),
            ("general.name", text(&format!("random, rank {rank}"))),
            ("adapter.type", text("lora")),
            ("adapter.lora.alpha", Value::F32(rank as f32)),
        ];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value)).into();
        Self::new(metadata, adapter_tensors(config, rank))
    }

    fn new(metadata: Vec<(String, Value)>, tensors: Vec<Tensor>) -> Self {
        let entries = tensors.iter().map(Tensor::entry).collect();
        let header = Header { version: 3, alignment: 32, metadata, tensors: entries };
        Self { header, tensors }
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
    if let Some(pooling) = config.pooling {
        keys.push(("pooling_type", Value::U32(pooling.number())));
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
mod tests;
