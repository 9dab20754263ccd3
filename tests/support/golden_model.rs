//! Writes `tests/data/golden`: a small model, and its greedy text for each prompt.
//!
//! The model learns the texts below by heart. Its layers are random and do not change. Only the
//! embedding, which is the LM head too, is fitted, until each next token leads all others by at
//! least [`ENOUGH`]. So every layer affects every choice, and no rounding does.
//!
//! Fitting an LM head is easy if the hidden states stay constant. Here they do not, because its
//! rows are the layers' input too. So the matrices that read the residual stream are symmetric:
//! columns `i` and `127 - i` are equal. The fit adds a number to value `i` of a row and subtracts
//! it from value `127 - i`. That changes the logits, but the layers hardly see it.
//!
//! `cargo run --example golden_model` writes the files again.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the tests")]

#[path = "mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::fs;

use half::f16;
use serde_json::{Value, json};
use support::{F16, F32, File, I2_S, Kv, Random, Tensor, byte_char, path, read};
use ternlight::chat::{self, Message, Role};
use ternlight::model::Config;
use ternlight::native::block_on;
use ternlight::reference::{Reference, ops};
use ternlight::source::Reader;
use ternlight::ternary::{Layout, pack};
use ternlight::tokenizer::Tokenizer;

const N_LAYER: usize = 2;
const N_EMBD: usize = 128;
const N_HEAD: usize = 4;
const N_HEAD_KV: usize = 2;
const N_FF: usize = 256;
const N_CTX: usize = 1024;

/// The gain of the matrices that add to the residual stream. The values of the token's own row are
/// below 1, so they decide little.
const OUTPUT: f32 = 4.0;

/// The lead that the fit aims at, and the lead that is enough in the end. The layers see a little
/// of each change, so the final leads are smaller than the fitted ones.
const LEAD: f32 = 3.0;
const ENOUGH: f32 = 2.0;

/// How far a fit moves the row of the right token towards the hidden state, in the first epoch.
const RATE: f32 = 0.02;

/// The number of fits before the hidden states are computed again.
const FITS: usize = 50;

const BEGIN: &str = "<|begin_of_text|>";
const END: &str = "<|end_of_text|>";
const END_OF_TURN: &str = "<|eot_id|>";

/// A prompt and its answer.
struct Text {
    name: &'static str,
    prompt: Prompt,
    answer: &'static str,
    /// The stop token after the answer; `None` if `max_tokens` ends it.
    stop: Option<&'static str>,
}

