//! Models of well-known shapes with random weights: as heavy as the real ones, for timing.

mod tensors;

use std::fs::OpenOptions;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use ternlight::gguf::{Header, Value};
use ternlight::{Error, Result};

use crate::options::whole_number;

use tensors::{Noise, Tensor, tensors};

#[derive(Args)]
pub(crate) struct Random {
    /// Which shape
    #[arg(long, value_enum, default_value_t = Shape::Bitnet2b4t)]
    shape: Shape,
    /// Layers [default: as many as the shape has]
    #[arg(long, value_name = "N", value_parser = whole_number(1..=MAX_LAYERS))]
    #[arg(allow_negative_numbers = true)]
    layers: Option<usize>,
    /// Make a model that counts: each token is followed by the next one, up to a multiple of the
    /// width. Where the prompt counts too, the answer copies it
    #[arg(long)]
    counting: bool,
    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
    /// The file to write
    file: PathBuf,
}

/// A shape that models are published in.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum Shape {
    /// microsoft/bitnet-b1.58-2B-4T: 30 layers, width 2560, 1.18 GB
    #[value(name = "2b4t")]
    Bitnet2b4t,
    /// The bundled model: 8 layers, width 512, 10 MB
    Tiny,
}

pub(crate) struct Sizes {
    n_vocab: usize,
    n_ctx: usize,
    n_embd: usize,
    n_layer: usize,
    n_head: usize,
    n_head_kv: usize,
    n_ff: usize,
    rope_freq_base: f32,
}

impl Shape {
    pub(crate) fn sizes(self) -> Sizes {
        match self {
            Self::Bitnet2b4t => Sizes {
                n_vocab: 128_256,
                n_ctx: 4096,
                n_embd: 2560,
                n_layer: 30,
                n_head: 20,
                n_head_kv: 5,
                n_ff: 6912,
                rope_freq_base: 500_000.0,
            },
            Self::Tiny => Sizes {
                n_vocab: 4096,
                n_ctx: 1024,
                n_embd: 512,
                n_layer: 8,
                n_head: 8,
                n_head_kv: 4,
                n_ff: 1408,
                rope_freq_base: 10_000.0,
            },
        }
    }
}

/// Special tokens take the last ids, in this order.
const SPECIAL: [&str; 3] = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];

/// A model of more layers would not be loaded.
const MAX_LAYERS: usize = 1 << 10;

pub(crate) fn random(args: &Random) -> Result<()> {
    let mut sizes = args.shape.sizes();
    sizes.n_layer = args.layers.unwrap_or(sizes.n_layer);
    write(&sizes, args.counting, &args.file, args.force)
}

/// Writes a model to `path`, the same bytes every time. Unless `overwrite`, a file that exists is
/// an error.
pub(crate) fn write(sizes: &Sizes, counting: bool, path: &Path, overwrite: bool) -> Result<()> {
    let mut tensors = tensors(sizes);
    if counting {
        tensors.iter_mut().for_each(Tensor::count);
    }
    let header = Header {
        version: 3,
        alignment: 32,
        metadata: metadata(sizes, if counting { "random, counting" } else { "random" }),
        tensors: tensors.iter().map(Tensor::entry).collect(),
    };
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
    let mut noise = Noise::new();
    let out = BufWriter::with_capacity(1 << 20, file);
    header.write_file(out, |index, out| tensors[index].write(&mut noise, out)).map_err(failed)
}

fn metadata(sizes: &Sizes, name: &str) -> Vec<(String, Value)> {
    let arch = |name: &str, value| (format!("bitnet-b1.58.{name}"), value);
    let general = |name: &str, value| (name.to_owned(), value);
    let special = |i: usize| Value::U32((sizes.n_vocab - SPECIAL.len() + i) as u32);
    let size = |n: usize| Value::U32(n as u32);
    let text = |text: &str| Value::String(text.into());
    let tokens = Value::Strings(tokens(sizes.n_vocab).iter().collect());
    let types = Value::Numbers(token_types(sizes.n_vocab).into_iter().collect());
    let merges = Value::Strings(["a b"].iter().collect());
    vec![
        general("general.architecture", text("bitnet-b1.58")),
        general("general.name", text(name)),
        arch("vocab_size", size(sizes.n_vocab)),
        arch("context_length", size(sizes.n_ctx)),
        arch("embedding_length", size(sizes.n_embd)),
        arch("block_count", size(sizes.n_layer)),
        arch("feed_forward_length", size(sizes.n_ff)),
        arch("rope.dimension_count", size(sizes.n_embd / sizes.n_head)),
        arch("attention.head_count", size(sizes.n_head)),
        arch("attention.head_count_kv", size(sizes.n_head_kv)),
        arch("attention.layer_norm_rms_epsilon", Value::F32(1e-5)),
        arch("rope.freq_base", Value::F32(sizes.rope_freq_base)),
        general("tokenizer.ggml.model", text("gpt2")),
        general("tokenizer.ggml.pre", text("llama-bpe")),
        general("tokenizer.ggml.tokens", tokens),
        general("tokenizer.ggml.token_type", types),
        general("tokenizer.ggml.merges", merges),
        general("tokenizer.ggml.bos_token_id", special(0)),
        general("tokenizer.ggml.eos_token_id", special(1)),
    ]
}

/// The 256 characters that stand for bytes, numbered words, the special tokens.
fn tokens(n_vocab: usize) -> Vec<String> {
    let printable = |b: &u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|b| !printable(b)).count() as u32;
    let bytes = (0..256).filter(printable).chain(256..256 + others);
    let mut tokens: Vec<String> = bytes.filter_map(char::from_u32).map(String::from).collect();
    tokens.push("ab".into());
    let words = n_vocab - tokens.len() - SPECIAL.len();
    tokens.extend((0..words).map(|i| format!("Ġ{i}")));
    tokens.extend(SPECIAL.map(String::from));
    tokens
}

/// 1 is a normal token, 3 a control token.
fn token_types(n_vocab: usize) -> Vec<i32> {
    let mut types = vec![1; n_vocab];
    types[n_vocab - SPECIAL.len()..].fill(3);
    types
}
