//! Finds out which characters of a rendered prompt the template itself wrote.
//!
//! The text of a special token may become that token only if all of its characters come from the
//! template. If a message says `<|im_end|>`, it says ten characters, and the model must read them
//! as ten characters. Otherwise any text that a user pastes could end the user's turn and begin the
//! system's.
//!
//! A template trims, splits, compares and slices the messages. So marks within the messages would
//! change the prompt: Qwen3's template, for one, looks for `</think>` in them. Therefore the
//! template is changed instead:
//!
//! 1. The prompt is rendered with the template as it is. This gives the prompt's text.
//! 2. Each character of the template's literals is replaced by a stand-in, a character that occurs
//!    nowhere in the template or in its inputs, and the prompt is rendered again. Equal characters
//!    get equal stand-ins, so that literals which are compared with each other are still equal.
//! 3. If the second text equals the first one except for stand-ins, these show what the template
//!    wrote: no input holds a stand-in, and no function makes new characters out of others, so a
//!    stand-in can only come from the template. And it stands for the character that the first text
//!    has there. If messages hold the usual stand-ins, others are taken.
//! 4. If the texts differ otherwise, some literal is compared with the text of a message, such as
//!    `'</think>' in message.content`. Such literals keep their characters. They are found by
//!    halving. The text that they write is not recognised as the template's. That is safe: a
//!    special token that is not proved to be the template's becomes plain text.
//!
//! Roles come from this crate and not from the author of a message, so they count as the
//! template's. They have stand-ins too, together with the literals that they are compared with.

use std::iter::zip;
use std::ops::Range;

use minijinja::value::{Value, ValueKind};

use super::literals::{self, Literal};
use super::record::record;
use super::render::{Budget, Inputs};
use crate::error::{Error, Result};

/// The roles that a message may have.
const ROLES: &[&str] = &["system", "user", "assistant", "tool"];

/// The most renderings of one prompt. If only a few literals have to be left out, about a dozen are
/// enough.
const MAX_RENDERINGS: usize = 48;

/// The first stand-in.
const FIRST_STAND_IN: char = '\u{20000}';

/// A rendered prompt, with the ranges that the template wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marked {
    text: String,
    /// The bytes that the template wrote, in order. Neighbours are one range.
    written: Vec<Range<usize>>,
}

impl Marked {
    /// The prompt.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the template wrote all of these bytes of the text.
    pub fn is_written(&self, bytes: &Range<usize>) -> bool {
        let next = self.written.partition_point(|written| written.end < bytes.end);
        self.written.get(next).is_some_and(|written| written.start <= bytes.start)
    }

    /// The text from byte `start` on in parts, each with whether the template wrote it.
    pub fn parts(&self, start: usize) -> impl Iterator<Item = (&str, bool)> {
        let mut at = start;
        let written = self.written.iter().filter(move |written| written.end > start);
        let parts = written.flat_map(move |written| {
            let from = written.start.max(start);
            let before = (&self.text[at.min(from)..from], false);
            at = written.end;
            [before, (&self.text[from..at], true)]
        });
        let end = self.written.last().map_or(0, |last| last.end).max(start);
        let rest = (&self.text[end..], false);
        parts.chain([rest]).filter(|(text, _)| !text.is_empty())
    }

    /// Adds text at the end. `written` says whether it counts as the template's.
    pub fn push(&mut self, text: &str, written: bool) {
        let start = self.text.len();
        self.text += text;
        if !written || text.is_empty() {
            return;
        }
        match self.written.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end = self.text.len(),
            None => self.written.push(start..self.text.len()),
        }
    }

    /// Whether the first `len` bytes equal those of `other` and have the same origin.
    pub fn shares(&self, other: &Self, len: usize) -> bool {
        let written = |marked: &Self| -> Vec<Range<usize>> {
            let before = marked.written.iter().filter(|written| written.start < len);
            before.map(|written| written.start..written.end.min(len)).collect()
        };
        let (ours, theirs) = (self.text.as_bytes().get(..len), other.text.as_bytes().get(..len));
        ours.is_some() && ours == theirs && written(self) == written(other)
    }
}

/// Renders a prompt and marks the ranges that the template wrote.
///
/// Errors: those of [`Budget::render`]; `bad-option` (`messages`) if no character is left for stand-ins.
pub(super) fn mark(source: &str, inputs: &Inputs, budget: &mut Budget) -> Result<Marked> {
    let text = budget.render(source, inputs)?;
    let mut search = Search::new(source, inputs, &text, budget)?;
    let all: Vec<usize> = (0..search.units.len()).collect();
    search.include(&all);
    let written = search.written;
    Ok(Marked { text, written })
}

/// A group of literals that get stand-ins, or keep their characters, together.
enum Unit {
    /// The roles of messages, and the literals that are the name of a role.
    Roles(Vec<Literal>),
    Bos,
    Eos,
    Literal(Literal),
}

/// The search for units whose stand-ins change nothing but the characters that they replace.
struct Search<'a> {
    source: &'a str,
    inputs: &'a Inputs,
    /// The prompt.
    text: &'a str,
    units: Vec<Unit>,
    /// Characters with their stand-ins, in order.
    stand_ins: Vec<(char, char)>,
    /// Stand-ins with the characters that they stand for, in order.
    meanings: Vec<(char, char)>,
    /// The units that have stand-ins.
    included: Vec<usize>,
    /// The ranges that the included units have written.
    written: Vec<Range<usize>>,
    renderings: usize,
    /// The fuel that is left for renderings. Once it is spent, no more units are found.
    budget: &'a mut Budget,
}

