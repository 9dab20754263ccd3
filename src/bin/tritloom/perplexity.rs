//! Measures the perplexity of a model on a text.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use tritloom::compute::EngineOptions;
use tritloom::gguf::{Gguf, Joined};
use tritloom::gpu::GpuOptions;
use tritloom::model::Config;
use tritloom::native::{FileSource, block_on, open};
use tritloom::perplexity::{Perplexity, Windows, perplexity};
use tritloom::session::{LoadOptions, Session};
use tritloom::source::Reader;
use tritloom::ternary::Layout;
use tritloom::tokenizer::Tokenizer;
use tritloom::{Error, Result};

use crate::backend::BackendArgs;
use crate::generate::{I2sLayout, KvArg, TokenizerArg, show_progress};
use crate::options::one_or_more;
use crate::output::print;

#[derive(Args)]
pub(crate) struct Measure {
    /// The text, a file of UTF-8
    file: PathBuf,
    /// The model, a GGUF file
    #[arg(long, value_name = "FILE", default_value = "models/tiny-stories.gguf")]
    model: PathBuf,
    /// Tokens of the windows that go over the text [default: the model's context, up to 2048]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    context: Option<usize>,
    /// Tokens from one window to the next. Each scores the tokens that no window before it has
    /// scored; the others are only read [default: half of a window]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    stride: Option<usize>,
    #[command(flatten)]
    backend: BackendArgs,
    /// Do not round activations to int8, except for I2_S, whose models were trained so
    #[arg(long)]
    float_activations: bool,
    /// How to store keys and values
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = KvArg::F16)]
    kv: KvArg,
    /// The order of ternary codes; `arm` is for files quantised by ARM builds of bitnet.cpp
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = I2sLayout::X86)]
    i2s_layout: I2sLayout,
    /// Whether to refuse a tokenizer that tritloom does not know, or take the closest one
    #[arg(long, value_name = "RULES", value_enum, default_value_t = TokenizerArg::Strict)]
    tokenizer: TokenizerArg,
}

/// The tokens of a window by default. Longer windows take longer and change little.
const DEFAULT_CONTEXT: usize = 2048;

pub(crate) fn measure(args: &Measure) -> Result<()> {
    let text = text(&args.file)?;
    let mut reader = Reader::new(open(&args.model)?);
    let (ids, windows) = prepare(args, &text, &mut reader)?;
    let mut progress = Shown::default();
    let mut show = |so_far: Perplexity, total: usize| progress.show(so_far, total);
    let measured = run(args, &ids, windows, &mut reader, &mut show);
    progress.end();
    let Perplexity { value, deviation, scored } = measured?;
    let deviation = deviation.map_or(String::new(), |deviation| format!(" +/- {deviation:.4}"));
    print(&format!(
        "perplexity {value:.4}{deviation}\n{scored} of {} tokens scored, in windows of {}, stride {}\n",
        ids.len(),
        windows.context,
        windows.stride
    ))
}

fn text(file: &Path) -> Result<String> {
    let shown = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| Error::unreadable(&shown, error))?;
    let bad = |why: String| Error::BadOption { name: "text".into(), why };
    if bytes.is_empty() {
        return Err(bad(format!("{shown} is empty")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        bad(format!("{shown} is not UTF-8 (at byte {at})"))
    })
}

/// The tokens of the text, and the windows over them. Everything is checked before the weights are
/// loaded.
fn prepare(
    args: &Measure,
    text: &str,
    reader: &mut Reader<Joined<FileSource>>,
) -> Result<(Vec<u32>, Windows)> {
    let gguf = block_on(Gguf::read(reader))?;
    let config = Config::from_gguf(&gguf)?;
    let context = args.context.unwrap_or(config.n_ctx.min(DEFAULT_CONTEXT));
    if context > config.n_ctx {
        let why = format!("{context} tokens, but the model has a context of {}", config.n_ctx);
        return Err(Error::BadOption { name: "context".into(), why });
    }
    let windows = Windows { context, stride: args.stride.unwrap_or(context.div_ceil(2)) };
    let tokenizer = Tokenizer::from_gguf_with(&gguf, &config, args.tokenizer.into())?;
    let bos = tokenizer.bos().filter(|_| tokenizer.add_bos());
    let ids: Vec<u32> = bos.into_iter().chain(tokenizer.encode(text)?).collect();
    windows.check(ids.len())?;
    Ok((ids, windows))
}

fn run(
    args: &Measure,
    ids: &[u32],
    windows: Windows,
    reader: &mut Reader<Joined<FileSource>>,
    progress: &mut dyn FnMut(Perplexity, usize),
) -> Result<Perplexity> {
    let load = LoadOptions {
        engine: EngineOptions {
            context: Some(windows.context),
            kv: args.kv.into(),
            i2s_arm: Layout::from(args.i2s_layout) == Layout::Arm,
            float_activations: args.float_activations,
            ..EngineOptions::default()
        },
        tokenizer: args.tokenizer.into(),
        ..LoadOptions::default()
    };
    block_on(async {
        let opening = args.backend.open(GpuOptions::default());
        let mut session = Session::load(opening, reader, &load, &mut show_progress).await?;
        for note in &session.info().notes {
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        let mut score = async |before: &[u32], ids: &[u32]| {
            Ok(session.score(before, &[ids.to_vec()]).await?.concat())
        };
        perplexity(ids, windows, &mut score, progress).await
    })
}

/// The progress on standard error.
#[derive(Default)]
struct Shown {
    last: Option<Instant>,
    /// Whether the last line is still without its end.
    open: bool,
}

impl Shown {
    /// Shows the progress of the measurement: in one line of a terminal, or else in a line now and
    /// then.
    fn show(&mut self, so_far: Perplexity, total: usize) {
        let mut err = io::stderr();
        let is_terminal = err.is_terminal();
        let pause = Duration::from_secs(if is_terminal { 1 } else { 10 });
        if self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        self.last = Some(Instant::now());
        let Perplexity { value, scored, .. } = so_far;
        let line = format!("{scored} of {total} tokens scored, perplexity {value:.2} so far");
        let _ = if is_terminal { write!(err, "\r{line}  ") } else { writeln!(err, "{line}") };
        self.open = is_terminal;
    }

    /// Ends the line.
    fn end(&self) {
        if self.open {
            let _ = writeln!(io::stderr());
        }
    }
}
