//! Makes a GGUF file of a model's folder as Hugging Face publishes it.
//!
//! [`config`] reads config.json, [`tokenizer`] reads the tokenizer's files, [`names`] knows the
//! tensors, and [`matrix`] makes ternary codes of them. [`adapter`] reads the folder of an adapter instead. The engine's own readers check the header
//! before a byte of it is written. A tensor is read a slice at a time.

mod adapter;
mod checkpoint;
mod config;
mod matrix;
mod names;
mod object;
mod pooling;
mod pre_tokenizer;
mod safetensors;
mod tokenizer;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use half::f16;
use serde_json::{Map, Value as Json};

use tritloom::gguf::{Gguf, Header, TensorEntry, TensorType, Value};
use tritloom::model::{Config, Pooling, Role, RopePairs, weights};
use tritloom::native::block_on;
use tritloom::source::{Reader, Source};
use tritloom::ternary::TAIL;
use tritloom::tokenizer::Tokenizer;
use tritloom::{Error, Result};

use crate::output::print;
use crate::quantized::Quantized;
use crate::written::{Output, Stop};

use checkpoint::Checkpoint;
use config::{Description, Storage};
use matrix::{Found, GROUP, Matrix, Off};
use names::Meaning;
use safetensors::{Dtype, Tensor, short};

#[derive(Args)]
pub(crate) struct Convert {
    /// The type of the matrices [default: i2_s if the model rounds its activations to 8 bits, else
    /// q2_0]
    #[arg(long = "type", value_enum)]
    ty: Option<Ternary>,
    /// The type of the embedding, and of the LM head if it is a tensor of its own [default: as in
    /// the folder, but f16 for bf16]
    #[arg(long, value_enum)]
    embedding: Option<Embedding>,
    /// How a vector is made of those of a text's tokens: mean, cls or last [default: as the folder says]
    #[arg(long, value_parser = crate::embed::pooling)]
    pooling: Option<Pooling>,
    /// The GGUF file of the model that an adapter is for; the folder is then one of PEFT
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ty", "embedding", "pooling"])]
    base: Option<PathBuf>,
    /// Overwrite the output if it exists
    #[arg(long)]
    force: bool,
    /// The folder: config.json, tokenizer.json and safetensors files; of an adapter, adapter_config.json and
    /// adapter_model.safetensors
    folder: PathBuf,
    /// The file to write
    output: PathBuf,
}

/// A type of ternary matrices.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Ternary {
    /// One scale for each matrix
    #[value(name = "i2_s")]
    I2S,
    /// One scale for every 64 weights
    #[value(name = "q2_0")]
    Q2_0,
}

/// A type of the embedding.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
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

/// Values that are converted at a time. A multiple of every block's elements.
const SLICE: u64 = 1 << 20;

/// A tensor of the output.
struct Plan<'a> {
    entry: TensorEntry,
    /// The role and its block; `None` if the values come from config.json.
    role: Option<Role>,
    content: Content<'a>,
}

