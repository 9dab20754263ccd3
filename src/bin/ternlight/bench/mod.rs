//! Times loading, prompts and decoding, and says how much of the memory's speed that is.

mod lookup;
mod soak;
mod table;

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use ternlight::gpu::{Gpu, GpuOptions, KernelTime};
use ternlight::native::{FileSource, block_on};
use ternlight::session::{GenerateOptions, Info, LoadOptions, Progress, Session, Stats};
use ternlight::source::Reader;
use ternlight::{Error, Result};

use crate::generate::LmHeadArg;
use crate::print;
use crate::random::{self, Shape};

use lookup::LookupGain;
use soak::Soak;

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
    /// Seconds for each figure: it is taken fewer times where they would take longer, and not at all where
    /// once would
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// Also time prompt lookup, on a prompt that counts; the weights of --shape then are those of a
    /// model that counts, so that the answer copies it
    #[arg(long)]
    lookup: bool,
    /// Also time every kernel of one token and of a piece of a prompt, at each length
    #[arg(long)]
    profile: bool,
    /// Also generate so many tokens in a row, in chats that fill the context one after the other
    #[arg(long, value_name = "TOKENS")]
    soak: Option<usize>,
    /// How the LM head is held
    #[arg(long, value_enum, default_value_t = LmHeadArg::Auto)]
    head: LmHeadArg,
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

/// Tokens of an answer, however long they take.
const MIN_TOKENS: usize = 4;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    info: Info,
    /// GB/s, of a kernel that only reads.
    bandwidth: f64,
    figures: Vec<Figure>,
    left_out: Vec<LeftOut>,
    lookups: Vec<LookupGain>,
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

/// What would take so many seconds.
#[derive(Serialize)]
struct LeftOut {
    what: String,
    seconds: f64,
}

/// One thing measured, `runs` times.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Figure {
    what: String,
    unit: &'static str,
    runs: usize,
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
            runs: values.len(),
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            least: values[0],
            most: values[values.len() - 1],
            bytes_per_token: None,
            share: None,
        }
    }
}

