//! Times loading, prompts and decoding, and says how much of the memory's speed that is.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde::Serialize;

use ternlight::gpu::{Gpu, GpuOptions, KernelTime};
use ternlight::native::{FileSource, block_on};
use ternlight::session::{GenerateOptions, Info, LoadOptions, Piece, Progress, Session, Stats};
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
    /// Random weights of this shape, in a temporary file that is deleted at the end
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
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    runs: usize,
    /// Times the model is loaded
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    loads: usize,
    /// Also time every kernel of one token and of a piece of a prompt, at each length
    #[arg(long)]
    profile: bool,
    /// Also generate so many tokens in a row, in chats that fill the context one after the other
    #[arg(long, value_name = "TOKENS")]
    soak: Option<usize>,
    /// How the LM head is held
    #[arg(long, value_enum, default_value_t = HeadArg::Auto)]
    head: HeadArg,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn at_least_one(text: &str) -> std::result::Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("must be 1 or more".into()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// Tokens of a prompt that are profiled at its end: about what a card takes at once.
const CHUNK: usize = 512;

/// Tokens of a turn of the soak, and of the prompt whose first token is waited for after loading.
const TURN: usize = 16;

/// Tokens at the soak's beginning and end whose rates are compared.
const STRETCH: usize = 1000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    info: Info,
    /// GB/s, of a kernel that only reads.
    bandwidth: f64,
    figures: Vec<Figure>,
    profiles: Vec<StepProfile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soak: Option<Soak>,
}

/// The kernels of one step of `tokens` at a context length, the slowest first.
#[derive(Serialize)]
struct StepProfile {
    context: usize,
    tokens: usize,
    kernels: Vec<KernelTime>,
}

/// One thing measured, several times.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figure {
    what: String,
    unit: &'static str,
    median: f64,
    least: f64,
    most: f64,
    /// Bytes read and written for a token, where it is about decoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_token: Option<u64>,
    /// The median's share of what memory gives at best.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
}

impl Figure {
    fn new(what: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            what: what.into(),
            unit,
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            least: values[0],
            most: values[values.len() - 1],
            bytes_per_token: None,
            share: None,
        }
    }
}

/// Many tokens in a row. Rates are tokens per second.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Soak {
    tokens: usize,
    chats: usize,
    first: f64,
    last: f64,
    /// Of the positions of the last tokens, when each was reached for the first time: what `last`
    /// would be if nothing had slowed down. Far into a context attention has more to read.
    last_at_first: f64,
    gpu_bytes_before: u64,
    gpu_bytes_after: u64,
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
    let (mut session, mut figures) = load(args, path).await?;
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    let bandwidth = session.bandwidth().await?;
    // One run more than is counted: the first warms up.
    for &len in args.prefill.iter().filter(|&&len| len < context) {
        let mut values = Vec::new();
        for run in 0..=args.runs {
            let stats = generate(&mut session, &prompt(len, run, vocabulary), 1).await?;
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
            let stats = generate(&mut session, &prompt(len, run, vocabulary), args.tokens).await?;
            values.push(stats.decode_tokens_per_second);
        }
        let values = values.split_off(1);
        let figure = Figure::new(format!("decode, {len} tokens of context"), "tok/s", values);
        let bytes = session.bytes_per_token(len + args.tokens / 2);
        let share = figure.median * bytes as f64 / 1e9 / bandwidth;
        figures.push(Figure { bytes_per_token: Some(bytes), share: Some(share), ..figure });
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
    let soak = match args.soak {
        Some(tokens) => Some(soak(&mut session, tokens).await?),
        None => None,
    };
    Ok(Report { info: session.info().clone(), bandwidth, figures, profiles, soak })
}

/// Loads the model as often as asked, each time to its first token; keeps the last.
async fn load(args: &Bench, path: &Path) -> Result<(Session, Vec<Figure>)> {
    let [mut loads, mut readies, mut firsts] = [const { Vec::new() }; 3];
    loop {
        let started = Instant::now();
        let mut last_byte = started;
        let gpu = Gpu::open(&GpuOptions::default()).await?;
        let mut reader = Reader::new(FileSource::open(path)?);
        let mut told = |progress| {
            if let Progress::Upload { .. } = progress {
                last_byte = Instant::now();
            }
        };
        let options = LoadOptions { head: args.head.into(), ..LoadOptions::default() };
        let mut session = Session::load(gpu, &mut reader, &options, &mut told).await?;
        loads.push(started.elapsed().as_secs_f64());
        readies.push(last_byte.elapsed().as_secs_f64() * 1e3);
        let prompt = prompt(TURN, 0, session.info().vocab_size);
        generate(&mut session, &prompt, 1).await?;
        firsts.push(last_byte.elapsed().as_secs_f64() * 1e3);
        if loads.len() < args.loads {
            continue;
        }
        let figures = vec![
            Figure::new("load from a file", "s", loads),
            Figure::new("last byte to ready", "ms", readies),
            Figure::new(format!("last byte to first token, {TURN}-token prompt"), "ms", firsts),
        ];
        return Ok((session, figures));
    }
}

