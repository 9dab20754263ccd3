//! Finds special tokens in text.

use std::ops::Range;

/// The texts of special tokens.
#[derive(Debug, Default)]
pub(super) struct SpecialTokens {
    /// Sorted by the first byte, then the longest first. So the first match is the longest.
    texts: Vec<(String, u32)>,
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

    /// The texts of all tokens with their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.texts.iter().map(|(text, id)| (text.as_str(), *id))
    }

    /// The text of this token.
    pub(super) fn text(&self, id: u32) -> Option<&str> {
        self.texts.iter().find(|&&(_, other)| other == id).map(|(text, _)| text.as_str())
    }

    /// Finds special tokens in `text`, from left to right. If several match, the longest wins.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(&first) = text.as_bytes().get(at) {
            let rest = &text.as_bytes()[at..];
            let token = self
                .starting_with(first)
                .iter()
                .find(|(special, _)| rest.starts_with(special.as_bytes()));
            match token {
                Some((special, id)) => {
                    found.push((at..at + special.len(), *id));
                    at += special.len();
                }
                None => at += 1,
            }
        }
        found
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
        let text = "é<a><b><a>x|<a";
        let found = special.find(text);
        let found: Vec<_> = found.iter().map(|(at, id)| (&text[at.clone()], *id)).collect();
        assert_eq!(found, [("<a><b>", 2), ("<a>", 1), ("|", 3)]);
        assert_eq!(special.find(""), []);
        assert_eq!(special.text(2), Some("<a><b>"));
        assert_eq!(special.text(4), None);
        assert_eq!(special.id("<a>"), Some(1));
        assert_eq!(special.id("<"), None);
        assert_eq!(special.id(""), None);
    }
}
