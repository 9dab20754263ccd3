//! A token that a mask forbids is never chosen: in steps, in batches and in draft passes. The token that is
//! chosen is the one that plain Rust chooses from the same logits and masks.

use std::rc::Rc;

use tritloom::compute::{Choice, Choosing, Compute, LmHead, Seat};
use tritloom::native::block_on;
use tritloom::sampling::{LogitBias, Mask, Sampling};

use crate::setup::{Setup, noise};

/// A few tokens, others for each `n`: so few that the best one of all is hardly ever allowed.
fn mask(compute: &dyn Compute, n: u32) -> Mask {
    let n_vocab = compute.config().n_vocab;
    Mask::of(n_vocab, (0..n_vocab as u32).filter(|id| id.wrapping_mul(2_654_435_761) >> 24 == n))
}

fn masked(sampling: Sampling) -> Choosing {
    Choosing { masked: true, ..sampling.into() }
}

/// Greedily, drawn from all, drawn from those that are kept, and with penalties.
fn settings() -> [Sampling; 4] {
    let drawn = Sampling { temperature: 1.5, seed: 4, ..Sampling::default() };
    let kept = Sampling { top_k: 3, top_p: 0.9, ..drawn };
    let penalized = Sampling { repeat_penalty: 1.3, frequency_penalty: 0.5, ..Sampling::default() };
    [Sampling::default(), drawn, kept, penalized]
}

/// With and without a split LM head and biases.
#[test]
fn a_step_chooses_among_the_tokens_of_its_mask() {
    let ids = noise(9);
    let gpu = Setup::default;
    for setup in [gpu().on_reference(), gpu().lm_head(LmHead::F16), gpu().lm_head(LmHead::Int8)] {
        let session = setup.small();
        let compute = session.compute();
        for (n, sampling) in settings().into_iter().enumerate() {
            let mask = mask(compute, n as u32);
            let bias: LogitBias = [(ids[0], 2.0), (7, -1.0)].into_iter().collect();
            for bias in [LogitBias::default(), bias] {
                let choosing = Choosing { bias: Rc::new(bias.clone()), ..masked(sampling) };
                compute.set_choosing(&choosing);
                compute.write_masks(0, std::slice::from_ref(&mask)).unwrap();
                compute.count(&ids, &[]);
                let mut logits = block_on(compute.prefill_and_read(&ids, 0, 0).take()).unwrap();
                bias.add_to(&mut logits);
                sampling.penalize(&mut logits, &ids, &[]);
                mask.apply_to(&mut logits);
                let expected = sampling.choose(&logits, ids.len() as u32).unwrap();
                let chosen = block_on(compute.prefill_and_sample(&ids, 0, 0).take()).unwrap();
                assert_eq!(
                    chosen[0].id,
                    expected,
                    "{}, {sampling:?}, {bias:?}",
                    compute.about().adapter
                );
            }
        }
        // Without a mask again, all tokens count.
        compute.set_choosing(&Choosing::default());
        let logits = block_on(compute.prefill_and_read(&ids, 0, 0).take()).unwrap();
        let best = Sampling::default().choose(&logits, 0).unwrap();
        let chosen = block_on(compute.prefill_and_sample(&ids, 0, 0).take()).unwrap();
        assert_eq!(chosen[0].id, best);
    }
}

/// The mask is written between the two halves of a step.
#[test]
fn a_step_in_two_halves_chooses_the_same_token() {
    let ids = noise(9);
    for setup in [Setup::default().on_reference(), Setup::default()] {
        let session = setup.small();
        let compute = session.compute();
        for sampling in settings() {
            let begin = || {
                compute.set_choosing(&Choosing { logprobs: Some(2), ..masked(sampling) });
                compute.write_masks(0, &[mask(compute, 1)]).unwrap();
                compute.count(&ids, &[]);
                block_on(compute.prefill_and_sample(&ids, 0, 0).take()).unwrap()
            };
            let whole = (begin(), {
                compute.write_masks(0, &[mask(compute, 2)]).unwrap();
                block_on(compute.decode_and_sample(ids.len(), 1).take()).unwrap()
            });
            let halves = (begin(), {
                let seats = [Seat { slot: 0, first: 0, pos: ids.len() }];
                compute.decode_ahead(&seats);
                compute.write_masks(0, &[mask(compute, 2)]).unwrap();
                block_on(compute.choose(&seats, &[0]).take()).unwrap().remove(0)
            });
            assert_eq!(halves, whole, "{}, {sampling:?}", compute.about().adapter);
        }
    }
}

