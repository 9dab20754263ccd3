//! Reasoning comes apart from the answer, has a budget, and is not sent back.
//!
//! The model is made by hand, see tests/data/thinking/make.py.

use std::ops::ControlFlow;
use std::rc::Rc;

use tritloom::Result;
use tritloom::chat::{Message, Role, TemplateChoice};
use tritloom::native::block_on;
use tritloom::session::{
    Channel, Constraint, Constraints, FinishReason, Follow, GenerateOptions, Session, Stats, Token,
};

use crate::setup::{Setup, greedy};
use crate::support::{assert_error, path};

const REASONING: &str = "Is it cold? In summer no.";
const ANSWER: &str = "It is warm today!";

/// The model with a template; its own if it is empty.
fn thinking(template: &str) -> Session {
    let mut setup = Setup::default().on_reference();
    setup.load.template = match template {
        "" => TemplateChoice::File,
        text => TemplateChoice::Given(text.into()),
    };
    setup.load(&std::fs::read(path("tests/data/thinking/thinking.gguf")).unwrap()).unwrap()
}

fn says(role: Role, content: &str) -> Message {
    Message::new(role, content)
}

/// The texts of a generation.
#[derive(Debug, PartialEq)]
struct Said {
    reasoning: String,
    answer: String,
    /// All ids, with what they belong to.
    ids: Vec<(u32, Channel)>,
}

impl Said {
    fn new(tokens: &[Token]) -> Self {
        let text = |channel| -> String {
            let tokens = tokens.iter().filter(|token| token.channel == channel);
            tokens.map(|token| token.text.as_str()).collect()
        };
        Self {
            reasoning: text(Channel::Reasoning),
            answer: text(Channel::Answer),
            ids: tokens.iter().filter_map(|token| Some((token.id?, token.channel))).collect(),
        }
    }

    fn reasoned(&self) -> usize {
        self.ids.iter().filter(|(_, channel)| *channel == Channel::Reasoning).count()
    }
}

fn generate(session: &mut Session, prompt: &[u32], options: &GenerateOptions) -> (Said, Stats) {
    let mut tokens = Vec::new();
    let stats = block_on(session.generate(prompt, options, &mut |token| {
        tokens.push(token);
        ControlFlow::Continue(())
    }))
    .unwrap();
    let said = Said::new(&tokens);
    assert_eq!(stats.completion_tokens, said.ids.len(), "{stats:?}");
    assert_eq!(stats.reasoning_tokens, said.reasoned(), "{stats:?}");
    (said, stats)
}

fn ask(
    session: &mut Session,
    messages: &[Message],
    thinking: Option<bool>,
    options: &GenerateOptions,
) -> (Said, Stats) {
    let prompt = session.chat_prompt(messages, thinking).unwrap();
    generate(session, &prompt, options)
}

fn question() -> Vec<Message> {
    vec![says(Role::User, "Is it warm?")]
}

#[test]
fn reasoning_and_answer_are_told_apart() {
    let mut session = thinking("");
    assert_eq!(session.info().template.as_deref(), Some("file"));
    assert_eq!(session.info().stop_tokens, ["<|end|>"]);
    assert!(session.info().thinking);
    for switch in [None, Some(true)] {
        let (said, stats) = ask(&mut session, &question(), switch, &greedy(100));
        assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, ANSWER));
        assert_eq!((stats.completion_tokens, stats.reasoning_tokens), (17, 11));
        assert_eq!(stats.finish_reason, FinishReason::Stop);
    }
    let (said, _) = ask(&mut session, &question(), Some(false), &greedy(100));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), ("", ANSWER));

    // Stop texts end the answer only.
    let stop = |text: &str| GenerateOptions { stop: vec![text.into()], ..greedy(100) };
    let (said, _) = ask(&mut session, &question(), None, &stop("summer"));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, ANSWER));
    let (said, _) = ask(&mut session, &question(), None, &stop("warm"));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, "It is "));

    // `max_tokens` counts both.
    let (said, stats) = ask(&mut session, &question(), None, &greedy(5));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), ("Is it cold", ""));
    assert_eq!(stats.finish_reason, FinishReason::Length);
}

#[test]
fn a_prompt_may_begin_the_reasoning() {
    let source = "{{ messages[0].content }}<|assistant|>{{ '<think>\\n' }}";
    let mut session = thinking(source);
    assert_eq!(session.info().template.as_deref(), Some("given"));
    assert!(!session.info().thinking);
    let (said, _) = ask(&mut session, &question(), None, &greedy(100));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, ANSWER));
    let never = session.chat_prompt(&question(), Some(false));
    assert_error(never, "bad-option", &["thinking"]);
}

/// Without a chat there are no channels.
#[test]
fn a_raw_prompt_has_no_channels() {
    let mut session = thinking("");
    let prompt = session.tokenizer().encode_with_special("Hi<|assistant|>").unwrap();
    let (said, _) = generate(&mut session, &prompt, &greedy(100));
    assert_eq!(said.answer, format!("<think>\n{REASONING}\n</think>\n\n{ANSWER}"));
}

