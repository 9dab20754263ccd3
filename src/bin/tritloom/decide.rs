//! Decides a question about a text.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use tritloom::Result;
use tritloom::gpu::GpuOptions;
use tritloom::native::{block_on, open};
use tritloom::session::{
    DecideOptions, Label, LoadOptions, Normalize, Question, QuestionKind, Session,
};
use tritloom::source::Reader;

use crate::adapters::AdapterArgs;
use crate::backend::BackendArgs;
use crate::generate::{prompt_text, show_progress};
use crate::output::print;

#[derive(Args)]
pub(crate) struct Decide {
    /// The text; `-` reads it from standard input, and so does a pipe without a text
    #[arg(allow_negative_numbers = true)]
    text: Option<String>,
    /// The question about it
    #[arg(long)]
    question: String,
    /// An option, or `LABEL=DESCRIPTION`; may be repeated [default: yes and no, or 1 to 5 of a
    /// score]
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    option: Vec<String>,
    /// Decide a number: all labels are numbers
    #[arg(long)]
    score: bool,
    /// Facts that the model has to know first
    #[arg(long, value_name = "TEXT")]
    context: Option<String>,
    /// Compare options by their probability, by that of each token, or by how much more likely the
    /// text makes them
    #[arg(long, value_enum, default_value_t = NormalizeArg::None)]
    normalize: NormalizeArg,
    /// Divide the log-probabilities by this number
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    temperature: f64,
    /// The model, a GGUF file
    #[arg(long, value_name = "FILE", default_value = "models/tiny-stories.gguf")]
    model: PathBuf,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    backend: BackendArgs,
}

/// [`Normalize`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum NormalizeArg {
    None,
    Length,
    Prior,
}

impl From<NormalizeArg> for Normalize {
    fn from(normalize: NormalizeArg) -> Self {
        match normalize {
            NormalizeArg::None => Self::None,
            NormalizeArg::Length => Self::Length,
            NormalizeArg::Prior => Self::Prior,
        }
    }
}

pub(crate) fn decide(args: &Decide) -> Result<()> {
    let text = prompt_text(args.text.as_deref())?;
    let kind = match (args.score, args.option.is_empty()) {
        (true, _) => QuestionKind::Score,
        (false, true) => QuestionKind::Boolean,
        (false, false) => QuestionKind::Choice,
    };
    let options = args.option.iter().map(|option| label(option)).collect();
    let question = Question { question: args.question.clone(), kind, options };
    question.check("")?;
    let options = DecideOptions {
        context: args.context.clone(),
        normalize: args.normalize.into(),
        temperature: args.temperature,
    };
    let mut reader = Reader::new(open(&args.model)?);
    let load = LoadOptions::default();
    let found = block_on(async {
        let opening = args.backend.open(GpuOptions::default());
        let mut session = Session::load(opening, &mut reader, &load, &mut show_progress).await?;
        args.adapters.apply(&mut session).await?;
        for note in &session.info().notes {
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        session.decide(&text, &[question], &options).await
    })?;
    let decisions = found.decisions.iter();
    let mut shown = String::new();
    for decision in decisions {
        for option in &decision.options {
            shown += &format!("{:.4}  {}\n", option.probability, option.label);
        }
        if let Some(score) = decision.expected_score {
            shown += &format!("score {score:.4}\n");
        }
    }
    print(&shown)?;
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "({:.0} ms)", found.stats.time);
    }
    Ok(())
}

/// The option of an argument `LABEL` or `LABEL=DESCRIPTION`.
fn label(option: &str) -> Label {
    let (label, description) = match option.split_once('=') {
        Some((label, description)) => (label, Some(description.into())),
        None => (option, None),
    };
    Label { label: label.into(), description }
}