enum Prompt {
    Raw(String),
    Chat(Vec<(Role, &'static str)>),
}

fn texts() -> Vec<Text> {
    use Role::{Assistant, System, User};
    let raw = |text: &str| Prompt::Raw(format!("{BEGIN}{text}"));
    let chat = |turns: &[(Role, &'static str)]| Prompt::Chat(turns.to_vec());
    let verse = "The tide comes in, the tide goes out, the boats go up and down. \
                 The gulls all cry, the children shout, and night comes to the town.";
    vec![
        Text {
            name: "bos_only",
            prompt: raw(""),
            answer: "A river ran past the old mill. In summer it was slow and warm, and in \
                     winter it was fast and cold. The miller did not mind.",
            stop: Some(END),
        },
        Text {
            name: "once",
            prompt: raw("Once there was"),
            answer: " a fox who lived under the hill. Every night she looked at the moon and \
                     asked it for a song. The moon said nothing, so the fox sang to the moon.",
            stop: None,
        },
        Text {
            name: "who",
            prompt: chat(&[(User, "Who are you?")]),
            answer: "I am a very small model. I was made for tests, and I know a few texts by \
                     heart.",
            stop: Some(END_OF_TURN),
        },
        Text {
            name: "follow_up",
            prompt: chat(&[
                (User, "Who are you?"),
                (Assistant, "I am a very small model."),
                (User, "How small?"),
            ]),
            answer: "Two layers, and all of my weights are minus one, zero or one.",
            stop: Some(END_OF_TURN),
        },
        Text {
            name: "system",
            prompt: chat(&[(System, "Answer like a sailor."), (User, "Where is the boat?")]),
            answer: "Down at the old harbour, my friend, and she is ready for the sea. Bring the \
                     rope and the bread, and we will go out with the tide.",
            stop: Some(END_OF_TURN),
        },
        // The answer copies its prompt, so all drafted tokens are right until the ending differs.
        Text {
            name: "verse",
            prompt: raw(&format!("{verse} {verse} The tide comes")),
            answer: " in, the tide goes out, the boats go up and down. The gulls all cry, the \
                     children shout, and that was all.",
            stop: Some(END),
        },
        // Each sentence nearly repeats the previous one, so some drafted tokens are wrong.
        Text {
            name: "count",
            prompt: raw(
                "One fox saw the moon over the hill. Two foxes saw the moon over the river. \
                 Three foxes saw the moon over the town.",
            ),
            answer: " Four foxes saw the moon over the sea. Five foxes saw the moon over the \
                     mill. Six foxes saw the sun.",
            stop: None,
        },
        // Characters of several tokens.
        Text {
            name: "odd",
            prompt: raw("Zoë wrote: 25 °C, "),
            answer: "東京 → 🦊\n\tÅse wrote: −3 °C!",
            stop: Some(END),
        },
        // Longer than a chunk of any device.
        Text {
            name: "long",
            prompt: raw(&long_text()),
            answer: " So the miller took the bread and the rope, and the fox took the song, and \
                     they went down to the sea with all the children of the town.",
            stop: None,
        },
    ]
}

/// Words in random order.
fn long_text() -> String {
    let words: Vec<&str> = "the fox the moon a river an old mill winter summer night tide boats \
                            gulls children bread rope harbour slow warm fast cold small heart hill \
                            saw sang asked went took said mind know and over under past to of"
        .split_whitespace()
        .collect();
    let mut random = Random(7);
    let mut text = String::from("The");
    for word in 1..560 {
        if word % 9 == 0 {
            text += ". The";
        } else {
            text = format!("{text} {}", words[random.below(words.len())]);
        }
    }
    text + "."
}

/// All texts together, for the vocabulary.
fn all_words(texts: &[Text]) -> String {
    let mut all = String::from("System: User: Assistant: ");
    for text in texts {
        match &text.prompt {
            Prompt::Raw(raw) => all += raw.trim_start_matches(BEGIN),
            Prompt::Chat(turns) => turns.iter().for_each(|(_, said)| all += &format!(" {said}")),
        }
        all += text.answer;
        all.push('\n');
    }
    all
}

/// The merges that build each word letter by letter, until it is one token.
fn merges(words: &str) -> Vec<[String; 2]> {
    let mut merges: Vec<[String; 2]> = Vec::new();
    let mut word = String::new();
    for c in words.chars() {
        let c = if c == ' ' { 'Ġ' } else { c };
        if !(c.is_ascii_lowercase() && !word.is_empty() || c.is_ascii_uppercase() && word == "Ġ") {
            word = String::from(c);
            continue;
        }
        let merge = [word.clone(), c.to_string()];
        if !merges.contains(&merge) {
            merges.push(merge);
        }
        word.push(c);
    }
    merges
}

/// The model before training. `probes` more tokens follow its vocabulary. They never appear in a
/// text; their logits are the hidden state.
fn model(words: &str, probes: usize) -> File {
    let mut file = File::empty();
    let arch = "bitnet-b1.58";
    file.set("general.architecture", Kv::Str(arch.into()));
    file.set("general.name", Kv::Str("Nine texts by heart".into()));
    let head_dim = N_EMBD / N_HEAD;
    for (name, value) in [
        ("context_length", N_CTX),
        ("embedding_length", N_EMBD),
        ("block_count", N_LAYER),
        ("feed_forward_length", N_FF),
        ("rope.dimension_count", head_dim),
        ("attention.head_count", N_HEAD),
        ("attention.head_count_kv", N_HEAD_KV),
    ] {
        file.set(&format!("{arch}.{name}"), Kv::U32(value as u32));
    }
    file.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), Kv::F32(1e-5));
    file.set(&format!("{arch}.rope.freq_base"), Kv::F32(10_000.0));

    let merges = merges(words);
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|merge| merge.concat()));
    let n_normal = tokens.len();
    tokens.extend([BEGIN, END, END_OF_TURN].map(String::from));
    let n_vocab = tokens.len();
    tokens.extend((0..probes).map(|i| format!("probe{i}")));
    let kinds = (0..tokens.len()).map(|id| if id < n_normal { 1 } else { 3 }).collect();
    file.set("tokenizer.ggml.model", Kv::Str("gpt2".into()));
    file.set("tokenizer.ggml.pre", Kv::Str("llama-bpe".into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(tokens.into_iter().map(Into::into).collect()));
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    let merges = merges.iter().map(|merge| merge.join(" ").into_bytes()).collect();
    file.set("tokenizer.ggml.merges", Kv::Strs(merges));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(n_normal as u32));
    file.set("tokenizer.ggml.eos_token_id", Kv::U32(n_normal as u32 + 1));

