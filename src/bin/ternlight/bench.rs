//! Times decoding and prompt processing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use ternlight::gpu::{Gpu, GpuOptions, KernelTime};
use ternlight::native::{FileSource, block_on};
use ternlight::session::{GenerateOptions, Info, LoadOptions, Session};
use ternlight::source::Reader;
use ternlight::{Error, Result};

use crate::generate::HeadArg;
use crate::print;
use crate::random::{self, Shape};

#[derive(Args)]
pub(crate) struct Bench {
    /// The model, a GGUF file [default: the bundled one, unless --shape is given]
    #[arg(long, value_name = "FILE", conflicts_with = "shape")]
    model: Option<PathBuf>,
    /// Random weights of this shape instead of a file
    #[arg(long, value_enum)]
    shape: Option<Shape>,
    /// Lengths of the context to decode at
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [16, 1024, 3500])]
    decode: Vec<usize>,
    /// Lengths of the prompts to time
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [256, 1024, 3500])]
    prefill: Vec<usize>,
    /// Tokens to generate for each decode figure
    #[arg(long, value_name = "N", default_value_t = 128)]
    tokens: usize,
    /// Times each figure is taken
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: usize,
    /// Also time every kernel of one token, at each context length
    #[arg(long)]
    profile: bool,
    /// How the LM head is held
    #[arg(long, value_enum, default_value_t = HeadArg::Auto)]
    head: HeadArg,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Tokens of a prompt that are profiled at its end: about what a card takes at once.
const CHUNK: usize = 512;

#[derive(Serialize)]
struct Report {
    info: Info,
    load_seconds: f64,
    figures: Vec<Figure>,
    profiles: Vec<Profile>,
}

/// The kernels of one step of `tokens` at a context length, the slowest first.
#[derive(Serialize)]
struct Profile {
    context: usize,
    tokens: usize,
    kernels: Vec<KernelTime>,
}

/// One thing measured, several times.
#[derive(Serialize)]
struct Figure {
    what: String,
    unit: &'static str,
    median: f64,
    least: f64,
    most: f64,
}

impl Figure {
    fn new(what: String, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            what,
            unit,
            median: values[values.len() / 2],
            least: values[0],
            most: values[values.len() - 1],
        }
    }
}

pub(crate) fn bench(args: &Bench) -> Result<()> {
    let (path, temporary) = match (&args.model, args.shape) {
        (Some(path), _) => (path.clone(), false),
        (None, None) => (PathBuf::from("models/tiny-stories.gguf"), false),
        (None, Some(shape)) => {
            let name = format!("ternlight-bench-{}.gguf", std::process::id());
            let path = std::env::temp_dir().join(name);
            random::write(shape, None, &path)?;
            (path, true)
        }
    };
    let report = block_on(measure(args, &path));
    if temporary {
        let _ = std::fs::remove_file(&path);
    }
    let report = report?;
    if args.json {
        let json =
            serde_json::to_string_pretty(&report).map_err(|e| Error::Internal(e.to_string()))?;
        let _ = print(&(json + "\n"));
    } else {
        let _ = print(&table(&report));
    }
    Ok(())
}

async fn measure(args: &Bench, path: &Path) -> Result<Report> {
    let gpu = Gpu::open(&GpuOptions::default()).await?;
    let started = Instant::now();
    let mut reader = Reader::new(FileSource::open(path)?);
    let options = LoadOptions { head: args.head.into(), ..LoadOptions::default() };
    let mut session = Session::load(gpu, &mut reader, &options, &mut |_| {}).await?;
    let load_seconds = started.elapsed().as_secs_f64();
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    let mut figures = Vec::new();
    // One run more than is counted: the first warms up.
    for &len in args.prefill.iter().filter(|&&len| len < context) {
        let mut values = Vec::new();
        for run in 0..=args.runs {
            let stats = generate(&mut session, prompt(len, run, vocabulary), 1).await?;
            values.push(stats.time_to_first_token);
        }
        let values = values.split_off(1);
        let rates = values.iter().map(|ms| len as f64 / ms * 1e3).collect();
        figures.push(Figure::new(format!("time to first token, {len}-token prompt"), "ms", values));
        figures.push(Figure::new(format!("prefill, {len}-token prompt"), "tok/s", rates));
    }
    for &len in args.decode.iter().filter(|&&len| len + args.tokens < context) {
        let mut values = Vec::new();
        for run in 0..=args.runs {
            let stats = generate(&mut session, prompt(len, run, vocabulary), args.tokens).await?;
            values.push(stats.decode_tokens_per_second);
        }
        let values = values.split_off(1);
        figures.push(Figure::new(format!("decode, {len} tokens of context"), "tok/s", values));
    }
    let mut profiles = Vec::new();
    if args.profile {
        for &len in args.decode.iter().filter(|&&len| len < context) {
            profiles.push(profile(&mut session, len, 1).await?);
        }
        for &len in args.prefill.iter().filter(|&&len| len < context) {
            profiles.push(profile(&mut session, len.saturating_sub(CHUNK), CHUNK.min(len)).await?);
        }
    }
    Ok(Report { info: session.info().clone(), load_seconds, figures, profiles })
}

/// The third step's times: the first two warm up.
async fn profile(session: &mut Session, context: usize, tokens: usize) -> Result<Profile> {
    session.profile(context, tokens).await?;
    session.profile(context, tokens).await?;
    Ok(Profile { context, tokens, kernels: session.profile(context, tokens).await? })
}

async fn generate(
    session: &mut Session,
    prompt: Vec<u32>,
    tokens: usize,
) -> Result<ternlight::session::Stats> {
    let options = GenerateOptions {
        max_tokens: Some(tokens),
        prompt_lookup: Some(false),
        ..Default::default()
    };
    session.generate(&prompt, &options, &mut |_| ControlFlow::Continue(())).await
}

/// `len` ids that no other run's prompt begins with, so that nothing is reused.
fn prompt(len: usize, run: usize, vocabulary: usize) -> Vec<u32> {
    (0..len).map(|i| ((i * 31 + run * 977 + len * 13 + 1) % vocabulary.min(4000)) as u32).collect()
}

fn table(report: &Report) -> String {
    let info = &report.info;
    let mut text = format!(
        "{} on {}\n{:.2} GB file, {:.2} GB on the GPU, loaded in {:.2} s, {} dispatches per token\n",
        info.name,
        info.adapter,
        info.bytes as f64 / 1e9,
        info.gpu_bytes as f64 / 1e9,
        report.load_seconds,
        info.dispatches_per_token,
    );
    text += &format!("kernels: {}\n\n", info.kernels.join(" "));
    for Figure { what, unit, median, least, most } in &report.figures {
        text += &format!("{what:44} {median:9.1} {unit:6} ({least:.1} to {most:.1})\n");
    }
    for Profile { context, tokens, kernels } in &report.profiles {
        let total: f64 = kernels.iter().map(|k| k.microseconds).sum();
        text += &format!("\n{tokens} tokens after {context}: {total:.0} us in kernels\n");
        for KernelTime { kernel, calls, microseconds } in kernels {
            let each = microseconds / *calls as f64;
            text += &format!("  {kernel:28} {calls:4} x {each:7.1} us = {microseconds:8.0} us\n");
        }
    }
    text
}
