//! Tools: functions of the caller that a model may ask for.
//!
//! A model is told which tools there are, and calls one by writing a text in a format that it
//! knows. [`CallFormat`] is that format. Where the model's template knows tools, the template says
//! all of this. Elsewhere `written` says it in the system message and in messages of the user.
//! [`CallReader`] finds the calls in an answer.

mod format;
mod json;
mod reader;
mod written;

use minijinja::Value;
use serde::{Deserialize, Serialize};

use super::json::write_text;
use super::record::record;
use super::{Message, Role};
use crate::error::{Error, Result};
use json::{Json, MAX_DEPTH};

pub use format::CallFormat;
pub use reader::{CallEvent, CallReader};
pub(super) use written::{messages, said};

/// The most tools of a call, as in OpenAI's interface.
const MAX_TOOLS: usize = 128;
/// The most characters of a name.
const MAX_NAME: usize = 128;
/// The parameters of a tool that takes none.
const NO_PARAMETERS: &str =
    r#"{"type": "object", "properties": {}, "additionalProperties": false}"#;

/// A function that a model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tool {
    /// Its name: letters and digits of ASCII, and `_-.:/`.
    pub name: String,
    /// Tells the model what the tool does and when to call it.
    pub description: Option<String>,
    /// A JSON schema for its arguments. They are one object. `None`: it takes no arguments.
    pub parameters: Option<String>,
}

/// A call that a model has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The name by which a result refers to it.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, the text of a JSON object.
    pub arguments: String,
}

/// Whether a model calls a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It decides by itself.
    #[default]
    Auto,
    /// It calls one at least.
    Required,
    /// It calls the one with this name.
    Named(String),
}

/// Tools that have been checked.
#[derive(Clone, Debug)]
pub struct Tools {
    all: Vec<Described>,
}

#[derive(Clone, Debug)]
struct Described {
    name: String,
    /// The text of its schema.
    parameters: String,
    /// The description that the model reads, in the form of OpenAI's interface.
    json: Json,
}

impl Tools {
    /// Checks tools.
    ///
    /// Errors: `bad-option` (`tools`, or an item or a field of it).
    pub fn new(tools: Vec<Tool>) -> Result<Self> {
        if tools.is_empty() || tools.len() > MAX_TOOLS {
            return bad("tools", format!("must have from 1 to {MAX_TOOLS} tools"));
        }
        let mut all: Vec<Described> = Vec::new();
        for (n, tool) in tools.into_iter().enumerate() {
            let at = |field: &str| format!("tools[{n}].{field}");
            if !is_name(&tool.name) {
                let why = format!(
                    "must be a name of 1 to {MAX_NAME} letters and digits of ASCII and `_-.:/`"
                );
                return bad(at("name"), why);
            }
            if let Some(other) = all.iter().position(|other| other.name == tool.name) {
                return bad(at("name"), format!("is that of tools[{other}] too: {}", tool.name));
            }
            let parameters = tool.parameters.unwrap_or_else(|| NO_PARAMETERS.into());
            let Some(schema) = Json::read(&parameters) else {
                let why = format!("must be a JSON schema, {}", depth());
                return bad(at("parameters"), why);
            };
            if schema.get("type") != Some(&Json::Text("object".into())) {
                let why = "must be the schema of an object: its `type` must be \"object\"";
                return bad(at("parameters"), why.into());
            }
            // The crate of grammars reads JSON more strictly than this one.
            let parameters = schema.written();
            let text = |text: &str| Json::Text(text.into());
            let mut function = vec![("name".into(), text(&tool.name))];
            function.extend(tool.description.map(|said| ("description".into(), Json::Text(said))));
            function.push(("parameters".into(), schema));
            let json = Json::Map(vec![
                ("type".into(), text("function")),
                ("function".into(), Json::Map(function)),
            ]);
            all.push(Described { name: tool.name, parameters, json });
        }
        Ok(Self { all })
    }

    /// Reads a JSON array of tools with `name`, `description` and `parameters`, each of them alone
    /// or as the `function` of an object, as OpenAI's interface has them.
    ///
    /// Errors: those of [`Tools::new`].
    pub fn read(text: &str) -> Result<Self> {
        // Three are around a schema.
        let Some(Json::List(items)) = Json::read_within(text, MAX_DEPTH + 3) else {
            return bad("tools", "must be a JSON array of tools".into());
        };
        let tool = |(n, item): (usize, &Json)| {
            let item = item.get("function").unwrap_or(item);
            let said = |field: &str| match item.get(field) {
                None | Some(Json::Null) => Ok(None),
                Some(Json::Text(text)) => Ok(Some(text.clone())),
                Some(_) => bad(format!("tools[{n}].{field}"), "must be a string".into()),
            };
            Ok(Tool {
                name: said("name")?.unwrap_or_default(),
                description: said("description")?,
                parameters: item.get("parameters").map(Json::written),
            })
        };
        Self::new(items.iter().enumerate().map(tool).collect::<Result<_>>()?)
    }

