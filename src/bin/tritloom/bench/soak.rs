//! Generates many tokens in a row, to see whether it slows down or leaks memory.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use tritloom::Result;
use tritloom::session::{Session, Token};

use super::{TURN, prompt, without_lookup};

/// Tokens over which a rate is taken.
const RATE_TOKENS: usize = 1000;

/// The figures of a soak. Rates are tokens per second.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Soak {
    pub(super) tokens: usize,
    pub(super) chats: usize,
    /// The rate of each thousand tokens.
    pub(super) rates: Vec<f64>,
    /// The rate of the first thousand tokens.
    pub(super) first: f64,
    /// The rate of the last thousand tokens.
    pub(super) last: f64,
    /// The rate at the positions of the last thousand tokens, when each position was first reached.
    /// `last` should be as large. The first thousand tokens are no measure for it, because
    /// attention has more to read at later positions.
    pub(super) last_at_first: f64,
    pub(super) gpu_bytes_before: u64,
    pub(super) gpu_bytes_after: u64,
}

/// Generates `tokens` in all, turn by turn, in chats that go on until the context is full.
pub(super) async fn soak(session: &mut Session, tokens: usize) -> Result<Soak> {
    let context = session.info().context_length;
    let vocabulary = session.info().vocab_size;
    // The position of each token, and its seconds.
    let mut taken: Vec<(usize, f64)> = Vec::with_capacity(tokens);
    let (mut chats, mut turns) = (0, 0);
    let mut history: Vec<u32> = Vec::new();
    let mut gpu_bytes_before = 0;
    // The limit on turns ends a soak of a model whose answers are empty.
    while taken.len() < tokens && turns < tokens {
        if history.is_empty() || history.len() + TURN > context {
            history.clear();
            chats += 1;
        }
        history.extend(prompt(TURN, turns, vocabulary));
        turns += 1;
        let options = without_lookup(tokens - taken.len());
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
            gpu_bytes_before = session.compute().about().gpu_bytes;
        }
    }
    let mut first_time = vec![None; context + 1];
    for &(position, seconds) in &taken {
        first_time[position].get_or_insert(seconds);
    }
    let window = RATE_TOKENS.min(taken.len() / 2);
    let last = &taken[taken.len() - window..];
    let rate = |seconds: f64| window as f64 / seconds;
    let rates = taken
        .chunks_exact(window.max(1))
        .map(|tokens| rate(tokens.iter().map(|token| token.1).sum()))
        .collect();
    Ok(Soak {
        tokens: taken.len(),
        chats,
        rates,
        first: rate(taken[..window].iter().map(|token| token.1).sum()),
        last: rate(last.iter().map(|token| token.1).sum()),
        last_at_first: rate(last.iter().filter_map(|token| first_time[token.0]).sum()),
        gpu_bytes_before,
        gpu_bytes_after: session.compute().about().gpu_bytes,
    })
}