impl<'a> Search<'a> {
    fn new(
        source: &'a str,
        inputs: &'a Inputs,
        text: &'a str,
        budget: &'a mut Budget,
    ) -> Result<Self> {
        let (roles, others): (Vec<_>, Vec<_>) =
            literals::find(source).into_iter().partition(|literal| {
                ROLES.contains(
                    &literal.ranges.iter().map(|r| &source[r.clone()]).collect::<String>().as_str(),
                )
            });
        let mut units = vec![Unit::Roles(roles), Unit::Bos, Unit::Eos];
        let has_letters = |literal: &Literal| {
            literal.ranges.iter().any(|range| !source[range.clone()].trim().is_empty())
        };
        units.extend(others.into_iter().filter(has_letters).map(Unit::Literal));

        let mut theirs: Vec<char> = source.chars().collect();
        theirs.extend(ROLES.iter().flat_map(|role| role.chars()));
        theirs.extend(inputs.bos.iter().chain(&inputs.eos).flat_map(|text| text.chars()));
        theirs.sort_unstable();
        theirs.dedup();
        let mut used = theirs.clone();
        // White space has no stand-ins, because templates trim it.
        theirs.retain(|c| !c.is_whitespace());
        inputs.visit(&mut |text| used.extend(text.chars().filter(|&c| c >= FIRST_STAND_IN)));
        used.sort_unstable();
        used.dedup();
        // The stand-ins are taken first from the characters that have no meaning in Unicode. There
        // are about a million characters to take.
        let free = ('\u{100000}'..='\u{10fffd}')
            .chain('\u{f0000}'..='\u{ffffd}')
            .chain(FIRST_STAND_IN..='\u{effff}')
            .filter(|c| used.binary_search(c).is_err());
        let stand_ins: Vec<(char, char)> = zip(theirs.iter().copied(), free).collect();
        if stand_ins.len() < theirs.len() {
            let why = "they hold nearly every character there is".into();
            return Err(Error::BadOption { name: "messages".into(), why });
        }
        let mut meanings: Vec<(char, char)> = stand_ins.iter().map(|&(c, to)| (to, c)).collect();
        meanings.sort_unstable();
        let (included, written) = (Vec::new(), Vec::new());
        Ok(Self {
            source,
            inputs,
            text,
            units,
            stand_ins,
            meanings,
            included,
            written,
            renderings: 0,
            budget,
        })
    }

    /// Includes those of `units` whose stand-ins change nothing else.
    fn include(&mut self, units: &[usize]) {
        if units.is_empty() || self.renderings == MAX_RENDERINGS {
            return;
        }
        self.renderings += 1;
        let together = [&self.included[..], units].concat();
        if let Some(written) = self.written_by(&together) {
            self.included = together;
            self.written = written;
        } else if units.len() > 1 {
            let (first, second) = units.split_at(units.len() / 2);
            self.include(first);
            self.include(second);
        }
    }

    /// The ranges that these units have written; `None` if their stand-ins change anything else.
    fn written_by(&mut self, units: &[usize]) -> Option<Vec<Range<usize>>> {
        let mut inputs = self.inputs.clone();
        let mut literals: Vec<&Literal> = Vec::new();
        for &unit in units {
            match &self.units[unit] {
                Unit::Literal(literal) => literals.push(literal),
                Unit::Bos => inputs.bos = inputs.bos.map(|bos| self.disguise(&bos)),
                Unit::Eos => inputs.eos = inputs.eos.map(|eos| self.disguise(&eos)),
                Unit::Roles(names) => {
                    literals.extend(names);
                    for message in &mut inputs.messages {
                        *message = self.with_role_disguised(message);
                    }
                }
            }
        }
        let source = self.source_with_disguised(literals);
        let disguised = self.budget.render(&source, &inputs).ok()?;
        self.compare(&disguised)
    }

    /// The ranges in which `disguised` has stand-ins; `None` if it is another text than the prompt.
    fn compare(&self, disguised: &str) -> Option<Vec<Range<usize>>> {
        let mut written: Vec<Range<usize>> = Vec::new();
        let mut rest = disguised.chars();
        for (at, c) in self.text.char_indices() {
            let found = rest.next()?;
            match look_up(&self.meanings, found) {
                None if found == c => {}
                Some(meaning) if meaning == c => {
                    let end = at + c.len_utf8();
                    match written.last_mut().filter(|last| last.end == at) {
                        Some(last) => last.end = end,
                        None => written.push(at..end),
                    }
                }
                _ => return None,
            }
        }
        rest.next().is_none().then_some(written)
    }

    fn disguise(&self, text: &str) -> String {
        text.chars().map(|c| look_up(&self.stand_ins, c).unwrap_or(c)).collect()
    }

    fn source_with_disguised(&self, mut literals: Vec<&Literal>) -> String {
        literals.sort_by_key(|literal| literal.ranges.first().map(|range| range.start));
        let mut source = String::with_capacity(2 * self.source.len());
        let mut at = 0;
        for range in literals.into_iter().flat_map(|literal| &literal.ranges) {
            source += &self.source[at..range.start];
            source += &self.disguise(&self.source[range.clone()]);
            at = range.end;
        }
        source + &self.source[at..]
    }

    fn with_role_disguised(&self, message: &Value) -> Value {
        if message.kind() != ValueKind::Map {
            return message.clone();
        }
        record(message.try_iter().into_iter().flatten().map(|key| {
            let value = message.get_item(&key).unwrap_or_default();
            match value.as_str().filter(|role| ROLES.contains(role)) {
                Some(role) if key.as_str() == Some("role") => (key, self.disguise(role).into()),
                _ => (key, value),
            }
        }))
    }
}

fn look_up(table: &[(char, char)], key: char) -> Option<char> {
    let at = table.binary_search_by_key(&key, |&(key, _)| key).ok()?;
    Some(table[at].1)
}
