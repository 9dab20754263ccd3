//! Fits the embedding, which is the LM head too, until each next token leads all others.
//!
//! Fitting an LM head is easy if the hidden states stay constant. Here they do not, because its
//! rows are the layers' input too. So the matrices that read the residual stream are symmetric:
//! columns `i` and `127 - i` are equal. The fit adds a number to value `i` of a row and subtracts
//! it from value `127 - i`. That changes the logits, but the layers hardly see it.

use std::collections::BTreeSet;

use half::f16;
use tritloom::native::block_on;
use tritloom::reference::{Reference, ops};
use tritloom::source::Reader;

use crate::model::{N_EMBD, mirror, model};
use crate::support::{File, Random};

/// The lead that the fit aims at, and the lead that is enough in the end. The layers see a little
/// of each change, so the final leads are smaller than the fitted ones.
const LEAD: f32 = 3.0;
const ENOUGH: f32 = 2.0;

/// How far a fit moves the row of the right token towards the hidden state, in the first epoch.
const RATE: f32 = 0.02;

/// The number of fits before the hidden states are computed again.
const FITS: usize = 50;

/// A text in tokens.
pub(crate) struct Lesson {
    pub(crate) prompt: Vec<u32>,
    /// Includes the stop token, if there is one.
    pub(crate) answer: Vec<u32>,
}

impl Lesson {
    fn all(&self) -> Vec<u32> {
        [&self.prompt[..], &self.answer].concat()
    }
}

/// Fits the embedding to the lessons. Returns its bytes: f16 `[n_vocab][N_EMBD]`.
pub(crate) fn learn(words: &str, lessons: &[Lesson]) -> Vec<u8> {
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
                    return halves(&rows);
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

fn reference(file: &File) -> Reference {
    block_on(Reference::load(&mut Reader::new(file.build().as_slice()))).unwrap()
}
