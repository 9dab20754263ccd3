//! The golden greedy texts, token by token to the end, with every cache and instruction set.

use tritloom::compute::KvType;
use tritloom::cpu::InstructionSet;
use tritloom::session::{GenerateOptions, Session};

use crate::setup::{Goldens, Setup, generate, greedy};

/// Generates all texts, with prompt lookup and without.
fn check(mut session: Session) {
    let (mut drafted, mut accepted) = (0, 0);
    for golden in &Goldens::golden().prompts {
        for prompt_lookup in [false, true] {
            let options = GenerateOptions {
                prompt_lookup: Some(prompt_lookup),
                ..greedy(golden.greedy.len())
            };
            let found = generate(&mut session, &golden.ids, &options).unwrap();
            assert_eq!(found.ids, golden.expected(), "{}", golden.name);
            drafted += found.stats.drafted_tokens;
            accepted += found.stats.accepted_tokens;
        }
    }
    assert!(accepted > 0, "no drafted token was right");
    assert!(drafted > accepted, "no drafted token was wrong");
}

#[test]
fn every_instruction_set_gives_the_goldens() {
    for set in InstructionSet::available() {
        check(Setup::default().with(set).golden());
    }
}

#[test]
fn every_cache_gives_the_goldens() {
    for kv in [KvType::F32, KvType::Int8] {
        check(Setup::default().on_cpu().kv(kv).golden());
    }
}

/// A token of the bundled model whose lead is small may be overtaken, see `tests/session/bundled.rs`.
#[test]
fn the_bundled_model_gives_its_goldens() {
    let mut session = Setup::default().on_cpu().bundled();
    for golden in &Goldens::bundled().prompts {
        let found = generate(&mut session, &golden.ids, &greedy(golden.greedy.len())).unwrap();
        let expected = golden.expected();
        let differs = (0..golden.greedy.len()).find(|&i| found.ids.get(i) != expected.get(i));
        if let Some(step) = differs {
            let (name, lead) = (&golden.name, golden.greedy_margins[step]);
            assert!(lead < 0.3, "{name} differs at step {step}, where the lead is {lead}");
        }
    }
}
