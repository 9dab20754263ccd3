//! Passes that hold tokens of several sequences, and the log-probabilities of texts.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use tritloom::compute::{Compute, MAX_SPANS, Site, Span, Tap};
use tritloom::native::block_on;
use tritloom::sampling::Logprobs;
use tritloom::session::Session;

use crate::setup::{Setup, largest_difference, noise};
use crate::support::{assert_error, path};

/// Scores tokens of two sequences whose beginnings are in the KV cache, at other positions of it.
fn scores(compute: &dyn Compute, spans: &[Span<'_>]) -> Vec<Vec<f32>> {
    block_on(compute.score(spans).take()).unwrap()
}

#[test]
fn each_sequence_of_a_pass_gets_what_it_gets_alone() {
    let ids = noise(40);
    let mut all = Vec::new();
    for setup in [Setup::exact().on_reference(), Setup::exact(), Setup::exact().like_a_card()] {
        let session = setup.small();
        let compute = session.compute();
        // Their beginnings share passes too.
        let (short, long) = (|n: usize| &ids[30..30 + n], &ids[..20]);
        for pos in (0..20).step_by(5) {
            let long = Span { first: 0, pos, ids: &long[pos..pos + 5], next: None };
            let short = Span { first: 300, pos: 0, ids: short(2), next: None };
            block_on(compute.pass(&[long, short]).take()).unwrap();
        }
        let long = Span { first: 0, pos: 20, ids: &ids[20..24], next: None };
        let short = Span { first: 300, pos: 2, ids: &ids[32..36], next: None };
        let together = scores(compute, &[long, short]);
        let alone = [scores(compute, &[short]), scores(compute, &[long])];
        assert_eq!(together, [&alone[1][0][..], &alone[0][0][..]]);
        assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        // The first token of the second sequence to be scored, by all logits after those before it.
        compute.use_cache(300);
        let logits = block_on(compute.prefill_and_read(&ids[32..33], 2, 2).take()).unwrap();
        let expected = Logprobs::new(&logits, ids[33], 0).logprob;
        assert!((together[1][0] - expected).abs() < 1e-4, "{} {expected}", together[1][0]);
        all.push(together.concat());
    }
    // Other sums may tip a rounding of an input to int8, and that moves a logit by 0.2.
    for found in &all[1..] {
        let off = found.iter().zip(&all[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 0.6, "{off}: {found:?}, not {:?}", all[0]);
    }
}

/// More tokens than there are slots, for either kernel of prompts. The beginning of one sequence is in the
/// cache, another has a single token, and what follows each is as after a prompt of its own.
#[test]
fn a_pass_of_many_tokens_computes_what_prompts_compute() {
    let ids = noise(120);
    // Kernels of one token and of several add floats in another order. Where inputs are rounded to int8,
    // that may tip one.
    let models = [("qwen3-q2_0.gguf", 2e-3), ("bitnet-i2_s.gguf", 0.3)];
    let of_models = models.iter().flat_map(|model| [9, 20].map(|more| (model, more)));
    for (&(model, allowed), more) in of_models {
        let model = fs::read(path("tests/data/models").join(model)).unwrap();
        for setup in [Setup::exact(), Setup::exact().like_a_card()] {
            let (session, alone) = (setup.load(&model).unwrap(), setup.load(&model).unwrap());
            let compute = session.compute();
            compute.use_cache(0);
            block_on(compute.prefill(&ids[..10], 0, 0..10).take()).unwrap();
            let mut spans = vec![
                Span { first: 0, pos: 10, ids: &ids[10..10 + more], next: Some(7) },
                Span { first: 90, pos: 0, ids: &ids[40..47], next: Some(8) },
                Span { first: 110, pos: 0, ids: &ids[50..51], next: Some(9) },
            ];
            if more == 20 {
                // More spans than a step has rows for, and more tokens than a short prompt has.
                spans.extend((0..15).map(|n| {
                    let first = 120 + 4 * n;
                    Span { first, pos: 0, ids: &ids[60 + n..62 + n], next: Some(10) }
                }));
            }
            let tapped = [5, more + 3, more + 7].map(|token| {
                let hidden = block_on(compute.tap(&spans, &[token], Tap::Hidden).take()).unwrap();
                let product = Tap::Product(1, Site::GateUp);
                let product = block_on(compute.tap(&spans, &[token], product).take()).unwrap();
                [hidden, product].concat()
            });
            let scores = scores(compute, &spans);
            assert_eq!(scores.iter().take(3).map(Vec::len).collect::<Vec<_>>(), [more, 7, 1]);
            // All but most of the many short ones.
            let looked_at = spans.iter().enumerate().filter(|&(n, _)| n < 3 || n % 7 == 3);
            for (n, &Span { first, pos, ids: span, next }) in looked_at {
                let prompt = [if pos > 0 { &ids[..pos] } else { &[] }, span].concat();
                compute.use_cache(first);
                let found =
                    block_on(compute.prefill_and_read(&[3], prompt.len(), prompt.len()).take())
                        .unwrap();
                let alone = alone.compute();
                let after = |ids: &[u32], pos| {
                    block_on(alone.prefill_and_read(ids, pos, pos).take()).unwrap()
                };
                let last = after(&prompt, 0);
                let expected = after(&[3], prompt.len());
                let off = largest_difference(&found, &expected);
                assert!(off < allowed, "{n} of {more}: {off}");
                let expected = Logprobs::new(&last, next.unwrap(), 0).logprob;
                let found = *scores[n].last().unwrap();
                assert!(
                    (found - expected).abs() < allowed,
                    "{n} of {more}: {found}, not {expected}"
                );
            }
            // A token's values do not depend on the tokens beside it.
            for (n, (span, token)) in [(0, 5), (1, 3), (2, 0)].into_iter().enumerate() {
                let of =
                    |tap| block_on(compute.tap(&spans[span..=span], &[token], tap).take()).unwrap();
                let alone = [of(Tap::Hidden), of(Tap::Product(1, Site::GateUp))].concat();
                for (found, expected) in tapped[n].iter().zip(&alone) {
                    let off = largest_difference(found, expected);
                    let greatest = expected.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
                    assert!(off < 0.05 * greatest, "{n} of {more}: {off} of {greatest}");
                }
            }
        }
    }
}

/// On a card, spans after long contexts have several splits, and those of others see nothing there.
#[test]
fn spans_after_contexts_of_several_lengths_get_what_they_get_alone() {
    let model = fs::read(path("tests/data/models/qwen3-q2_0.gguf")).unwrap();
    let ids = noise(180);
    let cached = [(0, 170), (184, 40), (240, 0)];
    let found = [Setup::exact(), Setup::exact().like_a_card()].map(|setup| {
        let session = setup.context(256).load(&model).unwrap();
        let compute = session.compute();
        for (first, n) in cached {
            compute.use_cache(first);
            for (pos, ids) in (0..).step_by(64).zip(ids[..n].chunks(64)) {
                block_on(compute.prefill(ids, pos, pos..pos + ids.len()).take()).unwrap();
            }
        }
        let spans =
            cached.map(|(first, pos)| Span { first, pos, ids: &ids[pos..pos + 10], next: Some(7) });
        let alone = spans.map(|span| scores(compute, &[span]).concat());
        let together = scores(compute, &spans);
        assert!(largest_difference(&alone.concat(), &together.concat()) < 2e-3);
        together.concat()
    });
    assert!(largest_difference(&found[0], &found[1]) < 2e-3);
}

/// Texts of several lengths after a prefix that takes more than a chunk: each token has the
/// log-probability of the logits after those before it.
#[test]
fn scores_are_those_of_the_logits() {
    let prefix = noise(70);
    let texts: Vec<Vec<u32>> = [1, 5, 0, 12, 3, 2, 4, 9, 7, 6]
        .into_iter()
        .map(|n| (0..n).map(|i| (31 * n + 7 * i) % 264).collect())
        .collect();
    let mut session = Setup::exact().on_reference().small();
    let found = block_on(session.score(&prefix, &texts)).unwrap();
    for (text, found) in texts.iter().zip(found) {
        assert_eq!(found.len(), text.len());
        for (n, (&id, found)) in text.iter().zip(found).enumerate() {
            let ids = [&prefix, &text[..n]].concat();
            let logits = block_on(session.logits(&ids)).unwrap();
            assert_eq!(found, Logprobs::new(&logits, id, 0).logprob, "{text:?} {n}");
        }
    }
}

/// A caller may give up at any wait. Tokens that count as computed then are computed.
#[test]
fn scores_that_are_given_up_leave_no_wrong_keys() {
    let prefix = noise(200);
    let texts = [noise(16)[4..].to_vec(), noise(9)];
    let setup = Setup::exact().on_reference();
    let all = [&prefix[..], &texts[0], &[7]].concat();
    let expected = block_on(setup.small().logits(&all)).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    for waits in 1.. {
        let mut session = setup.small();
        let done = {
            let mut scoring = pin!(session.score(&prefix, &texts));
            (0..waits).any(|_| scoring.as_mut().poll(&mut context).is_ready())
        };
        assert_eq!(block_on(session.logits(&all)).unwrap(), expected, "after {waits} waits");
        if done {
            assert!(waits > 6, "{waits}");
            break;
        }
    }
}

/// A model whose values are rounded nowhere but in f32. With a context of a few tokens there is one slot, so
/// the LM head takes a token at a time.
#[test]
fn the_gpu_scores_as_the_reference_does() {
    let model = fs::read(path("tests/data/models/qwen3-q2_0.gguf")).unwrap();
    let setups = [Setup::exact, || Setup::exact().like_a_card(), || Setup::exact().context(4)];
    for setup in setups {
        let mut session = setup().load(&model).unwrap();
        let mut reference = setup().on_reference().load(&model).unwrap();
        let longest = session.info().context_length.min(60);
        let texts = [20, 3, 1, 9].map(|n: usize| noise(longest + n - 2)[n..].to_vec());
        let scores = |session: &mut Session| block_on(session.score(&[5, 9], &texts)).unwrap();
        let (found, expected) = (scores(&mut session), scores(&mut reference));
        let off = largest_difference(&found.concat(), &expected.concat());
        assert!(off < 1e-3, "{off}: {found:?}, not {expected:?}");
    }
}

#[test]
fn a_pass_of_no_tokens_or_too_many_is_refused() {
    fn span(ids: &[u32]) -> Span<'_> {
        Span { first: 0, pos: 0, ids, next: None }
    }
    for setup in [Setup::default().on_reference(), Setup::default()] {
        let session = setup.small();
        let compute = session.compute();
        let ids = vec![1; compute.traits().pass + 1];
        let refused = [
            vec![],
            vec![span(&[])],
            vec![span(&ids[..1]), span(&[])],
            vec![span(&ids)],
            vec![span(&ids[..1]); MAX_SPANS + 1],
        ];
        for spans in &refused {
            assert_error(block_on(compute.pass(spans).take()), "bad-option", &["`pass`"]);
            assert_error(block_on(compute.score(spans).take()), "bad-option", &["`pass`"]);
            let tapped = compute.tap(spans, &[0], Tap::Hidden);
            assert_error(block_on(tapped.take()), "bad-option", &["`pass`"]);
        }
    }
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let mut session = Setup::default().on_reference().context(32).small();
    let code = |prefix: &[u32], text: Vec<u32>, session: &mut tritloom::session::Session| {
        block_on(session.score(prefix, &[text])).unwrap_err().code()
    };
    assert_eq!(code(&[], vec![1], &mut session), "bad-option");
    assert_eq!(code(&[1], vec![9999], &mut session), "bad-option");
    assert_eq!(code(&[1], vec![1; 32], &mut session), "context-full");
}

/// The result of each product of each block, and the hidden state, of chosen tokens of two sequences.
/// Values of the second block show that the first one was computed whole. A model with a norm before
/// each product, one whose heads are normed, and one whose products round their input.
#[test]
fn taps_read_the_values_that_the_reference_computes() {
    let ids = noise(8);
    let beginning = Span { first: 90, pos: 0, ids: &ids[4..6], next: None };
    let spans = [
        Span { first: 0, pos: 0, ids: &ids[..4], next: None },
        Span { pos: 2, ids: &ids[6..], ..beginning },
    ];
    let sites = [Site::Qkv, Site::Output, Site::GateUp, Site::Down];
    let products = sites.iter().flat_map(|&site| [0, 1].map(|block| Tap::Product(block, site)));
    let taps: Vec<Tap> = products.chain([Tap::Hidden]).collect();
    let tapped = |compute: &dyn Compute, tap| {
        block_on(compute.pass(&[beginning]).take()).unwrap();
        block_on(compute.tap(&spans, &[5, 0, 3, 5], tap).take()).unwrap()
    };
    for model in ["qwen3-q2_0.gguf", "bitnet-tq2_0.gguf", "bitnet-i2_s.gguf"] {
        let model = fs::read(path("tests/data/models").join(model)).unwrap();
        let reference = Setup::exact().on_reference().load(&model).unwrap();
        for setup in [Setup::exact(), Setup::exact().like_a_card(), Setup::exact().on_cpu()] {
            let session = setup.load(&model).unwrap();
            for &tap in &taps {
                let found = tapped(session.compute(), tap);
                let expected = tapped(reference.compute(), tap);
                let width = tap.width(session.compute().config());
                assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [width; 4]);
                assert_eq!(found[0], found[3]);
                assert_ne!(found[0], found[1]);
                for (found, expected) in found.iter().zip(&expected) {
                    let greatest = expected.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
                    let off = largest_difference(found, expected) / greatest;
                    // A rounding to int8 may tip.
                    assert!(greatest > 0.0 && off < 0.02, "{tap:?}: {off}");
                }
            }
        }
    }
}

#[test]
fn taps_of_no_block_and_of_no_token_are_refused() {
    let spans = [
        Span { first: 0, pos: 0, ids: &[1, 2], next: None },
        Span { first: 90, pos: 0, ids: &[3], next: None },
    ];
    let refused: [(Tap, &[usize], &str); 3] = [
        (Tap::Product(2, Site::Qkv), &[0], "the model has 2"),
        (Tap::Hidden, &[], "no token"),
        (Tap::Hidden, &[0, 3], "the pass has 3"),
    ];
    for setup in [Setup::default().on_reference(), Setup::default().on_cpu(), Setup::default()] {
        let session = setup.small();
        for (tap, chosen, why) in refused {
            let tapped = block_on(session.compute().tap(&spans, chosen, tap).take());
            assert_error(tapped, "bad-option", &["`tap`", why]);
        }
    }
}
