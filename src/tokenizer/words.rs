//! Splits a text into words with the regexes of a pre-tokenizer.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input};

use crate::error::{Error, Result};

/// The end of regexes of GPT-2's kind. White space leaves its last character to a word that
/// follows.
const SPACES: &str = r"|\s+(?!\S)|\s+";

/// One regex as an automaton.
///
/// An automaton cannot look ahead. So white space is a pattern of its own, and [`Self::split`]
/// looks at the text that follows.
pub(super) struct Splitter {
    automaton: DFA,
    cache: Mutex<Cache>,
    /// The pattern of white space, if the regex ends with [`SPACES`].
    spaces: Option<usize>,
}

impl Splitter {
    /// Errors: `internal` if the regex needs more than an automaton and [`SPACES`].
    pub(super) fn new(regex: &str) -> Result<Self> {
        let (patterns, spaces) = match regex.strip_suffix(SPACES) {
            Some(words) => (vec![words, r"\s+"], Some(1)),
            None => (vec![regex], None),
        };
        let automaton = DFA::new_many(&patterns).map_err(internal)?;
        let cache = Mutex::new(automaton.create_cache());
        Ok(Self { automaton, cache, spaces })
    }

    /// Adds the matches within `word` of `text`, and the texts between them, to `parts`.
    pub(super) fn split(
        &self,
        text: &str,
        word: Range<usize>,
        parts: &mut Vec<Range<usize>>,
    ) -> Result<()> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        // The text after the last match begins at `between`.
        let (mut between, mut at) = (word.start, word.start);
        while let Some(char) = text[at..word.end].chars().next() {
            let input = Input::new(text).range(at..word.end).anchored(Anchored::Yes);
            let found = self.automaton.try_search_fwd(&mut cache, &input).map_err(internal)?;
            let Some(found) = found else {
                at += char.len_utf8();
                continue;
            };
            let mut end = found.offset();
            if self.spaces == Some(found.pattern().as_usize()) && end < word.end {
                let last = text[at..end].char_indices().next_back();
                end = last.map_or(end, |(last, _)| if last > 0 { at + last } else { end });
            }
            parts.extend([between..at, at..end]);
            (between, at) = (end, end);
        }
        parts.push(between..word.end);
        Ok(())
    }
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::Internal(format!("tokenizer: {error}"))
}