/// The third step's times: the first two warm up.
async fn profile(session: &mut Session, context: usize, tokens: usize) -> Result<StepProfile> {
    session.profile(context, tokens).await?;
    session.profile(context, tokens).await?;
    Ok(StepProfile { context, tokens, kernels: session.profile(context, tokens).await?.kernels })
}

/// Turn after turn of chats that go on until the context is full, `tokens` in all.
async fn soak(session: &mut Session, tokens: usize) -> Result<Soak> {
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    // The seconds of each token, and its position.
    let mut taken: Vec<(usize, f64)> = Vec::with_capacity(tokens);
    let (mut chats, mut turns) = (0, 0);
    let mut history: Vec<u32> = Vec::new();
    let mut gpu_bytes_before = 0;
    // A model that has nothing to say ends it too.
    while taken.len() < tokens && turns < tokens {
        if history.is_empty() || history.len() + TURN > context {
            history.clear();
            chats += 1;
        }
        history.extend(prompt(TURN, turns, vocabulary));
        turns += 1;
        let options = plainly(tokens - taken.len());
        let mut answer = Vec::new();
        let mut before = Instant::now();
        let (start, turn) = (history.len(), &mut taken);
        let mut on_piece = |piece: Piece| {
            if let Some(id) = piece.id {
                let now = Instant::now();
                turn.push((start + answer.len(), (now - before).as_secs_f64()));
                before = now;
                answer.push(id);
            }
            ControlFlow::Continue(())
        };
        session.generate(&history, &options, &mut on_piece).await?;
        history.append(&mut answer);
        if gpu_bytes_before == 0 {
            gpu_bytes_before = session.gpu().allocated();
        }
    }
    let mut first_time = vec![None; context + 1];
    for &(position, seconds) in &taken {
        first_time[position].get_or_insert(seconds);
    }
    let stretch = STRETCH.min(taken.len() / 2);
    let last = &taken[taken.len() - stretch..];
    let rate = |seconds: f64| stretch as f64 / seconds;
    Ok(Soak {
        tokens: taken.len(),
        chats,
        first: rate(taken[..stretch].iter().map(|token| token.1).sum()),
        last: rate(last.iter().map(|token| token.1).sum()),
        last_at_first: rate(last.iter().filter_map(|token| first_time[token.0]).sum()),
        gpu_bytes_before,
        gpu_bytes_after: session.gpu().allocated(),
    })
}

async fn generate(session: &mut Session, prompt: &[u32], tokens: usize) -> Result<Stats> {
    session.generate(prompt, &plainly(tokens), &mut |_| ControlFlow::Continue(())).await
}

/// Greedy, each token by itself: how many at once lookups in the prompt give depends on the text.
fn plainly(tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens: Some(tokens), prompt_lookup: Some(false), ..Default::default() }
}

/// `len` ids that no other run's prompt begins with, so that nothing is reused.
fn prompt(len: usize, run: usize, vocabulary: usize) -> Vec<u32> {
    (0..len).map(|i| ((i * 31 + run * 977 + len * 13 + 1) % vocabulary.min(4000)) as u32).collect()
}

fn table(report: &Report) -> String {
    let info = &report.info;
    let mut text = format!(
        "{} on {}\n{:.2} GB file, {:.2} GB on the GPU, {} dispatches per token\n\
         memory read at {:.1} GB/s at best\nkernels: {}\n\n",
        info.name,
        info.adapter,
        info.bytes as f64 / 1e9,
        info.gpu_bytes as f64 / 1e9,
        info.dispatches_per_token,
        report.bandwidth,
        info.kernels.join(" "),
    );
    for Figure { what, unit, median, least, most, bytes_per_token, share } in &report.figures {
        text += &format!("{what:44} {median:9.1} {unit:6} ({least:.1} to {most:.1})");
        if let (Some(bytes), Some(share)) = (bytes_per_token, share) {
            let (megabytes, percent) = (*bytes as f64 / 1e6, 100.0 * share);
            text += &format!("  {megabytes:.1} MB a token, {percent:.1} % of memory's speed");
        }
        text += "\n";
    }
    for StepProfile { context, tokens, kernels } in &report.profiles {
        let total: f64 = kernels.iter().map(|k| k.microseconds).sum();
        text += &format!("\n{tokens} tokens after {context}: {total:.0} us in kernels\n");
        for KernelTime { kernel, calls, microseconds, bytes, gigabytes_per_second, share } in
            kernels
        {
            let each = microseconds / *calls as f64;
            let (megabytes, percent) = (*bytes as f64 / 1e6, 100.0 * share);
            text += &format!(
                "  {kernel:28} {calls:4} x {each:8.1} us = {microseconds:8.0} us  \
                 {megabytes:8.2} MB {gigabytes_per_second:8.1} GB/s {percent:5.1} %\n"
            );
        }
    }
    if let Some(soak) = &report.soak {
        text += &format!(
            "\n{} tokens in {} chats: the first at {:.1} tok/s, the last at {:.1} \
             ({:.1} when their positions were first reached)\n\
             GPU buffers: {} bytes after the first turn, {} at the end\n",
            soak.tokens,
            soak.chats,
            soak.first,
            soak.last,
            soak.last_at_first,
            soak.gpu_bytes_before,
            soak.gpu_bytes_after,
        );
    }
    text
}
