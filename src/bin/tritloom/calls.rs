//! Calls of tools on standard output.

use tritloom::session::CallPart;

/// Writes calls as lines of JSON between the text around them.
#[derive(Default)]
pub(crate) struct Lines {
    /// Whether there is something on the line.
    is_within: bool,
    /// Whether a call has begun and not ended.
    is_open: bool,
}

impl Lines {
    /// The line, or the part of a line, to print for a part of a call. `text` is some of its
    /// arguments.
    pub(crate) fn call(&mut self, text: &str, part: &CallPart) -> String {
        let mut line = String::new();
        if let Some(name) = &part.name {
            line += if self.is_within { "\n" } else { "" };
            // A name has no character that JSON escapes.
            line += &format!("{{\"name\": \"{name}\", \"arguments\": ");
            self.is_open = true;
        }
        line += text;
        if part.ends {
            line += "}\n";
            self.is_open = false;
        }
        self.text(&line);
        line
    }

    /// Notes that a text is printed.
    pub(crate) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.is_within = !text.ends_with('\n');
        }
    }

    /// Whether the last line has no end.
    pub(crate) fn is_within(&self) -> bool {
        self.is_within
    }

    /// Whether the last call is not whole.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }
}
