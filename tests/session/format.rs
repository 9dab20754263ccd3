//! Answers that keep to a format. The models are random, so without it they would not be JSON. Answers
//! without a format stay as they are.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use serde_json::{Value, json};

use tritloom::chat::{Message, Role, TemplateChoice};
use tritloom::native::{Format, Formats, Formatted, block_on};
use tritloom::sampling::Sampling;
use tritloom::session::{Calls, FinishReason, GenerateOptions, Prompt, Session, Stats};
use tritloom::{Error, Result};

use crate::batch::{asked, check_as_alone};
use crate::sentencepiece;
use crate::setup::{Setup, generate, greedy, noise};
use crate::support::{File, assert_error};
use crate::valid::assert_valid;

/// A random model with byte-level BPE.
pub(crate) fn byte_level() -> File {
    crate::setup::small()
}

/// A random model with sentencepiece's tokenizer, with tokens of several characters.
pub(crate) fn with_sentencepiece() -> File {
    let joined = [
        "{\"", "\":", ",\"", "\"}", "tr", "ue", "true", "▁\"", "in", "12", "{\"in", "{\"in\":", "é",
    ];
    let chars = (' '..='~').map(|c| if c == ' ' { '▁' } else { c }).map(String::from);
    let words: Vec<String> = joined.map(String::from).into_iter().chain(chars).collect();
    sentencepiece::model_of(&words, |_| 1.0)
}

pub(crate) fn load(file: &File) -> (Session, Formats) {
    let mut setup = Setup::exact().on_reference();
    let template = "{{ messages[0].content }}{{ ':' if add_generation_prompt }}";
    setup.load.template = TemplateChoice::Given(template.into());
    let session = setup.load(&file.build()).unwrap();
    let formats = Formats::new(session.tokenizer()).unwrap();
    (session, formats)
}

pub(crate) fn held_to(formatted: &Formatted, options: GenerateOptions) -> GenerateOptions {
    GenerateOptions { constraints: Some(formatted.constraints()), ..options }
}

pub(crate) fn prepared(formats: &Formats, schema: &Value) -> Formatted {
    let format = Format::JsonSchema(schema.to_string());
    formats.format("schema", &format).unwrap_or_else(|error| panic!("{error}: {schema}"))
}

pub(crate) fn drawn(seed: u32) -> Sampling {
    Sampling { temperature: 1.0, seed, ..Sampling::default() }
}

#[test]
fn what_is_forced_is_put_in_as_the_tokens_of_the_tokenizer() {
    let const_of = |value: Value| json!({ "const": value });
    for (file, schema, joined) in [
        (byte_level(), const_of(json!("hello world, hello")), "hello"),
        (with_sentencepiece(), const_of(json!({ "in": true, "a": ["12 \"12\" é"] })), "{\"in\":"),
    ] {
        let (mut session, formats) = load(&file);
        let options = held_to(&prepared(&formats, &schema), greedy(100));
        let found = generate(&mut session, &noise(5), &options).unwrap();
        let tokenizer = session.tokenizer();
        assert_eq!(found.ids, tokenizer.encode_within(&found.text).unwrap());
        let joined = tokenizer.encode_within(joined).unwrap();
        assert!(joined.len() == 1 && found.ids.contains(&joined[0]), "{:?}", found.ids);
    }
}

/// A token that ends an answer is chosen only where the format allows it.
#[test]
fn an_answer_ends_where_its_format_may_end() {
    let (mut session, formats) = load(&byte_level());
    let formatted = formats.format("regex", &Format::Regex("[ab]{3,5}".into())).unwrap();
    let stop = session.tokenizer().stop()[0];
    let eager = |bias: f32, n: usize| GenerateOptions {
        logit_bias: Rc::new([(stop, bias)].into_iter().collect()),
        ..held_to(&formatted, greedy(n))
    };
    for (bias, len) in [(100.0, 3), (-100.0, 5)] {
        let found = generate(&mut session, &noise(5), &eager(bias, 9)).unwrap();
        assert_eq!((found.ids.len(), found.stats.finish_reason), (len, FinishReason::Stop));
    }
    let found = generate(&mut session, &noise(5), &eager(100.0, 2)).unwrap();
    assert_eq!((found.ids.len(), found.stats.finish_reason), (2, FinishReason::Length));
    assert!(!formatted.is_complete(&found.ids));
}

