//! Makes a GGUF file of an adapter's folder as PEFT writes it.
//!
//! The model's file says what the matrices are called and how long they are. The engine's own reader checks
//! the adapter before a byte of it is written.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value as Json, json};

use tritloom::gguf::{Gguf, Header, TensorEntry, TensorType, Value};
use tritloom::model::{Adapter, Config, Role, RopePairs, weights};
use tritloom::native::{block_on, open};
use tritloom::source::Reader;
use tritloom::{Error, Result};

use super::checkpoint::{self, Checkpoint};
use super::matrix::permuted;
use super::names::{self, Meaning};
use super::object::Object;
use super::safetensors::{Dtype, Tensor, short};
use super::{Convert, unsupported};
use crate::output::print;
use crate::written::Output;

/// The file that such a folder has, and no model's.
pub(super) const CONFIG: &str = "adapter_config.json";

/// Keys that change nothing in what an adapter computes.
const HARMLESS: &[&str] = &[
    "auto_mapping",
    "base_model_name_or_path",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "inference_mode",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_dropout",
    "megatron_config",
    "megatron_core",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "target_modules",
    "task_type",
];

/// Keys that would change it, each with the value that does not.
fn usual() -> [(&'static str, Json); 11] {
    [
        ("peft_type", json!("LORA")),
        ("alpha_pattern", json!({})),
        ("bias", json!("none")),
        ("fan_in_fan_out", json!(false)),
        ("lora_bias", json!(false)),
        ("modules_to_save", json!([])),
        ("target_parameters", json!([])),
        ("use_bdlora", json!(false)),
        ("use_dora", json!(false)),
        ("use_qalora", json!(false)),
        ("alora_invocation_tokens", json!([])),
    ]
}

/// The first values with which PEFT leaves the model as it is. With the others it changes the model too.
const INITIAL: [&str; 3] = ["gaussian", "eva", "orthogonal"];

/// A half of a pair.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    A,
    B,
}

/// How the names of halves end, the half, and whether they belong to the embedding, whose first half has a
/// column for each token.
const ENDS: [(&str, Half, bool); 6] = [
    (".lora_A.weight", Half::A, false),
    (".lora_B.weight", Half::B, false),
    (".lora_A.default.weight", Half::A, false),
    (".lora_B.default.weight", Half::B, false),
    (".lora_embedding_A", Half::A, true),
    (".lora_embedding_B", Half::B, true),
];

pub(super) fn convert(args: &Convert) -> Result<()> {
    let folder = &args.folder;
    let Some(base) = &args.base else {
        let why = format!("the folder has an {CONFIG}: it names the model's GGUF file");
        return Err(Error::BadOption { name: "base".into(), why });
    };
    let gguf = block_on(Gguf::read(&mut Reader::new(open(base)?)))?;
    let config = Config::from_gguf(&gguf)?;
    let table = weights::weights(&config, &gguf)?;
    let checkpoint = Checkpoint::open(folder)?;
    let mut tensors = Vec::new();
    for tensor in checkpoint.tensors() {
        tensors.push(half(&checkpoint, tensor, &config)?);
    }
    let alpha = alpha(folder, &tensors)?;
    let name = folder.canonicalize().ok();
    let name = name.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let text = |text: &str| Value::String(text.into());
    let metadata = [
        ("general.type", text("adapter")),
        ("general.architecture", text(config.architecture.name)),
        ("general.name", text(&name.unwrap_or_default())),
        ("adapter.type", text("lora")),
        ("adapter.lora.alpha", Value::F32(alpha)),
    ];
    let header = Header {
        version: 3,
        alignment: 32,
        metadata: metadata.map(|(key, value)| (key.to_owned(), value)).into(),
        tensors: tensors.iter().map(|(entry, _)| entry.clone()).collect(),
    };
    let mut bytes = Vec::new();
    header
        .write_file(&mut bytes, |index, out| out.write_all(&tensors[index].1))
        .map_err(|error: io::Error| Error::Internal(error.to_string()))?;
    let adapter = block_on(Adapter::read(&mut Reader::new(&bytes[..]), &config, &table))?;

    Output::refuse(&args.output, base)?;
    for path in checkpoint.paths() {
        Output::refuse(&args.output, path)?;
    }
    let mut output = Output::create(&args.output, folder, args.force)?;
    let written = output.file.write_all(&bytes);
    written.map_err(|error| Error::unwritable(args.output.display().to_string(), error))?;
    output.keep();
    let ([least, most], targets) = (adapter.ranks(), adapter.targets().join(", "));
    let ranks = if least == most { least.to_string() } else { format!("{least} to {most}") };
    print(&format!("{} pairs of rank {ranks} on {targets}\n", adapter.pairs.len()))
}