/// The source of a tensor.
enum Content<'a> {
    Matrix(Matrix<'a>),
    /// An embedding or LM head of this type.
    Vocabulary(&'a Tensor, Floats),
    /// A norm.
    Norm(&'a Tensor),
    /// Values from config.json.
    Given(Vec<f32>),
}

/// How floats are written.
#[derive(Clone, Copy)]
enum Floats {
    F32,
    F16,
    Blocks(Quantized),
}

pub(crate) fn convert(args: &Convert) -> Result<()> {
    let folder = &args.folder;
    if args.base.is_some() || folder.join(adapter::CONFIG).exists() {
        return adapter::convert(args);
    }
    let map: Map<String, Json> = checkpoint::json(folder, "config.json")?;
    let name = folder.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let checkpoint = Checkpoint::open(folder)?;
    let normed = checkpoint.tensors().any(|tensor| names::is_norm_of_input(&tensor.name));
    let mut model = config::model(map.clone(), &name.unwrap_or_default(), normed)?;
    let embeds = model.architecture.norms_inputs();
    let ternary = args.ty.unwrap_or(match model.storage.rounds_activations() {
        true => Ternary::I2S,
        false => Ternary::Q2_0,
    });
    let plans = plans(&checkpoint, &model, ternary, args.embedding)?;
    // The numbers of these file types, as other writers of such files use them.
    let file_type = if ternary == Ternary::I2S { 40 } else { 41 };
    let general = |name: &str, value| (format!("general.{name}"), Value::U32(value));
    let mut metadata = std::mem::take(&mut model.metadata);
    metadata.extend([general("file_type", file_type), general("quantization_version", 2)]);
    let mut notes = Vec::new();
    if let Some(pooling) = args.pooling.or(pooling::of(folder)?) {
        let key = format!("{}.pooling_type", model.architecture.name);
        metadata.push((key, Value::U32(pooling.number())));
    } else if embeds {
        notes.push(
            "the folder does not say how to pool; `--pooling` does, or each call of `embed`".into(),
        );
    }
    let (tokens, note) = tokenizer::metadata(folder, &map, model.n_vocab, embeds)?;
    notes.extend(note);
    metadata.extend(tokens);
    let header = Header {
        version: 3,
        alignment: 32,
        metadata,
        tensors: plans.iter().map(|plan| plan.entry.clone()).collect(),
    };
    check(&header, &plans)?;
    let found = survey(&checkpoint, &plans, model.storage, ternary)?;

    for path in checkpoint.paths() {
        Output::refuse(&args.output, path)?;
    }
    let output = Output::create(&args.output, folder, args.force)?;
    let mut writer = Writer { checkpoint: &checkpoint, ternary, counts: [0; 3] };
    // The error of reading, if reading failed. Then `write_file` fails too.
    let mut failure = None;
    let out = BufWriter::with_capacity(1 << 20, &output.file);
    let written = header.write_file(out, |index, out| {
        writer.write(&plans[index], found[index], out).map_err(|stop| match stop {
            Stop::Write(error) => error,
            Stop::Read(error) => {
                failure = Some(error);
                io::Error::other("the checkpoint could not be read")
            }
        })
    });
    written.map_err(|error| {
        failure.unwrap_or_else(|| Error::unwritable(args.output.display().to_string(), error))
    })?;
    output.keep();
    let mut text = writer.told(&model);
    text.extend(notes);
    print(&(text.join("\n") + "\n"))
}

/// The tensors of the output, in its order: the embedding, the blocks, the last norm, the LM head.
///
/// Errors: `unsupported-model` for a tensor that the model does not use, `tensor-shape`.
fn plans<'a>(
    checkpoint: &'a Checkpoint,
    model: &Description,
    ternary: Ternary,
    embedding: Option<Embedding>,
) -> Result<Vec<Plan<'a>>> {
    let mut found = BTreeMap::new();
    let mut scales = HashMap::new();
    for tensor in checkpoint.tensors() {
        let name = &tensor.name;
        let used = names::meaning(name, model.architecture).ok_or_else(|| {
            let (name, architecture) = (short(name), model.architecture.name);
            let why = format!("tensor `{name}`, which a `{architecture}` model does not use");
            Error::UnsupportedModel(format!("the checkpoint has a {why}"))
        })?;
        match used {
            Meaning::Derived => {}
            // The embedding is the LM head, and this tensor is a copy of it.
            Meaning::Weight(Role::Output, _) if model.tied => {}
            Meaning::Weight(role, block) => {
                let order = match role {
                    Role::TokenEmbd => 0,
                    Role::OutputNorm => usize::MAX - 1,
                    Role::Output => usize::MAX,
                    _ => block.saturating_add(1),
                };
                let key = (order, role.name());
                if let Some((.., other)) = found.insert(key, (role, block, tensor)) {
                    let names = format!("`{}` and `{}`", short(&other.name), short(name));
                    return unsupported(format!("tensors {names} are the same weights"));
                }
            }
            Meaning::Scale(role, block) => drop(scales.insert((role.name(), block), tensor)),
        }
    }
    let mut plans = Vec::new();
    for (role, block, tensor) in found.into_values() {
        let scale = scales.remove(&(role.name(), block));
        let content = match role.kind() {
            tritloom::model::Kind::Matrix => {
                let rotates = matches!(role, Role::AttnQ | Role::AttnK)
                    && model.architecture.rope_pairs == RopePairs::Neighbours;
                let permuted = rotates.then_some(model.head_dim);
                Content::Matrix(Matrix { tensor, scale, permuted })
            }
            kind => {
                if let Some(scale) = scale {
                    let name = short(&scale.name);
                    return unsupported(format!("`{name}` is a scale of what is not ternary"));
                }
                match kind {
                    tritloom::model::Kind::Vocabulary => {
                        Content::Vocabulary(tensor, floats(tensor, embedding)?)
                    }
                    _ => Content::Norm(tensor),
                }
            }
        };
        let entry = content.entry(names::gguf(role, block), ternary)?;
        plans.push(Plan { entry, role: Some(role), content });
    }
    if let Some(scale) = scales.into_values().next() {
        return unsupported(format!("`{}` is a scale without weights", short(&scale.name)));
    }
    for (name, values) in &model.tensors {
        let content = Content::Given(values.clone());
        let entry = content.entry((*name).into(), ternary)?;
        plans.push(Plan { entry, role: None, content });
    }
    Ok(plans)
}

