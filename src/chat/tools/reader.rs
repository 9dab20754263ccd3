//! Finds calls in an answer that comes in parts.

use std::mem;
use std::rc::Rc;

use super::json::Json;
use super::{CallFormat, MAX_NAME, Tools};

/// The next part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEvent {
    /// Text outside of calls.
    Text(String),
    /// A call of the tool with this name begins.
    Begins(String),
    /// More of the arguments of the call that has begun.
    Arguments(String),
    /// The call ends. Its arguments are a whole JSON object.
    Ends,
}

/// Reads the calls of an answer. White space around them belongs to no text.
///
/// A call is read only as grammars write it, `{"name": "…", "arguments": {`, because an answer is
/// not held to its schema where it says it in another way. Another way, and the name of a tool that
/// does not exist, are text. If the arguments break off or are no JSON, the call never ends.
#[derive(Clone, Debug)]
pub struct CallReader {
    format: &'static CallFormat,
    tools: Rc<Tools>,
    state: State,
    /// Text whose meaning is not certain yet.
    held: String,
    /// White space before the call that begins.
    space: String,
    /// Calls that have begun, and those that have ended.
    begun: usize,
    ended: usize,
}

#[derive(Clone, Debug)]
enum State {
    Text,
    /// Behind `begin`, up to the arguments.
    Front,
    Arguments(Scan),
    /// Behind the arguments, up to `end`. `is_whole` says whether they are an object.
    Rest {
        is_whole: bool,
    },
}

/// How far arguments have been read.
#[derive(Clone, Debug, Default)]
struct Scan {
    text: String,
    depth: usize,
    in_string: bool,
    escaped: bool,
}

/// The front of a call, up to its arguments.
enum Front<'a> {
    /// More of it has to come.
    Open,
    /// The tool's name, and where the arguments begin.
    Whole(&'a str, usize),
    /// It is no call.
    Other,
}

impl CallReader {
    /// Reads an answer to a prompt with these tools.
    pub fn new(format: &'static CallFormat, tools: &Rc<Tools>) -> Self {
        Self {
            format,
            tools: Rc::clone(tools),
            state: State::Text,
            held: String::new(),
            space: String::new(),
            begun: 0,
            ended: 0,
        }
    }

    /// How many calls have begun.
    pub fn begun(&self) -> usize {
        self.begun
    }

    /// Whether there are calls, and all have ended.
    pub fn is_complete(&self) -> bool {
        self.begun > 0 && self.ended == self.begun
    }

    /// The format of the calls.
    pub fn format(&self) -> &'static CallFormat {
        self.format
    }

    /// Adds text. Gives what is certain now, in order.
    pub fn push(&mut self, text: &str) -> Vec<CallEvent> {
        self.held += text;
        let mut events = Vec::new();
        while self.step(&mut events) {}
        joined(events)
    }

    /// Ends the answer. Gives what was held back.
    pub fn finish(&mut self) -> Vec<CallEvent> {
        let mut events = Vec::new();
        let held = mem::take(&mut self.held);
        match mem::replace(&mut self.state, State::Text) {
            // The white space behind the last call is no text.
            State::Text if self.begun > 0 && held.trim().is_empty() => {}
            State::Text => events.push(CallEvent::Text(held)),
            State::Front => {
                self.give_up(&mut events);
                events.push(CallEvent::Text(held));
            }
            State::Rest { is_whole: true } => self.end(&mut events),
            State::Arguments(_) | State::Rest { is_whole: false } => {}
        }
        events.retain(|event| *event != CallEvent::Text(String::new()));
        events
    }

    /// Reads some of the text that is held. Gives whether to go on.
    fn step(&mut self, events: &mut Vec<CallEvent>) -> bool {
        let CallFormat { begin, end, .. } = *self.format;
        match &mut self.state {
            State::Text => {
                if let Some((before, after)) = self.held.split_once(begin) {
                    let text = before.trim_end();
                    self.space = before[text.len()..].into();
                    events.push(CallEvent::Text(text.into()));
                    self.held = after.into();
                    self.state = State::Front;
                    return true;
                }
                let rest = self.held.split_off(certain(&self.held, begin));
                events.push(CallEvent::Text(mem::replace(&mut self.held, rest)));
                false
            }
            State::Front => match front(&self.held, self.format.open) {
                Front::Open => false,
                Front::Whole(name, at) if self.tools.has(name) => {
                    events.push(CallEvent::Begins(name.into()));
                    self.begun += 1;
                    self.held = self.held.split_off(at);
                    self.state = State::Arguments(Scan::default());
                    true
                }
                // A call may begin in the text that is held.
                Front::Whole(..) | Front::Other => {
                    self.give_up(events);
                    true
                }
            },
            State::Arguments(scan) => {
                let (len, is_over) = scan.read(&self.held);
                // Splitting would leave the room of all that is held to each part.
                let more: String = self.held.drain(..len).collect();
                scan.text += &more;
                events.push(CallEvent::Arguments(more));
                if is_over {
                    let is_whole = matches!(Json::read(&scan.text), Some(Json::Map(_)));
                    self.state = State::Rest { is_whole };
                }
                is_over
            }
            State::Rest { is_whole } => {
                let is_whole = *is_whole;
                let rest = self.held.trim_start_matches([' ', '\n', '}']);
                if end.starts_with(rest) && rest != end {
                    return false;
                }
                // Other text may follow where `end` should. The call is over then too.
                self.held = rest.strip_prefix(end).unwrap_or(rest).into();
                self.state = State::Text;
                if is_whole {
                    self.end(events);
                }
                true
            }
        }
    }

    fn end(&mut self, events: &mut Vec<CallEvent>) {
        self.ended += 1;
        events.push(CallEvent::Ends);
    }

    /// Takes `begin` and the white space before it for text.
    fn give_up(&mut self, events: &mut Vec<CallEvent>) {
        let space = mem::take(&mut self.space);
        events.push(CallEvent::Text(space + self.format.begin));
        self.state = State::Text;
    }
}

