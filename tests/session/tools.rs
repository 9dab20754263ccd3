//! Calls of tools. The models are random, so without a constraint none would call any.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use tritloom::chat::{
    Message, Role, TemplateChoice, Tool, ToolCall, ToolChoice, Tools, no_template,
};
use tritloom::native::{Formats, block_on};
use tritloom::sampling::Sampling;
use tritloom::session::{Calls, FinishReason, GenerateOptions, Prompt, Session, Stats};

use crate::sentencepiece;
use crate::setup::{Setup, generate, greedy, small};
use crate::support::{File, Kv, assert_error};
use crate::valid::assert_valid;

/// A conversation with this template goes on where an answer ends.
const TEMPLATE: &str = "{% for m in messages %}{{ '<' ~ m.role ~ '>' ~ m.content }}{% endfor %}\
    {% if add_generation_prompt %}<assistant>{% endif %}";

const BEGIN: &str = "<tool_call>";

fn schemas() -> [(&'static str, Value); 2] {
    let look = json!({
        "type": "object",
        "properties": { "city": { "type": "string", "maxLength": 4 }, "days": { "enum": [1, 2] } },
        "required": ["city", "days"],
        "additionalProperties": false,
    });
    let time = json!({
        "type": "object",
        "properties": { "utc": { "type": "boolean" } },
        "required": ["utc"],
        "additionalProperties": false,
    });
    [("look", look), ("time", time)]
}

fn tools() -> Rc<Tools> {
    let tool = |(name, schema): (&str, Value)| {
        let parameters = Some(schema.to_string());
        Tool { name: name.into(), description: Some("Tells.".into()), parameters }
    };
    Rc::new(Tools::new(schemas().map(tool).into()).unwrap())
}

fn question() -> Vec<Message> {
    vec![Message::new(Role::User, "Well?")]
}

/// A random model whose vocabulary has the markers of calls.
fn with_markers() -> File {
    with_last_words(&[BEGIN, "</tool_call>"], 4)
}

/// A random model whose vocabulary ends with words that are tokens of a type.
fn with_last_words(last: &[&str], kind: i32) -> File {
    let chars = (' '..='~').map(|c| if c == ' ' { '▁' } else { c }).map(String::from);
    let words: Vec<String> = chars.chain(last.iter().copied().map(String::from)).collect();
    let mut file = sentencepiece::model_of(&words, |_| 1.0);
    let n_chars = words.len() - last.len();
    let kinds = [vec![2, 3, 3], vec![6; 256], vec![1; n_chars], vec![kind; last.len()]].concat();
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("bitnet-b1.58.context_length", Kv::U32(4096));
    file
}

fn load(setup: Setup, file: &File) -> Session {
    let mut setup = setup.on_reference();
    setup.load.template = TemplateChoice::Given(TEMPLATE.into());
    setup.load(&file.build()).unwrap()
}

fn calling(
    session: &Session,
    choice: &ToolChoice,
    parallel: bool,
    options: GenerateOptions,
) -> GenerateOptions {
    let format = session.template().unwrap().calls();
    let formats = Formats::new(session.tokenizer()).unwrap();
    let constraints = formats.calls(format, &tools(), choice, parallel).unwrap();
    GenerateOptions { constraints: Some(constraints), ..options }
}

/// The texts and calls of an answer.
#[derive(Debug, Default, PartialEq)]
struct Said {
    ids: Vec<u32>,
    text: String,
    calls: Vec<ToolCall>,
    /// How many calls have ended.
    ended: usize,
}

fn ask(session: &mut Session, messages: &[Message], options: &GenerateOptions) -> (Said, Stats) {
    let prompt = session.tools_prompt(messages, Some(&tools()), None).unwrap();
    let mut said = Said::default();
    let stats = block_on(session.generate(&prompt, options, &mut |token| {
        said.ids.extend(token.id);
        match token.call {
            None => said.text += &token.text,
            Some(part) => {
                if let Some(name) = part.name {
                    assert_eq!(part.index, said.calls.len());
                    let id = format!("call {}", part.index);
                    said.calls.push(ToolCall { id, name, arguments: String::new() });
                }
                assert_eq!(part.index + 1, said.calls.len());
                said.calls[part.index].arguments += &token.text;
                said.ended += usize::from(part.ends);
            }
        }
        ControlFlow::Continue(())
    }))
    .unwrap();
    assert_eq!(stats.completion_tokens, said.ids.len());
    (said, stats)
}

/// The arguments of the calls, which are all whole, with their schemas.
fn arguments(said: &Said) -> Vec<(Value, String)> {
    assert_eq!(said.ended, said.calls.len(), "{said:?}");
    let schemas = schemas();
    let with_schema = |call: &ToolCall| {
        let (_, schema) = schemas.iter().find(|(name, _)| *name == call.name).unwrap();
        (schema.clone(), call.arguments.clone())
    };
    said.calls.iter().map(with_schema).collect()
}

fn drawn(seed: u32) -> GenerateOptions {
    let sampling = Sampling { temperature: 1.0, seed, ..Sampling::default() };
    GenerateOptions { sampling, ..greedy(200) }
}

#[test]
fn calls_that_are_required_have_valid_arguments() {
    for file in [small(), with_markers()] {
        let mut session = load(Setup::exact(), &file);
        let named = ToolChoice::Named("time".into());
        let (mut names, mut all) = (Vec::new(), Vec::new());
        for seed in 0..4 {
            for choice in [&ToolChoice::Required, &named] {
                let options = calling(&session, choice, false, drawn(seed));
                let (said, stats) = ask(&mut session, &question(), &options);
                all.extend(arguments(&said));
                assert_eq!((said.text.as_str(), said.calls.len()), ("", 1), "{said:?}");
                assert_eq!(stats.finish_reason, FinishReason::ToolCalls);
                names.push(said.calls[0].name.clone());
                assert!(*choice != named || said.calls[0].name == "time", "{said:?}");
            }
        }
        assert!(names.iter().any(|name| name == "look"), "{names:?}");
        assert_valid(&all);
    }
}

/// They end where the model ends them, and a limit may cut one off.
#[test]
fn several_calls_may_follow_one_another() {
    let mut session = load(Setup::exact(), &with_markers());
    let stop = session.tokenizer().stop()[0];
    let (mut most, mut all) = (0, Vec::new());
    for seed in 0..9 {
        let bias = [-1.0, -0.5, 0.0][seed as usize % 3];
        let logit_bias = Rc::new([(stop, bias)].into_iter().collect());
        let options = GenerateOptions { logit_bias, max_tokens: Some(900), ..drawn(seed) };
        let options = calling(&session, &ToolChoice::Required, true, options);
        let (said, stats) = ask(&mut session, &question(), &options);
        if stats.finish_reason == FinishReason::ToolCalls {
            all.extend(arguments(&said));
            most = most.max(said.calls.len());
        }
        assert_eq!(said.text, "");
    }
    assert!(most > 1, "{most}");
    assert_valid(&all);
    let options = calling(&session, &ToolChoice::Required, true, greedy(40));
    let (said, stats) = ask(&mut session, &question(), &options);
    assert_eq!((said.calls.len(), said.ended), (1, 0), "{said:?}");
    assert_eq!(stats.finish_reason, FinishReason::Length);
}

/// An answer is free until it begins a call, and from there on a call that is valid, whether steps
/// are in flight by then or not.
#[test]
fn a_call_that_the_model_begins_is_held_to_its_format() {
    let begins = |session: &mut Session, bias: f32, tools: bool| {
        let begin = session.tokenizer().special(BEGIN).unwrap();
        let logit_bias = Rc::new([(begin, bias)].into_iter().collect());
        let options = GenerateOptions { logit_bias, ..drawn(3) };
        let options = match tools {
            true => calling(session, &ToolChoice::Auto, false, options),
            false => options,
        };
        let (said, stats) = ask(session, &question(), &options);
        let at = said.ids.iter().position(|&id| id == begin);
        (said, stats, at)
    };
    let mut session = load(Setup::exact(), &with_markers());
    let found = (0..40).find_map(|n| {
        let bias = n as f32 / 4.0;
        let (.., at) = begins(&mut session, bias, false);
        at.filter(|at| (3..60).contains(at)).map(|at| (bias, at))
    });
    let (bias, at) = found.expect("a bias with which it begins a call late");
    let (free, ..) = begins(&mut session, bias, false);
    let (slow, stats, slow_at) = begins(&mut session, bias, true);
    assert_eq!((slow_at, &slow.ids[..=at]), (Some(at), &free.ids[..=at]));
    assert_valid(&arguments(&slow));
    assert_eq!((slow.calls.len(), stats.finish_reason), (1, FinishReason::ToolCalls));
    assert_eq!(stats.unused_tokens, 0);
    assert!(!slow.text.is_empty() && !slow.text.contains('\n'), "{slow:?}");

    let mut session = load(Setup::exact().like_a_card(), &with_markers());
    session.suppose_steps_of(Duration::from_millis(1));
    let (fast, ..) = begins(&mut session, bias, true);
    assert_eq!(fast, slow);
    // Penalties count the same tokens.
    let penalized = |session: &mut Session| {
        let begin = session.tokenizer().special(BEGIN).unwrap();
        let mut options = drawn(3);
        options.logit_bias = Rc::new([(begin, bias)].into_iter().collect());
        options.sampling.frequency_penalty = 0.5;
        options.sampling.repeat_penalty = 1.1;
        let options = calling(session, &ToolChoice::Auto, false, options);
        ask(session, &question(), &options).0
    };
    let fast = penalized(&mut session);
    session.suppose_steps_of(Duration::from_secs(1));
    assert_eq!(penalized(&mut session), fast);
}

/// Where the vocabulary has no marker, a token may have more than its end. Then the arguments are
/// valid, or there is no call.
#[test]
fn a_call_that_begins_within_a_token_is_held_to_its_format() {
    let mut valid = Vec::new();
    for (word, is_call) in [
        ("<tool_call>{", true),
        ("<tool_call>{\"na", true),
        ("<tool_call>▁{", false),
        ("<tool_call>`", false),
    ] {
        let mut session = load(Setup::exact(), &with_last_words(&[word, "</tool_call>"], 1));
        let begin = session.tokenizer().n_tokens() as u32 - 2;
        let logit_bias = Rc::new([(begin, 90.0)].into_iter().collect());
        let options = GenerateOptions { logit_bias, ..drawn(3) };
        let options = calling(&session, &ToolChoice::Auto, false, options);
        let (said, stats) = ask(&mut session, &question(), &options);
        assert_eq!(said.ids.first(), Some(&begin));
        assert_eq!((said.calls.len(), said.ended), (is_call.into(), is_call.into()), "{said:?}");
        assert_eq!(stats.finish_reason == FinishReason::ToolCalls, is_call, "{said:?}");
        valid.extend(arguments(&said));
    }
    assert_valid(&valid);
}

/// The token that ends one marker may begin another. The first one then begins no call.
#[test]
fn a_call_whose_marker_begins_within_the_end_of_another_is_held_to_its_format() {
    let words = ["<tool_call", "><tool", "_call>", "{\"name\":▁\"look\",▁\"arguments\":▁{"];
    let mut session = load(Setup::exact(), &with_last_words(&words, 1));
    let n_tokens = session.tokenizer().n_tokens() as u32;
    // Each of them is the likeliest token until it has been said.
    let biases = (n_tokens - words.len() as u32..n_tokens).zip([100.0, 90.0, 80.0, 70.0]);
    let mut options = GenerateOptions { logit_bias: Rc::new(biases.collect()), ..greedy(200) };
    options.sampling.repeat_penalty = 2.0;
    let options = calling(&session, &ToolChoice::Auto, false, options);
    let (said, stats) = ask(&mut session, &question(), &options);
    assert_eq!(said.text, BEGIN, "{said:?}");
    assert_eq!((said.calls.len(), stats.finish_reason), (1, FinishReason::ToolCalls), "{said:?}");
    assert_valid(&arguments(&said));
}

/// Steps run ahead without a mask.
#[test]
fn an_answer_without_a_call_is_the_same_as_without_tools() {
    let mut session = load(Setup::default().like_a_card(), &small());
    session.suppose_steps_of(Duration::from_millis(1));
    let prompt = session.tools_prompt(&question(), Some(&tools()), None).unwrap();
    for options in [greedy(40), drawn(7)] {
        let free = generate(&mut session, &prompt, &options).unwrap();
        let options = calling(&session, &ToolChoice::Auto, true, options);
        let (said, stats) = ask(&mut session, &question(), &options);
        assert_eq!((&said.ids, &said.text), (&free.ids, &free.text));
        assert_eq!(stats.finish_reason, free.stats.finish_reason);
    }
}

#[test]
fn a_conversation_goes_on_after_a_call_and_its_result() {
    let mut session = load(Setup::exact(), &with_markers());
    let options = calling(&session, &ToolChoice::Required, false, drawn(1));
    let prompt = session.tools_prompt(&question(), Some(&tools()), None).unwrap();
    let (said, _) = ask(&mut session, &question(), &options);
    let called = Message { calls: said.calls.clone(), ..Message::new(Role::Assistant, "") };
    let result =
        Message { call: Some(said.calls[0].id.clone()), ..Message::new(Role::Tool, "7 degrees") };
    let messages = [question(), vec![called, result]].concat();
    let next = session.tools_prompt(&messages, Some(&tools()), None).unwrap();
    // The call keeps its tokens.
    assert!(next.starts_with(&[&prompt[..], &said.ids].concat()));
    let text = session.tokenizer().decode(&next).unwrap();
    assert!(
        text.ends_with("<user><tool_response>\n7 degrees\n</tool_response><assistant>"),
        "{text}"
    );
    // The tokens that were put in at the end are computed only now.
    let free = generate(&mut session, &next, &greedy(3)).unwrap();
    assert!(free.stats.reused_tokens > prompt.len() + said.ids.len() / 2, "{:?}", free.stats);

    // It is saved with its tools, so that a turn with them computes no more than it would have.
    let mut saved = Vec::new();
    let mut write = |bytes: &[u8]| {
        saved.extend_from_slice(bytes);
        Ok(())
    };
    let messages = [messages, vec![Message::new(Role::Assistant, free.text)]].concat();
    block_on(session.save(&messages, "note", &mut write)).unwrap();
    // Another chat is saved without them.
    let mut of_another = Vec::new();
    let mut write = |bytes: &[u8]| {
        of_another.extend_from_slice(bytes);
        Ok(())
    };
    let another = [Message::new(Role::User, "Other")];
    block_on(session.save(&another, "note", &mut write)).unwrap();
    let [(name, _), ..] = schemas();
    let names_a_tool = |bytes: &[u8]| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(names_a_tool(&saved) && !names_a_tool(&of_another));
    let asked = [messages, question()].concat();
    let mut other = load(Setup::exact(), &with_markers());
    assert_eq!(block_on(other.restore(&mut &saved[..])).unwrap(), "note");
    let [expected, found] = [session, other].map(|mut session| {
        let prompt = session.tools_prompt(&asked, Some(&tools()), None).unwrap();
        let reused = generate(&mut session, &prompt, &greedy(3)).unwrap().stats.reused_tokens;
        (prompt, reused)
    });
    assert_eq!(found, expected);
    assert!(found.1 > next.len(), "{} of {}", found.1, next.len());
}

/// Their descriptions are part of the prompt.
#[test]
fn the_tokens_of_a_prompt_with_tools_are_counted() {
    let mut session = load(Setup::exact(), &with_markers());
    let template = Rc::clone(session.template().unwrap());
    let tokenizer = Rc::clone(session.tokenizer());
    let count = |begun: Option<&str>, tools| {
        let (begun, messages) = (begun.map(Into::into), question());
        let prompt = Prompt::Chat { messages, begun, thinking: None, tools };
        prompt.count(Ok(&template), &tokenizer)
    };
    let with_tools = session.tools_prompt(&question(), Some(&tools()), None).unwrap().len();
    assert_eq!(count(None, Some(tools())).unwrap(), with_tools);
    assert_eq!(count(None, None).unwrap(), session.chat_prompt(&question(), None).unwrap().len());
    assert!(with_tools > 300, "{with_tools}");
    assert_eq!(
        count(Some("It"), None).unwrap(),
        session.begun_prompt(&question(), "It", None).unwrap().len()
    );
    assert_error(count(Some("It"), Some(tools())), "bad-option", &["`tools`", "begun"]);
    // Such a conversation ends with an answer, which may also be empty or call tools.
    let answered = |content: &str, calls: Vec<ToolCall>| {
        let answer = Message { calls, ..Message::new(Role::Assistant, content) };
        let messages = [question(), vec![answer]].concat();
        Prompt::Chat { messages, begun: None, thinking: None, tools: None }
            .count(Ok(&template), &tokenizer)
            .unwrap()
    };
    let call = ToolCall { id: "x".into(), name: "look".into(), arguments: "{}".into() };
    // Nothing but the answer follows the text with which an answer begins.
    let asked = count(None, None).unwrap();
    assert_eq!([answered("", vec![]), answered("Yes", vec![])], [asked, asked + 3]);
    assert!(answered("", vec![call]) > asked);
    assert_eq!(Prompt::Ids(vec![1, 2]).count(Err(no_template()), &tokenizer).unwrap(), 2);
    let chat =
        Prompt::Chat { messages: question(), begun: None, thinking: None, tools: Some(tools()) };
    assert_error(chat.count(Err(no_template()), &tokenizer), "unsupported-model", &["template"]);
}

#[test]
fn an_answer_that_is_begun_calls_no_tools() {
    let mut session = load(Setup::exact(), &small());
    let calls = Calls::default();
    let (begun, tools) = (Some("It".into()), Some(tools()));
    let prompt = Prompt::Chat { messages: question(), begun, thinking: None, tools };
    let answer = calls.push(prompt, greedy(3), Box::new(|_| ControlFlow::Continue(())));
    block_on(session.serve(&calls)).unwrap();
    assert_error(block_on(answer), "bad-option", &["`tools`", "begun"]);
}

/// It ends the answer within the call.
#[test]
fn a_stop_text_cuts_a_call_off() {
    let mut session = load(Setup::exact(), &with_markers());
    // One is put in, the other is chosen.
    for (stop, name) in [("\"city\"", "look"), ("tru", "time"), ("fals", "time")] {
        let choice = ToolChoice::Named(name.into());
        let stopping = GenerateOptions { stop: vec![stop.into()], ..greedy(200) };
        let options = calling(&session, &choice, false, stopping);
        let (said, stats) = ask(&mut session, &question(), &options);
        let whole = calling(&session, &choice, false, greedy(200));
        let (all, _) = ask(&mut session, &question(), &whole);
        let expected = all.calls[0].arguments.split_once(stop).map(|(before, _)| before);
        let (begun, ended) = (&*said.calls[0].arguments, said.ended);
        match expected {
            Some(before) => assert_eq!((begun, ended), (before, 0), "{stats:?}"),
            None => assert_eq!((said.calls, ended), (all.calls, 1)),
        }
    }
}
