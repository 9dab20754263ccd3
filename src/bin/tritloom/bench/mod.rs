//! The benchmark: loading, prompts, decoding, and the share of the memory's speed that they reach.

mod figure;
mod lookup;
mod measure;
mod products;
mod report;
mod soak;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use tritloom::gpu::{FeatureCaps, GpuOptions, LimitCaps};
use tritloom::native::block_on;
use tritloom::session::GenerateOptions;
use tritloom::{Error, Result};

use crate::backend::BackendArgs;
use crate::generate::{KvArg, LmHeadArg};
use crate::options::{number, one_or_more, whole_number, zero_or_more};
use crate::output::print;
use crate::random::{self, DEVIATIONS, RANKS, Rows, Shape};

#[derive(Args)]
pub(crate) struct Bench {
    /// The model, a GGUF file [default: the bundled one, unless --shape is given]
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    model: Option<PathBuf>,
    /// Random weights of this shape, in a temporary file that is deleted at the end
    #[arg(long, value_enum)]
    shape: Option<Shape>,
    /// The standard deviation of the embedding's values, as in `tritloom random`
    #[arg(long, value_name = "D", value_parser = number(DEVIATIONS))]
    #[arg(requires = "shape", conflicts_with = "lookup", allow_negative_numbers = true)]
    embedding_deviation: Option<f32>,
    #[command(flatten)]
    backend: BackendArgs,
    /// Lengths of the context to decode at
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [16, 1024, 3500])]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    decode: Vec<usize>,
    /// Lengths of the prompts to time
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [16, 256, 1024, 3500])]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    prefill: Vec<usize>,
    /// Tokens to generate for each decode figure
    #[arg(long, value_name = "N", default_value_t = 128)]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    tokens: usize,
    /// Runs of each figure
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    runs: usize,
    /// How many times the model is loaded
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    loads: usize,
    /// Spend at most this many seconds on a figure. If all runs would take longer, make fewer runs;
    /// if even one run would, leave the figure out
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    #[arg(value_parser = zero_or_more, allow_negative_numbers = true)]
    patience: u64,
    /// Also time prompt lookup, on a prompt that counts; with --shape the weights are those of a
    /// model that counts, so that the answer copies the prompt
    #[arg(long)]
    lookup: bool,
    /// Also time answers that are drawn: by the temperature alone, with top-k and top-p, with top-p
    /// alone and with min-p
    #[arg(long)]
    sampling: bool,
    /// Also time prompts and decoding with an adapter of random values and this rank on all matrices
    #[arg(long, value_name = "N", value_parser = whole_number(RANKS), allow_negative_numbers = true)]
    adapter_rank: Option<usize>,
    /// Also time every kernel of one token and of one chunk of a prompt, at each length; with
    /// --sampling also of tokens that are drawn
    #[arg(long)]
    profile: bool,
    /// Also generate this many tokens in a row, in chats that fill the context one after another
    #[arg(long, value_name = "TOKENS")]
    #[arg(value_parser = one_or_more, allow_negative_numbers = true)]
    soak: Option<usize>,
    /// Tokens of context [default: the model's limit, up to 1 GiB]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    context: Option<usize>,
    /// How keys and values are stored
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = KvArg::F16)]
    kv: KvArg,
    /// How the LM head is stored
    #[arg(long, value_enum, default_value_t = LmHeadArg::Auto)]
    lm_head: LmHeadArg,
    /// Give the same bits for the same call each time: chunks of prompts have a fixed size, and only whole
    /// ones are used again
    #[arg(long)]
    deterministic: bool,
    /// Use no subgroup operations, even if the adapter has them
    #[arg(long)]
    no_subgroups: bool,
    /// Whether to multiply int8 values four at a time, or else fewer [default: the faster]
    #[arg(long, value_name = "BOOL")]
    packed_dot: Option<bool>,
    /// Ask the adapter for bindings of no more than this many bytes [default: all that it has]
    #[arg(long, value_name = "BYTES", value_parser = zero_or_more, allow_negative_numbers = true)]
    max_binding: Option<u64>,
    /// Take no more than this many bytes of GPU memory: layers that do not fit are uploaded for each pass
    #[arg(long, value_name = "BYTES", value_parser = zero_or_more, allow_negative_numbers = true)]
    max_gpu_bytes: Option<u64>,
    /// Time only the products of the CPU with weights of each type, and load no model
    #[arg(long, conflicts_with_all = ["model", "shape"])]
    products: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Tokens of a turn of the soak. Also the tokens of the prompt whose first token is awaited after a
/// load.
const TURN: usize = 16;

impl Bench {
    /// The settings for the GPU.
    fn gpu(&self) -> GpuOptions {
        GpuOptions {
            limits: LimitCaps {
                max_storage_buffer_binding_size: self.max_binding,
                ..LimitCaps::default()
            },
            features: FeatureCaps {
                subgroups: self.no_subgroups.then_some(false),
                packed_dot: self.packed_dot,
                ..FeatureCaps::default()
            },
            max_bytes: self.max_gpu_bytes,
            ..GpuOptions::default()
        }
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

pub(crate) fn bench(args: &Bench) -> Result<()> {
    if args.products {
        return products::print_times(args.backend.threads, args.json);
    }
    let (path, temporary) = match (&args.model, args.shape) {
        (Some(path), _) => (path.clone(), false),
        (None, None) => (PathBuf::from("models/tiny-stories.gguf"), false),
        (None, Some(shape)) => {
            let sizes = shape.sizes();
            if args.lookup {
                sizes.check_counting("lookup")?;
            }
            let name = format!("tritloom-bench-{}.gguf", std::process::id());
            let path = std::env::temp_dir().join(name);
            remove_if_interrupted(&path)?;
            let rows = Rows::new(args.lookup, args.embedding_deviation);
            let written = random::write(&sizes, rows, &path, true);
            written.inspect_err(|_| remove(&path))?;
            (path, true)
        }
    };
    let report = block_on(measure::measure(args, &path));
    if temporary {
        remove(&path);
    }
    let report = report?;
    if args.json { print_json(&report) } else { print(&report.to_table()) }
}

fn print_json(report: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(report).map_err(|e| Error::Internal(e.to_string()))?;
    print(&(json + "\n"))
}

/// Removes the file before Ctrl-C or `kill` ends the program.
fn remove_if_interrupted(path: &Path) -> Result<()> {
    let path = path.to_owned();
    let stop = move || {
        remove(&path);
        exit_at_once(130); // the status that shells report for an interrupt
    };
    ctrlc::set_handler(stop).map_err(|error| Error::Internal(error.to_string()))
}

/// Exits without exit handlers, because those of the GPU driver free memory that its threads still
/// use.
#[allow(unsafe_code, reason = "the standard library has no such exit")]
fn exit_at_once(code: i32) -> ! {
    // SAFETY: `_exit` takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Nothing depends on whether a temporary file can be removed.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Greedy, without prompt lookup: the speed of lookup depends on the text.
fn without_lookup(tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens: Some(tokens), prompt_lookup: Some(false), ..Default::default() }
}

/// `len` ids that differ from the beginning of every other run's prompt, so that nothing is reused.
fn prompt(len: usize, run: usize, vocabulary: usize) -> Vec<u32> {
    (0..len).map(|i| ((i * 31 + run * 977 + len * 13 + 1) % vocabulary.min(4000)) as u32).collect()
}
