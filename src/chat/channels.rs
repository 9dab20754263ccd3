//! Separates the reasoning in a generated text from the answer after it.

use serde::Serialize;

/// The purpose of a generated text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The model's reasoning before it answers.
    Reasoning,
    /// The answer to the user.
    Answer,
}

/// A generated text that comes in parts. `<think>` at its beginning begins the reasoning, and
/// `</think>` ends it. Neither belongs to a channel. The white space around the reasoning does not
/// either.
#[derive(Clone, Debug)]
pub struct Channels {
    state: State,
    /// Text whose channel is not certain yet. It may be the beginning of a marker, or white space
    /// at the end of the reasoning.
    held: String,
    /// Whether the answer is all that comes after the text in which the reasoning ends.
    is_exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// So far there is only white space, and perhaps a part of `<think>`.
    Beginning,
    /// `<think>` has come, and only white space of the reasoning.
    ReasoningBegins,
    Reasoning,
    /// `</think>` has come, and only white space of the answer.
    AnswerBegins,
    Answer,
}

impl Channels {
    /// The marker before the reasoning.
    pub const OPEN: &str = "<think>";
    /// The marker after the reasoning.
    pub const CLOSE: &str = "</think>";
    /// The text that ends a reasoning that is cut short. Models write it so.
    pub const CUT: &str = "\n</think>\n\n";

    /// A text whose reasoning may begin with `<think>`.
    pub fn new() -> Self {
        Self::at(State::Beginning)
    }

    /// A text that begins within its reasoning: the prompt ends with `<think>`.
    pub fn reasoning() -> Self {
        Self::at(State::ReasoningBegins)
    }

    /// A text that is all answer, even if it has markers in it.
    pub fn answer() -> Self {
        Self::at(State::Answer)
    }

    /// The same, but the answer is exactly what is pushed after the text in which the reasoning ends.
    /// The rest of that text belongs to no channel.
    pub fn exact(self) -> Self {
        Self { is_exact: true, ..self }
    }

    fn at(state: State) -> Self {
        Self { state, held: String::new(), is_exact: false }
    }

    /// The channel of the next token.
    pub fn channel(&self) -> Channel {
        match self.state {
            State::ReasoningBegins | State::Reasoning => Channel::Reasoning,
            State::Beginning | State::AnswerBegins | State::Answer => Channel::Answer,
        }
    }

    /// Adds text. Gives the reasoning that is certain now, and the answer after it.
    pub fn push(&mut self, text: &str) -> (String, String) {
        if self.state == State::Answer {
            return (String::new(), text.into());
        }
        self.held += text;
        let mut reasoning = String::new();
        loop {
            match self.state {
                State::Beginning => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(Self::OPEN) {
                        self.held = rest.into();
                        self.state = State::ReasoningBegins;
                    } else if Self::OPEN.starts_with(begun) {
                        return (reasoning, String::new());
                    } else {
                        self.state = State::Answer;
                    }
                }
                State::ReasoningBegins => {
                    self.held = self.held.trim_start().into();
                    if self.held.is_empty() {
                        return (reasoning, String::new());
                    }
                    self.state = State::Reasoning;
                }
                State::Reasoning => {
                    if let Some((before, after)) = self.held.split_once(Self::CLOSE) {
                        reasoning += before.trim_end();
                        self.held = if self.is_exact { String::new() } else { after.into() };
                        self.state = self.after_reasoning();
                    } else {
                        let rest = self.held.split_off(certain(&self.held));
                        reasoning += &std::mem::replace(&mut self.held, rest);
                        return (reasoning, String::new());
                    }
                }
                State::AnswerBegins => {
                    self.held = self.held.trim_start().into();
                    if self.held.is_empty() {
                        return (reasoning, String::new());
                    }
                    self.state = State::Answer;
                }
                State::Answer => return (reasoning, std::mem::take(&mut self.held)),
            }
        }
    }

    fn after_reasoning(&self) -> State {
        if self.is_exact { State::Answer } else { State::AnswerBegins }
    }

    /// Ends the reasoning, as `</think>` does. Gives the rest of it.
    pub fn close(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        let next = self.after_reasoning();
        let was = std::mem::replace(&mut self.state, next);
        if was == State::Reasoning { rest.trim_end().into() } else { String::new() }
    }

    /// Ends the text. Gives the text that was held back, and its channel.
    pub fn finish(&mut self) -> (Channel, String) {
        (self.channel(), std::mem::take(&mut self.held))
    }
}