/// A half as GGUF's table has it, and its bytes.
fn half(
    checkpoint: &Checkpoint,
    tensor: &Tensor,
    config: &Config,
) -> Result<(TensorEntry, Vec<u8>)> {
    let name = tensor.name.strip_prefix("base_model.model.").unwrap_or(&tensor.name);
    let found = ENDS.iter().find_map(|&(end, half, of_embedding)| {
        let name = format!("{}.weight", name.strip_suffix(end)?);
        match names::meaning(&name, config.architecture)? {
            Meaning::Weight(role, block) if of_embedding == (role == Role::TokenEmbd) => {
                Some((role, block, half))
            }
            _ => None,
        }
    });
    let Some((role, block, half)) = found else {
        let (name, architecture) = (short(&tensor.name), config.architecture.name);
        return unsupported(format!(
            "the adapter has a tensor `{name}`, which is no half of a pair on a `{architecture}` model"
        ));
    };
    let wrong = |expected: &str| {
        let (name, found) = (tensor.name.clone(), tensor.to_string());
        Err(Error::TensorShape { name, found, expected: expected.into() })
    };
    let ty = match tensor.dtype {
        Dtype::F32 => TensorType::F32,
        Dtype::F16 => TensorType::F16,
        Dtype::Bf16 => TensorType::Bf16,
        Dtype::U8 | Dtype::Other(_) => return wrong("F32, F16 or BF16"),
    };
    let &[rows, columns] = &tensor.shape[..] else { return wrong("[rows, columns]") };
    // Refuses values that are not finite, by the folder's names.
    checkpoint.floats(tensor, 0..rows * columns)?;
    let bytes = checkpoint.bytes(tensor, 0..rows * columns)?;
    let row = columns as usize * tensor.dtype.size() as usize;
    let rotates = matches!(role, Role::AttnQ | Role::AttnK)
        && config.architecture.rope_pairs == RopePairs::Neighbours;
    let (ne, bytes) = match (half, role) {
        // The engine reads a row for each token.
        (Half::A, Role::TokenEmbd) => {
            let value = tensor.dtype.size() as usize;
            let column =
                |at: usize| bytes.chunks(row.max(1)).flat_map(move |row| &row[at..at + value]);
            ([rows, columns], (0..row).step_by(value).flat_map(column).copied().collect())
        }
        (Half::B, _) if rotates => {
            if !rows.is_multiple_of(config.head_dim as u64) {
                return wrong(&format!("rows of heads of {}", config.head_dim));
            }
            ([columns, rows], permuted(&bytes, row, config.head_dim))
        }
        _ => ([columns, rows], bytes),
    };
    let end = if half == Half::A { "lora_a" } else { "lora_b" };
    let name = format!("{}.{end}", names::gguf(role, block));
    let entry = TensorEntry { name, ne: ne.into(), type_id: ty.id(), len: bytes.len() as u64 };
    Ok((entry, bytes))
}

/// The number that GGUF's readers divide by each pair's rank.
fn alpha(folder: &Path, tensors: &[(TensorEntry, Vec<u8>)]) -> Result<f32> {
    let config = Object::new(CONFIG, checkpoint::json(folder, CONFIG)?);
    for (key, usual) in usual() {
        config.expect(key, &usual)?;
    }
    match config.get("init_lora_weights") {
        None | Some(Json::Bool(_)) => {}
        Some(Json::String(initial)) if INITIAL.contains(&&**initial) => {}
        Some(other) => {
            let other = short(&other.to_string());
            return unsupported(format!(
                "`init_lora_weights` in {CONFIG} is {other}: it changes the model too"
            ));
        }
    }
    let alpha = config.require("lora_alpha", Object::number)?;
    if alpha == 0.0 {
        return unsupported(format!("`lora_alpha` in {CONFIG} is 0: the adapter changes nothing"));
    }
    let by_root = config.boolean("use_rslora")?.unwrap_or(false);
    config.finish(HARMLESS)?;
    if !by_root {
        return Ok(alpha as f32);
    }
    // Here pairs are divided by the root of their rank.
    let ranks = tensors.iter().filter(|(entry, _)| entry.name.ends_with(".lora_b"));
    let mut ranks = ranks.map(|(entry, _)| entry.ne[0]);
    let first = ranks.next().unwrap_or(1);
    match ranks.all(|rank| rank == first) {
        true => Ok((alpha * (first as f64).sqrt()) as f32),
        false => unsupported(format!("`use_rslora` in {CONFIG}, with pairs of several ranks")),
    }
}