/// How an embedding or LM head is written.
fn floats(tensor: &Tensor, embedding: Option<Embedding>) -> Result<Floats> {
    match (embedding, tensor.dtype) {
        (_, Dtype::U8 | Dtype::Other(_)) => Err(Error::TensorShape {
            name: tensor.name.clone(),
            found: tensor.to_string(),
            expected: "F32, F16 or BF16".into(),
        }),
        (Some(Embedding::Q8_0), _) => Ok(Floats::Blocks(Quantized::Q8_0)),
        (Some(Embedding::Q6K), _) => Ok(Floats::Blocks(Quantized::Q6K)),
        (None, Dtype::F32) => Ok(Floats::F32),
        // F16 holds every BF16 of usual size without rounding. A GPU cannot hold BF16, so the
        // values would become F32 and take twice the memory.
        (Some(Embedding::F16) | None, _) => Ok(Floats::F16),
    }
}

impl Content<'_> {
    /// The tensor of the checkpoint.
    fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Matrix(matrix) => Some(matrix.tensor),
            Self::Vocabulary(tensor, _) | Self::Norm(tensor) => Some(tensor),
            Self::Given(_) => None,
        }
    }

    /// The tensor as GGUF's table has it.
    fn entry(&self, name: String, ternary: Ternary) -> Result<TensorEntry> {
        let mut ne: Vec<u64> = match self {
            Self::Matrix(matrix) => matrix.shape()?.to_vec(),
            Self::Vocabulary(tensor, _) | Self::Norm(tensor) => tensor.shape.clone(),
            Self::Given(values) => vec![values.len() as u64],
        };
        ne.reverse();
        let (ty, block, bytes) = match self {
            Self::Matrix(_) if ternary == Ternary::I2S => (TensorType::I2S, 128, 32),
            Self::Matrix(_) => (TensorType::Q2_0, 64, 18),
            Self::Vocabulary(_, Floats::F16) => (TensorType::F16, 1, 2),
            Self::Vocabulary(_, Floats::Blocks(to)) => {
                let row = to.row()?;
                (row.ty, row.elements as u64, row.bytes as u64)
            }
            Self::Vocabulary(_, Floats::F32) | Self::Norm(_) | Self::Given(_) => {
                (TensorType::F32, 1, 4)
            }
        };
        let columns = ne.first().copied().unwrap_or(1);
        if !columns.is_multiple_of(block) {
            let tensor = self.tensor();
            let other = if ty == TensorType::I2S && columns.is_multiple_of(64) {
                "; --type q2_0 takes multiples of 64"
            } else {
                ""
            };
            return Err(Error::TensorShape {
                name: tensor.map_or(name, |tensor| tensor.name.clone()),
                found: tensor.map(Tensor::to_string).unwrap_or_default(),
                expected: format!("for {ty}, rows of a multiple of {block} elements{other}"),
            });
        }
        let elements = ne.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
        let len = elements.and_then(|n| (n / block).checked_mul(bytes));
        let len = len.ok_or_else(|| Error::UnsupportedModel(format!("`{name}` is too large")))?;
        let tail = if ty == TensorType::I2S { TAIL as u64 } else { 0 };
        Ok(TensorEntry { name, ne, type_id: ty.id(), len: len + tail })
    }
}