    let mut random = Random(58);
    let n_kv = head_dim * N_HEAD_KV;
    file.add("token_embd.weight", &[N_EMBD as u64, (n_vocab + probes) as u64], F16, &mut Random(1));
    for block in 0..N_LAYER {
        // With a `gain` of 1, the outputs of a matrix are as large as its inputs. Queries and keys
        // are larger, so that attention looks at few of the earlier tokens.
        for (name, columns, rows, gain) in [
            ("attn_q", N_EMBD, N_EMBD, 1.5),
            ("attn_k", N_EMBD, n_kv, 1.5),
            ("attn_v", N_EMBD, n_kv, 1.0),
            ("attn_output", N_EMBD, N_EMBD, OUTPUT),
            ("ffn_gate", N_EMBD, N_FF, 1.0),
            ("ffn_up", N_EMBD, N_FF, 1.0),
            ("ffn_down", N_FF, N_EMBD, OUTPUT),
        ] {
            let mut codes: Vec<i8> =
                (0..columns * rows).map(|_| (random.next() % 3) as i8 - 1).collect();
            if gain < OUTPUT {
                codes.chunks_mut(N_EMBD).for_each(mirror);
            }
            let scale: f32 = gain / (columns as f32 * 2.0 / 3.0).sqrt();
            let mut bytes = pack(&codes, Layout::X86);
            bytes.extend(scale.to_le_bytes());
            bytes.extend([0; 28]);
            file.tensors.push(Tensor {
                name: format!("blk.{block}.{name}.weight"),
                ne: vec![columns as u64, rows as u64],
                type_id: I2_S,
                bytes,
            });
        }
        for (name, n) in [
            ("attn_norm", N_EMBD),
            ("attn_sub_norm", N_EMBD),
            ("ffn_norm", N_EMBD),
            ("ffn_sub_norm", N_FF),
        ] {
            let mut values: Vec<f32> = (0..n).map(|_| 0.5 + random.float()).collect();
            if !name.ends_with("sub_norm") {
                mirror(&mut values);
            }
            file.tensors.push(Tensor {
                name: format!("blk.{block}.{name}.weight"),
                ne: vec![n as u64],
                type_id: F32,
                bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            });
        }
    }
    file.add("output_norm.weight", &[N_EMBD as u64], F32, &mut random);
    file
}

/// Makes the second half the mirror image of the first.
fn mirror<T: Copy>(values: &mut [T]) {
    let n = values.len();
    for i in 0..n / 2 {
        values[n - 1 - i] = values[i];
    }
}

fn tokenizer(file: &File) -> Tokenizer {
    let gguf = read(&file.build()).unwrap();
    Tokenizer::from_gguf(&gguf, &Config::from_gguf(&gguf).unwrap()).unwrap()
}

fn reference(file: &File) -> Reference {
    block_on(Reference::load(&mut Reader::new(file.build().as_slice()))).unwrap()
}

