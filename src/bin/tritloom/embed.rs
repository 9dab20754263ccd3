//! Prints the vectors of texts.

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::Args;

use tritloom::gpu::GpuOptions;
use tritloom::model::Pooling;
use tritloom::native::{block_on, open};
use tritloom::session::{EmbedOptions, EmbedText, LoadOptions, Purpose, Session, TASKS};
use tritloom::source::Reader;
use tritloom::{Error, Result};

use crate::adapters::AdapterArgs;
use crate::backend::BackendArgs;
use crate::generate::show_progress;
use crate::options::one_or_more;
use crate::output::Output;

/// Texts that are embedded before their vectors are printed.
const AT_ONCE: usize = 256;

#[derive(Args)]
pub(crate) struct Embed {
    /// The texts; without any, each line of standard input is one
    texts: Vec<String>,
    /// The use of the vectors: document, query, similarity or bitext
    #[arg(long, value_parser = task, conflicts_with_all = ["instruction", "prefix"])]
    task: Option<Purpose>,
    /// A sentence that describes another task
    #[arg(long, value_name = "TEXT", conflicts_with = "prefix")]
    instruction: Option<String>,
    /// Put this before each text
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// How a vector is made of those of a text's tokens, instead of as the file says: mean, cls or last
    #[arg(long, value_parser = pooling)]
    pooling: Option<Pooling>,
    /// Keep the first values of each vector
    #[arg(long, value_name = "N", value_parser = one_or_more)]
    dimensions: Option<usize>,
    /// Cut texts that are too long
    #[arg(long)]
    truncate: bool,
    /// Allocate memory for this many tokens of context
    #[arg(long, value_name = "N")]
    context: Option<usize>,
    /// The model, a GGUF file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    backend: BackendArgs,
}

fn task(name: &str) -> Result<Purpose, String> {
    let names: Vec<&str> = TASKS.iter().map(|task| task.0).collect();
    Purpose::task(name).ok_or_else(|| format!("must be one of {}", names.join(", ")))
}

pub(crate) fn pooling(name: &str) -> Result<Pooling, String> {
    Pooling::named(name).ok_or_else(|| format!("must be one of {}", Pooling::NAMES.join(", ")))
}

impl Embed {
    fn options(&self) -> EmbedOptions {
        let instruction = self.instruction.clone().map(Purpose::Instruction);
        let prefix = self.prefix.clone().map(Purpose::Prefix);
        EmbedOptions {
            purpose: self.task.clone().or(instruction).or(prefix).unwrap_or_default(),
            pooling: self.pooling,
            dimensions: self.dimensions,
            truncate: self.truncate,
            first: 0,
        }
    }

    fn texts(&self) -> Result<Vec<String>> {
        if !self.texts.is_empty() {
            return Ok(self.texts.clone());
        }
        let mut text = String::new();
        if !io::stdin().is_terminal() {
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| Error::unreadable("standard input", error))?;
        }
        if text.is_empty() {
            let why = "give them as arguments, or as lines on standard input".into();
            return Err(Error::BadOption { name: "texts".into(), why });
        }
        Ok(text.lines().map(str::to_owned).collect())
    }
}

pub(crate) fn embed(args: &Embed) -> Result<()> {
    let (texts, mut options) = (args.texts()?, args.options());
    let mut reader = Reader::new(open(&args.model)?);
    let mut load = LoadOptions::default();
    load.engine.context = args.context;
    let mut output = Output::default();
    block_on(async {
        let opening = args.backend.open(GpuOptions::default());
        let mut session = Session::load(opening, &mut reader, &load, &mut show_progress).await?;
        args.adapters.apply(&mut session).await?;
        for note in &session.info().notes {
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        for some in texts.chunks(AT_ONCE) {
            let texts: Vec<EmbedText> = some.iter().cloned().map(EmbedText::Text).collect();
            let found = session.embed(&texts, &options, &mut |_| {}).await?;
            for vector in found.vectors {
                let values: Vec<String> = vector.iter().map(f32::to_string).collect();
                if output.print(&format!("[{}]\n", values.join(","))).is_break() {
                    return Ok(());
                }
            }
            options.first += texts.len();
        }
        Ok(())
    })?;
    output.finish()
}