    /// Whether there is a tool with this name.
    pub fn has(&self, name: &str) -> bool {
        self.all.iter().any(|tool| tool.name == name)
    }

    /// The format, for the crate of grammars, of the calls that `choice` allows, as
    /// JSON. With [`ToolChoice::Auto`] it is the format of what follows [`CallFormat::begin`].
    /// `parallel` says whether several calls may follow one another.
    ///
    /// Errors: `bad-option` (`toolChoice`) for a name that no tool has.
    pub fn grammar(
        &self,
        format: &CallFormat,
        choice: &ToolChoice,
        parallel: bool,
    ) -> Result<String> {
        let named = match choice {
            ToolChoice::Named(name) => Some(name),
            _ => None,
        };
        if let Some(name) = named.filter(|name| !self.has(name)) {
            return bad("toolChoice", format!("there is no tool {name}"));
        }
        let mut json = format.grammar();
        json += &format!(", \"begun\": {}", *choice == ToolChoice::Auto);
        json += &format!(", \"many\": {}, \"tools\": [", parallel && named.is_none());
        let mut others = false;
        for (n, tool) in self.all.iter().enumerate() {
            if named.is_none_or(|name| *name == tool.name) {
                json += if others { ", " } else { "" };
                json += &format!("{{\"index\": {n}, \"name\": ");
                write_text(&tool.name, &mut json);
                json += &format!(", \"parameters\": {}}}", tool.parameters);
                others = true;
            }
        }
        Ok(json + "]}")
    }

    /// The tools as [`Tools::read`] reads them.
    pub fn written(&self) -> String {
        format!("[{}]", self.lines().collect::<Vec<_>>().join(", "))
    }

    /// The value for templates.
    fn value(&self) -> Value {
        self.all.iter().map(|tool| tool.json.to_value()).collect()
    }

    /// Each tool as JSON.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|tool| tool.json.written())
    }
}

impl ToolCall {
    /// The value for templates.
    fn value(&self) -> Value {
        let arguments = Json::read(&self.arguments)
            .map_or_else(|| self.arguments.as_str().into(), |json| json.to_value());
        let function =
            record([("name", Value::from(self.name.as_str())), ("arguments", arguments)]);
        record([
            ("id", self.id.as_str().into()),
            ("type", "function".into()),
            ("function", function),
        ])
    }

    /// The arguments as models write them.
    fn written(&self) -> String {
        Json::read(&self.arguments).map_or_else(|| self.arguments.clone(), |json| json.written())
    }
}

/// Checks the calls and results of a conversation.
///
/// Errors: `bad-option` with the message, such as `messages[3]`.
pub(super) fn check(messages: &[Message]) -> Result<()> {
    // The calls whose results may follow.
    let mut open: Vec<&ToolCall> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let at = |field: &str| format!("messages[{n}]{field}");
        match message.role {
            Role::Tool => {
                let id = message.call.as_deref();
                let call = open.iter().position(|call| id.is_none_or(|id| call.id == id));
                match (call, id) {
                    (Some(call), _) => drop(open.remove(call)),
                    (None, Some(id)) => {
                        return bad(
                            at(".toolCallId"),
                            format!("no call before it has the id {id}"),
                        );
                    }
                    (None, None) => return bad(at(""), "there is no call before it".into()),
                }
            }
            _ => open = message.calls.iter().collect(),
        }
        if message.role != Role::Assistant && !message.calls.is_empty() {
            return bad(at(".toolCalls"), "only an assistant can call tools".into());
        }
        for (n, call) in message.calls.iter().enumerate() {
            if !is_name(&call.name) {
                return bad(at(&format!(".toolCalls[{n}].name")), "is no name of a tool".into());
            }
            if !matches!(Json::read(&call.arguments), Some(Json::Map(_))) {
                let why = format!("must be an object, {}", depth());
                return bad(at(&format!(".toolCalls[{n}].arguments")), why);
            }
        }
    }
    Ok(())
}

/// How deep JSON may be, for errors.
fn depth() -> String {
    format!("with at most {MAX_DEPTH} lists and objects within one another")
}

/// Whether a text can be the name of a tool. None of its characters is escaped in JSON.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}

fn bad<T>(name: impl Into<String>, why: String) -> Result<T> {
    Err(Error::BadOption { name: name.into(), why })
}
