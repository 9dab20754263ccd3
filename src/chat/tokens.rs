//! The tokens of a tag's code.

/// Operators of two characters.
const DOUBLE: &[&str] = &["//", "**", "==", "!=", "<=", ">="];

/// A part of a tag's code.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) sort: Sort,
    pub(super) text: &'a str,
    /// Its offset in the code.
    pub(super) start: usize,
}

/// The sort of a token.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sort {
    Name,
    Number,
    Text,
    Sign,
}

/// The tokens of a tag's code, as minijinja reads them.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut start = 0;
    while let Some(c) = code[start..].chars().next() {
        let rest = &code[start..];
        let (sort, len) = match c {
            c if c.is_ascii_whitespace() => {
                start += 1;
                continue;
            }
            '0'..='9' => {
                let is_key = tokens.last().is_some_and(|token| token.text == ".");
                (Sort::Number, number(rest, is_key))
            }
            'a'..='z' | 'A'..='Z' | '_' => (Sort::Name, word(rest)),
            '\'' | '"' => (Sort::Text, string(rest, c)),
            _ if DOUBLE.iter().any(|double| rest.starts_with(double)) => (Sort::Sign, 2),
            _ => (Sort::Sign, c.len_utf8()),
        };
        tokens.push(Token { sort, text: &rest[..len], start });
        start += len;
    }
    tokens
}

/// The length of the word at the beginning of a text.
fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// The length of the number at the beginning of a text. A key, as in `x.0.1`, has no fraction.
fn number(text: &str, is_key: bool) -> usize {
    let mut len = word(text);
    if ["0x", "0X", "0o", "0O", "0b", "0B"].iter().any(|radix| text.starts_with(radix)) {
        return len;
    }
    // `2.` and `2.e5` are numbers, `2.x` is a field.
    let fraction = |text: &str| {
        let exponent = text.strip_prefix(['e', 'E']);
        let is_number = |c: char| c.is_ascii_digit() || ['+', '-'].contains(&c);
        exponent.is_some_and(|rest| rest.starts_with(is_number))
            || !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    };
    if !is_key && text[len..].strip_prefix('.').is_some_and(fraction) {
        len += 1 + word(&text[len + 1..]);
    }
    if text[..len].ends_with(['e', 'E']) && text[len..].starts_with(['+', '-']) {
        len += 1 + word(&text[len + 1..]);
    }
    len
}

/// The length of the string at the beginning of a text.
fn string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, c)| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(end, _)| end + 1)
}
