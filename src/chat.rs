//! Conversations to prompts.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::tokenizer::Tokenizer;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sets the frame.
    System,
    /// Asks.
    User,
    /// Answers.
    Assistant,
}

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: String,
}

/// The tokens of a conversation, ready for the model's answer.
pub fn prompt(_tokenizer: &Tokenizer, _messages: &[Message]) -> Result<Vec<u32>> {
    Err(Error::Internal("not written yet".into()))
}
