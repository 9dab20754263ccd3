//! Makes the model of `tests/data/golden`, which knows the texts of `texts.json` by heart.
//!
//! Its layers are random and do not change. Only the embedding is fitted. So every layer affects
//! every choice, and no rounding does. `tests/data/golden/make.py`, which shares no code with this
//! crate, computes the finished model's answers and their leads.
//!
//! `cargo run --example golden_model` writes the model again; then run `make.py`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the tests")]

#[path = "../mod.rs"]
mod support;

mod fit;
mod model;

use std::fs;

use fit::{Lesson, learn};
use model::model;
use serde::Deserialize;
use support::{chat_tokens, path, read};
use tritloom::chat::{Message, Role};
use tritloom::gguf::Metadata;
use tritloom::model::Config;
use tritloom::tokenizer::Tokenizer;

/// A prompt and its answer.
#[derive(Deserialize)]
struct Text {
    #[serde(flatten)]
    prompt: Prompt,
    answer: String,
    /// The stop token after the answer; `None` if the answer ends without one.
    stop: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Prompt {
    /// A text with special tokens.
    Raw(String),
    /// A conversation.
    Turns(Vec<(Role, String)>),
}

/// All texts together, for the vocabulary.
fn all_words(texts: &[Text]) -> String {
    let mut all = String::from("System: User: Assistant: ");
    for text in texts {
        match &text.prompt {
            Prompt::Raw(raw) => all += raw.trim_start_matches("<|begin_of_text|>"),
            Prompt::Turns(turns) => turns.iter().for_each(|(_, said)| all += &format!(" {said}")),
        }
        all += &text.answer;
        all.push('\n');
    }
    all
}

fn lesson(metadata: &Metadata, tokenizer: &Tokenizer, text: &Text) -> Lesson {
    let prompt = match &text.prompt {
        Prompt::Raw(raw) => tokenizer.encode_with_special(raw).unwrap(),
        Prompt::Turns(turns) => {
            let message = |(role, content): &(Role, String)| Message::new(*role, content.as_str());
            let messages: Vec<Message> = turns.iter().map(message).collect();
            chat_tokens(metadata, tokenizer, &messages).unwrap()
        }
    };
    let mut answer = tokenizer.encode(&text.answer).unwrap();
    answer.extend(text.stop.as_ref().map(|stop| tokenizer.special(stop).unwrap()));
    Lesson { prompt, answer }
}

fn main() {
    let texts = fs::read_to_string(path("tests/data/golden/texts.json")).unwrap();
    let texts: Vec<Text> = serde_json::from_str(&texts).unwrap();
    let words = all_words(&texts);
    let mut file = model(&words, 0);
    let gguf = read(&file.build()).unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf, &Config::from_gguf(&gguf).unwrap()).unwrap();
    let lessons: Vec<Lesson> =
        texts.iter().map(|text| lesson(&gguf.metadata, &tokenizer, text)).collect();
    file.tensor("token_embd.weight").bytes = learn(&words, &lessons);
    fs::write(path("tests/data/golden/golden.gguf"), file.build()).unwrap();
}
