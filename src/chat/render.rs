//! Runs a template with limits.

use std::error::Error as StdError;
use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, ErrorKind};

use super::record::record;
use super::{builtins, guard, methods, prices};
use crate::error::{Error, Result};

/// The fuel of one call for its conversation, in all renderings together. One unit pays for an
/// instruction, or for 64 bytes that the template writes or reads. The templates in use took at
/// most 7 % of it in 48 renderings.
const FUEL: u64 = 200_000;
/// Further fuel for each message.
const FUEL_PER_MESSAGE: u64 = 4000;
/// Further fuel for each byte of the conversation. It pays for 64 bytes.
const FUEL_PER_BYTE: u64 = 1;

/// The most calls within one another, as minijinja counts them. The stack of WebAssembly is small.
const MAX_RECURSION: usize = 100;

/// The most bytes of an error's message.
const MAX_MESSAGE: usize = 400;

/// The inputs of a template.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The conversation: maps with `role`, `content` and any other fields that the template knows.
    pub messages: Vec<Value>,
    /// Descriptions of the tools that the model may call.
    pub tools: Option<Value>,
    /// `enable_thinking`: whether the model is to reason before it answers.
    pub thinking: Option<bool>,
    /// Whether the text ends with the beginning of an answer.
    pub add_generation_prompt: bool,
    /// `bos_token`, the text of the beginning-of-text token.
    pub bos: Option<String>,
    /// `eos_token`, the text of the end-of-text token.
    pub eos: Option<String>,
}

impl Inputs {
    /// Calls `visit` with every string in the inputs.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&str)) {
        self.messages.iter().chain(&self.tools).for_each(|value| visit_value(value, visit));
        self.bos.iter().chain(&self.eos).for_each(|text| visit(text));
    }

    fn fuel(&self) -> u64 {
        let mut bytes = 0;
        self.visit(&mut |text| bytes += text.len() as u64);
        FUEL + FUEL_PER_MESSAGE * self.messages.len() as u64 + FUEL_PER_BYTE * bytes
    }

    fn context(&self) -> Value {
        let mut fields = vec![
            ("messages", Value::from(self.messages.clone())),
            ("add_generation_prompt", self.add_generation_prompt.into()),
        ];
        fields.extend(self.tools.iter().map(|tools| ("tools", tools.clone())));
        fields.extend(self.thinking.map(|thinking| ("enable_thinking", thinking.into())));
        fields.extend(self.bos.as_deref().map(|bos| ("bos_token", bos.into())));
        fields.extend(self.eos.as_deref().map(|eos| ("eos_token", eos.into())));
        record(fields)
    }
}

fn visit_value(value: &Value, visit: &mut dyn FnMut(&str)) {
    if let Some(text) = value.as_str() {
        return visit(text);
    }
    let is_map = value.kind() == ValueKind::Map;
    for item in value.try_iter().into_iter().flatten() {
        if is_map {
            visit_value(&value.get_item(&item).unwrap_or_default(), visit);
        }
        visit_value(&item, visit);
    }
}

/// Checks that `source` is a template.
///
/// Errors: `bad-template`.
pub(super) fn check(source: &str) -> Result<()> {
    environment(FUEL)?.template_from_str(source).map(|_| ()).map_err(bad)
}

/// The fuel that all renderings of one call share.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    /// The fuel of one rendering, at most.
    limit: u64,
}

impl Budget {
    /// The fuel of one call for a conversation.
    pub(super) fn new(inputs: &Inputs) -> Self {
        let fuel = inputs.fuel();
        Self { left: fuel, limit: fuel }
    }

    /// The text that the template makes of the inputs.
    ///
    /// Errors: `bad-template` if it cannot run or needs too much; `bad-option` (`messages`) if it
    /// refuses the conversation with `raise_exception`.
    pub(super) fn render(&mut self, source: &str, inputs: &Inputs) -> Result<String> {
        let fuel = self.left.min(self.limit);
        // A rendering that fails does not say how much it used, so it pays for all that it had.
        self.left -= fuel;
        let environment = environment(fuel)?;
        let template = environment.template_from_str(source).map_err(bad)?;
        let rendered = template.render_captured(inputs.context()).map_err(bad)?;
        if let Some((used, left)) = rendered.state().fuel_levels() {
            self.left += left;
            // The same text with stand-ins has at most four times the bytes.
            self.limit = self.limit.min(used.saturating_mul(4));
        }
        Ok(rendered.into_output())
    }
}

/// Jinja as Hugging Face's transformers sets it up for chat templates. It holds one template only,
/// so nothing can be included.
fn environment(fuel: u64) -> Result<Environment<'static>> {
    let mut environment = Environment::empty();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(bad)?);
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment.add_function(guard::BOUNDED, guard::bounded);
    environment.add_function(guard::BOUNDED_FIELD, guard::bounded_field);
    prices::install(&mut environment);
    builtins::install(&mut environment);
    environment.add_function("raise_exception", raise);
    Ok(environment)
}

/// The refusal of a conversation by a template, with its message.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Raised {}

fn raise(why: &str) -> Result<Value, minijinja::Error> {
    let raised = Raised(shortened(why));
    Err(minijinja::Error::new(ErrorKind::InvalidOperation, "raised").with_source(raised))
}

fn bad(error: minijinja::Error) -> Error {
    let mut source: Option<&(dyn StdError + 'static)> = Some(&error);
    while let Some(inner) = source {
        if let Some(Raised(why)) = inner.downcast_ref() {
            let why = format!("the model's template refuses them: {why}");
            return Error::BadOption { name: "messages".into(), why };
        }
        source = inner.source();
    }
    Error::BadTemplate(match error.kind() {
        ErrorKind::OutOfFuel => "it takes too long or writes too much".into(),
        _ => shortened(&error.to_string()),
    })
}

/// The beginning of a message. A file may have made the message long.
fn shortened(message: &str) -> String {
    let end = message.floor_char_boundary(MAX_MESSAGE);
    if end == message.len() { message.into() } else { format!("{}…", &message[..end]) }
}