#[test]
fn a_budget_ends_the_reasoning() {
    // Several steps are in flight when the budget is spent.
    let setups =
        [thinking(""), thinking("{{ messages[0].content }}<|assistant|>{{ '<think>\\n' }}")];
    for (n, mut session) in setups.into_iter().enumerate() {
        for fast in [false, true] {
            if fast {
                session.suppose_steps_of(std::time::Duration::from_millis(1));
            }
            // Behind `<think>` comes a line break, which the second prompt has already.
            for (budget, reasoning) in [
                (1, ["", "Is"][n]),
                (3, ["Is it", "Is it cold"][n]),
                (8, ["Is it cold? In summer no", REASONING][n]),
                (50, REASONING),
            ] {
                let options = GenerateOptions { max_thinking_tokens: Some(budget), ..greedy(100) };
                let (said, stats) = ask(&mut session, &question(), None, &options);
                assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (reasoning, ANSWER));
                assert_eq!(stats.finish_reason, FinishReason::Stop, "{budget}");
                let text: Vec<u32> = said.ids.iter().map(|&(id, _)| id).collect();
                let text = session.tokenizer().decode(&text).unwrap();
                assert!(text.ends_with(&format!("\n</think>\n\n{ANSWER}")), "{text:?}");
            }
        }
        // `max_tokens` holds for both, and leaves no room for an answer here.
        let options = GenerateOptions { max_thinking_tokens: Some(2), ..greedy(5) };
        let (said, stats) = ask(&mut session, &question(), None, &options);
        assert_eq!((said.answer.as_str(), stats.finish_reason), ("", FinishReason::Length));
        assert_eq!(stats.completion_tokens, 5);
        let options = GenerateOptions { max_thinking_tokens: Some(2), ..greedy(8) };
        let (said, stats) = ask(&mut session, &question(), None, &options);
        assert!(!said.answer.is_empty() && ANSWER.starts_with(&said.answer), "{said:?}");
        assert_eq!((stats.completion_tokens, stats.finish_reason), (8, FinishReason::Length));
    }
}

/// Puts tokens in where the answer begins.
struct Begins(Vec<u32>);

impl Constraint for Begins {
    fn take(&mut self, _: u32) -> Result<()> {
        Ok(())
    }

    fn follow(&mut self) -> Result<Follow> {
        Ok(match self.0.is_empty() {
            true => Follow::Any,
            false => Follow::These(std::mem::take(&mut self.0)),
        })
    }
}

/// The options with a constraint that begins the answer with `text`.
fn beginning(session: &Session, text: &str, budget: Option<usize>) -> GenerateOptions {
    let ids = session.tokenizer().encode_with_special(text).unwrap();
    let begin = move |_: &str| Ok(Box::new(Begins(ids.clone())) as Box<dyn Constraint>);
    let constraints = Some(Constraints::new(begin));
    GenerateOptions { max_thinking_tokens: budget, constraints, ..greedy(60) }
}

/// The reasoning is free, whether it ends by itself or its budget is spent, and whether the template
/// begins it or the model.
#[test]
fn a_constraint_holds_from_the_first_token_of_the_answer() {
    let begins = "{{ messages[0].content }}<|assistant|>{{ '<think>\n' }}";
    for (template, cut) in [(begins, "Is it cold"), ("", "Is it")] {
        let mut session = thinking(template);
        for (budget, reasoning) in [(3, cut), (50, REASONING)] {
            let options = beginning(&session, "Is", Some(budget));
            let (said, _) = ask(&mut session, &question(), None, &options);
            assert_eq!(said.reasoning, reasoning);
            assert!(said.answer.starts_with("Is"), "{said:?}");
        }
    }
}

/// Even from a model that would end in its reasoning. White space at the beginning belongs to it.
#[test]
fn a_constrained_answer_comes_whole_after_its_reasoning() {
    for template in ["", "{{ messages[0].content }}<|assistant|>{{ '<think>\n' }}"] {
        let mut session = thinking(template);
        let stop = session.tokenizer().stop()[0];
        for bias in [0.0, 100.0] {
            let options = GenerateOptions {
                logit_bias: Rc::new([(stop, bias)].into_iter().collect()),
                ..beginning(&session, "\nIs", Some(3))
            };
            let (said, stats) = ask(&mut session, &question(), None, &options);
            assert!(said.answer.starts_with("\nIs"), "{said:?}");
            assert_eq!(stats.finish_reason, FinishReason::Stop);
        }
    }
}

