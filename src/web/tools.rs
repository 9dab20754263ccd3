//! Tools and their calls from JavaScript.

use std::rc::Rc;

use js_sys::{Array, JSON};
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use crate::chat::{CallFormat, Tool, ToolCall, ToolChoice, Tools};
use crate::error::Result;

/// The options of `generate` that concern tools.
pub(super) struct Calling {
    pub(super) tools: Rc<Tools>,
    pub(super) choice: ToolChoice,
    /// Whether several calls may follow one another.
    parallel: bool,
}

impl Calling {
    /// Takes `tools`, `toolChoice` and `parallelToolCalls`; `None` if the model gets no tools.
    pub(super) fn parse(fields: &mut Fields) -> Result<Option<Self>> {
        let (tools, choice) = (fields.value("tools")?, fields.value("toolChoice")?);
        let parallel = fields.bool("parallelToolCalls")?;
        if tools.is_undefined() {
            return match (choice.is_undefined(), parallel) {
                (true, None) => Ok(None),
                (true, _) => Err(bad_option("parallelToolCalls", "needs `tools`")),
                _ => Err(bad_option("toolChoice", "needs `tools`")),
            };
        }
        if !Array::is_array(&tools) {
            return Err(bad_option("tools", "must be an array"));
        }
        let tools = Array::from(&tools).iter().enumerate().map(tool).collect::<Result<_>>()?;
        let tools = Rc::new(Tools::new(tools)?);
        Ok(choice_of(choice)?.map(|choice| Self {
            tools,
            choice,
            parallel: parallel.unwrap_or(true),
        }))
    }

    /// The format of the calls, for the module of grammars.
    pub(super) fn grammar(&self, format: &CallFormat) -> Result<String> {
        self.tools.grammar(format, &self.choice, self.parallel)
    }
}

/// A tool. Its schema comes as text, because the page has read it.
fn tool((n, value): (usize, JsValue)) -> Result<Tool> {
    let path = format!("tools[{n}]");
    if !value.is_object() {
        return Err(bad_option(&path, "must be an object"));
    }
    let mut fields = Fields::new(path.as_str(), value)?;
    let name = fields.string("name")?;
    let tool = Tool {
        name: name.ok_or_else(|| bad_option(&format!("{path}.name"), "is missing"))?,
        description: fields.string("description")?,
        parameters: fields.string("parameters")?,
    };
    fields.finish()?;
    Ok(tool)
}

/// `None` if the model gets no tools.
fn choice_of(choice: JsValue) -> Result<Option<ToolChoice>> {
    let why = "must be 'auto', 'none', 'required' or an object with a `name`";
    match choice.as_string().as_deref() {
        None if choice.is_undefined() => Ok(Some(ToolChoice::Auto)),
        Some("auto") => Ok(Some(ToolChoice::Auto)),
        Some("required") => Ok(Some(ToolChoice::Required)),
        Some("none") => Ok(None),
        None if choice.is_object() => {
            let mut fields = Fields::new("toolChoice", choice)?;
            let name = fields.string("name")?;
            fields.finish()?;
            Ok(Some(ToolChoice::Named(name.ok_or_else(|| bad_option("toolChoice", why))?)))
        }
        _ => Err(bad_option("toolChoice", why)),
    }
}

/// The calls of the message `path`: its `toolCalls`.
pub(super) fn calls(fields: &mut Fields, path: &str) -> Result<Vec<ToolCall>> {
    let calls = fields.value("toolCalls")?;
    if calls.is_undefined() {
        return Ok(Vec::new());
    }
    let path = format!("{path}.toolCalls");
    if !Array::is_array(&calls) {
        return Err(bad_option(&path, "must be an array"));
    }
    let call = |(n, call): (usize, JsValue)| {
        let path = format!("{path}[{n}]");
        if !call.is_object() {
            return Err(bad_option(&path, "must be an object"));
        }
        let mut fields = Fields::new(path.as_str(), call)?;
        let mut needed = |name: &'static str| {
            let value = fields.string(name)?;
            value.ok_or_else(|| bad_option(&format!("{path}.{name}"), "is missing"))
        };
        let (id, name) = (needed("id")?, needed("name")?);
        // A value that cannot be written as JSON is no object. The check of all messages refuses it.
        let written = JSON::stringify(&fields.value("arguments")?).ok();
        let arguments = written.and_then(|text| text.as_string()).unwrap_or_default();
        Ok(ToolCall { id, name, arguments })
    };
    Array::from(&calls).iter().enumerate().map(call).collect()
}
