//! Takes the figures of a report.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use tritloom::compute::EngineOptions;
use tritloom::compute::KernelTime;
use tritloom::native::open;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, LoadOptions, Progress, Session, Stats};
use tritloom::source::Reader;
use tritloom::{Error, Result};

use super::figure::Figure;
use super::report::{LeftOut, Report, StepProfile};
use super::{Bench, TURN, lookup, prompt, soak, without_lookup};
use crate::random;

/// Tokens to profile at the end of a prompt: about one chunk.
const CHUNK: usize = 512;

/// The least number of tokens in an answer, however long they take.
const MIN_TOKENS: usize = 4;

/// All figures that `args` ask for, for the model at `path`.
pub(super) async fn measure(args: &Bench, path: &Path) -> Result<Report> {
    let (mut session, mut figures, rate) = load(args, path).await?;
    let session = &mut session;
    let context = session.info().context_length;
    let bandwidth = session.bandwidth().await?;
    let mut patience = Patience { time: args.patience(), rate, left_out: Vec::new() };
    figures.extend(speeds(session, args, bandwidth, &mut patience, "").await?);
    if let Some(rank) = args.adapter_rank {
        let file = random::adapter(session.compute().config(), rank);
        let file = file.map_err(|error| Error::Internal(error.to_string()))?;
        let adapter = session.load_adapter(&mut Reader::new(&file[..])).await?;
        session.set_adapters(&[(adapter, 1.0)]).await?;
        let with = format!(", adapter of rank {rank}");
        figures.extend(speeds(session, args, bandwidth, &mut patience, &with).await?);
        session.set_adapters(&[]).await?;
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
        let chunks = args.prefill.iter().map(|&len| (len.saturating_sub(CHUNK), CHUNK.min(len)));
        for (before, tokens) in tokens.chain(chunks).filter(|step| step.0 + step.1 <= context) {
            let ways = drawn().into_iter().filter(|_| args.sampling && tokens == 1);
            let ways = ways.map(|(how, sampling)| (Some(how), sampling));
            for (drawn, sampling) in [(None, Sampling::default())].into_iter().chain(ways) {
                let how = drawn.map(|how| format!(", {how}")).unwrap_or_default();
                let what = format!("profile of {tokens} tokens after {before}{how}");
                if patience.allows(&what, 3 * tokens) {
                    let kernels = profile(session, before, tokens, sampling).await?;
                    profiles.push(StepProfile { context: before, tokens, drawn, kernels });
                }
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

/// The speeds of prompts and of decoding. Their names end with `with`.
async fn speeds(
    session: &mut Session,
    args: &Bench,
    bandwidth: f64,
    patience: &mut Patience,
    with: &str,
) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    for &len in args.prefill.iter().filter(|&&len| len < context) {
        let what = format!("time to first token, {len}-token prompt{with}");
        if !patience.allows(&what, len) {
            continue;
        }
        let values = repeat(args, async |run| {
            let stats = generate(session, &prompt(len, run, vocabulary), 1).await?;
            Ok(stats.time_to_first_token)
        });
        let values = values.await?;
        let rates = values.iter().map(|ms| len as f64 / ms * 1e3).collect();
        let figure = Figure::new(format!("prefill, {len}-token prompt{with}"), "tok/s", rates);
        patience.rate = figure.median;
        figures.extend([Figure::new(what, "ms", values), figure]);
    }
    for &len in args.decode.iter().filter(|&&len| len + args.tokens < context) {
        let what = format!("decode, {len} tokens of context{with}");
        if !patience.allows(&what, len) {
            continue;
        }
        let values = repeat(args, async |run| {
            let sampling = Sampling::default();
            decode(session, args, &prompt(len, run, vocabulary), sampling).await
        });
        let figure = Figure::new(&what, "tok/s", values.await?);
        let bytes = session.bytes_per_token(len + args.tokens / 2);
        let share = figure.median * bytes as f64 / 1e9 / bandwidth;
        figures.push(Figure { bytes_per_token: Some(bytes), share: Some(share), ..figure });
        for (how, sampling) in drawn().into_iter().filter(|_| args.sampling) {
            let what = format!("{what}, {how}");
            tell(&what);
            let values = repeat(args, async |run| {
                decode(session, args, &prompt(len, run, vocabulary), sampling).await
            });
            figures.push(Figure::new(what, "tok/s", values.await?));
        }
    }
    Ok(figures)
}

/// Says on standard error what is measured next: on a slow card it takes minutes.
fn tell(what: &str) {
    // A closed standard error must not end the benchmark.
    let _ = writeln!(io::stderr(), "measuring: {what}");
}

/// Decides which figures there is time for.
struct Patience {
    /// The longest time for one figure.
    time: Duration,
    /// The rate of the latest figure: prompt tokens per second.
    rate: f64,
    left_out: Vec<LeftOut>,
}

impl Patience {
    /// Whether there is time for `what`, which computes this many tokens as a prompt. If not, it is
    /// noted as left out.
    fn allows(&mut self, what: &str, tokens: usize) -> bool {
        let seconds = tokens as f64 / self.rate;
        let allows = seconds <= self.time.as_secs_f64();
        if allows {
            tell(what);
        } else {
            self.left_out.push(LeftOut { what: what.into(), seconds });
        }
        allows
    }
}

/// The values of all runs but the first, which warms up. If there was time for one run only, the
/// value of that run.
async fn repeat(args: &Bench, mut take: impl AsyncFnMut(usize) -> Result<f64>) -> Result<Vec<f64>> {
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

/// Loads the model `args.loads` times, each time up to its first token. Gives the last session,
/// the figures, and the last prompt's tokens per second.
async fn load(args: &Bench, path: &Path) -> Result<(Session, Vec<Figure>, f64)> {
    let begun = Instant::now();
    let [mut loads, mut readies, mut firsts] = [const { Vec::new() }; 3];
    loop {
        tell(&format!("load {} of {}", loads.len() + 1, args.loads));
        let started = Instant::now();
        let mut last_byte = started;
        let opening = args.backend.open(args.gpu());
        let mut reader = Reader::new(open(path)?);
        let mut on_progress = |progress| {
            if let Progress::Upload { .. } = progress {
                last_byte = Instant::now();
            }
        };
        let (lm_head, kv) = (args.lm_head.into(), args.kv.into());
        let (context, deterministic) = (args.context, args.deterministic);
        let engine =
            EngineOptions { context, lm_head, kv, deterministic, ..EngineOptions::default() };
        let options = LoadOptions { engine, ..LoadOptions::default() };
        let mut session = Session::load(opening, &mut reader, &options, &mut on_progress).await?;
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

/// The times of a third step: the first two warm up.
async fn profile(
    session: &mut Session,
    context: usize,
    tokens: usize,
    sampling: Sampling,
) -> Result<Vec<KernelTime>> {
    let choosing = sampling.into();
    session.profile(context, tokens, &choosing).await?;
    session.profile(context, tokens, &choosing).await?;
    Ok(session.profile(context, tokens, &choosing).await?.kernels)
}

/// Stops answers in the middle. Measures the milliseconds until `generate` returns, and until the
/// first token of the next answer, which waits for the steps in flight. Gives no figures if the
/// model ends every answer before it is stopped.
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
        session.generate(&prompt, &without_lookup(usize::MAX), &mut on_token).await?;
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
    session.generate(prompt, &without_lookup(tokens), &mut |_| ControlFlow::Continue(())).await
}

/// How `--sampling` draws tokens.
fn drawn() -> [(&'static str, Sampling); 4] {
    let temperature = Sampling { temperature: 0.7, seed: 7, ..Sampling::default() };
    [
        ("temperature", temperature),
        ("top-k and top-p", Sampling { top_k: 40, top_p: 0.95, ..temperature }),
        ("top-p", Sampling { top_p: 0.95, ..temperature }),
        ("min-p", Sampling { min_p: 0.05, ..temperature }),
    ]
}

/// The tokens per second of an answer. It is made shorter if it would take too long.
async fn decode(
    session: &mut Session,
    args: &Bench,
    prompt: &[u32],
    sampling: Sampling,
) -> Result<f64> {
    let begun = Instant::now();
    let mut tokens = 0;
    let mut on_token = |_| {
        tokens += 1;
        match tokens >= MIN_TOKENS && begun.elapsed() >= args.patience() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let options = GenerateOptions { sampling, ..without_lookup(args.tokens) };
    Ok(session.generate(prompt, &options, &mut on_token).await?.decode_tokens_per_second)
}