/// Checks that this crate can run the file that will be written.
///
/// Errors: those of the readers of GGUF files, but with the checkpoint's names.
fn check(header: &Header, plans: &[Plan<'_>]) -> Result<()> {
    /// The first bytes of the file, and its length.
    struct Begun(Vec<u8>, u64);
    impl Source for Begun {
        fn len(&self) -> u64 {
            self.1
        }

        async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
            let byte = |at: u64| self.0.get(at as usize).copied().unwrap_or(0);
            Ok(range.map(byte).collect())
        }
    }
    let beginning = header.to_bytes();
    let tensors: u64 = header.tensors.iter().map(|tensor| tensor.len.next_multiple_of(32)).sum();
    let len = (beginning.len() as u64).next_multiple_of(32) + tensors;
    let gguf = block_on(Gguf::read(&mut Reader::new(Begun(beginning, len))))?;
    let config = Config::from_gguf(&gguf)?;
    for Plan { entry, role, content } in plans {
        let (Some(role), Some(tensor)) = (role, content.tensor()) else { continue };
        let mut expected = role.shape(&config);
        if entry.ne != expected {
            expected.reverse();
            let packed = if tensor.dtype == Dtype::U8 { ", four rows in one" } else { "" };
            return Err(Error::TensorShape {
                name: tensor.name.clone(),
                found: tensor.to_string(),
                expected: format!("{expected:?}{packed}"),
            });
        }
    }
    weights::weights(&config, &gguf).map_err(|error| match error {
        Error::MissingTensor { name } => {
            Error::MissingTensor { name: names::hugging_face(&name).unwrap_or(name) }
        }
        other => other,
    })?;
    Tokenizer::from_gguf(&gguf, &config)?;
    Ok(())
}

/// Reads all matrices once, to find their scales and whether they are ternary.
///
/// Errors: `unsupported-model` for matrices that are not ternary, with the share of their values
/// that are off.
fn survey(
    checkpoint: &Checkpoint,
    plans: &[Plan<'_>],
    storage: Storage,
    ternary: Ternary,
) -> Result<Vec<Option<Found>>> {
    let mut all = Off::default();
    let mut first = None;
    let mut scales = None;
    let found: Result<Vec<_>> = plans
        .iter()
        .map(|plan| {
            let Content::Matrix(matrix) = &plan.content else { return Ok(None) };
            let mut off = Off::default();
            let found = matrix.survey(checkpoint, storage, &mut off)?;
            if off.off > 0 && first.is_none() {
                first = Some((&matrix.tensor.name, off.share()));
            }
            if matches!(found, Found::Floats { one: None, .. }) && scales.is_none() {
                scales = Some(&matrix.tensor.name);
            }
            all.off += off.off;
            all.all += off.all;
            Ok(Some(found))
        })
        .collect();
    let found = found?;
    if let Some((name, share)) = first {
        return unsupported(format!(
            "the weights are not ternary: {} of all matrices are off, {share} of `{name}`, which is \
             the first. A weight is off if it is further than 1/256 of the scale from -1, 0 and 1 \
             times the scale; rounding to bf16 moves it by no more, so none may be. Weights that \
             the model itself rounds need `quantization_config` with the `quantization_mode` \
             `online` in config.json",
            all.share()
        ));
    }
    match scales {
        Some(name) if ternary == Ternary::I2S => unsupported(format!(
            "`{name}` has several scales, I2_S has one for a matrix; --type q2_0 has one for every \
             {GROUP} weights"
        )),
        _ => Ok(found),
    }
}

/// Writes tensors, and counts their codes.
struct Writer<'a> {
    checkpoint: &'a Checkpoint,
    ternary: Ternary,
    /// How many weights are -1, 0 and 1.
    counts: [u64; 3],
}

