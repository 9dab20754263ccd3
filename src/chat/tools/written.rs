//! Conversations with tools, as templates read them.

use minijinja::Value;

use super::super::record::record;
use super::{CallFormat, Message, Role, Tools};

/// The messages and the tools as values for a template whose format is `format`. If the template
/// knows no tools, messages say everything, and there are no other values.
pub(in super::super) fn messages(
    format: &CallFormat,
    messages: &[Message],
    tools: Option<&Tools>,
) -> (Vec<Value>, Option<Value>) {
    if format.in_template {
        (
            messages.iter().enumerate().map(|(n, _)| value(messages, n)).collect(),
            tools.map(Tools::value),
        )
    } else {
        (
            plain(format, messages, tools).iter().map(|(role, text)| said(*role, text)).collect(),
            None,
        )
    }
}

/// A message without calls, as templates read it.
pub(in super::super) fn said(role: Role, content: &str) -> Value {
    record([("role", role.as_str().into()), ("content", content.into())])
}

/// Message `n`, with its calls or with the call whose result it is.
fn value(messages: &[Message], n: usize) -> Value {
    let message = &messages[n];
    let mut fields: Vec<(&str, Value)> =
        vec![("role", message.role.as_str().into()), ("content", message.content.as_str().into())];
    if !message.calls.is_empty() {
        fields.push(("tool_calls", message.calls.iter().map(|call| call.value()).collect()));
    }
    if message.role == Role::Tool {
        let id = message.call.as_deref();
        fields.extend(id.map(|id| ("tool_call_id", id.into())));
        let asked = messages[..n].iter().rev().find(|message| message.role != Role::Tool);
        let mut calls = asked.into_iter().flat_map(|message| &message.calls);
        let call = calls.find(|call| id == Some(&call.id));
        fields.extend(call.map(|call| ("name", call.name.as_str().into())));
    }
    record(fields)
}

/// The conversation in messages of the system, the user and the assistant.
fn plain(format: &CallFormat, messages: &[Message], tools: Option<&Tools>) -> Vec<(Role, String)> {
    let mut plain: Vec<(Role, String)> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        match message.role {
            Role::Tool => {
                let [open, close] = format.result;
                let result = format!("{open}{}{close}", message.content);
                // The results of several calls are one message, because users and models take
                // turns.
                let follows = n > 0 && messages[n - 1].role == Role::Tool;
                match plain.last_mut().filter(|_| follows) {
                    Some((_, before)) => *before += &format!("\n{result}"),
                    None => plain.push((Role::User, result)),
                }
            }
            role => plain.push((role, format.written(message))),
        }
    }
    if let Some(tools) = tools {
        let told = instructions(format, tools);
        match plain.first_mut().filter(|(role, _)| *role == Role::System) {
            Some((_, system)) => *system += &format!("\n\n{told}"),
            None => plain.insert(0, (Role::System, told)),
        }
    }
    plain
}

/// Tells the model which tools there are and how to call them, in the words of Qwen3's template.
fn instructions(format: &CallFormat, tools: &Tools) -> String {
    let CallFormat { begin, end, open, close, .. } = format;
    let lines: Vec<String> = tools.lines().collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
         You are provided with function signatures within <tools></tools> XML tags:\n\
         <tools>\n{}\n</tools>\n\n\
         For each function call, return a json object with function name and arguments within \
         {begin}{end} XML tags:\n\
         {begin}{open}{{\"name\": <function-name>, \"arguments\": <args-json-object>}}{close}{end}",
        lines.join("\n")
    )
}
