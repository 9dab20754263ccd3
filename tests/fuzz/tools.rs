//! Targets: absurd tools and the calls that their grammars allow; broken calls in any parts.

use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tritloom::chat::{
    CallEvent, CallFormat, CallReader, Template, TemplateChoice, Tool, ToolChoice, Tools,
};
use tritloom::tokenizer::Tokenizer;
use tritloom_grammar::{Format, Vocabulary};

use crate::format::{follow, schema, vocabulary};
use crate::run::{Input, Limits, assert_named, fuzz_for};
use crate::support::{read, tiny};

/// Tokens of an answer. The text of a call around its arguments is put in at once.
const N_TOKENS: usize = 32;

/// Parts of descriptions, whole and broken.
const PARTS: &[&str] = &[
    r#"{"name": "f"}"#,
    r#"{"type": "function", "function": {"name": "g", "strict": true}}"#,
    r#"{"name": "f", "parameters": {"type": "object"}}"#,
    r#"{"name": "h", "parameters": {"type": "object", "properties": {"a": {"#,
    r#""required": ["a"]"#,
    r#"{"name": "i", "description": "#,
    r#""parameters": "#,
    r#"{"type": "object", "#,
    r##"{"$ref": "#"}"##,
    "[",
    "[[[[[[[[[[[[[[[[",
    "]]]]]]]]]]]]]]]]",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "\\",
    "\\ud800",
    "null",
    "-0.5e9",
    "é",
    "<tool_call>",
];