/// A text in tokens.
struct Lesson {
    prompt: Vec<u32>,
    /// Includes the stop token, if there is one.
    answer: Vec<u32>,
}

impl Lesson {
    fn new(tokenizer: &Tokenizer, text: &Text) -> Self {
        let prompt = match &text.prompt {
            Prompt::Raw(raw) => tokenizer.encode_with_special(raw).unwrap(),
            Prompt::Chat(turns) => chat::prompt(tokenizer, &messages(turns)).unwrap(),
        };
        let mut answer = tokenizer.encode(text.answer).unwrap();
        answer.extend(text.stop.map(|stop| tokenizer.special(stop).unwrap()));
        Self { prompt, answer }
    }

    fn all(&self) -> Vec<u32> {
        [&self.prompt[..], &self.answer].concat()
    }
}

fn messages(turns: &[(Role, &str)]) -> Vec<Message> {
    turns.iter().map(|&(role, said)| Message { role, content: said.into() }).collect()
}

/// Fits the embedding to the lessons; returns `[n_vocab][N_EMBD]`.
fn learn(words: &str, lessons: &[Lesson]) -> Vec<f32> {
    let mut file = model(words, N_EMBD);
    let n_vocab = file.tensor("token_embd.weight").ne[1] as usize - N_EMBD;
    let mut rows = first_rows(n_vocab, lessons);
    for epoch in 0.. {
        file.tensor("token_embd.weight").bytes = halves(&[&rows[..], &probes()].concat());
        let steps = steps(&mut reference(&file), lessons, n_vocab);
        let rate = RATE / (1.0 + epoch as f32 / 5.0);
        for fit in 0..FITS {
            let least = fit_once(&mut rows, &steps, rate);
            if fit == 0 {
                println!("{epoch}: the least lead is {least}");
                if least >= ENOUGH {
                    return rows;
                }
            }
            if least >= LEAD {
                break;
            }
        }
    }
    unreachable!("the loop has no end of its own")
}

/// The rows before the fit. The fit does not change their symmetric part, which the layers see.
/// Tokens that are in no text have small rows.
fn first_rows(n_vocab: usize, lessons: &[Lesson]) -> Vec<f32> {
    let used: BTreeSet<u32> = lessons.iter().flat_map(Lesson::all).collect();
    let mut random = Random(3);
    let mut rows = Vec::new();
    for id in 0..n_vocab {
        let size = if used.contains(&(id as u32)) { 0.6 } else { 0.06 };
        let mut row: Vec<f32> = (0..N_EMBD).map(|_| size * (2.0 * random.float() - 1.0)).collect();
        mirror(&mut row);
        rows.extend(row.iter().map(|value| value + 0.5 * size * (random.float() - 0.5)));
    }
    rows
}

/// The rows of the probes: the identity matrix, so that their logits are the hidden state.
fn probes() -> Vec<f32> {
    (0..N_EMBD * N_EMBD).map(|i| if i / N_EMBD == i % N_EMBD { 1.0 } else { 0.0 }).collect()
}

/// For each token of the answers: the hidden state that must predict it, and its id.
fn steps(reference: &mut Reference, lessons: &[Lesson], n_vocab: usize) -> Vec<(Vec<f32>, usize)> {
    let mut steps = Vec::new();
    for lesson in lessons {
        reference.reset();
        let all = lesson.all();
        let logits = reference.forward(&all[..all.len() - 1]).unwrap();
        let answers = logits.iter().zip(&all[1..]).skip(lesson.prompt.len() - 1);
        steps.extend(answers.map(|(logits, &next)| (logits[n_vocab..].to_vec(), next as usize)));
    }
    steps
}

