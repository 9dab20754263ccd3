//! Tools in prompts and calls in answers: as the families' templates write them, and what is
//! refused.

use std::fs;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use tritloom::chat::{
    CallEvent, CallReader, Message, Role, Template, Tool, ToolCall, ToolChoice, Tools,
};

use crate::support::{assert_error, json as data};
use crate::{families_templates, framed, given, hostile, says};

/// A template that writes tools, calls and results by itself, with every field that it gets.
const KNOWS_TOOLS: &str = "{% if tools %}{{ tools | tojson }}{% endif %}\
    {% for m in messages %}{{ '<|im_start|>' ~ m.role ~ ' ' ~ m.name ~ ' ' ~ m.tool_call_id ~ '\\n' ~ m.content }}\
    {% for c in m.tool_calls or [] %}{{ '<tool_call>' ~ c.id ~ c.type ~ c.function.name }}\
    {{ c.function.arguments | tojson }}{% endfor %}{{ '<|im_end|>' }}{% endfor %}";

fn tool(name: &str, parameters: Json) -> Tool {
    let parameters = Some(parameters.to_string());
    Tool { name: name.into(), description: None, parameters }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn calling(content: &str, calls: &[ToolCall]) -> Message {
    Message { calls: calls.to_vec(), ..says(Role::Assistant, content) }
}

fn result(content: &str, call: Option<&str>) -> Message {
    Message { call: call.map(Into::into), ..says(Role::Tool, content) }
}

/// A conversation of the families' vectors.
struct Case {
    name: String,
    messages: Vec<Message>,
    tools: Option<Tools>,
    expected: String,
}

/// Those of Qwen3 that have to do with tools, and whose calls have no reasoning before them.
fn cases() -> Vec<Case> {
    let vectors = data("tests/data/chat/vectors.json");
    let all = vectors["cases"].as_array().unwrap().iter();
    let with_tools = all.filter(|case| case["case"].as_str().unwrap().starts_with("tool"));
    with_tools
        .filter(|case| case["case"] != "tool-think")
        .map(|case| {
            let messages = case["messages"].as_array().unwrap().iter().map(message).collect();
            let tools = &case["arguments"]["tools"];
            let tools = tools.is_array().then(|| Tools::read(&tools.to_string()).unwrap());
            let name = case["case"].as_str().unwrap().into();
            Case { name, messages, tools, expected: case["expected"].as_str().unwrap().into() }
        })
        .collect()
}

fn message(message: &Json) -> Message {
    let role = serde_json::from_value(message["role"].clone()).unwrap();
    let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let (name, arguments) = (&call["function"]["name"], &call["function"]["arguments"]);
        let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), Into::into);
        self::call("", name.as_str().unwrap(), &arguments)
    });
    let content = message["content"].as_str().unwrap();
    Message { calls: calls.collect(), ..Message::new(role, content) }
}

/// Where the template knows no tools, messages say what Qwen3's template says.
#[test]
fn tools_calls_and_results_are_written_as_qwen3_writes_them() {
    let cases = cases();
    assert_eq!(cases.len(), 5);
    let (_, tokenizer, builtin) = framed("qwen3");
    let own = families_templates()
        .map(|folder| given(&fs::read_to_string(folder.join("qwen3.jinja")).unwrap()));
    for template in own.iter().chain([&builtin]) {
        for Case { name, messages, tools, expected } in &cases {
            let prompt = template.prompt_with(&tokenizer, messages, tools.as_ref(), None).unwrap();
            assert_eq!(prompt.marked.text(), expected, "{} {name}", template.name());
        }
    }
    assert!(own.is_none_or(|own| own.calls() != builtin.calls()));
}

/// Reads an answer as one text, and gives its text and its calls.
fn read(template: &Template, tools: &Rc<Tools>, answer: &str) -> (String, Vec<ToolCall>) {
    let mut reader = CallReader::new(template.calls(), tools);
    let (mut text, mut calls) = (String::new(), Vec::new());
    for event in reader.push(answer).into_iter().chain(reader.finish()) {
        match event {
            CallEvent::Text(more) => text += &more,
            CallEvent::Begins(name) => calls.push(call("", &name, "")),
            CallEvent::Arguments(more) => calls.last_mut().unwrap().arguments += &more,
            CallEvent::Ends => {}
        }
    }
    assert!(calls.is_empty() || reader.is_complete(), "{answer}");
    (text, calls)
}