#[test]
fn markers_that_a_constraint_puts_into_an_answer_are_text() {
    let mut session = thinking("");
    let options = beginning(&session, "<think>Is", None);
    let (said, stats) = ask(&mut session, &question(), Some(false), &options);
    assert_eq!(stats.reasoning_tokens, 0);
    assert!(said.reasoning.is_empty() && said.answer.contains("Is"), "{said:?}");
    // This model has no token that begins its reasoning, whatever its template says.
    let mut setup = Setup::default().on_reference();
    let template = "{{ messages[0].content }}{% if enable_thinking %}{% endif %}";
    setup.load.template = TemplateChoice::Given(template.into());
    let mut session = setup.golden();
    assert!(session.info().thinking);
    let options = GenerateOptions { max_tokens: Some(9), ..beginning(&session, "<think>Is", None) };
    let (said, stats) = ask(&mut session, &question(), None, &options);
    assert_eq!(stats.reasoning_tokens, 0);
    assert!(said.reasoning.is_empty() && said.answer.starts_with("<think>Is"), "{said:?}");
}

/// The next turn's prompt has the answer without its reasoning. The cache has both: only what
/// comes before the answer is taken from it.
#[test]
fn reasoning_is_not_sent_back() {
    let mut session = thinking("");
    let mut messages = question();
    let first = session.chat_prompt(&messages, None).unwrap();
    let (said, _) = generate(&mut session, &first, &greedy(100));
    messages.extend([says(Role::Assistant, &said.answer), says(Role::User, "And tomorrow?")]);
    let next = session.chat_prompt(&messages, None).unwrap();
    let text = "<|user|>Is it warm?<|end|><|assistant|>It is warm today!<|end|>\
                <|user|>And tomorrow?<|end|><|assistant|>";
    assert_eq!(next, session.tokenizer().encode_with_special(text).unwrap());
    let (said, stats) = generate(&mut session, &next, &greedy(100));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, ANSWER));
    assert_eq!(stats.reused_tokens, first.len());

    // A template that writes an answer as it was generated lets all of it stay in the cache.
    let source = "{% for m in messages %}<|{{ m.role }}|>\
                  {{ '<think>\\n\\n</think>\\n\\n' if m.role == 'assistant' }}{{ m.content }}<|end|>\
                  {% endfor %}<|assistant|>{{ '<think>\\n\\n</think>\\n\\n' }}";
    let mut session = thinking(source);
    let mut messages = question();
    let first = session.chat_prompt(&messages, None).unwrap();
    let (said, _) = generate(&mut session, &first, &greedy(100));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), ("", ANSWER));
    messages.extend([says(Role::Assistant, &said.answer), says(Role::User, "And tomorrow?")]);
    let next = session.chat_prompt(&messages, None).unwrap();
    let ids: Vec<u32> = said.ids.iter().map(|&(id, _)| id).collect();
    let before = [first, ids].concat();
    assert!(next.starts_with(&before), "{next:?} does not begin with {before:?}");
    let (_, stats) = generate(&mut session, &next, &greedy(1));
    assert!(stats.reused_tokens >= before.len() - 1, "{stats:?}");
}

/// An answer goes on after its reasoning, which the next turn does not see. If the cache has lost it,
/// the answer goes on without reasoning.
#[test]
fn an_answer_goes_on_after_its_reasoning() {
    let mut session = thinking("");
    let mut messages = question();
    let first = session.chat_prompt(&messages, None).unwrap();
    let (said, _) = generate(&mut session, &first, &greedy(15));
    assert_eq!((said.reasoning.as_str(), said.answer.as_str()), (REASONING, "It is warm"));
    let ids: Vec<u32> = said.ids.iter().map(|&(id, _)| id).collect();
    let begun = session.begun_prompt(&messages, "It is warm", None).unwrap();
    assert_eq!(begun, [&first[..], &ids].concat());
    let (rest, stats) = generate(&mut session, &begun, &greedy(100));
    assert_eq!((rest.reasoning.as_str(), rest.answer.as_str()), ("", " today!"));
    assert_eq!(stats.reused_tokens, begun.len() - 1);

    messages.extend([says(Role::Assistant, ANSWER), says(Role::User, "And tomorrow?")]);
    let next = session.chat_prompt(&messages, None).unwrap();
    let text = "<|user|>Is it warm?<|end|><|assistant|>It is warm today!<|end|>\
                <|user|>And tomorrow?<|end|><|assistant|>";
    assert_eq!(next, session.tokenizer().encode_with_special(text).unwrap());

    session.forget();
    let begun = session.begun_prompt(&messages[..1], "It is warm", None).unwrap();
    let text = "<|user|>Is it warm?<|end|><|assistant|><think>\n\n</think>\n\nIt is warm";
    assert_eq!(begun, session.tokenizer().encode_with_special(text).unwrap());
    let (rest, _) = generate(&mut session, &begun, &greedy(100));
    assert_eq!((rest.reasoning.as_str(), rest.answer.as_str()), ("", " today!"));
    // Markers in the answer are text: its reasoning is over.
    assert_eq!(rest.reasoned(), 0);
}