/// A stop text ends an answer where it is put in, and where the model chooses it.
#[test]
fn a_stop_text_cuts_an_answer_off() {
    let (mut session, formats) = load(&byte_level());
    let stopping = |formatted: &Formatted, stop: &str| GenerateOptions {
        stop: vec![stop.into()],
        ..held_to(formatted, greedy(40))
    };
    let forced = prepared(&formats, &json!({ "const": "hello world, hello" }));
    let found = generate(&mut session, &noise(5), &stopping(&forced, "world")).unwrap();
    assert_eq!((&*found.text, found.stats.finish_reason), ("\"hello ", FinishReason::Stop));
    assert!(!forced.is_complete(&found.ids));
    let chosen = formats.format("regex", &Format::Regex("[a-f]{20}".into())).unwrap();
    let all = generate(&mut session, &noise(5), &held_to(&chosen, greedy(40))).unwrap().text;
    let stop = &all[7..9];
    let found = generate(&mut session, &noise(5), &stopping(&chosen, stop)).unwrap();
    let expected = (all.split(stop).next().unwrap(), FinishReason::Stop);
    assert_eq!((&*found.text, found.stats.finish_reason), expected);
    // The next answer is a whole one.
    let again = generate(&mut session, &noise(5), &held_to(&chosen, greedy(40))).unwrap();
    assert_eq!(again.text, all);
}

#[test]
fn any_object_is_an_answer_to_json() {
    let (mut session, formats) = load(&byte_level());
    let formatted = formats.format("json", &Format::JsonObject).unwrap();
    let biases = [('"', 4.0), (':', 4.0), ('1', 4.0), (',', -100.0), ('}', 8.0)];
    let biases = biases.map(|(c, bias)| (c as u32, bias)).into_iter().collect();
    let options = GenerateOptions { logit_bias: Rc::new(biases), ..greedy(200) };
    for seed in 0..5 {
        let options = GenerateOptions { sampling: drawn(seed), ..options.clone() };
        let found = generate(&mut session, &noise(5), &held_to(&formatted, options)).unwrap();
        assert_eq!(found.stats.finish_reason, FinishReason::Stop, "{}", found.text);
        let answer: Value = serde_json::from_str(&found.text).unwrap();
        assert!(answer.is_object(), "{answer}");
    }
}

#[test]
fn other_answers_stay_as_they_are() {
    let (mut session, formats) = load(&byte_level());
    let formatted = prepared(&formats, &json!({ "type": "boolean" }));
    let free = GenerateOptions { logprobs: Some(2), sampling: drawn(3), ..greedy(12) };
    let before = generate(&mut session, &noise(8), &free).unwrap();
    generate(&mut session, &noise(8), &held_to(&formatted, greedy(12))).unwrap();
    let after = generate(&mut session, &noise(8), &free).unwrap();
    assert_eq!((before.logprobs, before.text), (after.logprobs, after.text));
}

/// Answers that run together go through one grammar, each at its own position.
#[test]
fn answers_of_one_format_run_together_as_each_does_alone() {
    let (mut session, formats) = load(&byte_level());
    let formatted = prepared(&formats, &json!({ "type": "string", "minLength": 20 }));
    // Nothing of these is forced, so that each token has a step.
    let other = prepared(&formats, &json!({ "type": "string", "pattern": "^[a-d]{30}$" }));
    let calls: Vec<_> = (0..6)
        .map(|n| {
            let options = GenerateOptions { sampling: drawn(n), ..greedy(60) };
            let options = match n % 3 {
                0 => held_to(&formatted, options),
                1 => held_to(&other, options),
                _ => options,
            };
            asked(n as usize / 3, noise(4 + n as usize), options)
        })
        .collect();
    check_as_alone(&mut session, &calls);
}

#[test]
fn formats_that_cannot_be_met_are_refused_by_the_name_of_their_option() {
    let (mut session, formats) = load(&byte_level());
    let refused = |name: &str, format: Format| formats.format(name, &format).err().unwrap();
    let schema = json!({ "properties": { "a": { "not": {} } } }).to_string();
    let wrong = [
        (refused("schema", Format::JsonSchema(schema)), "`schema`: `/properties/a/not`"),
        (refused("regex", Format::Regex("a(?=b)".into())), "`regex`: the regular expression looks"),
    ];
    for (error, fact) in wrong {
        assert!(matches!(error, Error::BadOption { .. }), "{error:?}");
        assert!(error.to_string().contains(fact), "{error}");
    }
    // This one is found only when no token may follow.
    let endless = formats.format("grammar", &Format::Lark("start: start".into())).unwrap();
    let error = generate(&mut session, &noise(5), &held_to(&endless, greedy(5))).err().unwrap();
    assert_eq!(error.code(), "bad-option");
    assert!(
        error.to_string().contains("`grammar`: the grammar is too complex: no token"),
        "{error}"
    );
    assert_eq!(generate(&mut session, &noise(5), &greedy(5)).unwrap().ids.len(), 5);
}

