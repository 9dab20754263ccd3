//! Turns conversations into prompts.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Says how to answer.
    System,
    /// Asks.
    User,
    /// Answers.
    Assistant,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The tokens of a conversation, ready for the model's answer.
///
/// The template is that of BitNet 2B-4T: the beginning-of-text token once; for every message
/// `Role: `, the trimmed content and `<|eot_id|>`; then `Assistant: `. The template in the files of
/// these models is wrong: with it they hardly ever end an answer, so it is ignored. The content of a
/// message never becomes a special token.
///
/// Errors: `bad-option` (`prompt`) if there is nothing to answer, `unsupported-model` if the
/// vocabulary lacks a special token that the template needs.
pub fn prompt(tokenizer: &Tokenizer, messages: &[Message]) -> Result<Vec<u32>> {
    let eot = end_of_turn(tokenizer)?;
    let bos = marker(tokenizer.bos(), "beginning-of-text")?;
    turns(tokenizer, eot, vec![bos], messages)
}

/// The tokens of a conversation whose beginning is already in tokens: `before` ends with an answer,
/// and `messages` follow it.
pub fn continued(tokenizer: &Tokenizer, before: &[u32], messages: &[Message]) -> Result<Vec<u32>> {
    let eot = end_of_turn(tokenizer)?;
    turns(tokenizer, eot, [before, &[eot]].concat(), messages)
}

/// `ids` and, after them, the messages.
fn turns(
    tokenizer: &Tokenizer,
    eot: u32,
    mut ids: Vec<u32>,
    messages: &[Message],
) -> Result<Vec<u32>> {
    let empty = |why: &str| Err(Error::BadOption { name: "prompt".into(), why: why.into() });
    match messages.last() {
        None => return empty("the conversation is empty"),
        Some(last) if last.content.trim().is_empty() => return empty("there is nothing to answer"),
        Some(_) => {}
    }
    for Message { role, content } in messages {
        // Encoded as one text: " What" alone would get other tokens than after "User:".
        ids.extend(tokenizer.encode(&format!("{}: {}", role.name(), content.trim()))?);
        ids.push(eot);
    }
    ids.extend(tokenizer.encode(&format!("{}: ", Role::Assistant.name()))?);
    Ok(ids)
}

fn end_of_turn(tokenizer: &Tokenizer) -> Result<u32> {
    marker(tokenizer.special("<|eot_id|>"), "`<|eot_id|>`")
}

fn marker(found: Option<u32>, what: &str) -> Result<u32> {
    found.ok_or_else(|| {
        Error::UnsupportedModel(format!("no {what} token, so no chat; prompt it with raw text"))
    })
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::User => "User",
            Self::Assistant => "Assistant",
        }
    }
}
