//! Turns conversations into prompts, and generated text into reasoning and answer.
//!
//! A model's chat template is a program in the language Jinja, which comes with the model's file.
//! `minijinja` runs it. It may be hostile, like any other part of a file, so it runs with limits.
//! Only text that the template itself wrote becomes a special token, and no message can change
//! that.

mod builtins;
mod channels;
mod clock;
mod frames;
mod guard;
mod json;
mod literals;
mod meter;
mod methods;
mod origin;
mod prices;
mod record;
mod render;
mod template;
mod tokens;
mod tools;

use serde::{Deserialize, Serialize};

pub use channels::{Channel, Channels};
pub use minijinja::Value;
pub use origin::Marked;
pub use render::Inputs;
pub use template::{Prompt, Template, TemplateChoice, no_template};
pub use tools::{CallEvent, CallFormat, CallReader, Tool, ToolCall, ToolChoice, Tools};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Says how the model has to answer.
    System,
    /// The user, who asks.
    User,
    /// The model, which answers.
    Assistant,
    /// A tool that the model has called. Its message is the result.
    Tool,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The message's author.
    pub role: Role,
    /// The text of the message.
    pub content: String,
    /// The calls of tools behind the text of an assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The id of the call whose result a tool's message is; `None`: of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
}

impl Message {
    /// A message without calls.
    pub fn new(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), calls: Vec::new(), call: None }
    }
}

impl Role {
    /// The name that templates know: `system`, `user`, `assistant` or `tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}
