//! Special tokens in raw text.

/// Texts that are one token each, to be found in other text.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    /// By first byte, and the longest first, so that the first match is the longest.
    texts: Vec<(String, u32)>,
}

/// A part of a text.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
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

    /// The token with exactly this text.
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.starting_with(*text.as_bytes().first()?)
            .iter()
            .find(|(special, _)| special == text)
            .map(|&(_, id)| id)
    }

    /// Cuts `text` at special tokens, from left to right, the longest where several fit.
    pub(super) fn split<'a>(&self, text: &'a str) -> Vec<Part<'a>> {
        let mut parts = Vec::new();
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
                parts.push(Part::Text(&text[start..at]));
            }
            parts.push(Part::Token(*id));
            at += special.len();
            start = at;
        }
        if start < text.len() {
            parts.push(Part::Text(&text[start..]));
        }
        parts
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
                Part::Text("é"),
                Part::Token(2),
                Part::Token(1),
                Part::Text("x"),
                Part::Token(3),
                Part::Text("<a"),
            ]
        );
        assert_eq!(special.split(""), []);
        assert_eq!(special.id("<a>"), Some(1));
        assert_eq!(special.id("<"), None);
        assert_eq!(special.id(""), None);
    }
}
