//! Models of well-known shapes with random weights: as heavy as the real ones, and nobody's words.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use half::f16;

use ternlight::ternary::{self, Layout};
use ternlight::{Error, Result};

#[derive(Args)]
pub(crate) struct Random {
    /// Which shape
    #[arg(long, value_enum, default_value_t = Shape::Bitnet2b4t)]
    shape: Shape,
    /// Layers, if not as many as the shape has
    #[arg(long, value_name = "N")]
    layers: Option<usize>,
    /// A model that counts: each token is followed by the next one, up to a multiple of the width. Where
    /// the prompt counts too, the answer copies it
    #[arg(long)]
    counting: bool,
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

struct Sizes {
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
    fn sizes(self) -> Sizes {
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

pub(crate) fn random(args: &Random) -> Result<()> {
    write(args.shape, args.layers, args.counting, &args.file)
}

/// Writes the model to `path`, the same bytes every time.
pub(crate) fn write(
    shape: Shape,
    layers: Option<usize>,
    counting: bool,
    path: &Path,
) -> Result<()> {
    let mut sizes = shape.sizes();
    sizes.n_layer = layers.unwrap_or(sizes.n_layer);
    let mut tensors = tensors(&sizes);
    if counting {
        tensors.iter_mut().for_each(Tensor::count);
    }
    let written = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        file.write_all(&head(&sizes, &tensors, counting))?;
        let mut noise = Noise(0x2545_f491_4f6c_dd1d);
        for tensor in &tensors {
            tensor.write(&mut noise, &mut file)?;
        }
        file.flush()
    };
    written().map_err(|error: std::io::Error| Error::unwritable(path.display().to_string(), error))
}

const F32: u32 = 0;
const F16: u32 = 1;
const I2_S: u32 = 36;

/// Special tokens take the last ids, in this order.
const SPECIAL: [&str; 3] = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];

struct Tensor {
    name: String,
    ty: u32,
    ne: Vec<usize>,
    fill: Fill,
}

/// What a tensor holds.
#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Noise,
    /// Noise in one row, and in the next the same moved on by one value, until it has been everywhere.
    Moved,
    /// Ternary: each value to where it is, moved on by so many.
    Move(usize),
    /// Noise that a scale makes nothing of.
    Nothing,
}

/// How much of a block's input such a [`Fill::Move`] makes: enough that what it moves outweighs what
/// was there.
const MOVE_SCALE: f32 = 8.0;

fn tensors(sizes: &Sizes) -> Vec<Tensor> {
    let (n_embd, n_ff) = (sizes.n_embd, sizes.n_ff);
    let n_kv = n_embd / sizes.n_head * sizes.n_head_kv;
    let tensor = |name: String, ty, ne: &[usize]| Tensor {
        name: format!("{name}.weight"),
        ty,
        ne: ne.to_vec(),
        fill: Fill::Noise,
    };
    let mut all = vec![
        tensor("token_embd".into(), F16, &[n_embd, sizes.n_vocab]),
        tensor("output_norm".into(), F32, &[n_embd]),
    ];
    for block in 0..sizes.n_layer {
        let parts: [(&str, u32, &[usize]); 11] = [
            ("attn_norm", F32, &[n_embd]),
            ("ffn_down", I2_S, &[n_ff, n_embd]),
            ("ffn_gate", I2_S, &[n_embd, n_ff]),
            ("ffn_up", I2_S, &[n_embd, n_ff]),
            ("ffn_norm", F32, &[n_embd]),
            ("attn_sub_norm", F32, &[n_embd]),
            ("attn_k", I2_S, &[n_embd, n_kv]),
            ("attn_output", I2_S, &[n_embd, n_embd]),
            ("attn_q", I2_S, &[n_embd, n_embd]),
            ("attn_v", I2_S, &[n_embd, n_kv]),
            ("ffn_sub_norm", F32, &[n_ff]),
        ];
        all.extend(parts.map(|(name, ty, ne)| tensor(format!("blk.{block}.{name}"), ty, ne)));
    }
    all
}

impl Tensor {
    /// Makes this the tensor of a model that counts. Each row of its embedding is the one before it, moved
    /// on by one value. The first block's gate and up take the values in as they are, so that their
    /// product is the cube of what is greater than 0, and down puts these where the next row has
    /// them. All other blocks add nothing.
    fn count(&mut self) {
        let block_and_part = self.name.strip_prefix("blk.").and_then(|name| name.split_once('.'));
        self.fill = match block_and_part {
            None if self.ty == F16 => Fill::Moved,
            Some(("0", "ffn_gate.weight" | "ffn_up.weight")) => Fill::Move(0),
            Some(("0", "ffn_down.weight")) => Fill::Move(1),
            Some((_, "attn_output.weight" | "ffn_down.weight")) => Fill::Nothing,
            _ => Fill::Noise,
        };
    }

    /// Bytes in the file. Every size here is a multiple of the alignment.
    fn len(&self) -> usize {
        let n: usize = self.ne.iter().product();
        match self.ty {
            F32 => 4 * n,
            F16 => 2 * n,
            _ => n / 4 + 32,
        }
    }