impl Scan {
    /// How many bytes of the next `text` belong to the arguments, and whether these end there.
    fn read(&mut self, text: &str) -> (usize, bool) {
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                // The call ends within its arguments.
                b'<' => return (at, true),
                _ => {}
            }
        }
        (text.len(), false)
    }
}

/// Reads the front of a call: `open`, which may be left out, and `{"name": "…", "arguments": `.
fn front<'a>(text: &'a str, open: &str) -> Front<'a> {
    if open.starts_with(text) {
        return Front::Open;
    }
    let front = text.strip_prefix(open).unwrap_or(text);
    let (name, rest) = match after(front, "{\"name\": \"") {
        Ok(named) => match named.split_once('"') {
            Some(split) => split,
            None if named.len() <= MAX_NAME => return Front::Open,
            None => return Front::Other,
        },
        Err(front) => return front,
    };
    match after(rest, ", \"arguments\": ") {
        Ok("") => Front::Open,
        Ok(arguments) if arguments.starts_with('{') => {
            Front::Whole(name, text.len() - arguments.len())
        }
        Ok(_) => Front::Other,
        Err(front) => front,
    }
}

/// The text after `expected`. If that is not there, says whether it may still come.
fn after<'a>(text: &'a str, expected: &str) -> std::result::Result<&'a str, Front<'a>> {
    match text.strip_prefix(expected) {
        Some(rest) => Ok(rest),
        None if expected.starts_with(text) => Err(Front::Open),
        None => Err(Front::Other),
    }
}

/// The number of bytes of a text that belong neither to `begin` nor to the white space before it.
fn certain(text: &str, begin: &str) -> usize {
    let part = (1..begin.len()).rev().find(|&n| text.ends_with(&begin[..n])).unwrap_or(0);
    text[..text.len() - part].trim_end().len()
}

