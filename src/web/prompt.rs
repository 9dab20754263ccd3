//! Turns the input of `generate` into tokens.

use js_sys::{Array, Uint32Array};
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use super::tools::{self, Calling};
use crate::chat::{Message, Role};
use crate::error::Result;
use crate::session::Prompt;
use crate::tokenizer::Tokenizer;

/// The input of `generate`.
pub(super) enum Input {
    /// A conversation, for the chat template, and the text with which its answer begins.
    Chat(Vec<Message>, Option<String>),
    /// Tokens as they are.
    Ids(Vec<u32>),
}

impl Input {
    /// Takes a string as a user's message, or as the prompt itself if `raw`.
    pub(super) fn parse(
        tokenizer: &Tokenizer,
        input: &JsValue,
        raw: bool,
        special: bool,
    ) -> Result<Self> {
        if let Some(text) = input.as_string() {
            return if raw {
                raw_text(tokenizer, &text, special).map(Self::Ids)
            } else if text.is_empty() {
                Err(bad_option("prompt", "must not be empty"))
            } else {
                Ok(Self::Chat(vec![Message::new(Role::User, text)], None))
            };
        }
        Self::messages_or_ids(tokenizer, "prompt", input)
    }

    /// The prompt for the model, which may call the tools of `calling`.
    pub(super) fn prompt(self, thinking: Option<bool>, calling: Option<Calling>) -> Result<Prompt> {
        let tools = calling.map(|calling| calling.tools);
        match self {
            Self::Chat(messages, begun) => Ok(Prompt::Chat { messages, begun, thinking, tools }),
            Self::Ids(ids) if tools.is_none() => Ok(Prompt::Ids(ids)),
            Self::Ids(_) => Err(bad_option("tools", "needs a chat, not tokens or a raw text")),
        }
    }

    /// The messages or ids of an input that is no string. Errors call it `name`.
    pub(super) fn messages_or_ids(
        tokenizer: &Tokenizer,
        name: &str,
        input: &JsValue,
    ) -> Result<Self> {
        if input.is_instance_of::<Uint32Array>() {
            return ids(input, tokenizer.n_vocab()).map(Self::Ids);
        }
        if Array::is_array(input) {
            let (messages, begun) = messages(input)?;
            if messages.is_empty() {
                let why = match &begun {
                    None => "must not be empty",
                    Some(_) => "must have a message before the answer that is begun",
                };
                return Err(bad_option("messages", why));
            }
            return Ok(Self::Chat(messages, begun));
        }
        Err(bad_option(name, "must be a string, an array of messages or a Uint32Array of ids"))
    }
}

/// The messages of an array of `{ role, content, toolCalls, toolCallId, prefix }`, and the text of
/// the last one by itself if it has `prefix: true`.
pub(super) fn messages(input: &JsValue) -> Result<(Vec<Message>, Option<String>)> {
    let input = Array::from(input);
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let roles = roles.map(|role| (role.as_str(), role));
    let mut messages = Vec::new();
    for (index, message) in input.iter().enumerate() {
        let path = format!("messages[{index}]");
        if !message.is_object() {
            return Err(bad_option(&path, "must be an object with `role` and `content`"));
        }
        let mut fields = Fields::new(path.as_str(), message)?;
        let absent = |name: &str| bad_option(&path, format!("needs a `{name}`"));
        let role = fields.one_of("role", &roles)?.ok_or_else(|| absent("role"))?;
        let content = fields.string("content")?.ok_or_else(|| absent("content"))?;
        let calls = tools::calls(&mut fields, &path)?;
        if fields.bool("prefix")? == Some(true) {
            let path = format!("{path}.prefix");
            if role != Role::Assistant || index + 1 != input.length() as usize {
                let why = "only the last message may begin the answer, as assistant";
                return Err(bad_option(&path, why));
            }
            if !calls.is_empty() {
                let why = "an answer that has called tools does not go on: send their results";
                return Err(bad_option(&path, why));
            }
            return Ok((messages, Some(content)));
        }
        messages.push(Message { role, content, calls, call: fields.string("toolCallId")? });
    }
    Ok((messages, None))
}

/// The ids of a `Uint32Array`, all of them in the vocabulary.
pub(super) fn ids(input: &JsValue, n_vocab: usize) -> Result<Vec<u32>> {
    let ids = match input.dyn_ref::<Uint32Array>() {
        Some(ids) => ids.to_vec(),
        None => return Err(bad_option("ids", "must be a Uint32Array")),
    };
    match ids.iter().position(|id| *id as usize >= n_vocab) {
        Some(index) => Err(bad_option(
            "ids",
            format!("ids[{index}] is {}, the vocabulary has {n_vocab} tokens", ids[index]),
        )),
        None => Ok(ids),
    }
}

/// The tokens of a text as it is, after a begin-of-text token if the model has one.
pub(super) fn raw_text(tokenizer: &Tokenizer, text: &str, special: bool) -> Result<Vec<u32>> {
    let ids =
        if special { tokenizer.encode_with_special(text)? } else { tokenizer.encode_text(text)? };
    let bos = tokenizer.bos().filter(|bos| tokenizer.add_bos() && ids.first() != Some(bos));
    let ids: Vec<u32> = bos.into_iter().chain(ids).collect();
    if ids.is_empty() { Err(bad_option("prompt", "must not be empty")) } else { Ok(ids) }
}
