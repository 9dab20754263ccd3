//! Finds the tags of a template, and the text that it may write out: the data between the tags, and
//! the strings within them.
//!
//! This is not a parser of Jinja. If it reads a template wrongly, the proof in `origin` stays
//! right: only fewer characters are then known to be the template's own.

use std::ops::Range;

/// Text that belongs together: a string, or the data between two tags. A string's escapes are left
/// out, so it may have several ranges of the template's bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    pub(super) ranges: Vec<Range<usize>>,
}

/// A tag: `{% … %}` or `{{ … }}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tag {
    /// The code in it, without the marks that trim white space.
    pub(super) code: Range<usize>,
    /// The position of the first `=` outside of strings and brackets.
    pub(super) equals: Option<usize>,
    /// The most brackets of any kind within one another.
    pub(super) depth: usize,
    /// The number of characters outside of strings.
    pub(super) length: usize,
    /// Whether it is a statement and not an expression.
    pub(super) is_statement: bool,
}

impl Literal {
    fn of(range: Range<usize>) -> Self {
        Self { ranges: std::iter::once(range).collect() }
    }
}

/// The literals of a template, in order. A string that is a key, as in `message['role']`, does not
/// count.
pub(super) fn find(source: &str) -> Vec<Literal> {
    Finder::run(source).found
}

/// The tags of a template, in order.
pub(super) fn tags(source: &str) -> Vec<Tag> {
    Finder::run(source).tags
}

struct Finder<'a> {
    source: &'a str,
    at: usize,
    found: Vec<Literal>,
    tags: Vec<Tag>,
}

impl<'a> Finder<'a> {
    fn run(source: &'a str) -> Self {
        let mut finder = Self { source, at: 0, found: Vec::new(), tags: Vec::new() };
        while finder.at < source.len() {
            finder.data();
            finder.tag();
        }
        finder
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    /// Takes the data up to the next tag.
    fn data(&mut self) {
        let pairs = self.rest().as_bytes().windows(2);
        let start = pairs.into_iter().position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"));
        let end = start.map_or(self.source.len(), |n| self.at + n);
        self.found.push(Literal::of(self.at..end));
        self.at = end;
    }

    /// Takes a tag or a comment.
    fn tag(&mut self) {
        let end = match self.rest().as_bytes().get(1) {
            None => return,
            Some(b'#') => {
                // `{#}` does not end itself.
                self.at += self.rest()[2..].find("#}").map_or(self.rest().len(), |n| n + 4);
                return;
            }
            Some(b'{') => "}}",
            Some(_) => "%}",
        };
        self.at += 2;
        let (mut open, mut depth, mut length, mut equals) = (0_usize, 0, 0, None);
        let mut code = self.at..self.source.len();
        while let Some(c) = self.rest().chars().next() {
            if open == 0 && self.rest().starts_with(end) {
                code.end = self.at;
                self.at += 2;
                break;
            }
            match c {
                '\'' | '"' => {
                    self.string(c);
                    continue;
                }
                '(' | '[' | '{' => open += 1,
                ')' | ']' | '}' => open = open.saturating_sub(1),
                '=' if equals.is_none() && open == 0 => equals = Some(self.at),
                _ => {}
            }
            depth = depth.max(open);
            length += 1;
            self.at += c.len_utf8();
        }
        let inner = &self.source[code.clone()];
        code.start += usize::from(inner.starts_with(['-', '+']));
        code.end -= usize::from(inner.len() > 1 && inner.ends_with(['-', '+']));
        let is_raw = end == "%}" && self.source[code.clone()].trim() == "raw";
        self.tags.push(Tag { code, equals, depth, length, is_statement: end == "%}" });
        if is_raw {
            self.raw();
        }
    }

    /// Takes the data up to `{% endraw %}`.
    fn raw(&mut self) {
        let ends = |&(_, tag): &(usize, &str)| {
            let tag = tag[2..].strip_prefix(['-', '+']).unwrap_or(&tag[2..]).trim_ascii_start();
            tag.strip_prefix("endraw").is_some_and(|rest| {
                let rest = rest.trim_ascii_start();
                rest.strip_prefix(['-', '+']).unwrap_or(rest).starts_with("%}")
            })
        };
        let rest = self.rest();
        let tag = rest.match_indices("{%").map(|(n, _)| (n, &rest[n..])).find(ends);
        let end = tag.map_or(self.source.len(), |(n, _)| self.at + n);
        self.found.push(Literal::of(self.at..end));
        self.at = end;
    }

    /// Takes a string that begins with `quote`.
    fn string(&mut self, quote: char) {
        let is_key = self.source[..self.at].trim_end().ends_with('[');
        self.at += 1;
        let mut ranges = Vec::new();
        let mut start = self.at;
        while let Some(c) = self.rest().chars().next() {
            if c == quote {
                break;
            }
            if c != '\\' {
                self.at += c.len_utf8();
                continue;
            }
            ranges.push(start..self.at);
            self.at += 1;
            let escaped = self.rest().chars().next();
            // The digits of `\u003c` and `\x3c` belong to the escape.
            let digits = match escaped {
                Some('u') => 4,
                Some('x') => 2,
                _ => 0,
            };
            let skipped = self.rest().chars().take(1 + digits).map(char::len_utf8).sum::<usize>();
            self.at += skipped;
            start = self.at;
        }
        ranges.push(start..self.at);
        self.at = (self.at + 1).min(self.source.len());
        if !(is_key && self.rest().trim_start().starts_with(']')) {
            self.found.push(Literal { ranges });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    fn texts(source: &str) -> Vec<String> {
        let text = |ranges: &[std::ops::Range<usize>]| -> String {
            ranges.iter().map(|range| &source[range.clone()]).collect()
        };
        let literals = find(source);
        literals.iter().map(|l| text(&l.ranges)).filter(|text| !text.is_empty()).collect()
    }

    #[test]
    fn data_and_strings_are_found_and_keys_are_not() {
        let source = "a {# 'no' #}{{ '<|' + m['role'] ~ \"it's\\n{{\" }} b{%- if x == 'user' %}c";
        assert_eq!(texts(source), ["a ", "<|", "it's{{", " b", "user", "c"]);
        assert_eq!(texts("{{ {'a': {'b': 'c'}}['a'] }}d"), ["a", "b", "c", "d"]);
        assert_eq!(texts("{% raw %}{{ 'x' }}{% endraw %}y"), ["{{ 'x' }}", "y"]);
        assert_eq!(texts("{{ '\\u003c\\'é\\\\' }}"), ["é"]);
    }

    #[test]
    fn whatever_the_text_is_it_ends() {
        for source in ["", "{", "{{", "{%", "{#", "{{ '", "{{ '\\", "{{ '\\u1", "{% raw %}", "é{"]
        {
            texts(source);
        }
    }
}