/// The events, with neighbours of a kind as one, and without empty ones.
fn joined(events: Vec<CallEvent>) -> Vec<CallEvent> {
    let mut joined: Vec<CallEvent> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (_, CallEvent::Text(text) | CallEvent::Arguments(text)) if text.is_empty() => {}
            (Some(CallEvent::Text(before)), CallEvent::Text(text))
            | (Some(CallEvent::Arguments(before)), CallEvent::Arguments(text)) => *before += &text,
            (_, event) => joined.push(event),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::Tool;
    use super::*;

    fn reader() -> CallReader {
        let tool = |name: &str| Tool { name: name.into(), ..Tool::default() };
        let tools = Tools::new(vec![tool("look"), tool("time")]).unwrap();
        CallReader::new(CallFormat::of("", false), &Rc::new(tools))
    }

    /// Reads an answer in parts of `n` characters. Gives its text, and each call: its name, its
    /// arguments, and whether it ends.
    fn read(text: &str, n: usize) -> (String, Vec<(String, String, bool)>) {
        let mut reader = reader();
        let chars: Vec<char> = text.chars().collect();
        let mut events = Vec::new();
        for part in chars.chunks(n) {
            events.extend(reader.push(&part.iter().collect::<String>()));
        }
        events.extend(reader.finish());
        let (mut said, mut calls) = (String::new(), Vec::new());
        for event in events {
            match event {
                CallEvent::Text(text) => said += &text,
                CallEvent::Begins(name) => calls.push((name, String::new(), false)),
                CallEvent::Arguments(text) => calls.last_mut().unwrap().1 += &text,
                CallEvent::Ends => calls.last_mut().unwrap().2 = true,
            }
        }
        assert_eq!(reader.begun(), calls.len());
        assert_eq!(reader.is_complete(), !calls.is_empty() && calls.iter().all(|call| call.2));
        (said, calls)
    }

    /// The calls of an answer: the tool, the arguments, and whether it ends.
    type Found<'a> = &'a [(&'a str, &'a str, bool)];

    #[test]
    fn calls_are_found_however_the_text_comes() {
        let quoted = r#"{"q": "</tool_call> \"}{\\", "n": [{}]}"#;
        let cases: &[(&str, &str, Found<'_>)] = &[
            ("Just text < </tool_call>\n", "Just text < </tool_call>\n", &[]),
            (
                "Let me see.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": 1}}\n</tool_call>",
                "Let me see.",
                &[("look", "{\"a\": 1}", true)],
            ),
            (
                "<tool_call>{\"name\": \"look\", \"arguments\": {}}</tool_call>\n<tool_call>\n{\"name\": \
                 \"time\", \"arguments\": {}}\n</tool_call>\n",
                "",
                &[("look", "{}", true), ("time", "{}", true)],
            ),
            (
                &format!(
                    "<tool_call>\n{{\"name\": \"look\", \"arguments\": {quoted}}}\n</tool_call> so."
                ),
                " so.",
                &[("look", quoted, true)],
            ),
            // Other keys, another order, other white space, arguments as a text: no grammar has
            // held these to a schema.
            (
                "<tool_call>{\"arguments\": {}, \"name\": \"look\"}</tool_call>",
                "<tool_call>{\"arguments\": {}, \"name\": \"look\"}</tool_call>",
                &[],
            ),
            (
                "<tool_call> {\"name\": \"look\", \"arguments\": {}}</tool_call>",
                "<tool_call> {\"name\": \"look\", \"arguments\": {}}</tool_call>",
                &[],
            ),
            (
                "<tool_call>{\"name\": \"look\", \"arguments\": \"{}\"}</tool_call>",
                "<tool_call>{\"name\": \"look\", \"arguments\": \"{}\"}</tool_call>",
                &[],
            ),
            // A call after a marker that begins none.
            (
                "Use `<tool_call>`. <tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>",
                "Use `<tool_call>`.",
                &[("look", "{}", true)],
            ),
            // A text after a call that has no end.
            (
                "<tool_call>\n{\"name\": \"look\", \"arguments\": {}} I think so.",
                "I think so.",
                &[("look", "{}", true)],
            ),
            // Cut off: within `begin`, the name, the arguments, and behind them.
            ("Well <tool_c", "Well <tool_c", &[]),
            ("<tool_call>\n{\"name\": \"lo", "<tool_call>\n{\"name\": \"lo", &[]),
            (
                "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": \"b",
                "",
                &[("look", "{\"a\": \"b", false)],
            ),
            (
                "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"a\": 1}}\n</tool_",
                "",
                &[("look", "{\"a\": 1}", true)],
            ),
            // No tool, no name, no JSON.
            (
                "a <tool_call>\n{\"name\": \"fly\", \"arguments\": {}}\n</tool_call> b",
                "a <tool_call>\n{\"name\": \"fly\", \"arguments\": {}}\n</tool_call> b",
                &[],
            ),
            ("<tool_call>hm</tool_call>", "<tool_call>hm</tool_call>", &[]),
            (
                "<tool_call>{\"name\": \"look\"}</tool_call>",
                "<tool_call>{\"name\": \"look\"}</tool_call>",
                &[],
            ),
            (
                "<tool_call>{\"name\": \"look\", \"arguments\": {a: 1}}</tool_call> b",
                " b",
                &[("look", "{a: 1}", false)],
            ),
            (
                "<tool_call>{\"name\": \"look\", \"arguments\": {\"a\": 1</tool_call> b",
                " b",
                &[("look", "{\"a\": 1", false)],
            ),
            ("\n", "\n", &[]),
            ("", "", &[]),
        ];
        for (text, said, calls) in cases {
            let calls: Vec<(String, String, bool)> = calls
                .iter()
                .map(|(name, arguments, ends)| ((*name).into(), (*arguments).into(), *ends))
                .collect();
            for n in 1..=text.len().max(1) {
                assert_eq!(read(text, n), ((*said).into(), calls.clone()), "{text:?} by {n}");
            }
        }
    }

    /// A page shows arguments as they come.
    #[test]
    fn arguments_come_before_the_call_ends() {
        let mut reader = reader();
        assert_eq!(reader.push("<tool_call>\n{\"name\": \"look\""), []);
        let begins = [CallEvent::Begins("look".into()), CallEvent::Arguments("{\"a".into())];
        assert_eq!(reader.push(", \"arguments\": {\"a"), begins);
        assert!(!reader.is_complete());
        assert_eq!(reader.push("\": 1"), [CallEvent::Arguments("\": 1".into())]);
        assert_eq!(
            reader.push("}}\n</tool_call>"),
            [CallEvent::Arguments("}".into()), CallEvent::Ends]
        );
        assert!(reader.is_complete());
    }
}
