//! JSON texts of tools: their schemas and the arguments of calls.
//!
//! A text is read into values that templates know, and written as Python's `json.dumps` writes it,
//! because that is what models have seen. The order of keys and the digits of numbers stay.

use minijinja::value::Value;

use super::super::json::write_text;
use super::super::record::record;

/// The most lists and maps within one another in a schema and in arguments. Templates have a few
/// more around these, and write at most 64.
pub(super) const MAX_DEPTH: usize = 60;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// The digits as they were written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text that is one value; `None` if it is no JSON or too deep.
    pub(super) fn read(text: &str) -> Option<Self> {
        Self::read_within(text, MAX_DEPTH)
    }

    /// The same, with at most `depth` lists and maps within one another.
    pub(super) fn read_within(text: &str, depth: usize) -> Option<Self> {
        let mut reader = Reader { rest: text };
        let value = reader.value(depth)?;
        reader.space();
        reader.rest.is_empty().then_some(value)
    }

    /// The field of a map.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(fields) = self else { return None };
        // Of two with one name, the last counts, as everywhere.
        fields.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value for templates.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::from(()),
            Self::Bool(is_true) => (*is_true).into(),
            Self::Number(digits) => match digits.parse::<i64>() {
                Ok(integer) => integer.into(),
                Err(_) => digits.parse::<f64>().unwrap_or_default().into(),
            },
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Map(fields) => {
                record(fields.iter().map(|(key, value)| (key.as_str(), value.to_value())))
            }
        }
    }

    /// The text, as `json.dumps(value, ensure_ascii=False)` gives it.
    pub(super) fn written(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        match self {
            Self::Null => *text += "null",
            Self::Bool(is_true) => *text += if *is_true { "true" } else { "false" },
            Self::Number(digits) => *text += digits,
            Self::Text(string) => write_text(string, text),
            Self::List(items) => {
                text.push('[');
                for (n, item) in items.iter().enumerate() {
                    *text += if n > 0 { ", " } else { "" };
                    item.write(text);
                }
                text.push(']');
            }
            Self::Map(fields) => {
                text.push('{');
                for (n, (key, value)) in fields.iter().enumerate() {
                    *text += if n > 0 { ", " } else { "" };
                    write_text(key, text);
                    *text += ": ";
                    value.write(text);
                }
                text.push('}');
            }
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// A value of at most `depth` lists and maps within one another.
    fn value(&mut self, depth: usize) -> Option<Json> {
        self.space();
        match self.rest.bytes().next()? {
            b'n' => self.take("null").map(|()| Json::Null),
            b't' => self.take("true").map(|()| Json::Bool(true)),
            b'f' => self.take("false").map(|()| Json::Bool(false)),
            b'"' => self.text().map(Json::Text),
            b'[' => {
                let depth = depth.checked_sub(1)?;
                let mut items = Vec::new();
                self.list('[', ']', |reader| {
                    items.push(reader.value(depth)?);
                    Some(())
                })?;
                Some(Json::List(items))
            }
            b'{' => {
                let depth = depth.checked_sub(1)?;
                let mut fields = Vec::new();
                self.list('{', '}', |reader| {
                    reader.space();
                    let key = reader.text()?;
                    reader.space();
                    reader.take(":")?;
                    fields.push((key, reader.value(depth)?));
                    Some(())
                })?;
                Some(Json::Map(fields))
            }
            _ => self.number().map(Json::Number),
        }
    }

    /// Takes what is between two brackets, and calls `item` for each item of it.
    fn list(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.rest = self.rest.strip_prefix(open)?;
        self.space();
        if let Some(rest) = self.rest.strip_prefix(close) {
            self.rest = rest;
            return Some(());
        }
        loop {
            item(self)?;
            self.space();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return Some(());
            }
            self.take(",")?;
        }
    }

    fn number(&mut self) -> Option<String> {
        let digits =
            |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let sign = usize::from(self.rest.starts_with('-'));
        let whole = digits(&self.rest[sign..]);
        if whole == 0 || (whole > 1 && self.rest[sign..].starts_with('0')) {
            return None;
        }
        let mut len = sign + whole;
        if self.rest[len..].starts_with('.') {
            let fraction = digits(&self.rest[len + 1..]);
            len += if fraction > 0 { 1 + fraction } else { return None };
        }
        if self.rest[len..].starts_with(['e', 'E']) {
            let sign = usize::from(self.rest[len + 1..].starts_with(['+', '-']));
            let exponent = digits(&self.rest[len + 1 + sign..]);
            len += if exponent > 0 { 1 + sign + exponent } else { return None };
        }
        let (number, rest) = self.rest.split_at(len);
        self.rest = rest;
        // Others could not read a larger one.
        number.parse().is_ok_and(f64::is_finite).then(|| number.into())
    }

    fn text(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut text = String::new();
        loop {
            let end = self.rest.find(['"', '\\'])?;
            let (before, after) = self.rest.split_at(end);
            if before.chars().any(|c| c < ' ') {
                return None;
            }
            text += before;
            self.rest = &after[1..];
            if after.starts_with('"') {
                return Some(text);
            }
            text.push(self.escaped()?);
        }
    }

    /// The character of an escape, after its backslash.
    fn escaped(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(match c {
            '"' | '\\' | '/' => c,
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let first = self.unit()?;
                if !(0xd800..0xdc00).contains(&first) {
                    // Half a character has no other meaning.
                    return Some(char::from_u32(first).unwrap_or('\u{fffd}'));
                }
                let Some(rest) = self.rest.strip_prefix("\\u") else { return Some('\u{fffd}') };
                self.rest = rest;
                let second = self.unit()?.wrapping_sub(0xdc00);
                match second < 0x400 {
                    true => char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)?,
                    false => '\u{fffd}',
                }
            }
            _ => return None,
        })
    }

    /// The four digits of a `\u`.
    fn unit(&mut self) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.rest = rest;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (text, written) in [
            (r#" {"b" : [1,-2.50,1e5 ],"a":{}} "#, r#"{"b": [1, -2.50, 1e5], "a": {}}"#),
            (
                r#"[null,true,false,[],"\u00fc\ud83e\udd8a\/\n\u0001"]"#,
                "[null, true, false, [], \"ü🦊/\\n\\u0001\"]",
            ),
            (r#""\ud800x""#, "\"\u{fffd}x\""),
        ] {
            assert_eq!(Json::read(text).unwrap().written(), written);
        }
    }

    #[test]
    fn texts_that_are_no_json_are_none() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":}",
            "{\"a\" 1}",
            "01",
            "1.",
            "-",
            "1e",
            "1e400",
            "tru",
            "\"a",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12é4\"",
            "1 2",
            "{1: 2}",
            "{\"a\": 1,}",
            "\\",
        ] {
            assert_eq!(Json::read(text), None, "{text:?}");
        }
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(Json::read(&deep(60)).is_some());
        assert_eq!(Json::read(&deep(61)), None);
        assert_eq!(Json::read(&deep(100_000)), None);
    }
}
