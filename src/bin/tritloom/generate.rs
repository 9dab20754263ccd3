//! Streams the answer to a prompt.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, ValueEnum};

use tritloom::chat::{Message, Role, TemplateChoice, ToolChoice, Tools};
use tritloom::compute::EngineOptions;
use tritloom::gguf::Joined;
use tritloom::gpu::GpuOptions;
use tritloom::native::{FileSource, Format, Formats, Formatted, block_on, open};
use tritloom::sampling::Sampling;
use tritloom::session::{
    Channel, FinishReason, GenerateOptions, KvType, LmHead, LoadOptions, Progress, Session, Token,
};
use tritloom::source::Reader;
use tritloom::ternary::Layout;
use tritloom::tokenizer::{Rules, Tokenizer};
use tritloom::{Error, Result};

use crate::Cli;
use crate::adapters::AdapterArgs;
use crate::backend::BackendArgs;
use crate::calls::Lines;
use crate::options::{logit_bias, one_or_more, whole_number, zero_or_more};
use crate::output::Output;

#[derive(Args)]
pub(crate) struct Generate {
    /// The prompt; `-` reads it from standard input, and so does a pipe without a prompt
    #[arg(allow_negative_numbers = true)]
    prompt: Option<String>,
    /// The model, a GGUF file
    #[arg(long, value_name = "FILE", default_value = "models/tiny-stories.gguf")]
    model: PathBuf,
    /// Generate at most this many tokens [default: as many as the context holds]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    max_tokens: Option<usize>,
    /// Divide the logits by this number; with 0, always take the best token
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    temperature: f32,
    /// Choose among this many of the best tokens; with 0, among all
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number(0..=u32::MAX))]
    #[arg(allow_negative_numbers = true)]
    top_k: u32,
    /// Choose among the fewest best tokens whose probabilities reach this sum
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,
    /// Choose among tokens at least this probable relative to the best
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    min_p: f32,
    /// Divide the logits of tokens in the prompt or the answer by this number, or multiply negative
    /// ones
    #[arg(long, value_name = "R", default_value_t = 1.0, allow_negative_numbers = true)]
    repeat_penalty: f32,
    /// Subtract this number, from -2 to 2, from the logits of tokens in the answer
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Subtract this number, from -2 to 2, once for each time that the answer has the token
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Add this number, from -100 to 100, to the logit of the token with this id; may be repeated
    #[arg(long, value_name = "ID=BIAS", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// The same seed gives the same text
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number(0..=u32::MAX))]
    #[arg(allow_negative_numbers = true)]
    seed: u32,
    /// Continue the prompt as it is, without a chat template
    #[arg(long)]
    raw: bool,
    /// Let the model reason before it answers [default: as its chat template has it]
    #[arg(long, conflicts_with_all = ["raw", "no_thinking"])]
    thinking: bool,
    /// Let the model answer at once
    #[arg(long, conflicts_with = "raw")]
    no_thinking: bool,
    /// End the reasoning after this many tokens [default: no limit but --max-tokens]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    #[arg(conflicts_with = "raw")]
    max_thinking_tokens: Option<usize>,
    /// The chat template: `file`, `builtin` or a Jinja text [default: the file's if it works]
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "raw")]
    template: Option<String>,
    /// Draft greedy tokens if the text repeats itself [default: if that is faster]
    #[arg(long, value_name = "BOOL")]
    prompt_lookup: Option<bool>,
    /// Answer with JSON that is valid by the JSON schema in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "regex"])]
    schema: Option<PathBuf>,
    /// Answer with a JSON object
    #[arg(long, conflicts_with = "regex")]
    json: bool,
    /// Answer with a text that this regular expression matches as a whole, in JavaScript's syntax
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    regex: Option<String>,
    /// Let the model call the tools in this file, a JSON array with `name`, `description` and
    /// `parameters` of each; prints each call as a line of JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "schema", "json", "regex"])]
    tools: Option<PathBuf>,
    /// Whether it calls one: `auto`, `required` or the name of the tool to call
    #[arg(long, value_name = "CHOICE", default_value = "auto", requires = "tools")]
    tool_choice: String,
    #[command(flatten)]
    adapters: AdapterArgs,
    #[command(flatten)]
    backend: BackendArgs,
    /// Allocate memory for this many tokens of context [default: the model's limit, up to 1 GiB]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    context: Option<usize>,
    /// How to store keys and values: `int8` takes half the memory of `f16` and rounds more
    #[arg(long, value_name = "TYPE", value_enum, default_value_t = KvArg::F16)]
    kv: KvArg,
    /// How to store the LM head; `int8` reads half the bytes for a greedy token and finds the same
    /// one
    #[arg(long, value_enum, default_value_t = LmHeadArg::Auto)]
    lm_head: LmHeadArg,
    /// The order of ternary codes; `arm` is for files quantised by ARM builds of bitnet.cpp
    #[arg(long, value_name = "LAYOUT", value_enum, default_value_t = I2sLayout::X86)]
    i2s_layout: I2sLayout,
    /// Whether to refuse a tokenizer that tritloom does not know, or take the closest one
    #[arg(long, value_name = "RULES", value_enum, default_value_t = TokenizerArg::Strict)]
    tokenizer: TokenizerArg,
    /// Take no more than this many bytes of GPU memory: layers that do not fit are uploaded for each pass
    #[arg(long, value_name = "BYTES", value_parser = zero_or_more, allow_negative_numbers = true)]
    max_gpu_bytes: Option<u64>,
    /// Fail rather than replace anything that the file names: no closest tokenizer, no built-in
    /// template, no shorter context, no CPU as the GPU or instead of it
    #[arg(long)]
    strict: bool,
    /// Give the same bits for the same call each time, on one adapter with one driver
    #[arg(long)]
    deterministic: bool,
}