#[test]
fn calls_are_read_from_transcripts_that_the_original_template_has_written() {
    let (_, _, template) = framed("qwen3");
    let tools = ["get_weather", "time"].map(|name| tool(name, json!({ "type": "object" })));
    let tools = Rc::new(Tools::new(tools.into()).unwrap());
    let mut checked = 0;
    for Case { name, messages, expected, .. } in cases() {
        let mut rest = &*expected;
        for message in messages.iter().filter(|message| message.role == Role::Assistant) {
            let begin = "<|im_start|>assistant\n";
            let (answer, after) =
                rest.split_once(begin).unwrap().1.split_once("<|im_end|>").unwrap();
            rest = after;
            let (text, calls) = read(&template, &tools, answer);
            assert_eq!(text, message.content, "{name}");
            let value = |call: &ToolCall| -> (String, Json) {
                (call.name.clone(), serde_json::from_str(&call.arguments).unwrap())
            };
            let found: Vec<_> = calls.iter().map(value).collect();
            assert_eq!(found, message.calls.iter().map(value).collect::<Vec<_>>(), "{name}");
            checked += calls.len();
        }
    }
    assert_eq!(checked, 4);
}

#[test]
fn a_template_that_knows_tools_gets_them_as_values() {
    let (_, tokenizer, _) = framed("chatml");
    let template = given(KNOWS_TOOLS);
    let tools = Tools::read(r#"[{"name": "look", "parameters": {"type": "object"}}]"#).unwrap();
    let messages = [
        says(Role::User, "a"),
        calling("b", &[call("1", "look", r#"{"x":[1,"é"]}"#), call("2", "time", "{}")]),
        result("c", Some("2")),
        result("d", None),
    ];
    let prompt = template.prompt_with(&tokenizer, &messages, Some(&tools), None).unwrap();
    let expected = r#"[{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]<|im_start|>user  
a<|im_end|><|im_start|>assistant  
b<tool_call>1functionlook{"x": [1, "é"]}<tool_call>2functiontime{}<|im_end|><|im_start|>tool time 2
c<|im_end|><|im_start|>tool  
d<|im_end|>"#;
    assert_eq!(prompt.marked.text(), expected);
    // Without tools, nothing tells of any.
    let prompt = template.prompt(&tokenizer, &messages[..1], None).unwrap();
    assert!(prompt.marked.text().starts_with("<|im_start|>"));
}

/// Neither descriptions nor arguments nor results can forge a special token.
#[test]
fn what_tools_say_never_becomes_a_special_token() {
    let (_, tokenizer, builtin) = framed("qwen3");
    for template in [given(KNOWS_TOOLS), builtin] {
        let special = |said: &str| {
            let described =
                Tool { description: Some(said.into()), ..tool("f", json!({ "type": "object" })) };
            let tools = Tools::new(vec![described]).unwrap();
            let arguments = json!({ "q": said }).to_string();
            let messages = [
                says(Role::User, "x"),
                calling("", &[call("1", "f", &arguments)]),
                result(said, None),
            ];
            let prompt = template.prompt_with(&tokenizer, &messages, Some(&tools), None).unwrap();
            let ids = template.encode(&tokenizer, &prompt).unwrap();
            ids.into_iter().filter(|&id| tokenizer.special_text(id).is_some()).collect::<Vec<_>>()
        };
        let harmless = special("y");
        assert!(!harmless.is_empty());
        for said in hostile() {
            assert_eq!(special(&said), harmless, "{said:?}");
        }
    }
}

/// A tool whose schema is nested `n` levels deep.
fn deep(n: usize) -> Tool {
    let inside = format!("{}{}", "[".repeat(n - 1), "]".repeat(n - 1));
    let schema = format!(r#"{{"type": "object", "default": {inside}}}"#);
    Tool { name: "a".into(), description: None, parameters: Some(schema) }
}

/// Templates write them, and so does a saved chat.
#[test]
fn schemas_may_be_as_deep_as_the_documentation_says() {
    let (_, tokenizer, template) = framed("qwen3");
    let tools = Tools::new(vec![deep(60)]).unwrap();
    for template in [&template, &given(KNOWS_TOOLS)] {
        let asked = [says(Role::User, "x")];
        let prompt = template.prompt_with(&tokenizer, &asked, Some(&tools), None).unwrap();
        assert!(prompt.marked.text().contains(&"[".repeat(59)));
    }
    assert_eq!(Tools::read(&tools.written()).unwrap().written(), tools.written());
}

#[test]
fn wrong_tools_are_refused_with_their_index() {
    let object = || json!({ "type": "object" });
    let cases: &[(&str, &[&str])] = &[
        ("{}", &["`tools`", "array"]),
        ("[]", &["`tools`", "1 to 128"]),
        ("[{}]", &["`tools[0].name`"]),
        (r#"[{"name": "a b"}]"#, &["`tools[0].name`"]),
        (r#"[{"name": "a"}, {"name": "a"}]"#, &["`tools[1].name`", "tools[0]"]),
        (r#"[{"name": "a", "description": 3}]"#, &["`tools[0].description`", "string"]),
        (
            r#"[{"name": "a", "parameters": {"type": "array"}}]"#,
            &["`tools[0].parameters`", "object"],
        ),
        (r#"[{"name": "a", "parameters": true}]"#, &["`tools[0].parameters`", "object"]),
        (r#"[{"name": "a", "parameters": {"type": "object", "default": 1e400}}]"#, &["`tools`"]),
    ];
    for (text, facts) in cases {
        assert_error(Tools::read(text), "bad-option", facts);
    }
    let many = vec![tool("a", object()); 129];
    assert_error(Tools::new(many), "bad-option", &["`tools`", "128"]);
    let number = Tool {
        parameters: Some(r#"{"type": "object", "default": 1e400}"#.into()),
        ..tool("a", object())
    };
    assert_error(Tools::new(vec![number]), "bad-option", &["`tools[0].parameters`"]);
    let refused = Tools::new(vec![deep(61)]);
    assert_error(refused, "bad-option", &["`tools[0].parameters`", "at most 60 lists and objects"]);
    let tools = Tools::new(vec![tool("a", object())]).unwrap();
    let (_, _, template) = framed("chatml");
    let other = ToolChoice::Named("b".into());
    let refused = tools.grammar(template.calls(), &other, true);
    assert_error(refused, "bad-option", &["`toolChoice`", "no tool b"]);
}

/// A page can write half a character.
#[test]
fn the_crate_of_grammars_can_read_every_schema() {
    let schema = r#"{"type": "object", "description": "\ud800", "default": 1e300}"#;
    let one = Tool { parameters: Some(schema.into()), ..tool("a", json!({})) };
    let tools = Tools::new(vec![one]).unwrap();
    let (_, _, template) = framed("chatml");
    let text = tools.grammar(template.calls(), &ToolChoice::Auto, true).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["tools"][0]["parameters"]["description"], "\u{fffd}");
}

#[test]
fn wrong_calls_and_results_are_refused_with_their_message() {
    let (_, tokenizer, template) = framed("chatml");
    let ask = || says(Role::User, "x");
    let one = || calling("", &[call("1", "f", "{}")]);
    let cases: Vec<(Vec<Message>, &[&str])> = vec![
        (vec![ask(), result("y", None)], &["`messages[1]`", "no call"]),
        (vec![ask(), one(), result("y", Some("2"))], &["`messages[2].toolCallId`", "id 2"]),
        (vec![ask(), one(), result("y", None), result("z", None)], &["`messages[3]`", "no call"]),
        (vec![ask(), one(), ask(), result("y", Some("1"))], &["`messages[3].toolCallId`"]),
        (
            vec![Message { calls: vec![call("1", "f", "{}")], ..ask() }, ask()],
            &["`messages[0].toolCalls`", "assistant"],
        ),
        (
            vec![ask(), calling("", &[call("1", "no name", "{}")]), ask()],
            &["`messages[1].toolCalls[0].name`"],
        ),
        (
            vec![ask(), calling("", &[call("1", "f", "{}"), call("2", "f", "[]")]), ask()],
            &["`messages[1].toolCalls[1].arguments`", "object"],
        ),
    ];
    for (messages, facts) in cases {
        assert_error(template.prompt(&tokenizer, &messages, None), "bad-option", facts);
    }
    // A tool may say nothing.
    template.prompt(&tokenizer, &[ask(), one(), result("", Some("1"))], None).unwrap();
}
