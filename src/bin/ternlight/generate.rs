//! A prompt in, a streamed answer out.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use ternlight::chat::{self, Message, Role};
use ternlight::gpu::{Gpu, GpuOptions};
use ternlight::native::{FileSource, block_on};
use ternlight::reference::Reference;
use ternlight::sampling::Sampling;
use ternlight::session::{GenerateOptions, LmHead, LoadOptions, Progress, Session};
use ternlight::source::Reader;
use ternlight::ternary::Layout;
use ternlight::tokenizer::{TextStream, Tokenizer};
use ternlight::{Error, Result};

use crate::print;

#[derive(Args)]
pub(crate) struct Generate {
    /// What to say to the model
    #[arg(required = true)]
    prompt: Option<String>,
    /// The model, a GGUF file
    #[arg(long, value_name = "FILE", default_value = "models/tiny-stories.gguf")]
    model: PathBuf,
    /// The most tokens to generate [default: as many as the context holds]
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Divides the logits; 0 always takes the best token
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Choose among this many of the best tokens; 0 is all
    #[arg(long, value_name = "N", default_value_t = 0)]
    top_k: u32,
    /// Choose among the fewest best tokens whose probabilities reach this sum
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    top_p: f32,
    /// Choose among tokens at least this probable relative to the best
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    min_p: f32,
    /// The same seed gives the same text
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u32,
    /// Continue the prompt as it is, without a chat template
    #[arg(long)]
    raw: bool,
    /// Whether to foresee greedy tokens where the text repeats itself [default: where it pays]
    #[arg(long, value_name = "BOOL")]
    prompt_lookup: Option<bool>,
    /// Compute with the plain reference on the CPU, slowly
    #[arg(long)]
    cpu: bool,
    /// Tokens of context to keep memory for [default: the model's own limit, up to 1 GiB]
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    /// How the LM head is held: `int8` reads half of it for a greedy token, and finds the same one
    #[arg(long, value_enum, default_value_t = LmHeadArg::Auto)]
    head: LmHeadArg,
    /// The order of ternary codes: `arm` for files quantised by ARM builds of bitnet.cpp
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = I2sLayout::X86)]
    i2s_layout: I2sLayout,
}

/// [`LmHead`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LmHeadArg {
    Auto,
    F16,
    Int8,
}

impl From<LmHeadArg> for LmHead {
    fn from(head: LmHeadArg) -> Self {
        match head {
            LmHeadArg::Auto => Self::Auto,
            LmHeadArg::F16 => Self::F16,
            LmHeadArg::Int8 => Self::Int8,
        }
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum I2sLayout {
    X86,
    Arm,
}

pub(crate) fn generate(args: &Generate) -> Result<()> {
    let options = GenerateOptions {
        max_tokens: args.max_tokens,
        sampling: Sampling {
            temperature: args.temperature,
            top_k: args.top_k,
            top_p: args.top_p,
            min_p: args.min_p,
            seed: args.seed,
        },
        stop: Vec::new(),
        prompt_lookup: args.prompt_lookup,
    };
    options.sampling.check()?;
    let reader = Reader::new(FileSource::open(&args.model)?);
    let summary =
        if args.cpu { on_cpu(args, &options, reader) } else { on_gpu(args, &options, reader) }?;
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "\n({summary})");
    }
    Ok(())
}

fn on_gpu(
    args: &Generate,
    options: &GenerateOptions,
    mut reader: Reader<FileSource>,
) -> Result<String> {
    let load = LoadOptions {
        context: args.context,
        head: args.head.into(),
        i2s_arm: args.i2s_layout == I2sLayout::Arm,
        ..LoadOptions::default()
    };
    block_on(async {
        let gpu = Gpu::open(&GpuOptions::default()).await?;
        let mut session = Session::load(gpu, &mut reader, &load, &mut show_progress).await?;
        let ids = prompt(session.tokenizer(), args)?;
        let stats = session.generate(&ids, options, &mut |token| print(&token.text)).await?;
        end_line();
        Ok(format!(
            "{} tokens, {:.1} per second, on {}",
            stats.completion_tokens,
            stats.decode_tokens_per_second,
            session.info().adapter
        ))
    })
}

fn on_cpu(
    args: &Generate,
    options: &GenerateOptions,
    mut reader: Reader<FileSource>,
) -> Result<String> {
    let layout = match args.i2s_layout {
        I2sLayout::X86 => Layout::X86,
        I2sLayout::Arm => Layout::Arm,
    };
    let mut model = block_on(Reference::load_as(&mut reader, layout))?;
    let ids = prompt(&model.tokenizer, args)?;
    let n_ctx = model.config.n_ctx;
    let context = args.context.unwrap_or(n_ctx);
    if context == 0 || context > n_ctx {
        let why = format!("{context} tokens, but the model is made for 1 to {n_ctx}");
        return Err(Error::BadOption { name: "context".into(), why });
    }
    if ids.len() > context {
        return Err(Error::ContextFull { prompt: ids.len(), context });
    }
    // The last token needs no place in the context.
    let room = context - ids.len() + 1;
    let limit = options.max_tokens.unwrap_or(room).min(room);
    let mut text = TextStream::new();
    let mut next = ids;
    let mut generated = 0;
    while generated < limit {
        let logits = model.forward(&next)?.pop().unwrap_or_default();
        let id = options
            .sampling
            .choose(&logits, model.n_past() as u32)
            .ok_or_else(|| Error::Internal("the model gave no number for any token".into()))?;
        if model.tokenizer.is_stop(id) {
            break;
        }
        generated += 1;
        if print(&text.push(&model.tokenizer, id)?).is_break() {
            break;
        }
        next = vec![id];
    }
    let _ = print(&text.finish());
    end_line();
    Ok(format!("{generated} tokens, on the CPU"))
}

/// The tokens of the prompt, as one turn of a chat or as it is.
fn prompt(tokenizer: &Tokenizer, args: &Generate) -> Result<Vec<u32>> {
    let content = args.prompt.clone().unwrap_or_default();
    if !args.raw {
        return chat::prompt(tokenizer, &[Message { role: Role::User, content }]);
    }
    let bos = tokenizer.bos().filter(|_| tokenizer.add_bos());
    Ok(bos.into_iter().chain(tokenizer.encode(&content)?).collect())
}

fn end_line() {
    let _ = print("\n");
}

fn show_progress(progress: Progress) {
    let mut err = io::stderr();
    if !err.is_terminal() {
        return;
    }
    let _ = match progress {
        Progress::Upload { loaded, total } => {
            write!(err, "\rloading {:3} %", loaded * 100 / total.max(1))
        }
        Progress::Compile => write!(err, "\r             \r"),
    };
}
