//! Kernels that a load leaves for later, because a first answer does not need them.

use tritloom::native::block_on;
use tritloom::sampling::{Logprobs, Sampling};
use tritloom::session::{GenerateOptions, Session};

use crate::setup::{Setup, generate, greedy};

/// Tokens of a prompt that takes a chunk.
const LONG: u32 = 40;

/// Compiles what is left, and says how many kernels that were.
fn compile_rest(session: &Session) -> usize {
    std::iter::from_fn(|| session.compile_next().map(block_on)).count()
}

fn drawn(logprobs: Option<usize>) -> GenerateOptions {
    let sampling = Sampling {
        temperature: 0.9,
        top_k: 20,
        seed: 3,
        repeat_penalty: 1.2,
        ..Sampling::default()
    };
    GenerateOptions { sampling, logprobs, ..greedy(6) }
}

fn with_logprobs(
    session: &mut Session,
    prompt: &[u32],
    options: &GenerateOptions,
) -> Vec<(u32, Option<Logprobs>)> {
    generate(session, prompt, options).unwrap().logprobs
}

/// As a model is loaded on a card and on a CPU: with kernels of their own.
fn setups() -> [Setup; 2] {
    [Setup::default(), Setup::default().like_a_card()].map(Setup::on_own_device)
}

#[test]
fn the_first_answers_find_their_kernels_compiled_and_others_are_left_for_later() {
    // A load on a CPU leaves those of long prompts too.
    let lengths: [&[u32]; 2] = [&[2], &[2, LONG]];
    for (setup, lengths) in setups().into_iter().zip(lengths) {
        let left = compile_rest(&setup.small());
        assert!(left > 5, "{left} are left");
        let mut session = setup.small();
        for &n in lengths {
            let prompt: Vec<u32> = (1..=n).collect();
            let options = GenerateOptions { prompt_lookup: Some(false), ..greedy(4) };
            with_logprobs(&mut session, &prompt, &options);
        }
        assert_eq!(compile_rest(&session), left, "kernels that greedy answers have compiled");
        assert_eq!(compile_rest(&session), 0);
    }
}

#[test]
fn a_call_compiles_what_it_finds_missing() {
    for setup in setups() {
        let prompt: Vec<u32> = (1..=LONG).collect();
        let options = drawn(Some(2));
        let mut compiled = setup.small();
        let left = compile_rest(&compiled);
        let expected = with_logprobs(&mut compiled, &prompt, &options);

        let mut session = setup.small();
        assert_eq!(with_logprobs(&mut session, &prompt, &options), expected);
        let rest = compile_rest(&session);
        assert!(rest < left, "{rest} of {left} are left");
    }
}

#[test]
fn a_call_need_not_wait_for_the_kernel_that_is_being_compiled() {
    let setup = Setup::default().on_own_device();
    let prompt: Vec<u32> = (1..=LONG).collect();
    let mut session = setup.small();
    let begun: Vec<_> = std::iter::from_fn(|| session.compile_next()).collect();
    let answer = with_logprobs(&mut session, &prompt, &drawn(None));
    begun.into_iter().for_each(block_on);
    assert_eq!(with_logprobs(&mut setup.small(), &prompt, &drawn(None)), answer);
}

#[test]
fn a_session_may_go_while_a_kernel_is_compiled() {
    let session = Setup::default().on_own_device().small();
    let begun = session.compile_next().unwrap();
    drop(session);
    block_on(begun);
}