/// Answers the same question, from the text `begun` on. Returns the rest of the answer.
fn go_on(
    session: &mut Session,
    formatted: &Formatted,
    begun: &str,
    max_tokens: usize,
) -> Result<(String, Stats)> {
    let messages = vec![Message::new(Role::User, "Who are you?")];
    let begun = (!begun.is_empty()).then(|| begun.into());
    let prompt = Prompt::Chat { messages, begun, thinking: None, tools: None };
    let (text, calls) = (RefCell::new(String::new()), Calls::default());
    let answer = calls.push(
        prompt,
        held_to(formatted, greedy(max_tokens)),
        Box::new(|token| {
            text.borrow_mut().push_str(&token.text);
            ControlFlow::Continue(())
        }),
    );
    block_on(session.serve(&calls)).unwrap();
    let stats = block_on(answer)?;
    drop(calls);
    Ok((text.into_inner(), stats))
}

/// A schema with parts that are forced, and with characters of several bytes.
fn record() -> Value {
    json!({
        "type": "object",
        "properties": {
            "n": { "type": "integer", "minimum": 0, "maximum": 5000 },
            "inner": { "const": "true é 日本 \"🦊\"" },
            "s": { "type": "string", "minLength": 4, "maxLength": 8 },
            "in": { "type": "array", "items": { "enum": ["in", 12] }, "minItems": 2, "maxItems": 3 },
        },
        "required": ["n", "inner", "s", "in"],
        "additionalProperties": false,
    })
}

/// Wherever the beginning ends: within a token, a forced part, an escape or a number.
#[test]
fn an_answer_that_is_begun_is_valid_together_with_its_rest() {
    let schema = record();
    for file in [byte_level(), with_sentencepiece()] {
        let (mut session, formats) = load(&file);
        let formatted = prepared(&formats, &schema);
        let (whole, _) = go_on(&mut session, &formatted, "", 400).unwrap();
        let mut answers = Vec::new();
        let ends = whole.char_indices().map(|(at, _)| at).chain([whole.len()]);
        for end in ends.skip(1) {
            let begun = &whole[..end];
            let (rest, stats) = go_on(&mut session, &formatted, begun, 400).unwrap();
            assert_eq!(stats.finish_reason, FinishReason::Stop, "{begun} {rest}");
            assert_eq!(rest.is_empty(), end == whole.len(), "{begun} {rest}");
            answers.push((schema.clone(), begun.to_owned() + &rest));
        }
        assert_valid(&answers);
    }
}

/// It ends as it would have, and what was computed is not computed again.
#[test]
fn an_answer_that_was_cut_off_goes_on_in_its_format() {
    for file in [byte_level(), with_sentencepiece()] {
        let (mut session, formats) = load(&file);
        let formatted = prepared(&formats, &record());
        let (whole, all) = go_on(&mut session, &formatted, "", 400).unwrap();
        let forced = session.tokenizer().encode_within("{\"n\":").unwrap().len();
        for n in 1..all.completion_tokens {
            session.forget();
            let (mut text, cut) = go_on(&mut session, &formatted, "", n).unwrap();
            assert_eq!(cut.finish_reason, FinishReason::Length);
            // Of a character, only some tokens may have come.
            text.truncate(text.trim_end_matches('\u{FFFD}').len());
            let (rest, stats) = go_on(&mut session, &formatted, &text, 400).unwrap();
            assert_eq!(text + &rest, whole, "after {n} tokens");
            // Tokens that are put in before all others are not computed.
            assert_eq!(stats.reused_tokens > 0, n > forced, "{stats:?} after {n} tokens");
        }
    }
}

#[test]
fn a_beginning_that_no_answer_has_is_refused() {
    let (mut session, formats) = load(&byte_level());
    let formatted = prepared(&formats, &json!({ "enum": [{ "a": 1 }, ["é"], 12] }));
    for (begun, fact) in [
        ("{\"b", "\"b\" may not follow \"{\\\"\""),
        ("{ \"a\":1}", "\" \\\"a\\\":1}\" may not follow \"{\""),
        ("{\"a\":1} ", "\" \" may not follow"),
        ("[\"è", "\"è\" may not follow"),
        ("x", "begins so: \"x\" may not follow"),
    ] {
        let refused = go_on(&mut session, &formatted, begun, 9);
        assert_error(refused, "bad-option", &["`prefix`", "no answer of this format", fact]);
    }
    let (rest, stats) = go_on(&mut session, &formatted, "1", 9).unwrap();
    assert_eq!((rest.as_str(), stats.finish_reason), ("2", FinishReason::Stop));
}