/// [`Rules`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum TokenizerArg {
    Strict,
    Closest,
}

impl From<TokenizerArg> for Rules {
    fn from(rules: TokenizerArg) -> Self {
        match rules {
            TokenizerArg::Strict => Self::Strict,
            TokenizerArg::Closest => Self::Closest,
        }
    }
}

/// [`KvType`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KvArg {
    F16,
    F32,
    Int8,
}

impl From<KvArg> for KvType {
    fn from(kv: KvArg) -> Self {
        match kv {
            KvArg::F16 => Self::F16,
            KvArg::F32 => Self::F32,
            KvArg::Int8 => Self::Int8,
        }
    }
}

/// [`LmHead`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum LmHeadArg {
    Auto,
    F16,
    Int8,
}

impl From<LmHeadArg> for LmHead {
    fn from(lm_head: LmHeadArg) -> Self {
        match lm_head {
            LmHeadArg::Auto => Self::Auto,
            LmHeadArg::F16 => Self::F16,
            LmHeadArg::Int8 => Self::Int8,
        }
    }
}

/// [`Layout`] on the command line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum I2sLayout {
    X86,
    Arm,
}

impl From<I2sLayout> for Layout {
    fn from(layout: I2sLayout) -> Self {
        match layout {
            I2sLayout::X86 => Self::X86,
            I2sLayout::Arm => Self::Arm,
        }
    }
}

pub(crate) fn generate(args: &Generate) -> Result<()> {
    let prompt = prompt_text(args.prompt.as_deref())?;
    let options = GenerateOptions {
        max_tokens: args.max_tokens,
        sampling: Sampling {
            temperature: args.temperature,
            top_k: args.top_k,
            top_p: args.top_p,
            min_p: args.min_p,
            seed: args.seed,
            repeat_penalty: args.repeat_penalty,
            presence_penalty: args.presence_penalty,
            frequency_penalty: args.frequency_penalty,
        },
        logit_bias: Rc::new(args.logit_bias.iter().copied().collect()),
        stop: Vec::new(),
        prompt_lookup: args.prompt_lookup,
        max_thinking_tokens: args.max_thinking_tokens,
        logprobs: None,
        constraints: None,
    };
    options.sampling.check()?;
    let format = args.format()?;
    let tools = args.tools()?;
    let reader = Reader::new(open(&args.model)?);
    let summary = run(args, &prompt, options, format, tools, reader)?;
    if io::stderr().is_terminal() {
        let _ = writeln!(io::stderr(), "\n({summary})");
    }
    Ok(())
}

/// Returns the prompt of the command line, or reads it from standard input.
pub(crate) fn prompt_text(argument: Option<&str>) -> Result<String> {
    if let Some(prompt) = argument.filter(|&prompt| prompt != "-") {
        return Ok(prompt.into());
    }
    let stdin = io::stdin();
    let text = match argument.is_none() && stdin.is_terminal() {
        true => String::new(),
        false => io::read_to_string(stdin)
            .map_err(|error| Error::unreadable("the prompt from standard input", error))?,
    };
    if argument.is_none() && text.is_empty() {
        let why = "the prompt is missing: give it as an argument or on standard input";
        Cli::command().error(ErrorKind::MissingRequiredArgument, why).exit();
    }
    // Most programs end their output with a line break, which is not part of the prompt.
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).into())
}