/// Moves the rows of each token whose lead is too small, and those of its rival. Returns the
/// smallest lead.
fn fit_once(rows: &mut [f32], steps: &[(Vec<f32>, usize)], rate: f32) -> f32 {
    let mut least = f32::INFINITY;
    for (hidden, next) in steps {
        let logits = ops::matvec_f32(rows, N_EMBD, hidden);
        let rivals = (0..logits.len()).filter(|id| id != next);
        let rival = rivals.max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
        let lead = logits[*next] - logits[rival];
        least = least.min(lead);
        if lead < LEAD {
            for i in 0..N_EMBD {
                // Only the antisymmetric part, which the layers do not see.
                let change = rate * (hidden[i] - hidden[N_EMBD - 1 - i]) / 2.0;
                rows[next * N_EMBD + i] += change;
                rows[rival * N_EMBD + i] -= change;
            }
        }
    }
    least
}

fn halves(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|&value| f16::from_f32(value).to_le_bytes()).collect()
}

/// The finished model's answer to a prompt, with the fields of `models/tiny-stories.goldens.json`.
fn golden(reference: &mut Reference, text: &Text, lesson: &Lesson) -> Value {
    reference.reset();
    let mut all = reference.forward(&lesson.prompt).unwrap();
    let first = ten_best(&all[0]);
    let mut logits = all.pop().unwrap();
    let last = ten_best(&logits);
    let mut margins = Vec::new();
    for (step, &id) in lesson.answer.iter().enumerate() {
        let best = best(&logits);
        assert_eq!(best[0].0, id, "{}, step {step}", text.name);
        margins.push(rounded(best[0].1 - best[1].1));
        logits = reference.forward(&[id]).unwrap().pop().unwrap();
    }
    let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
    let (kind, turns, prompt) = match &text.prompt {
        Prompt::Raw(raw) => ("raw", Value::Null, raw.clone()),
        Prompt::Chat(turns) => {
            let prompt = reference.tokenizer.decode(&lesson.prompt).unwrap();
            ("chat", json!(turns), prompt)
        }
    };
    let stopped = text.stop.is_some();
    let said = &lesson.answer[..lesson.answer.len() - usize::from(stopped)];
    assert_eq!(reference.tokenizer.decode(said).unwrap(), text.answer);
    println!(
        "{}: {} tokens, {} to come, lead {smallest}",
        text.name,
        lesson.prompt.len(),
        said.len()
    );
    json!({
        "name": text.name,
        "kind": kind,
        "turns": turns,
        "text": prompt,
        "ids": lesson.prompt,
        "first": first,
        "last": last,
        "greedy": lesson.answer,
        "greedy_text": text.answer,
        "greedy_stopped": stopped,
        "greedy_margins": margins,
        "greedy_smallest_margin": smallest,
    })
}

fn ten_best(logits: &[f32]) -> Value {
    let (ids, logits): (Vec<u32>, Vec<f32>) = best(logits).into_iter().unzip();
    json!({ "ids": ids, "logits": logits.into_iter().map(rounded).collect::<Vec<_>>() })
}

/// The ten best tokens with their logits.
fn best(logits: &[f32]) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0..).zip(logits.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(10);
    all
}

fn rounded(value: f32) -> f64 {
    (f64::from(value) * 1e4).round() / 1e4
}

fn main() {
    let texts = texts();
    let words = all_words(&texts);
    let mut file = model(&words, 0);
    let tokenizer = tokenizer(&file);
    let lessons: Vec<Lesson> = texts.iter().map(|text| Lesson::new(&tokenizer, text)).collect();
    file.tensor("token_embd.weight").bytes = halves(&learn(&words, &lessons));
    let mut reference = reference(&file);
    let prompts: Vec<Value> = texts
        .iter()
        .zip(&lessons)
        .map(|(text, lesson)| golden(&mut reference, text, lesson))
        .collect();
    let goldens = json!({
        "model": "golden.gguf",
        "notes": [
            "Written by `cargo run --example golden_model`, logits and leads by src/reference.",
            "The fields are those of models/tiny-stories.goldens.json.",
            "Every lead is far above what roundings change: every device gives these tokens.",
        ],
        "prompts": prompts,
    });
    fs::write(path("tests/data/golden/golden.gguf"), file.build()).unwrap();
    fs::write(path("tests/data/golden/golden.json"), goldens.to_string()).unwrap();
}
