//! Jinja's filter `tojson` as chat templates expect it: Python's
//! `json.dumps(value, ensure_ascii=False)`.

use std::fmt::Write;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// The most lists and maps within one another.
const MAX_DEPTH: usize = 64;

/// The filter. `indent` is the number of spaces of a level. Without it, everything is on one line.
pub(super) fn to_json(
    state: &State<'_, '_>,
    value: &Value,
    indent: Option<usize>,
    options: Kwargs,
) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get("indent")?,
    };
    // Templates give only `false`. `true` would need another writer.
    if options.get::<Option<bool>>("ensure_ascii")? == Some(true) {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: ensure_ascii is false here"));
    }
    options.assert_all_used()?;
    let mut writer =
        Writer { state, indent: indent.map(|indent| indent.min(16)), text: String::new() };
    writer.value(value, 0)?;
    Ok(writer.text)
}

struct Writer<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    indent: Option<usize>,
    text: String,
}

impl Writer<'_, '_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        self.state.consume_fuel(1)?;
        if depth > MAX_DEPTH {
            return Err(Error::new(ErrorKind::BadSerialization, "tojson: nested too deeply"));
        }
        match value.kind() {
            ValueKind::None => self.text += "null",
            ValueKind::Bool => self.text += if value.is_true() { "true" } else { "false" },
            ValueKind::Number => self.text += &value.to_string(),
            ValueKind::String => self.string(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                self.text.push('[');
                let mut any = false;
                for item in value.try_iter()? {
                    self.separate(any, depth);
                    self.value(&item, depth + 1)?;
                    any = true;
                }
                self.close(any, depth, ']');
            }
            ValueKind::Map => {
                self.text.push('{');
                let mut any = false;
                for key in value.try_iter()? {
                    self.separate(any, depth);
                    self.string(&key.to_string())?;
                    self.text += ": ";
                    self.value(&value.get_item(&key)?, depth + 1)?;
                    any = true;
                }
                self.close(any, depth, '}');
            }
            kind => {
                let why = format!("tojson: {kind} is no JSON");
                return Err(Error::new(ErrorKind::BadSerialization, why));
            }
        }
        Ok(())
    }

    /// Begins an item of a list or a map.
    fn separate(&mut self, any: bool, depth: usize) {
        if any {
            self.text.push(',');
        }
        match self.indent {
            Some(_) => self.line(depth + 1),
            None if any => self.text.push(' '),
            None => {}
        }
    }

    fn close(&mut self, any: bool, depth: usize, bracket: char) {
        if any && self.indent.is_some() {
            self.line(depth);
        }
        self.text.push(bracket);
    }

    fn line(&mut self, depth: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', depth * self.indent.unwrap_or_default()));
    }

    fn string(&mut self, string: &str) -> Result<(), Error> {
        self.state.consume_fuel((string.len() / 16) as u64)?;
        write_text(string, &mut self.text);
        Ok(())
    }
}

/// Writes a string with its quotes.
pub(super) fn write_text(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => *text += "\\\"",
            '\\' => *text += "\\\\",
            '\n' => *text += "\\n",
            '\r' => *text += "\\r",
            '\t' => *text += "\\t",
            '\u{8}' => *text += "\\b",
            '\u{c}' => *text += "\\f",
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