fn run(
    args: &Generate,
    prompt: &str,
    mut options: GenerateOptions,
    format: Option<(&str, Format)>,
    tools: Option<Rc<Tools>>,
    mut reader: Reader<Joined<FileSource>>,
) -> Result<String> {
    let load = LoadOptions {
        engine: EngineOptions {
            context: args.context,
            kv: args.kv.into(),
            lm_head: args.lm_head.into(),
            i2s_arm: args.i2s_layout == I2sLayout::Arm,
            deterministic: args.deterministic,
            ..EngineOptions::default()
        },
        tokenizer: args.tokenizer.into(),
        template: args.template(),
        pooling: None,
        strict: args.strict,
    };
    block_on(async {
        let gpu_options = GpuOptions {
            max_bytes: args.max_gpu_bytes,
            strict: args.strict,
            ..GpuOptions::default()
        };
        let opening = args.backend.open(gpu_options);
        let mut session = Session::load(opening, &mut reader, &load, &mut show_progress).await?;
        args.adapters.apply(&mut session).await?;
        for note in &session.info().notes {
            let _ = writeln!(io::stderr(), "note: {note}");
        }
        let ids = if args.raw {
            raw_tokens(session.tokenizer(), prompt)?
        } else {
            session.tools_prompt(&ask(prompt), tools.as_ref(), args.switch())?
        };
        let formatted = match &format {
            Some((name, format)) => Some(Formats::new(session.tokenizer())?.format(name, format)?),
            None => None,
        };
        options.constraints = match &tools {
            Some(tools) => {
                let format = session.template()?.calls();
                let formats = Formats::new(session.tokenizer())?;
                Some(formats.calls(format, tools, &args.tool_choice(), true)?)
            }
            None => formatted.as_ref().map(Formatted::constraints),
        };
        let mut output = Output::default();
        let mut answer = Vec::new();
        let mut calls = Lines::default();
        let mut on_token = |token: Token| match (token.channel, &token.call) {
            (Channel::Reasoning, _) => show_reasoning(&token.text),
            (Channel::Answer, Some(part)) => output.print(&calls.call(&token.text, part)),
            (Channel::Answer, None) => {
                answer.extend(token.id);
                calls.text(&token.text);
                output.print(&token.text)
            }
        };
        let stats = session.generate(&ids, &options, &mut on_token).await?;
        if tools.is_none() || calls.is_within() {
            let _ = output.print("\n");
        }
        output.finish()?;
        let is_complete = match &formatted {
            Some(formatted) => formatted.is_complete(&answer),
            None => !calls.is_open(),
        };
        if stats.finish_reason == FinishReason::Length && !is_complete {
            let why = "the answer is not complete; it needs more tokens (--max-tokens, --context)";
            let _ = writeln!(io::stderr(), "note: {why}");
        }
        Ok(format!(
            "{} tokens, {:.1} per second, on {}",
            stats.completion_tokens,
            stats.decode_tokens_per_second,
            session.info().adapter
        ))
    })
}

impl Generate {
    fn template(&self) -> TemplateChoice {
        // Every text is a valid choice, so parsing cannot fail.
        self.template.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The format of the answer, and the name of the option that gives it.
    fn format(&self) -> Result<Option<(&'static str, Format)>> {
        Ok(match (&self.schema, &self.regex, self.json) {
            (Some(path), ..) => {
                let schema = fs::read_to_string(path)
                    .map_err(|error| Error::unreadable(path.display().to_string(), error))?;
                Some(("schema", Format::JsonSchema(schema)))
            }
            (_, Some(pattern), _) => Some(("regex", Format::Regex(pattern.clone()))),
            (.., true) => Some(("json", Format::JsonObject)),
            _ => None,
        })
    }

    /// The tools that the model may call.
    fn tools(&self) -> Result<Option<Rc<Tools>>> {
        let Some(path) = &self.tools else { return Ok(None) };
        let text = fs::read_to_string(path)
            .map_err(|error| Error::unreadable(path.display().to_string(), error))?;
        Ok(Some(Rc::new(Tools::read(&text)?)))
    }

    fn tool_choice(&self) -> ToolChoice {
        match &*self.tool_choice {
            "auto" => ToolChoice::Auto,
            "required" => ToolChoice::Required,
            name => ToolChoice::Named(name.into()),
        }
    }

    /// Whether the model is to reason first, if the caller says so.
    fn switch(&self) -> Option<bool> {
        match (self.thinking, self.no_thinking) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// The prompt as the first message of a conversation.
fn ask(prompt: &str) -> [Message; 1] {
    [Message::new(Role::User, prompt)]
}

/// The tokens of the plain text.
fn raw_tokens(tokenizer: &Tokenizer, prompt: &str) -> Result<Vec<u32>> {
    let bos = tokenizer.bos().filter(|_| tokenizer.add_bos());
    Ok(bos.into_iter().chain(tokenizer.encode(prompt)?).collect())
}

/// Shows reasoning on standard error, so that standard output has only the answer.
fn show_reasoning(text: &str) -> ControlFlow<()> {
    let _ = write!(io::stderr(), "{text}");
    ControlFlow::Continue(())
}

pub(crate) fn show_progress(progress: Progress) {
    let mut err = io::stderr();
    if !err.is_terminal() {
        return;
    }
    let _ = match progress {
        Progress::Header => Ok(()),
        Progress::Upload { loaded, total } => {
            write!(err, "\rloading {:3} %", loaded * 100 / total.max(1))
        }
        Progress::Compile => write!(err, "\r             \r"),
    };
}
