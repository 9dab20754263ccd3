//! The seed alone decides a sampled text.

use ternlight::native::block_on;
use ternlight::sampling::Sampling;
use ternlight::session::GenerateOptions;

use crate::setup::{Setup, generate};

fn options(seed: u32, sampling: Sampling) -> GenerateOptions {
    let sampling = Sampling { seed, ..sampling };
    GenerateOptions { max_tokens: Some(24), sampling, ..GenerateOptions::default() }
}

fn settings() -> [Sampling; 2] {
    let all = Sampling { temperature: 1.0, ..Sampling::default() };
    [Sampling { top_k: 20, top_p: 0.9, min_p: 0.01, temperature: 1.3, ..all }, all]
}

/// With penalties too. Each token changes the logits of those after it.
fn penalized() -> [Sampling; 3] {
    let greedy = Sampling {
        repeat_penalty: 1.2,
        presence_penalty: -0.25,
        frequency_penalty: 0.5,
        ..Sampling::default()
    };
    let [filtered, all] = settings();
    [
        greedy,
        Sampling { repeat_penalty: 1.5, ..filtered },
        Sampling { presence_penalty: 2.0, frequency_penalty: -0.5, ..all },
    ]
}

#[test]
fn the_seed_decides_the_text() {
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let mut fresh = setup.small();
        for sampling in settings() {
            let first = generate(&mut session, &[1, 2, 3], &options(7, sampling)).unwrap();
            let again = generate(&mut session, &[1, 2, 3], &options(7, sampling)).unwrap();
            assert_eq!(again.ids, first.ids);
            let other = generate(&mut session, &[1, 2, 3], &options(8, sampling)).unwrap();
            assert_ne!(other.ids, first.ids);
            let elsewhere = generate(&mut fresh, &[1, 2, 3], &options(7, sampling)).unwrap();
            assert_eq!(elsewhere.ids, first.ids);
        }
    }
}

/// Each token is the one that the sampler in plain Rust chooses from the logits. So several steps
/// in flight give the same tokens as one step at a time.
#[test]
fn steps_in_flight_change_nothing() {
    for setup in [Setup::default(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let settings = settings().into_iter().chain(penalized());
        for (seed, sampling) in settings.flat_map(|s| [(1, s), (2, s)]) {
            let options = options(seed, sampling);
            let mut ids = vec![1, 2, 3];
            let found = generate(&mut session, &ids, &options).unwrap();
            for (step, id) in found.ids.into_iter().enumerate() {
                let mut logits = block_on(session.logits(&ids)).unwrap();
                options.sampling.penalize(&mut logits, &ids[..3], &ids[3..]);
                let expected = options.sampling.choose(&logits, ids.len() as u32);
                assert_eq!(Some(id), expected, "{options:?}, step {step}");
                ids.push(id);
            }
        }
    }
}

/// A temperature close to 0 is greedy. So is a choice among one token.
#[test]
fn a_choice_of_one_token_is_greedy() {
    let mut session = Setup::default().small();
    let greedy = generate(&mut session, &[4, 5], &options(1, Sampling::default())).unwrap();
    let cold = Sampling { temperature: 1e-5, ..Sampling::default() };
    let one = Sampling { temperature: 2.0, top_k: 1, ..Sampling::default() };
    let nucleus = Sampling { temperature: 2.0, top_p: 1e-6, ..Sampling::default() };
    let like_the_best = Sampling { temperature: 2.0, min_p: 1.0, ..Sampling::default() };
    for sampling in [cold, one, nucleus, like_the_best] {
        let found = generate(&mut session, &[4, 5], &options(3, sampling)).unwrap();
        assert_eq!(found.ids, greedy.ids, "{sampling:?}");
    }
}