/// Some sequences of a batch have a mask, each its own, and the others have none.
#[test]
fn sequences_of_a_batch_have_masks_of_their_own() {
    for setup in [Setup::default().on_reference(), Setup::default()] {
        check_batch(setup.small().compute());
    }
}

fn check_batch(compute: &dyn Compute) {
    let drawn = Sampling { temperature: 1.5, seed: 4, ..Sampling::default() };
    let choosing = [masked(Sampling::default()), Choosing::default(), masked(drawn), drawn.into()];
    let ids = noise(6);
    let prepare = |slot: usize| {
        compute.use_slot(slot);
        compute.use_cache(slot * 64);
        compute.set_choosing(&choosing[slot]);
        if choosing[slot].masked {
            compute.write_masks(slot, &[mask(compute, slot as u32)]).unwrap();
        }
        block_on(compute.prefill_and_sample(&ids[slot..], 0, 0).take()).unwrap();
        Seat { slot, first: slot * 64, pos: ids.len() - slot }
    };
    let alone: Vec<_> = (0..4)
        .map(|slot| {
            let seat = prepare(slot);
            block_on(compute.decode_and_sample(seat.pos, 3).take()).unwrap()
        })
        .collect();
    let seats: Vec<Seat> = (0..4).map(prepare).collect();
    let together = block_on(compute.decode_batch(&seats, 3).take()).unwrap();
    assert_eq!(together, alone);
    // In two halves, of which the second leaves a sequence out.
    let seats: Vec<Seat> = (0..4).map(prepare).collect();
    compute.decode_ahead(&seats);
    let halves = block_on(compute.choose(&seats, &[0, 1, 3]).take()).unwrap();
    let expected: Vec<_> = [0, 1, 3].map(|slot| alone[slot][..1].to_vec()).into();
    assert_eq!(halves, expected);
    for slot in [0, 2] {
        let mask = mask(compute, slot as u32);
        assert!(together[slot].iter().all(|choice| mask.allows(choice.id)));
    }
}

/// Each token of a draft pass has a mask of its own: the pass chooses as steps do that get one after
/// another.
#[test]
fn tokens_of_a_draft_pass_have_masks_of_their_own() {
    for setup in [Setup::default().on_reference(), Setup::default()] {
        check_draft_pass(setup.small().compute());
    }
}

fn check_draft_pass(compute: &dyn Compute) {
    let penalized = Sampling { repeat_penalty: 1.3, ..Sampling::default() };
    let ids = noise(5);
    for sampling in [Sampling::default(), penalized] {
        compute.set_choosing(&masked(sampling));
        compute.count(&[], &[]);
        let masks: Vec<Mask> = (0..5).map(|n| mask(compute, 20 + n)).collect();
        let steps: Vec<_> = (0..5)
            .flat_map(|pos| {
                compute.write_masks(0, &masks[pos..pos + 1]).unwrap();
                block_on(compute.prefill_and_sample(&ids[pos..pos + 1], pos, pos).take()).unwrap()
            })
            .collect();
        compute.count(&[], &[]);
        compute.write_masks(0, &masks).unwrap();
        let pass = block_on(compute.decode_and_choose(&ids, 0, &[]).take()).unwrap();
        assert_eq!(pass, steps, "{sampling:?}");
        let allowed = |(choice, mask): (&Choice, &Mask)| mask.allows(choice.id);
        assert!(pass.iter().zip(&masks).all(allowed));
    }
}

#[test]
fn a_mask_that_cannot_be_used_is_refused() {
    let (gpu, reference) = (Setup::default().small(), Setup::default().on_reference().small());
    let n_vocab = gpu.compute().config().n_vocab;
    let slots = gpu.compute().traits().slots;
    let one = Mask::of(n_vocab, [1]);
    for masks in [
        vec![Mask::of_none(n_vocab)],
        vec![Mask::of(n_vocab + 1, [1])],
        vec![one.clone(); slots + 1],
    ] {
        for session in [&gpu, &reference] {
            let error = session.compute().write_masks(0, &masks).unwrap_err();
            assert_eq!(error.code(), "internal");
        }
    }
    gpu.compute().write_masks(0, &vec![one; slots]).unwrap();
}
