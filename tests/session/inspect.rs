//! An inspection reads what the model computes: against the values of the reference, against its own operation of
//! attention, and against logits.

use std::fs;

use tritloom::Result;
use tritloom::compute::{Site, Span, Tap};
use tritloom::model::Angles;
use tritloom::native::block_on;
use tritloom::reference::ops;
use tritloom::sampling::Logprobs;
use tritloom::session::{Activations, Head, InspectOptions, Inspected, KvType, Session};

use crate::embeddings;
use crate::setup::{Setup, generate, greedy, largest_difference, noise};
use crate::support::{assert_error, path};

const SITES: [Site; 4] = [Site::Qkv, Site::Output, Site::GateUp, Site::Down];

/// Models with heads that are normed, with pairs of neighbours in RoPE, and with products that round their input; and how far
/// apart two engines may be.
const MODELS: [(&str, f32); 3] =
    [("qwen3-q2_0", 2e-3), ("llama-tq2_0", 2e-3), ("bitnet-i2_s", 0.05)];

/// The CPU always rounds the inputs of products to int8.
const ON_CPU: f32 = 0.1;

fn load(setup: &Setup, model: &str) -> Session {
    setup.load(&fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap()).unwrap()
}

fn try_inspect(session: &mut Session, ids: &[u32], options: &InspectOptions) -> Result<Inspected> {
    block_on(session.inspect(ids, options, &mut |_| {}))
}

fn inspect(session: &mut Session, ids: &[u32], options: &InspectOptions) -> Inspected {
    try_inspect(session, ids, options).unwrap()
}

fn attention(session: &mut Session, ids: &[u32], head: Head) -> Vec<f32> {
    let options = InspectOptions { head: Some(head), ..InspectOptions::default() };
    inspect(session, ids, &options).attention
}

/// More tokens than the reference and the CPU take in a pass.
fn prompt() -> Vec<u32> {
    noise(21)
}

/// More tokens than a GPU takes in the first pass, which has more than it computes in groups.
fn long_prompt() -> Vec<u32> {
    noise(100)
}

#[test]
fn activations_are_those_of_the_values_that_the_reference_computes() {
    let ids = prompt();
    let options = InspectOptions { sites: SITES.to_vec(), ..InspectOptions::default() };
    for (model, allowed) in MODELS {
        let setup = Setup { pass: Some(64), ..Setup::exact().on_reference() };
        let reference = load(&setup, model);
        let (compute, all) = (reference.compute(), (0..ids.len()).collect::<Vec<_>>());
        let span = Span { first: 0, pos: 0, ids: &ids, next: None };
        let n_layer = compute.config().n_layer;
        let mut expected = Vec::new();
        for block in 0..n_layer {
            for site in SITES {
                let tap = Tap::Product(block, site);
                let values = block_on(compute.tap(&[span], &all, tap).take()).unwrap().concat();
                let squares = values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
                let rms = (squares / values.len() as f64).sqrt() as f32;
                let min = values.iter().copied().fold(f32::INFINITY, f32::min);
                let max = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                expected.push(Activations { block, site, min, max, rms, not_finite: 0 });
            }
        }
        for (setup, allowed) in [
            (Setup::exact().on_reference(), 1e-6),
            (Setup::exact().on_cpu(), ON_CPU),
            (Setup::exact(), allowed),
            (Setup::exact().like_a_card(), allowed),
        ] {
            let found = inspect(&mut load(&setup, model), &ids, &options).activations;
            assert_eq!(found.len(), 4 * n_layer);
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(
                    (found.block, found.site, found.not_finite),
                    (expected.block, expected.site, 0)
                );
                let size = expected.max.abs().max(expected.min.abs());
                let numbers = |one: &Activations| [one.min, one.max, one.rms];
                let off = largest_difference(&numbers(found), &numbers(expected)) / size;
                assert!(off < allowed, "{model}: {found:?}, not {expected:?}");
            }
        }
    }
}

