//! Text of a model whose tokens have their space in front.

use half::f16;

use tritloom::chat::{Message, Role, TemplateChoice};
use tritloom::session::GenerateOptions;

use crate::setup::{Setup, generate, greedy, small};
use crate::support::{F16, File, Kv, Random};

const WORDS: usize = 40;
const BOS: u32 = 1;
const FIRST_WORD: u32 = 3 + 256;

/// A random model that says nothing but `▁w0`, `▁w1` and so on: the rows of all other tokens are
/// small, and so are their logits.
fn model() -> File {
    let words: Vec<String> = (0..WORDS).map(|word| format!("▁w{word}")).collect();
    model_of(&words, |id| if id < FIRST_WORD { 0.01 } else { 1.0 })
}

/// A random model whose tokens are the bytes and `words`. Words that come first are joined first.
/// `size` gives the size of the row of a token.
pub(crate) fn model_of(words: &[String], size: impl Fn(u32) -> f32) -> File {
    let mut file = small();
    let texts = ["<unk>", "<s>", "</s>"].map(String::from).into_iter();
    let texts = texts.chain((0..256).map(|byte| format!("<0x{byte:02X}>")));
    let texts = texts.chain(words.iter().cloned());
    let tokens: Vec<_> = texts.map(String::into_bytes).collect();
    let n_vocab = tokens.len();
    let kinds = [vec![2, 3, 3], vec![6; 256], vec![1; words.len()]].concat();
    let scores = (0..n_vocab).map(|id| -(id as f32)).collect();
    file.set("tokenizer.ggml.model", Kv::Str("llama".into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(tokens));
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("tokenizer.ggml.scores", Kv::F32s(scores));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(BOS));
    file.set("tokenizer.ggml.eos_token_id", Kv::U32(2));
    let embedding = file.tensor("token_embd.weight");
    assert_eq!(embedding.type_id, F16);
    let width = embedding.ne[0] as usize;
    let mut random = Random(5);
    let mut value = |row: usize| (random.float() - 0.5) * size(row as u32);
    embedding.ne[1] = n_vocab as u64;
    embedding.bytes =
        (0..n_vocab * width).flat_map(|i| f16::from_f32(value(i / width)).to_le_bytes()).collect();
    file
}

/// The space that sentencepiece puts before a text is no part of an answer, but the space between
/// two words is.
#[test]
fn an_answer_begins_without_a_space_and_a_continuation_with_one() {
    let mut session = Setup::default().on_reference().load(&model().build()).unwrap();
    for (prompt, begins_text) in [(&[BOS][..], true), (&[BOS, FIRST_WORD], false)] {
        let found = generate(&mut session, prompt, &greedy(6)).unwrap();
        assert!(found.ids.iter().all(|&id| id >= FIRST_WORD), "{:?}", found.ids);
        let words: String = found.ids.iter().map(|id| format!(" w{}", id - FIRST_WORD)).collect();
        assert_eq!(found.text, if begins_text { &words[1..] } else { &words });
        // The question and the answer together are the text of all tokens.
        let tokenizer = session.tokenizer();
        let all = tokenizer.decode(&[prompt, &found.ids].concat()).unwrap();
        assert_eq!(tokenizer.decode(prompt).unwrap() + &found.text, all);
    }
}

/// The text that ends a reasoning follows it directly, so no space comes in front.
#[test]
fn a_reasoning_is_ended_without_a_space() {
    let mut setup = Setup::default().on_reference();
    let template = "{{ messages[0].content }}<think>";
    setup.load.template = TemplateChoice::Given(template.into());
    let mut session = setup.load(&model().build()).unwrap();
    let question = Message::new(Role::User, "Why?");
    let prompt = session.chat_prompt(&[question], None).unwrap();
    let options = GenerateOptions { max_thinking_tokens: Some(2), ..greedy(40) };
    let found = generate(&mut session, &prompt, &options).unwrap();
    let words: String = found.ids[..2].iter().map(|id| format!(" w{}", id - FIRST_WORD)).collect();
    let text = session.tokenizer().decode(&[&prompt[..], &found.ids].concat()).unwrap();
    let ends = format!("{words}\n</think>\n\n w");
    assert!(text.contains(&ends), "{text:?} does not contain {ends:?}");
}
