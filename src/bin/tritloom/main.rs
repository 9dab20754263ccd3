//! The command line: generate text, and commands that look at models, measure and write them.

mod adapters;
mod backend;
mod bench;
mod calls;
mod convert;
mod decide;
mod embed;
mod generate;
mod inspect;
mod options;
mod output;
mod perplexity;
mod quantized;
mod random;
mod requantize;
mod written;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Ternary language models on the GPU or the CPU.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    generate: generate::Generate,
}

#[derive(Subcommand)]
enum Command {
    /// Show a GGUF file's metadata, tensors and shares of -1, 0 and +1
    Inspect {
        /// The file
        file: PathBuf,
    },
    /// Time decoding and prompt processing
    Bench(bench::Bench),
    /// Decide a question about a text: the probability of each option
    Decide(decide::Decide),
    /// Print the vectors of texts, each as a line of JSON
    Embed(embed::Embed),
    /// Measure how well a model predicts a text
    Perplexity(perplexity::Measure),
    /// Write a model of a well-known shape with random weights, for timing
    Random(random::Random),
    /// Make a GGUF file of a folder from Hugging Face
    Convert(convert::Convert),
    /// Write a model again with a smaller embedding
    Requantize(requantize::Requantize),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Some(Command::Inspect { file }) => inspect::inspect(file),
        Some(Command::Bench(args)) => bench::bench(args),
        Some(Command::Decide(args)) => decide::decide(args),
        Some(Command::Embed(args)) => embed::embed(args),
        Some(Command::Perplexity(args)) => perplexity::measure(args),
        Some(Command::Random(args)) => random::random(args),
        Some(Command::Convert(args)) => convert::convert(args),
        Some(Command::Requantize(args)) => requantize::requantize(args),
        None => generate::generate(&cli.generate),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error[{}]: {error}", error.code());
            ExitCode::FAILURE
        }
    }
}
