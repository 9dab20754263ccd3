//! Regular expressions as JavaScript and JSON Schema write them, in the syntax of Rust.
//!
//! The two differ in what `.`, `\d`, `\w` and `\s` mean, in escapes, and in what a bracket means
//! within a class.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// Bytes of a regular expression at most.
const MAX_BYTES: usize = 10_000;

/// The largest number of repetitions.
const MAX_REPETITIONS: u32 = 10_000;

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
/// White space and line ends of JavaScript.
const SPACE: &str = r"\t\n\x{B}\x{C}\r\x{20}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}";
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// The same regular expression for `regex-syntax`.
///
/// Errors: the reason why it is wrong or not supported. It goes on after the words "the regular
/// expression".
pub(crate) fn translated(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_BYTES {
        return Err(format!("has {} bytes, more than {MAX_BYTES}", pattern.len()));
    }
    let mut reader = Reader { rest: pattern.chars().peekable(), out: String::new() };
    reader.all()?;
    match regex_syntax::parse(&reader.out) {
        Ok(_) => Ok(reader.out),
        Err(regex_syntax::Error::Parse(error)) => Err(format!("is wrong: {}", error.kind())),
        Err(regex_syntax::Error::Translate(error)) => Err(format!("is wrong: {}", error.kind())),
        Err(_) => Err("is wrong".into()),
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

/// An escape: one character, or the inside of a class.
enum Escape {
    Char(char),
    /// A class, and whether it is all characters but these.
    Class(String, bool),
}

impl Reader<'_> {
    fn all(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.next() {
            match c {
                '\\' => {
                    let escape = self.escape(false)?;
                    self.write(escape);
                }
                '.' => self.out += NO_LINE_END,
                '[' => self.class()?,
                '(' => self.group()?,
                '{' => self.repetitions()?,
                '^' | '$' | ')' | '|' | '*' | '+' | '?' => self.out.push(c),
                c => self.char(c),
            }
        }
        Ok(())
    }

    /// Writes a character that stands for itself.
    fn char(&mut self, c: char) {
        // Lark's syntax ends a regular expression at a slash.
        if c.is_ascii_alphanumeric() || (!c.is_ascii() && !c.is_control()) {
            self.out.push(c);
        } else {
            let _ = write!(self.out, r"\x{{{:X}}}", u32::from(c));
        }
    }

    /// Translates from after a `(`.
    fn group(&mut self) -> Result<(), String> {
        self.out += "(?:";
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        match (self.rest.next(), self.rest.peek()) {
            (Some(':'), _) => Ok(()),
            (Some('='), _) | (Some('!'), _) => Err("looks ahead, which is not supported".into()),
            (Some('<'), Some('=' | '!')) => Err("looks behind, which is not supported".into()),
            (Some('<'), _) => match self.rest.by_ref().find(|&c| c == '>') {
                Some(_) => Ok(()),
                None => Err("is wrong: unclosed name of a group".into()),
            },
            _ => Err("has a group of an unknown kind".into()),
        }
    }

    /// Translates from after a `{`: a number of repetitions, or else the brace is text.
    fn repetitions(&mut self) -> Result<(), String> {
        let inside: String = self.rest.clone().take_while(|&c| c != '}').take(30).collect();
        let numbers: Vec<&str> = inside.split(',').collect();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_closed = self.rest.clone().nth(inside.chars().count()) == Some('}');
        let is_repetition = is_closed
            && match numbers[..] {
                [n] => is_number(n),
                [least, most] => is_number(least) && (most.is_empty() || is_number(most)),
                _ => false,
            };
        if !is_repetition {
            self.char('{');
            return Ok(());
        }
        for number in numbers.into_iter().filter(|number| !number.is_empty()) {
            if number.parse().is_ok_and(|n: u32| n <= MAX_REPETITIONS) {
                continue;
            }
            return Err(format!("repeats more than {MAX_REPETITIONS} times"));
        }
        let _ = write!(self.out, "{{{inside}}}");
        self.rest.by_ref().find(|&c| c == '}');
        Ok(())
    }

    /// Translates from after a `[`.
    fn class(&mut self) -> Result<(), String> {
        let is_negated = self.rest.next_if_eq(&'^').is_some();
        if self.rest.next_if_eq(&']').is_some() {
            return match is_negated {
                true => {
                    self.out += "(?s:.)";
                    Ok(())
                }
                false => Err("has an empty class, which matches nothing".into()),
            };
        }
        self.out += if is_negated { "[^" } else { "[" };
        while let Some(first) = self.atom()? {
            let mut rest = self.rest.clone();
            let is_range = rest.next() == Some('-') && rest.next().is_some_and(|c| c != ']');
            if !is_range {
                self.write(first);
                continue;
            }
            self.rest.next();
            match (first, self.atom()?) {
                (Escape::Char(from), Some(Escape::Char(to))) => {
                    self.char(from);
                    self.out.push('-');
                    self.char(to);
                }
                // As older scripts have it.
                (first, last) => {
                    self.write(first);
                    self.char('-');
                    last.into_iter().for_each(|last| self.write(last));
                }
            }
        }
        self.out.push(']');
        Ok(())
    }

    /// A part of a class; `None` at its end.
    fn atom(&mut self) -> Result<Option<Escape>, String> {
        match self.rest.next() {
            None => Err("is wrong: unclosed class".into()),
            Some(']') => Ok(None),
            Some('\\') => self.escape(true).map(Some),
            Some(c) => Ok(Some(Escape::Char(c))),
        }
    }

    fn write(&mut self, escape: Escape) {
        match escape {
            Escape::Char(c) => self.char(c),
            Escape::Class(class, is_negated) => {
                let not = if is_negated { "^" } else { "" };
                let _ = write!(self.out, "[{not}{class}]");
            }
        }
    }

    /// Translates from after a backslash.
    fn escape(&mut self, in_class: bool) -> Result<Escape, String> {
        let Some(c) = self.rest.next() else { return Err("is wrong: it ends with `\\`".into()) };
        Ok(match c {
            'd' => Escape::Class(DIGIT.into(), false),
            'D' => Escape::Class(DIGIT.into(), true),
            'w' => Escape::Class(WORD.into(), false),
            'W' => Escape::Class(WORD.into(), true),
            's' => Escape::Class(SPACE.into(), false),
            'S' => Escape::Class(SPACE.into(), true),
            'p' | 'P' => Escape::Class(self.property(c)?, false),
            'b' if in_class => Escape::Char('\u{8}'),
            'b' | 'B' => return Err("has a word boundary, which is not supported".into()),
            't' => Escape::Char('\t'),
            'n' => Escape::Char('\n'),
            'v' => Escape::Char('\u{B}'),
            'f' => Escape::Char('\u{C}'),
            'r' => Escape::Char('\r'),
            '0' if !self.rest.peek().is_some_and(char::is_ascii_digit) => Escape::Char('\0'),
            '0'..='9' | 'k' => return Err("has a back reference, which is not supported".into()),
            'c' => match self.rest.next() {
                Some(c) if c.is_ascii_alphabetic() => Escape::Char((c as u8 % 32).into()),
                _ => return Err("is wrong: `\\c` without a letter".into()),
            },
            'x' => Escape::Char(self.hex(2)?),
            'u' if self.rest.next_if_eq(&'{').is_some() => {
                let digits: String = self.rest.by_ref().take_while(|&c| c != '}').collect();
                Escape::Char(scalar(u32::from_str_radix(&digits, 16).ok())?)
            }
            'u' => Escape::Char(self.unit()?),
            c if c.is_ascii_alphanumeric() => {
                return Err(format!("has the unknown escape `\\{c}`"));
            }
            c => Escape::Char(c),
        })
    }

    /// Translates from after `\u`: a character, or the two halves of one.
    fn unit(&mut self) -> Result<char, String> {
        let first = self.digits(4)?;
        if !(0xD800..0xDC00).contains(&first) {
            return scalar(Some(first));
        }
        if self.rest.next() != Some('\\') || self.rest.next() != Some('u') {
            return scalar(None);
        }
        match self.digits(4)? {
            second @ 0xDC00..0xE000 => {
                scalar(Some(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)))
            }
            _ => scalar(None),
        }
    }

    fn hex(&mut self, n: usize) -> Result<char, String> {
        let value = self.digits(n)?;
        scalar(Some(value))
    }

    fn digits(&mut self, n: usize) -> Result<u32, String> {
        let digits: String = self.rest.by_ref().take(n).collect();
        let is_hex = digits.len() == n && digits.bytes().all(|b| b.is_ascii_hexdigit());
        match u32::from_str_radix(&digits, 16) {
            Ok(value) if is_hex => Ok(value),
            _ => Err(format!("is wrong: an escape without {n} hexadecimal digits")),
        }
    }

    /// Translates from after `\p`. Rust writes the rest in the same way.
    fn property(&mut self, p: char) -> Result<String, String> {
        if self.rest.next() != Some('{') {
            return Err(format!("has the unknown escape `\\{p}`"));
        }
        let name: String = self.rest.by_ref().take_while(|&c| c != '}').collect();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '=';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("has the unknown escape `\\{p}{{{name}}}`"));
        }
        Ok(format!("\\{p}{{{name}}}"))
    }
}

fn scalar(value: Option<u32>) -> Result<char, String> {
    value
        .and_then(char::from_u32)
        .ok_or_else(|| "has an escape that stands for no character".into())
}
