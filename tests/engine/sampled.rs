//! Sampled text: the seed decides, and nothing else does.

use ternlight::engine::MAX_BATCH_STEPS;
use ternlight::native::block_on;
use ternlight::sampling::Sampling;
use ternlight::session::GenerateOptions;

use crate::chunks::engine;
use crate::setup::{Setup, generate};

fn options(seed: u32, sampling: Sampling) -> GenerateOptions {
    let sampling = Sampling { seed, ..sampling };
    GenerateOptions { max_tokens: Some(24), sampling, ..GenerateOptions::default() }
}

fn settings() -> [Sampling; 2] {
    let all = Sampling { temperature: 1.0, ..Sampling::default() };
    [Sampling { top_k: 20, top_p: 0.9, min_p: 0.01, temperature: 1.3, ..all.clone() }, all]
}

#[test]
fn the_seed_decides_the_text() {
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let mut fresh = setup.small();
        for sampling in settings() {
            let first = generate(&mut session, &[1, 2, 3], &options(7, sampling.clone())).unwrap();
            let again = generate(&mut session, &[1, 2, 3], &options(7, sampling.clone())).unwrap();
            assert_eq!(again.ids, first.ids);
            let other = generate(&mut session, &[1, 2, 3], &options(8, sampling.clone())).unwrap();
            assert_ne!(other.ids, first.ids);
            let elsewhere = generate(&mut fresh, &[1, 2, 3], &options(7, sampling)).unwrap();
            assert_eq!(elsewhere.ids, first.ids);
        }
    }
}

/// Each token is what the reference chooses from the logits after those before it: one step at a
/// time gives what several in flight gave.
#[test]
fn steps_in_flight_change_nothing() {
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        for (seed, sampling) in (1..4).flat_map(|seed| settings().map(|s| (seed, s))) {
            let options = options(seed, sampling);
            let mut ids = vec![1, 2, 3];
            let found = generate(&mut session, &ids, &options).unwrap();
            for (step, id) in found.ids.into_iter().enumerate() {
                let logits = block_on(session.logits(&ids)).unwrap();
                let expected = options.sampling.choose(&logits, ids.len() as u32);
                assert_eq!(Some(id), expected, "{options:?}, step {step}");
                ids.push(id);
            }
        }
    }
}

/// Steps that are handed to the GPU together, each of which finds the token and the position of its own,
/// with others behind them before they are awaited.
#[test]
fn steps_at_once_are_steps_one_by_one() {
    for setup in [Setup::default(), Setup::default().like_a_card()] {
        let engine = engine(&setup);
        let gpu = engine.gpu();
        for greedy in [true, false] {
            engine.set_sampling(&Sampling { temperature: 2.0, seed: 3, ..Sampling::default() });
            let start =
                || block_on(engine.prefill_and_sample(&[9, 8, 7], 0, greedy).take(gpu)).unwrap();
            // Past where attention takes its first tile whole.
            let batches = [1, MAX_BATCH_STEPS, 2, MAX_BATCH_STEPS, MAX_BATCH_STEPS, 3].repeat(9);
            let n = batches.iter().sum::<usize>();
            assert!(3 + n > 128);
            let first = start();
            let one_by_one: Vec<u32> = (3..3 + n)
                .flat_map(|pos| {
                    block_on(engine.decode_and_sample(pos, 1, greedy).take(gpu)).unwrap()
                })
                .collect();
            assert_eq!(start(), first);
            let mut pos = 3;
            let ordered: Vec<_> = batches
                .into_iter()
                .map(|n| {
                    pos += n;
                    engine.decode_and_sample(pos - n, n, greedy)
                })
                .collect();
            let together: Vec<u32> = ordered
                .into_iter()
                .flat_map(|tokens| block_on(tokens.take(gpu)).unwrap())
                .collect();
            assert_eq!(together, one_by_one, "greedy: {greedy}");
        }
    }
}

/// Temperatures that are as good as 0 are greedy, and so is keeping one token.
#[test]
fn little_freedom_is_greedy() {
    let mut session = Setup::default().small();
    let greedy = generate(&mut session, &[4, 5], &options(1, Sampling::default())).unwrap();
    let cold = Sampling { temperature: 1e-5, ..Sampling::default() };
    let one = Sampling { temperature: 2.0, top_k: 1, ..Sampling::default() };
    let nucleus = Sampling { temperature: 2.0, top_p: 1e-6, ..Sampling::default() };
    let like_the_best = Sampling { temperature: 2.0, min_p: 1.0, ..Sampling::default() };
    for sampling in [cold, one, nucleus, like_the_best] {
        let found = generate(&mut session, &[4, 5], &options(3, sampling.clone())).unwrap();
        assert_eq!(found.ids, greedy.ids, "{sampling:?}");
    }
}
