//! The command line: a prompt in, a streamed answer out; and a look into a file.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use ternlight::chat::{self, Message, Role};
use ternlight::gguf::{Gguf, TensorType};
use ternlight::gpu::{Gpu, GpuOptions};
use ternlight::model::{Config, weights};
use ternlight::native::{FileSource, block_on};
use ternlight::reference::Reference;
use ternlight::sampling::Sampling;
use ternlight::session::{GenerateOptions, LoadOptions, Progress, Session};
use ternlight::source::Reader;
use ternlight::ternary::{self, Layout};
use ternlight::tokenizer::{TextStream, Tokenizer};
use ternlight::{Error, Result};

/// BitNet b1.58 language models on the GPU.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    generate: Generate,
}

#[derive(Subcommand)]
enum Command {
    /// Show a GGUF file's metadata, tensors and shares of -1, 0 and +1
    Inspect {
        /// The file
        file: PathBuf,
    },
}

#[derive(Args)]
struct Generate {
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
    /// Compute with the plain reference on the CPU, slowly
    #[arg(long)]
    cpu: bool,
    /// Tokens of context to keep memory for [default: the model's own limit]
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    /// The order of ternary codes: `arm` for files quantised by ARM builds of bitnet.cpp
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = I2sLayout::X86)]
    i2s_layout: I2sLayout,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum I2sLayout {
    X86,
    Arm,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Some(Command::Inspect { file }) => inspect(file),
        None => generate(&cli.generate),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error[{}]: {error}", error.code());
            ExitCode::FAILURE
        }
    }
}

fn generate(args: &Generate) -> Result<()> {
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
        i2s_arm: args.i2s_layout == I2sLayout::Arm,
        ..LoadOptions::default()
    };
    block_on(async {
        let gpu = Gpu::open(&GpuOptions::default()).await?;
        let mut session = Session::load(gpu, &mut reader, &load, &mut show_progress).await?;
        let ids = prompt(session.tokenizer(), args)?;
        let stats = session.generate(&ids, options, &mut |piece| print(&piece.text)).await?;
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

/// Prints a piece at once. Breaks when nobody reads any more, as in `ternlight … | head`.
fn print(text: &str) -> ControlFlow<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
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

fn inspect(file: &Path) -> Result<()> {
    let mut reader = Reader::new(FileSource::open(file)?);
    let gguf = block_on(Gguf::read(&mut reader))?;
    let mut text = vec![format!(
        "GGUF {}, {} tensors, data at {}",
        gguf.version,
        gguf.tensors.len(),
        gguf.data_start
    )];
    text.extend(gguf.metadata.iter().map(|(key, value)| format!("{key} = {value}")));

    let mut tensors: Vec<_> = gguf.tensors.iter().collect();
    tensors.sort_by_key(|tensor| tensor.offset);
    let mut total = [0; 3];
    for tensor in tensors {
        let mut line = format!("{:32} {tensor}, {} bytes", tensor.name, tensor.len);
        if tensor.ty == TensorType::I2S {
            let range = tensor.offset..tensor.offset + tensor.len;
            let counts = count(&tensor.name, &block_on(reader.read(range))?)?;
            line += &format!("  {}", shares(counts));
            (0..3).for_each(|i| total[i] += counts[i]);
        }
        text.push(line);
    }
    if total != [0; 3] {
        text.push(format!("all ternary weights: {}", shares(total)));
    }
    let runs = Config::from_gguf(&gguf)
        .and_then(|config| weights::weights(&config, &gguf).map(|_| config))
        .and_then(|config| Tokenizer::from_gguf(&gguf, &config));
    text.push(match runs {
        Ok(_) => "ternlight runs this model".into(),
        Err(error) => format!("ternlight does not run this model: {error}"),
    });
    let _ = print(&(text.join("\n") + "\n"));
    Ok(())
}

/// How many codes of an I2_S tensor are −1, 0 and +1.
fn count(name: &str, bytes: &[u8]) -> Result<[u64; 3]> {
    let (codes, tail) = bytes.split_at(bytes.len() - ternary::TAIL);
    let bad = |what: &str| Error::BadGguf(format!("tensor `{name}` has {what}"));
    ternary::check_codes(codes).map_err(|_| bad("the unused code 3"))?;
    ternary::scale(tail).ok_or_else(|| bad("a scale that is not a number"))?;
    let mut counts = [0; 3];
    for byte in codes {
        (0..4).for_each(|field| counts[usize::from(byte >> (2 * field) & 3)] += 1);
    }
    Ok(counts)
}

fn shares(counts: [u64; 3]) -> String {
    let all: u64 = counts.iter().sum();
    let percent = counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
    format!("-1 {:.1} %, 0 {:.1} %, +1 {:.1} %", percent[0], percent[1], percent[2])
}