/// Parts of answers.
const SAID: &[&str] = &[
    "<tool_call>",
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {",
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
    "{\"name\": \"",
    "f",
    "look.up",
    "\", \"arguments\": ",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ":",
    ",",
    "1e9",
    "</tool_call>",
    "</tool",
    "<tool",
    "<",
    "\n",
    "  ",
    "é",
    "🦊",
];

/// An array of tools: of names and schemas that mostly are sound, or of any parts.
fn tools() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        9 => "[a-c]{1,3}",
        1 => "[a-z <\"\\\\é]{0,9}",
        1 => Just("n".repeat(200)),
    ];
    let field = schema().prop_map(|s| format!(r#""properties": {{"a": {s}}}, "required": ["a"]"#));
    let parameters = prop_oneof![
        3 => field.prop_map(|field| format!(r#"{{"type": "object", {field}}}"#)),
        1 => schema(),
        1 => (0_usize..90).prop_map(|n| {
            format!(r#"{{"type": "object", "a": {}{}}}"#, "[".repeat(n), "]".repeat(n))
        }),
    ];
    let tool = (name, ".{0,20}", parameters).prop_map(|(name, said, parameters)| {
        let [name, said] = [name, said].map(|text| serde_json::to_string(&text).unwrap());
        format!(r#"{{"name": {name}, "description": {said}, "parameters": {parameters}}}"#)
    });
    let sound = prop_oneof![6 => 1_usize..4, 1 => Just(130)]
        .prop_flat_map(move |n| {
            let few = vec(tool.clone(), n.min(4));
            few.prop_map(move |all| all.iter().cycle().take(n).cloned().collect::<Vec<_>>())
        })
        .prop_map(|all| format!("[{}]", all.join(",")));
    let broken = vec(select(PARTS), 0..12).prop_map(|parts| format!("[{}]", parts.concat()));
    prop_oneof![3 => sound, 1 => broken]
}

fn inputs() -> impl Strategy<Value = Input> {
    let choice = select(vec!["a", "r", "n", "m"]);
    (choice, tools()).prop_map(|(choice, tools)| Input(format!("{choice}{tools}").into_bytes()))
}

/// The format where a template knows no tools.
fn format() -> &'static CallFormat {
    let metadata = read(&tiny().build()).unwrap().metadata;
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let given = TemplateChoice::Given("{{ messages }}".into());
    Template::new(&metadata, &tokenizer, &given).unwrap().unwrap().calls()
}

/// Takes what the grammar of the calls allows. An answer that is whole has calls that are.
fn describe(format: &'static CallFormat, vocabulary: &Rc<Vocabulary>, input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Some((choice, text)) = text.split_at_checked(1) else { return };
    let tools = match Tools::read(text) {
        Ok(tools) => Rc::new(tools),
        Err(error) => return assert_named(&error),
    };
    // A chat is saved with the tools that were given.
    assert_eq!(Tools::read(&tools.written()).unwrap().written(), tools.written());
    let choice = match choice {
        "a" => ToolChoice::Auto,
        "n" => ToolChoice::Named("a".into()),
        _ => ToolChoice::Required,
    };
    let parallel = input.len().is_multiple_of(2);
    let calls = match tools.grammar(format, &choice, parallel) {
        Ok(calls) => calls,
        Err(error) => return assert_named(&error),
    };
    let Some(answer) = follow(vocabulary, &Format::Calls(calls), input.len(), N_TOKENS) else {
        return;
    };
    let mut reader = CallReader::new(format, &tools);
    if choice == ToolChoice::Auto {
        reader.push(format.begin);
    }
    reader.push(&answer);
    reader.finish();
    assert!(reader.is_complete(), "{answer:?}");
}

/// Events of an answer that comes in these parts, with neighbours of a kind as one.
fn events<'a>(
    format: &'static CallFormat,
    tools: &Rc<Tools>,
    parts: impl IntoIterator<Item = &'a str>,
) -> Vec<CallEvent> {
    let mut reader = CallReader::new(format, tools);
    let mut all: Vec<CallEvent> = Vec::new();
    let pushed: Vec<CallEvent> = parts.into_iter().flat_map(|part| reader.push(part)).collect();
    for event in pushed.into_iter().chain(reader.finish()) {
        match (all.last_mut(), event) {
            (Some(CallEvent::Text(before)), CallEvent::Text(text))
            | (Some(CallEvent::Arguments(before)), CallEvent::Arguments(text)) => *before += &text,
            (_, event) => all.push(event),
        }
    }
    let count = |wanted: fn(&CallEvent) -> bool| all.iter().filter(|event| wanted(event)).count();
    let begun = count(|event| matches!(event, CallEvent::Begins(_)));
    let ended = count(|event| *event == CallEvent::Ends);
    assert_eq!(reader.begun(), begun);
    assert_eq!(reader.is_complete(), begun > 0 && begun == ended);
    all
}

/// An answer and the lengths of its parts: the first byte is their seed.
fn read_calls(format: &'static CallFormat, tools: &Rc<Tools>, input: &[u8]) {
    let Some((seed, text)) = input.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let whole = events(format, tools, [&*text]);
    let (mut parts, mut rest) = (Vec::new(), &*text);
    let mut state = u32::from(*seed);
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let most = if seed.is_multiple_of(2) { 3 } else { 24 };
        let len = rest.ceil_char_boundary((state >> 16) as usize % most);
        let (part, more) = rest.split_at(len);
        parts.push(part);
        rest = more;
    }
    assert_eq!(events(format, tools, parts), whole, "{text:?} by {seed}");
    for event in &whole {
        if let CallEvent::Begins(name) = event {
            assert!(tools.has(name), "{name:?}");
        }
    }
}

#[test]
fn absurd_tools_are_refused_or_called() {
    let (format, vocabulary) = (format(), vocabulary());
    let limits = Limits { memory: 128 << 20, memory_per_byte: 1 << 10 };
    fuzz_for(1.0, "tools", &limits, inputs(), |input| describe(format, &vocabulary, input));
}

#[test]
fn calls_are_the_same_in_any_parts() {
    let format = format();
    let tool = |name: &str| Tool { name: name.into(), ..Tool::default() };
    let tools = Rc::new(Tools::new(vec![tool("f"), tool("look.up")]).unwrap());
    let said = prop_oneof![
        4 => vec(select(SAID), 0..24).prop_map(|parts| parts.concat()),
        1 => (select(SAID), 1_usize..3000).prop_map(|(part, n)| part.repeat(n)),
        1 => ".{0,40}",
    ];
    let inputs = (any::<u8>(), said).prop_map(|(seed, text)| {
        let mut bytes = vec![seed];
        bytes.extend(text.into_bytes());
        Input(bytes)
    });
    let limits = Limits { memory: 1 << 20, memory_per_byte: 1 << 10 };
    fuzz_for(0.5, "calls", &limits, inputs, |input| read_calls(format, &tools, input));
}