impl Default for Channels {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of bytes of a reasoning that cannot belong to its end: neither to `</think>` nor to
/// the white space before it.
fn certain(text: &str) -> usize {
    let close = Channels::CLOSE;
    let marker = (1..close.len()).rev().find(|&n| text.ends_with(&close[..n])).unwrap_or(0);
    text[..text.len() - marker].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reasoning and answer of a text that comes in parts of `n` characters.
    fn split(mut channels: Channels, text: &str, n: usize) -> (String, String) {
        let (mut reasoning, mut answer) = (String::new(), String::new());
        let chars: Vec<char> = text.chars().collect();
        for part in chars.chunks(n) {
            let (a, b) = channels.push(&part.iter().collect::<String>());
            reasoning += &a;
            answer += &b;
        }
        match channels.finish() {
            (Channel::Reasoning, rest) => reasoning += &rest,
            (Channel::Answer, rest) => answer += &rest,
        }
        (reasoning, answer)
    }

    #[test]
    fn reasoning_and_answer_are_separated_however_the_text_comes() {
        for (text, reasoning, answer) in [
            ("<think>\nIt is\n\nwarm.\n</think>\n\nYes.\n", "It is\n\nwarm.", "Yes.\n"),
            ("\n<think>a</think>b</think>c", "a", "b</think>c"),
            ("<think>\n\n</think>\n\nYes.", "", "Yes."),
            ("<think> a </thin </think> </think> b", "a </thin", "</think> b"),
            ("<think>not done", "not done", ""),
            (" <thin air", "", " <thin air"),
            ("No <think>x</think>", "", "No <think>x</think>"),
            ("", "", ""),
            ("<thi", "", "<thi"),
            ("\n", "", "\n"),
        ] {
            for n in 1..=text.len().max(1) {
                let found = split(Channels::new(), text, n);
                assert_eq!(found, (reasoning.into(), answer.into()), "{text:?} by {n}");
            }
        }
    }

    #[test]
    fn a_text_may_begin_within_its_reasoning_or_have_none() {
        for n in 1..20 {
            let found = split(Channels::reasoning(), "\nWell.\n</think>\n\nYes.", n);
            assert_eq!(found, ("Well.".into(), "Yes.".into()));
            let found = split(Channels::answer(), "<think>a</think>b", n);
            assert_eq!(found, (String::new(), "<think>a</think>b".into()));
        }
    }

    #[test]
    fn a_reasoning_can_be_closed_from_outside() {
        let mut channels = Channels::reasoning();
        assert_eq!(channels.push("I see \n"), ("I see".into(), String::new()));
        assert_eq!(channels.close(), "");
        assert_eq!(channels.push("\n\nYes."), (String::new(), "Yes.".into()));
        let mut channels = Channels::reasoning();
        channels.push("a </th");
        assert_eq!(channels.close(), " </th");
    }

    #[test]
    fn an_exact_answer_begins_behind_the_text_that_ends_the_reasoning() {
        for (parts, reasoning, answer) in [
            (&["a</thi", "nk>\n\n{", "\n{", "}"][..], "a", "\n{}"),
            (&["</think>", " b"], "", " b"),
        ] {
            let mut channels = Channels::reasoning().exact();
            let pushed: Vec<(String, String)> =
                parts.iter().map(|part| channels.push(part)).collect();
            let (reasonings, answers): (Vec<_>, Vec<_>) = pushed.into_iter().unzip();
            assert_eq!(
                (reasonings.concat().as_str(), answers.concat().as_str()),
                (reasoning, answer)
            );
        }
        let mut channels = Channels::reasoning().exact();
        channels.push("a ");
        assert_eq!(channels.close(), "");
        assert_eq!(channels.push("\n{"), (String::new(), "\n{".into()));
    }
}
