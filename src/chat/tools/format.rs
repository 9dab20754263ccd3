//! The formats in which models write calls.

use super::super::json::write_text;
use super::{Message, ToolCall};

/// A format of calls. A call is `begin`, `open`, `{"name": "…", "arguments": …}`, `close` and
/// `end`.
#[derive(Debug, PartialEq, Eq)]
pub struct CallFormat {
    /// Its name in errors and notes.
    pub name: &'static str,
    /// The text, or the special token, with which a call begins.
    pub begin: &'static str,
    /// The text, or the special token, with which a call ends.
    pub end: &'static str,
    /// The texts before and after the JSON of a call.
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// The text between an answer's text and a call, and between two calls.
    pub(super) between: &'static str,
    /// The texts before and after a result.
    pub(super) result: [&'static str; 2],
    /// The texts of a template that writes calls in this format; none: it fits where no other does.
    known_by: &'static [&'static str],
    /// Whether the template itself writes the tools, the calls and their results.
    pub(super) in_template: bool,
}

/// The formats. A model gets the first one that fits its template.
///
/// Both are Hermes', which Qwen3 and Bonsai have too. The second is for templates that know no
/// tools. Models that were trained with calls have most probably seen this format.
static FORMATS: [CallFormat; 2] = [
    CallFormat { name: "hermes", known_by: &["<tool_call>"], in_template: true, ..HERMES },
    HERMES,
];

const HERMES: CallFormat = CallFormat {
    name: "message",
    begin: "<tool_call>",
    end: "</tool_call>",
    open: "\n",
    close: "\n",
    between: "\n",
    result: ["<tool_response>\n", "\n</tool_response>"],
    known_by: &[],
    in_template: false,
};

impl CallFormat {
    /// The format of a model whose template has this source. `reads_tools` says whether the
    /// template reads the variable `tools`.
    pub(in super::super) fn of(source: &str, reads_tools: bool) -> &'static Self {
        let fits = |format: &&Self| {
            !format.in_template
                || (reads_tools && format.known_by.iter().all(|text| source.contains(text)))
        };
        // The last one fits any template.
        FORMATS.iter().find(fits).unwrap_or(&FORMATS[FORMATS.len() - 1])
    }

    /// The text of a message with its calls, as models write them.
    pub fn written(&self, message: &Message) -> String {
        let mut text = message.content.clone();
        self.write(&message.calls, &mut text);
        text
    }

    /// Adds calls to the text before them.
    fn write(&self, calls: &[ToolCall], text: &mut String) {
        for call in calls {
            *text += if text.is_empty() { "" } else { self.between };
            *text += self.begin;
            *text += self.open;
            *text += "{\"name\": ";
            write_text(&call.name, text);
            *text += ", \"arguments\": ";
            *text += &call.written();
            *text += "}";
            *text += self.close;
            *text += self.end;
        }
    }

    /// The fields of `tritloom_grammar::Format::Calls` that describe the format, as the beginning of
    /// a JSON object.
    pub(super) fn grammar(&self) -> String {
        let mut json = String::new();
        let fields = [
            ("begin", self.begin),
            ("end", self.end),
            ("open", self.open),
            ("close", self.close),
            ("between", self.between),
        ];
        for (name, value) in fields {
            json += if json.is_empty() { "{" } else { ", " };
            json += &format!("\"{name}\": ");
            write_text(value, &mut json);
        }
        json
    }
}