    fn write(&self, noise: &mut Noise, out: &mut impl Write) -> std::io::Result<()> {
        match self.ty {
            F32 => {
                for _ in 0..self.ne[0] {
                    out.write_all(&(1.0 + 0.1 * noise.value()).to_le_bytes())?;
                }
            }
            F16 => {
                let mut values = Vec::new();
                for row in 0..self.ne[1] {
                    if self.fill == Fill::Moved && row % self.ne[0] > 0 {
                        values.rotate_right(1);
                    } else {
                        values = (0..self.ne[0]).map(|_| noise.value()).collect();
                    }
                    // Special tokens get small logits, so that none ends a timed generation.
                    let size = if row + SPECIAL.len() < self.ne[1] { 1.0 } else { 0.01 };
                    let halves = values.iter().map(|value| f16::from_f32(size * value));
                    out.write_all(&halves.flat_map(f16::to_le_bytes).collect::<Vec<u8>>())?;
                }
            }
            _ => {
                let scale = match self.fill {
                    Fill::Move(by) => {
                        self.write_move(by, out)?;
                        MOVE_SCALE
                    }
                    fill => {
                        let codes: Vec<u8> = (0..self.len() - 32).map(|_| noise.codes()).collect();
                        out.write_all(&codes)?;
                        let unit = (self.ne[0] as f32 * 2.0 / 3.0).sqrt().recip();
                        if fill == Fill::Nothing { 0.0 } else { unit }
                    }
                };
                out.write_all(&scale.to_le_bytes())?;
                out.write_all(&[0; 28])?;
            }
        }
        Ok(())
    }

    /// Ternary codes of 1 that take each value on by so many places, and of 0.
    fn write_move(&self, by: usize, out: &mut impl Write) -> std::io::Result<()> {
        let width = self.ne[0].min(self.ne[1]);
        for row in 0..self.ne[1] {
            let mut values = vec![0; self.ne[0]];
            if row < width {
                values[(row + width - by) % width] = 1;
            }
            out.write_all(&ternary::pack(&values, Layout::X86))?;
        }
        Ok(())
    }
}

/// xorshift64, the same on every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In [-1, 1).
    fn value(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Four ternary codes.
    fn codes(&mut self) -> u8 {
        let digits = (self.next() >> 32) as u32;
        (0..4).fold(0, |byte, i| byte << 2 | (((digits >> (8 * i)) & 255) * 3 / 256) as u8)
    }
}

fn head(sizes: &Sizes, tensors: &[Tensor], counting: bool) -> Vec<u8> {
    let metadata = metadata(sizes, if counting { "random, counting" } else { "random" });
    let mut head = b"GGUF".to_vec();
    head.extend(3u32.to_le_bytes());
    head.extend((tensors.len() as u64).to_le_bytes());
    head.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        string(&mut head, &key);
        value.write(&mut head);
    }
    let mut offset = 0u64;
    for tensor in tensors {
        string(&mut head, &tensor.name);
        head.extend((tensor.ne.len() as u32).to_le_bytes());
        tensor.ne.iter().for_each(|&n| head.extend((n as u64).to_le_bytes()));
        head.extend(tensor.ty.to_le_bytes());
        head.extend(offset.to_le_bytes());
        offset += tensor.len() as u64;
    }
    head.resize(head.len().next_multiple_of(32), 0);
    head
}

enum Value {
    U32(u32),
    F32(f32),
    Text(&'static str),
    Texts(Vec<String>),
    I32s(Vec<i32>),
}

impl Value {
    fn write(&self, out: &mut Vec<u8>) {
        let array = |out: &mut Vec<u8>, ty: u32, len: usize| {
            out.extend(9u32.to_le_bytes());
            out.extend(ty.to_le_bytes());
            out.extend((len as u64).to_le_bytes());
        };
        match self {
            Self::U32(v) => {
                out.extend(4u32.to_le_bytes());
                out.extend(v.to_le_bytes());
            }
            Self::F32(v) => {
                out.extend(6u32.to_le_bytes());
                out.extend(v.to_le_bytes());
            }
            Self::Text(v) => {
                out.extend(8u32.to_le_bytes());
                string(out, v);
            }
            Self::Texts(v) => {
                array(out, 8, v.len());
                v.iter().for_each(|text| string(out, text));
            }
            Self::I32s(v) => {
                array(out, 5, v.len());
                v.iter().for_each(|i| out.extend(i.to_le_bytes()));
            }
        }
    }
}

fn metadata(sizes: &Sizes, name: &'static str) -> Vec<(String, Value)> {
    let arch = |name: &str, value| (format!("bitnet-b1.58.{name}"), value);
    let general = |name: &str, value| (name.to_owned(), value);
    let special = |i: usize| Value::U32((sizes.n_vocab - SPECIAL.len() + i) as u32);
    let size = |n: usize| Value::U32(n as u32);
    vec![
        general("general.architecture", Value::Text("bitnet-b1.58")),
        general("general.name", Value::Text(name)),
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
        general("tokenizer.ggml.model", Value::Text("gpt2")),
        general("tokenizer.ggml.tokens", Value::Texts(tokens(sizes.n_vocab))),
        general("tokenizer.ggml.token_type", Value::I32s(token_types(sizes.n_vocab))),
        general("tokenizer.ggml.merges", Value::Texts(vec!["a b".into()])),
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

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}
