//! The seed alone decides a sampled text. The draws are fair. Log-probabilities are those of the
//! tokens.

use std::collections::HashMap;
use std::rc::Rc;

use tritloom::native::block_on;
use tritloom::sampling::{LogitBias, Logprobs, Sampling};
use tritloom::session::{GenerateOptions, LmHead};

use crate::setup::{Setup, generate, greedy};
use crate::support::chi_square::chi_square;

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
    let cpu = || Setup::default().on_reference();
    for setup in [cpu(), cpu().like_a_fast_card()] {
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
    let half = Setup::default().like_a_fast_card().lm_head(LmHead::Int8);
    let cpu = Setup::default().on_reference().like_a_fast_card();
    for setup in [cpu, Setup::default().like_a_fast_card(), half] {
        let mut session = setup.small();
        let [filtered, all] = settings();
        let near = Sampling { min_p: 0.1, ..all };
        let share = Sampling { top_p: 0.9, ..all };
        let settings = [filtered, all, near, share].into_iter().chain(penalized());
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

/// Draws follow the softmax of the accepted tokens, over positions and over seeds. Neighbouring
/// draws are independent. These are the draws of the sampler in plain Rust; tests/kernels/sampler.rs has
/// those of the kernels.
#[test]
fn draws_follow_the_probabilities() {
    let n_vocab = 4096;
    let candidates = [(0u32, 1.0f32), (1023, 2.0), (1024, 0.0), (3000, 1.5), (4095, -1.0)];
    let mut logits = vec![f32::NEG_INFINITY; n_vocab];
    candidates.iter().for_each(|&(id, logit)| logits[id as usize] = logit);
    const DRAWS: u32 = 700;
    for (temperature, top_k) in [(0.7, 0), (2.0, 3)] {
        let passing = candidates.iter().filter(|(_, logit)| top_k == 0 || *logit >= 1.0);
        let weights: HashMap<u32, f64> =
            passing.map(|&(id, logit)| (id, f64::from(logit / temperature).exp())).collect();
        let total: f64 = weights.values().sum();
        let one = weights.iter().map(|(&id, w)| (vec![id], w / total)).collect();
        let pairs = weights
            .iter()
            .flat_map(|(&a, wa)| weights.iter().map(move |(&b, wb)| (vec![a, b], wa * wb)))
            .map(|(ids, w)| (ids, w / (total * total)))
            .collect();

        let draw = |seed: u32, position: u32| {
            let sampling = Sampling { temperature, top_k, seed, ..Sampling::default() };
            sampling.choose(&logits, position).unwrap()
        };
        let over_positions: Vec<u32> = (0..DRAWS).map(|i| draw(1, 1 + i)).collect();
        let over_seeds: Vec<u32> = (0..DRAWS).map(|i| draw(i, 100)).collect();
        for draws in [over_positions, over_seeds] {
            for (length, shares) in [(1, &one), (2, &pairs)] {
                let outcomes: Vec<_> = draws.chunks(length).map(<[u32]>::to_vec).collect();
                let found = chi_square(&outcomes, shares);
                assert!(found < 1.0, "T {temperature}, top {top_k}, {length} in a row: {found}");
            }
        }
    }
}

/// Biases of tokens that the model likes, and of others.
fn bias() -> Rc<LogitBias> {
    Rc::new([(0, 2.5), (17, -100.0), (45, 1.0), (128, 3.0), (260, 0.5)].into_iter().collect())
}

/// Each token is the one that the plain sampler chooses with the biases, and its log-probability is
/// what the model's own logits say.
#[test]
fn tokens_are_chosen_with_biases_and_their_log_probabilities_have_none() {
    for setup in [Setup::default().on_reference(), Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let [filtered, all] = settings();
        let [penalized, ..] = penalized();
        for sampling in [Sampling::default(), all, filtered, penalized] {
            let options =
                GenerateOptions { logit_bias: bias(), logprobs: Some(4), ..options(5, sampling) };
            let mut ids = vec![1, 2, 3];
            let tokens = generate(&mut session, &ids, &options).unwrap().logprobs;
            assert!(!tokens.is_empty());
            for (step, (id, logprobs)) in tokens.into_iter().enumerate() {
                let mut logits = block_on(session.logits(&ids)).unwrap();
                let expected = Logprobs::new(&logits, id, 4);
                options.logit_bias.add_to(&mut logits);
                options.sampling.penalize(&mut logits, &ids[..3], &ids[3..]);
                let chosen = options.sampling.choose(&logits, ids.len() as u32);
                assert_eq!(Some(id), chosen, "{options:?}, step {step}");
                let found = logprobs.unwrap();
                let top = found.top.iter().zip(&expected.top);
                let all = top.map(|(a, b)| (a.1, b.1)).chain([(found.logprob, expected.logprob)]);
                let close = all.into_iter().all(|(a, b)| (a - b).abs() < 1e-4);
                assert!(close, "{found:?}, not {expected:?}");
                assert_eq!(found.top.len(), 4);
                ids.push(id);
            }
        }
    }
}

/// Drafts tell the same, and are made with biases too.
#[test]
fn drafts_have_the_log_probabilities_of_steps() {
    let mut session = Setup::default().like_a_card().small();
    let prompt = vec![5; 12];
    for (logit_bias, logprobs) in [(bias(), Some(3)), (Rc::default(), Some(0)), (bias(), None)] {
        let options = GenerateOptions { logit_bias, logprobs, ..greedy(40) };
        let [drafts, steps] = [true, false].map(|lookup| {
            // Both compute the whole prompt.
            session.forget();
            let options = GenerateOptions { prompt_lookup: Some(lookup), ..options.clone() };
            generate(&mut session, &prompt, &options).unwrap().logprobs
        });
        assert_eq!(drafts, steps);
        assert!(steps.iter().all(|(_, found)| found.is_some() == logprobs.is_some()));
        let drafted = GenerateOptions { prompt_lookup: Some(true), ..options };
        let stats = generate(&mut session, &prompt, &drafted).unwrap().stats;
        assert!(stats.accepted_tokens > 0, "{stats:?}");
    }
    // The next generation has no biases.
    let plain = generate(&mut session, &prompt, &greedy(9)).unwrap().ids;
    let fresh = generate(&mut Setup::default().like_a_card().small(), &prompt, &greedy(9)).unwrap();
    assert_eq!(plain, fresh.ids);
}
