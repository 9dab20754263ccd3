//! Many tokens in a row: whether it slows down, or keeps memory.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use ternlight::Result;
use ternlight::session::{Session, Token};

use super::{TURN, plainly, prompt};

/// Tokens that make a rate.
const STRETCH: usize = 1000;

/// Many tokens in a row. Rates are tokens per second.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Soak {
    pub(super) tokens: usize,
    pub(super) chats: usize,
    /// Of each thousand tokens.
    pub(super) rates: Vec<f64>,
    /// Of the first thousand and of the last, which may share some with the one before.
    pub(super) first: f64,
    pub(super) last: f64,
    /// Of the positions of the last tokens, when each was reached for the first time: what `last`
    /// would be if nothing had slowed down. Far into a context attention has more to read.
    pub(super) last_at_first: f64,
    pub(super) gpu_bytes_before: u64,
    pub(super) gpu_bytes_after: u64,
}

/// Turn after turn of chats that go on until the context is full, `tokens` in all.
pub(super) async fn soak(session: &mut Session, tokens: usize) -> Result<Soak> {
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    // The seconds of each token, and its position.
    let mut taken: Vec<(usize, f64)> = Vec::with_capacity(tokens);
    let (mut chats, mut turns) = (0, 0);
    let mut history: Vec<u32> = Vec::new();
    let mut gpu_bytes_before = 0;
    // A model that has nothing to say ends it too.
    while taken.len() < tokens && turns < tokens {
        if history.is_empty() || history.len() + TURN > context {
            history.clear();
            chats += 1;
        }
        history.extend(prompt(TURN, turns, vocabulary));
        turns += 1;
        let options = plainly(tokens - taken.len());
        let mut answer = Vec::new();
        let mut before = Instant::now();
        let (start, turn) = (history.len(), &mut taken);
        let mut on_token = |token: Token| {
            if let Some(id) = token.id {
                let now = Instant::now();
                turn.push((start + answer.len(), (now - before).as_secs_f64()));
                before = now;
                answer.push(id);
            }
            ControlFlow::Continue(())
        };
        session.generate(&history, &options, &mut on_token).await?;
        history.append(&mut answer);
        if gpu_bytes_before == 0 {
            gpu_bytes_before = session.gpu().allocated();
        }
    }
    let mut first_time = vec![None; context + 1];
    for &(position, seconds) in &taken {
        first_time[position].get_or_insert(seconds);
    }
    let stretch = STRETCH.min(taken.len() / 2);
    let last = &taken[taken.len() - stretch..];
    let rate = |seconds: f64| stretch as f64 / seconds;
    let rates = taken
        .chunks_exact(stretch.max(1))
        .map(|tokens| rate(tokens.iter().map(|token| token.1).sum()))
        .collect();
    Ok(Soak {
        tokens: taken.len(),
        chats,
        rates,
        first: rate(taken[..stretch].iter().map(|token| token.1).sum()),
        last: rate(last.iter().map(|token| token.1).sum()),
        last_at_first: rate(last.iter().filter_map(|token| first_time[token.0]).sum()),
        gpu_bytes_before,
        gpu_bytes_after: session.gpu().allocated(),
    })
}