impl Writer<'_> {
    fn write(
        &mut self,
        plan: &Plan<'_>,
        found: Option<Found>,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        match (&plan.content, found) {
            (Content::Matrix(matrix), Some(found)) => self.matrix(matrix, found, out),
            (Content::Vocabulary(tensor, to), _) => self.floats(tensor, *to, out),
            (Content::Norm(tensor), _) => self.floats(tensor, Floats::F32, out),
            (Content::Given(values), _) => {
                values.iter().try_for_each(|value| out.write_all(&value.to_le_bytes()))?;
                Ok(())
            }
            (Content::Matrix(_), None) => Err(Error::Internal("a matrix unread".into()).into()),
        }
    }

    fn matrix(
        &mut self,
        matrix: &Matrix<'_>,
        found: Found,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        let [n_rows, _] = matrix.shape()?;
        let each = matrix.rows_at_a_time()?;
        let mut first = 0;
        while first < n_rows {
            let end = n_rows.min(first + each);
            let rows = matrix.rows(self.checkpoint, found, first, end)?;
            for code in &rows.codes {
                self.counts[(code + 1) as usize] += 1;
            }
            let encoded = rows.encode(self.ternary).map_err(|scale| {
                let name = &matrix.tensor.name;
                Error::UnsupportedModel(format!(
                    "`{name}` has the scale {scale}, which Q2_0 cannot hold; --type i2_s can"
                ))
            })?;
            out.write_all(&encoded)?;
            first = end;
        }
        if self.ternary == Ternary::I2S {
            let scale = match found {
                Found::Masters(scale) | Found::Packed(scale) => scale,
                Found::Floats { one, .. } => one.unwrap_or(0.0),
            };
            let mut tail = [0; TAIL];
            tail[..4].copy_from_slice(&scale.to_le_bytes());
            out.write_all(&tail)?;
        }
        Ok(())
    }

    fn floats(&self, tensor: &Tensor, to: Floats, out: &mut impl Write) -> Result<(), Stop> {
        let elements = tensor.shape.iter().product::<u64>();
        for first in (0..elements).step_by(SLICE as usize) {
            let values = self.checkpoint.floats(tensor, first..elements.min(first + SLICE))?;
            let bad = |index: usize| {
                let (name, index) = (&tensor.name, first + index as u64);
                Error::UnsupportedModel(format!("element {index} of `{name}` is too large"))
            };
            let bytes = match to {
                Floats::F32 => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
                Floats::F16 => {
                    let halves: Vec<f16> = values.iter().map(|x| f16::from_f32(*x)).collect();
                    if let Some(index) = halves.iter().position(|half| !half.is_finite()) {
                        return Err(bad(index).into());
                    }
                    halves.iter().flat_map(|half| half.to_le_bytes()).collect()
                }
                Floats::Blocks(to) => to.quantize(&values, to.row()?.elements).map_err(bad)?,
            };
            out.write_all(&bytes)?;
        }
        Ok(())
    }

    fn told(&self, model: &Description) -> Vec<String> {
        let all: u64 = self.counts.iter().sum();
        let percent = self.counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
        vec![format!(
            "{}: {all} ternary weights, -1 {:.1} %, 0 {:.1} %, +1 {:.1} %",
            model.architecture.name, percent[0], percent[1], percent[2]
        )]
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