/// The reference's own operation gives the weights: its values are the columns of a unit matrix.
#[test]
fn attention_is_that_of_the_operation_of_the_reference() {
    let ids = prompt();
    let session =
        &mut load(&Setup { pass: Some(64), ..Setup::exact().on_reference() }, "llama-tq2_0");
    let config = session.compute().config().clone();
    let (n_head, n_head_kv, head_dim) = (config.n_head, config.n_head_kv, config.head_dim);
    assert!(ids.len() <= head_dim, "a head has a value for each token");
    let angles = Angles::new(&config.rope, head_dim, None);
    let span = Span { first: 0, pos: 0, ids: &ids, next: None };
    let all: Vec<usize> = (0..ids.len()).collect();
    let tap = Tap::Product(1, Site::Qkv);
    let products = block_on(session.compute().tap(&[span], &all, tap).take()).unwrap();
    let (n_q, n_kv) = (n_head * head_dim, n_head_kv * head_dim);
    let (mut keys, mut values, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for (pos, products) in products.iter().enumerate() {
        let rope: Vec<[f64; 2]> = angles.at(pos).collect();
        let (mut q, mut k) = (products[..n_q].to_vec(), products[n_q..n_q + n_kv].to_vec());
        ops::rope_neighbours(&mut q, &rope);
        ops::rope_neighbours(&mut k, &rope);
        keys.extend(k);
        values.extend((0..n_kv).map(|i| if i % head_dim == pos { 1.0 } else { 0.0 }));
        rows.push(ops::attention(&q, &keys, &values, n_head, n_head_kv, head_dim));
    }
    let mut distinct = 0;
    for head in 0..n_head {
        let found = attention(session, &ids, Head { block: 1, head });
        for (pos, (found, expected)) in found.chunks(ids.len()).zip(&rows).enumerate() {
            let expected = &expected[head * head_dim..][..ids.len()];
            assert!(largest_difference(found, expected) < 1e-5, "head {head}, token {pos}");
            distinct += usize::from(found.iter().any(|weight| (weight - found[0]).abs() > 1e-3));
        }
    }
    assert!(distinct > n_head, "the heads weigh their tokens");
}

#[test]
fn attention_is_the_same_on_each_engine_and_in_each_kind_of_cache() {
    let ids = prompt();
    for (model, allowed) in MODELS {
        let reference = &mut load(&Setup::exact().on_reference(), model);
        let n_head = reference.info().heads;
        for head in [Head { block: 0, head: n_head - 1 }, Head { block: 1, head: 1 }] {
            let expected = attention(reference, &ids, head);
            for row in expected.chunks(ids.len()).enumerate() {
                let (before, after) = row.1.split_at(row.0 + 1);
                assert!((before.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                assert!(after.iter().all(|&weight| weight == 0.0));
            }
            for kv in [KvType::F32, KvType::F16, KvType::Int8] {
                // int8 rounds a value of a key to one of 255, and f16 to 11 bits.
                let rounding = match kv {
                    KvType::F32 => 0.0,
                    KvType::F16 => 0.01,
                    KvType::Int8 => 0.05,
                };
                let allowed = f32::max(allowed, rounding);
                let on_cpu = f32::max(ON_CPU, allowed);
                let setup = || Setup::exact().kv(kv);
                for (setup, allowed) in [
                    (setup().on_cpu(), on_cpu),
                    (setup(), allowed),
                    (setup().like_a_card(), allowed),
                ] {
                    let found = attention(&mut load(&setup, model), &ids, head);
                    let off = largest_difference(&found, &expected);
                    assert!(off < allowed, "{model}, {head:?}, {kv:?}: {off}");
                }
            }
        }
    }
}

/// A GPU has other kernels for a pass of many tokens. Here it also takes two of them.
#[test]
fn long_prompts_have_the_numbers_of_the_reference() {
    let (ids, model) = (long_prompt(), "qwen3-q2_0");
    let head = Head { block: 1, head: 1 };
    let options = InspectOptions { sites: SITES.to_vec(), head: Some(head), top: None };
    let expected = inspect(&mut load(&Setup::exact().on_reference(), model), &ids, &options);
    for setup in [Setup::exact(), Setup::exact().like_a_card()] {
        let found = inspect(&mut load(&setup, model), &ids, &options);
        let off = largest_difference(&found.attention, &expected.attention);
        assert!(off < 2e-3, "attention: {off}");
        for (found, expected) in found.activations.iter().zip(&expected.activations) {
            let size = expected.max.abs().max(expected.min.abs());
            let numbers = |one: &Activations| [one.min, one.max, one.rms];
            let off = largest_difference(&numbers(found), &numbers(expected)) / size;
            assert!(off < 2e-3, "{found:?}, not {expected:?}");
        }
    }
}

/// The first passes show how many tokens one may have. If each of them were slow, there would be more passes of few tokens.
#[test]
fn passes_become_longer() {
    let setup = Setup { pass: Some(400), chunk: Some(400), ..Setup::default().on_reference() };
    let session = &mut setup.small();
    let (ids, layers) = (noise(400), session.info().layers);
    let options = InspectOptions { sites: SITES.to_vec(), ..InspectOptions::default() };
    let mut passes = 0;
    block_on(session.inspect(&ids, &options, &mut |_| passes += 1)).unwrap();
    let short = SITES.len() * layers * ids.len().div_ceil(64);
    assert!(passes < short, "{passes} of {short}");
}

#[test]
fn candidates_are_those_of_the_logits_and_of_scores() {
    let ids = prompt();
    let options = InspectOptions { top: Some(3), ..InspectOptions::default() };
    for setup in [
        Setup::exact().on_reference(),
        Setup::exact().on_cpu(),
        Setup::exact(),
        Setup::exact().like_a_card(),
    ] {
        let session = &mut load(&setup, "qwen3-q2_0");
        let found = inspect(session, &ids, &options).candidates;
        assert_eq!(found.len(), ids.len());
        let scores = block_on(session.score(&ids[..1], &[ids[1..].to_vec()])).unwrap().concat();
        for (n, found) in found.iter().enumerate() {
            let logits = block_on(session.logits(&ids[..=n])).unwrap();
            let next = ids.get(n + 1).copied();
            let expected = Logprobs::new(&logits, next.unwrap_or(0), 3);
            let likeliest = |one: &Logprobs| one.top.iter().map(|top| top.1).collect::<Vec<_>>();
            assert!(largest_difference(&likeliest(found), &likeliest(&expected)) < 2e-3, "{n}");
            assert_eq!(found.top[0].0, expected.top[0].0, "{n}");
            match next {
                None => assert_eq!(found.logprob, 0.0),
                Some(_) => assert!((found.logprob - scores[n]).abs() < 2e-3, "{n}"),
            }
        }
    }
}

#[test]
fn an_inspection_tells_its_progress_and_leaves_answers_as_they_were() {
    for setup in [Setup::default().on_cpu(), Setup::default()] {
        let session = &mut setup.small();
        let ids = prompt();
        let before = generate(session, &ids, &greedy(5)).unwrap().ids;
        let mut shares = Vec::new();
        let options = InspectOptions {
            sites: vec![Site::Down],
            head: Some(Head { block: 0, head: 0 }),
            top: Some(0),
        };
        block_on(session.inspect(&ids, &options, &mut |share| shares.push(share))).unwrap();
        assert!(shares.windows(2).all(|two| two[0] < two[1]), "{shares:?}");
        assert_eq!(shares.last(), Some(&1.0));
        assert_eq!(generate(session, &ids, &greedy(5)).unwrap().ids, before);
        // Nothing that is asked for costs nothing.
        let nothing = inspect(session, &ids, &InspectOptions::default());
        assert_eq!(nothing, Inspected::default());
    }
}

#[test]
fn what_there_is_not_is_refused() {
    let session = &mut Setup::default().on_cpu().small();
    let n_ctx = session.info().context_length;
    let (layers, heads) = (session.info().layers, session.info().heads);
    let refused = |session: &mut Session, ids: &[u32], head, why: &str| {
        let options = InspectOptions { head, top: Some(1), ..InspectOptions::default() };
        assert_error(try_inspect(session, ids, &options), "bad-option", &[why]);
    };
    refused(session, &[], None, "is empty");
    refused(session, &[9999], None, "token 9999");
    refused(session, &[1], Some(Head { block: layers, head: 0 }), "`layer`");
    refused(session, &[1], Some(Head { block: 0, head: heads }), "`head`");
    let long = try_inspect(session, &vec![1; n_ctx + 1], &InspectOptions::default());
    assert_error(long, "context-full", &[]);

    let embedding = &mut embeddings::load(&Setup::default().on_cpu(), embeddings::BITNET);
    let candidates = InspectOptions { top: Some(1), ..InspectOptions::default() };
    assert_error(try_inspect(embedding, &[1, 2], &candidates), "embedding-model", &[]);
    let sites = InspectOptions { sites: vec![Site::Down], ..InspectOptions::default() };
    assert!(!inspect(embedding, &[1, 2], &sites).activations.is_empty());
}
