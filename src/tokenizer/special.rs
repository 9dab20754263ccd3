//! Finds special tokens in text.

/// The texts of special tokens.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    /// Sorted by the first byte, then the longest first: the first match is the longest.
    texts: Vec<(String, u32)>,
}

/// A special token in a text, or the text between two.
#[derive(Debug, PartialEq)]
pub(super) enum Span<'a> {
    Text(&'a str),
    Token(u32),
}

impl SpecialTokens {
    pub(super) fn new(mut texts: Vec<(String, u32)>) -> Self {
        texts.retain(|(text, _)| !text.is_empty());
        texts.sort_by(|(a, _), (b, _)| {
            (a.as_bytes()[0], b.len(), a).cmp(&(b.as_bytes()[0], a.len(), b))
        });
        Self { texts }
    }

    /// The token with this text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.starting_with(*text.as_bytes().first()?)
            .iter()
            .find(|(special, _)| special == text)
            .map(|&(_, id)| id)
    }

    /// Splits `text` at special tokens, from left to right. Where several match, the longest wins.
    pub(super) fn split<'a>(&self, text: &'a str) -> Vec<Span<'a>> {
        let mut spans = Vec::new();
        let (mut start, mut at) = (0, 0);
        while let Some(&first) = text.as_bytes().get(at) {
            let found = self
                .starting_with(first)
                .iter()
                .find(|(special, _)| text.as_bytes()[at..].starts_with(special.as_bytes()));
            let Some((special, id)) = found else {
                at += 1;
                continue;
            };
            if start < at {
                spans.push(Span::Text(&text[start..at]));
            }
            spans.push(Span::Token(*id));
            at += special.len();
            start = at;
        }
        if start < text.len() {
            spans.push(Span::Text(&text[start..]));
        }
        spans
    }

    fn starting_with(&self, first: u8) -> &[(String, u32)] {
        let from = self.texts.partition_point(|(text, _)| text.as_bytes()[0] < first);
        let to = self.texts.partition_point(|(text, _)| text.as_bytes()[0] <= first);
        &self.texts[from..to]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_token_wins() {
        let texts = [("<a>", 1), ("<a><b>", 2), ("|", 3), ("", 4)];
        let special =
            SpecialTokens::new(texts.iter().map(|&(text, id)| (text.to_owned(), id)).collect());
        assert_eq!(
            special.split("é<a><b><a>x|<a"),
            [
                Span::Text("é"),
                Span::Token(2),
                Span::Token(1),
                Span::Text("x"),
                Span::Token(3),
                Span::Text("<a"),
            ]
        );
        assert_eq!(special.split(""), []);
        assert_eq!(special.id("<a>"), Some(1));
        assert_eq!(special.id("<"), None);
        assert_eq!(special.id(""), None);
    }
}