impl Bench {
    fn patience(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

pub(crate) fn bench(args: &Bench) -> Result<()> {
    let (path, temporary) = match (&args.model, args.shape) {
        (Some(path), _) => (path.clone(), false),
        (None, None) => (PathBuf::from("models/tiny-stories.gguf"), false),
        (None, Some(shape)) => {
            let name = format!("ternlight-bench-{}.gguf", std::process::id());
            let path = std::env::temp_dir().join(name);
            remove_if_stopped(&path)?;
            let written = random::write(shape, None, args.lookup, &path);
            written.inspect_err(|_| remove(&path))?;
            (path, true)
        }
    };
    let report = block_on(measure(args, &path));
    if temporary {
        remove(&path);
    }
    let report = report?;
    if args.json {
        let json =
            serde_json::to_string_pretty(&report).map_err(|e| Error::Internal(e.to_string()))?;
        let _ = print(&(json + "\n"));
    } else {
        let _ = print(&table::table(&report));
    }
    Ok(())
}

/// Removes the file before Ctrl-C or a `kill` ends the program.
fn remove_if_stopped(path: &Path) -> Result<()> {
    let path = path.to_owned();
    let stop = move || {
        remove(&path);
        exit_at_once(130); // as shells have it for an interrupt
    };
    ctrlc::set_handler(stop).map_err(|error| Error::Internal(error.to_string()))
}

/// Without what runs at an orderly end, which takes from the GPU's driver what its threads are still using.
#[allow(unsafe_code, reason = "the standard library has no such exit")]
fn exit_at_once(code: i32) -> ! {
    // SAFETY: it asks for nothing, and does not come back.
    unsafe { libc::_exit(code) }
}

/// On a temporary file that cannot be removed nothing depends.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

async fn measure(args: &Bench, path: &Path) -> Result<Report> {
    let (mut session, mut figures, rate) = load(args, path).await?;
    let session = &mut session;
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    let bandwidth = session.bandwidth().await?;
    let mut patience = Patience { time: args.patience(), rate, left_out: Vec::new() };
    for &len in args.prefill.iter().filter(|&&len| len < context) {
        let what = format!("time to first token, {len}-token prompt");
        if !patience.bears(&what, len) {
            continue;
        }
        let values = several(args, async |run| {
            let stats = generate(session, &prompt(len, run, vocabulary), 1).await?;
            Ok(stats.time_to_first_token)
        });
        let values = values.await?;
        let rates = values.iter().map(|ms| len as f64 / ms * 1e3).collect();
        let figure = Figure::new(format!("prefill, {len}-token prompt"), "tok/s", rates);
        patience.rate = figure.median;
        figures.extend([Figure::new(what, "ms", values), figure]);
    }
    for &len in args.decode.iter().filter(|&&len| len + args.tokens < context) {
        let what = format!("decode, {len} tokens of context");
        if !patience.bears(&what, len) {
            continue;
        }
        let values = several(args, async |run| {
            Ok(decode(session, args, &prompt(len, run, vocabulary)).await?.decode_tokens_per_second)
        });
        let figure = Figure::new(what, "tok/s", values.await?);
        let bytes = session.bytes_per_token(len + args.tokens / 2);
        let share = figure.median * bytes as f64 / 1e9 / bandwidth;
        figures.push(Figure { bytes_per_token: Some(bytes), share: Some(share), ..figure });
    }
    figures.extend(aborts(session, args).await?);
    let lookups = match args.lookup {
        true => {
            tell("prompt lookup");
            lookup::lookups(session, args.tokens, args.runs).await?
        }
        false => Vec::new(),
    };
    let mut profiles = Vec::new();
    if args.profile {
        let tokens = args.decode.iter().map(|&len| (len, 1));
        let pieces = args.prefill.iter().map(|&len| (len.saturating_sub(CHUNK), CHUNK.min(len)));
        for (before, tokens) in tokens.chain(pieces).filter(|step| step.0 + step.1 <= context) {
            if patience.bears(&format!("profile of {tokens} tokens after {before}"), 3 * tokens) {
                profiles.push(profile(session, before, tokens).await?);
            }
        }
    }
    let soak = match args.soak {
        Some(tokens) => {
            tell(&format!("{tokens} tokens in a row"));
            Some(soak::soak(session, tokens).await?)
        }
        None => None,
    };
    let (info, left_out) = (session.info().clone(), patience.left_out);
    Ok(Report { info, bandwidth, figures, left_out, lookups, profiles, soak })
}

/// Says on the error output what is being measured: on a slow card it takes minutes.
fn tell(what: &str) {
    // It matters to nobody if nobody reads it.
    let _ = writeln!(io::stderr(), "measuring: {what}");
}

/// What there is time for.
struct Patience {
    /// For a figure.
    time: Duration,
    /// Tokens of a prompt per second, as last seen.
    rate: f64,
    left_out: Vec<LeftOut>,
}

impl Patience {
    /// Whether `what` takes no longer, for which so many tokens go through the model as a prompt.
    fn bears(&mut self, what: &str, tokens: usize) -> bool {
        let seconds = tokens as f64 / self.rate;
        let bears = seconds <= self.time.as_secs_f64();
        if bears {
            tell(what);
        } else {
            self.left_out.push(LeftOut { what: what.into(), seconds });
        }
        bears
    }
}

/// What `take` gives in each run. One more than is counted warms up, which counts where there is no time for
/// others.
async fn several(
    args: &Bench,
    mut take: impl AsyncFnMut(usize) -> Result<f64>,
) -> Result<Vec<f64>> {
    let started = Instant::now();
    let mut values = vec![take(0).await?];
    while values.len() <= args.runs && started.elapsed() < args.patience() {
        values.push(take(values.len()).await?);
    }
    if values.len() > 1 {
        values.remove(0);
    }
    Ok(values)
}

/// Loads the model as often as asked, each time to its first token; keeps the last, and says at how many
/// tokens a second that read its prompt.
async fn load(args: &Bench, path: &Path) -> Result<(Session, Vec<Figure>, f64)> {
    let begun = Instant::now();
    let [mut loads, mut readies, mut firsts] = [const { Vec::new() }; 3];
    loop {
        tell(&format!("load {} of {}", loads.len() + 1, args.loads));
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
        let stats = generate(&mut session, &prompt, 1).await?;
        firsts.push(last_byte.elapsed().as_secs_f64() * 1e3);
        if loads.len() < args.loads && begun.elapsed() < args.patience() {
            continue;
        }
        let figures = vec![
            Figure::new("load from a file", "s", loads),
            Figure::new("last byte to ready", "ms", readies),
            Figure::new(format!("last byte to first token, {TURN}-token prompt"), "ms", firsts),
        ];
        return Ok((session, figures, stats.prefill_tokens_per_second));
    }
}

/// The third step's times: the first two warm up.
async fn profile(session: &mut Session, context: usize, tokens: usize) -> Result<StepProfile> {
    session.profile(context, tokens).await?;
    session.profile(context, tokens).await?;
    Ok(StepProfile { context, tokens, kernels: session.profile(context, tokens).await?.kernels })
}

/// Stops answers in the middle: milliseconds until that is answered, and until the first token of another
/// answer, which waits for what was under way. None of a model that ends its answers before.
async fn aborts(session: &mut Session, args: &Bench) -> Result<Vec<Figure>> {
    tell("abort");
    let begun = Instant::now();
    let prompt = prompt(TURN, 0, session.info().vocab_size);
    let [mut answered, mut followed] = [const { Vec::new() }; 2];
    for run in 0..args.runs {
        if run > 0 && begun.elapsed() >= args.patience() {
            break;
        }
        let mut tokens = 0;
        let mut stopped = None;
        let mut on_token = |_| {
            tokens += 1;
            if tokens < 8 + 3 * run {
                return ControlFlow::Continue(());
            }
            stopped = Some(Instant::now());
            ControlFlow::Break(())
        };
        session.generate(&prompt, &plainly(usize::MAX), &mut on_token).await?;
        let Some(stopped) = stopped else { continue };
        answered.push(stopped.elapsed().as_secs_f64() * 1e3);
        generate(session, &prompt, 1).await?;
        followed.push(stopped.elapsed().as_secs_f64() * 1e3);
    }
    if answered.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![
        Figure::new("abort to its answer", "ms", answered),
        Figure::new("abort to another answer's first token", "ms", followed),
    ])
}

async fn generate(session: &mut Session, prompt: &[u32], tokens: usize) -> Result<Stats> {
    session.generate(prompt, &plainly(tokens), &mut |_| ControlFlow::Continue(())).await
}

/// An answer; a short one where there is no time for a long one.
async fn decode(session: &mut Session, args: &Bench, prompt: &[u32]) -> Result<Stats> {
    let begun = Instant::now();
    let mut tokens = 0;
    let mut on_token = |_| {
        tokens += 1;
        match tokens >= MIN_TOKENS && begun.elapsed() >= args.patience() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    session.generate(prompt, &plainly(args.tokens), &mut on_token).await
}

/// Greedy, each token by itself: how many at once lookups in the prompt give depends on the text.
fn plainly(tokens: usize) -> GenerateOptions {
    GenerateOptions { max_tokens: Some(tokens), prompt_lookup: Some(false), ..Default::default() }
}

/// `len` ids that no other run's prompt begins with, so that nothing is reused.
fn prompt(len: usize, run: usize, vocabulary: usize) -> Vec<u32> {
    (0..len).map(|i| ((i * 31 + run * 977 + len * 13 + 1) % vocabulary.min(4000)) as u32).collect()
}
