//! Finds stop texts, which may span several tokens.

/// Finds stop texts in text that arrives in parts.
pub(super) struct StopTexts {
    stops: Vec<String>,
    /// Text that may be the beginning of a stop text.
    held: String,
    stopped: bool,
}

impl StopTexts {
    pub(super) fn new(stops: &[String]) -> Self {
        Self { stops: stops.to_vec(), held: String::new(), stopped: false }
    }

    /// Adds text. Gives the text that can be emitted now, and whether a stop text was found.
    /// Nothing from the stop text on is ever emitted.
    pub(super) fn push(&mut self, text: &str) -> (String, bool) {
        if self.stopped {
            return (String::new(), true);
        }
        self.held.push_str(text);
        let stops = self.stops.iter().filter(|stop| !stop.is_empty());
        if let Some(at) = stops.filter_map(|stop| self.held.find(stop.as_str())).min() {
            self.stopped = true;
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let rest = self.held.split_off(self.certain());
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// Ends the text. Gives the text that was held back.
    pub(super) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// The number of bytes of `held` in which no stop text can begin.
    fn certain(&self) -> usize {
        self.held
            .char_indices()
            .map(|(at, _)| at)
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.held[at..])))
            .unwrap_or(self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], parts: &[&str]) -> (Vec<String>, bool) {
        let stops: Vec<String> = stops.iter().map(|s| (*s).into()).collect();
        let mut texts = StopTexts::new(&stops);
        let mut out = Vec::new();
        let mut stopped = false;
        for part in parts {
            let (text, now) = texts.push(part);
            out.push(text);
            stopped |= now;
        }
        out.push(texts.finish());
        (out, stopped)
    }

    #[test]
    fn a_stop_text_is_found_across_parts_and_not_emitted() {
        assert_eq!(run(&["END"], &["a E", "N", "D b"]), (vec_of(&["a ", "", "", ""]), true));
    }

    #[test]
    fn text_that_only_begins_like_a_stop_text_is_emitted() {
        assert_eq!(
            run(&["END"], &["E", "N", "x", "E"]),
            (vec_of(&["", "", "ENx", "", "E"]), false)
        );
    }

    #[test]
    fn the_first_of_several_stop_texts_wins_and_empty_ones_do_not_count() {
        assert_eq!(run(&["", "c", "bc"], &["abcd"]), (vec_of(&["a", ""]), true));
    }

    fn vec_of(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|s| (*s).into()).collect()
    }
}
