//! Sessions on the CPU: the same bits alone and among others, on any number of threads, and
//! from a cache that was saved.

use tritloom::compute::{Choosing, Compute, KvType, Seat, Site, Span, Tap};
use tritloom::cpu::OnCpu;
use tritloom::native::block_on;
use tritloom::sampling::Mask;
use tritloom::session::{LoadOptions, Session};
use tritloom::source::Reader;

use crate::setup::{Setup, noise, small};
use crate::support::assert_error;

const CACHES: [KvType; 3] = [KvType::F16, KvType::F32, KvType::Int8];

fn logits(compute: &dyn Compute, first: usize, ids: &[u32]) -> Vec<f32> {
    compute.use_cache(first);
    block_on(compute.prefill_and_read(ids, 0, 0).take()).unwrap()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let ids = noise(70);
    let of = |threads| {
        let session = Setup::default().on_cpu().threads(threads).small();
        logits(session.compute(), 0, &ids)
    };
    let alone = of(1);
    for threads in [2, 5] {
        assert_eq!(of(threads), alone, "{threads} threads");
    }
}

/// A prompt at once, in chunks, and a token at a time; at the beginning of the cache and behind it.
#[test]
fn a_token_has_the_same_bits_however_it_is_computed() {
    for kv in CACHES {
        let session = Setup::default().on_cpu().kv(kv).small();
        let compute = session.compute();
        let ids = noise(23);
        let expected = logits(compute, 0, &ids);
        compute.use_cache(100);
        for (pos, id) in ids[..22].iter().enumerate() {
            block_on(compute.prefill(&[*id], pos, 0..23).take()).unwrap();
        }
        let one_by_one = block_on(compute.prefill_and_read(&ids[22..], 22, 22).take()).unwrap();
        assert!(one_by_one == expected, "{kv:?}: one by one");
        compute.use_cache(200);
        block_on(compute.prefill(&ids[..9], 0, 0..23).take()).unwrap();
        let in_chunks = block_on(compute.prefill_and_read(&ids[9..], 9, 0).take()).unwrap();
        assert!(in_chunks == expected, "{kv:?}: in chunks");
        // Copied, and read and written, to other positions.
        compute.copy_cache(200, 300, 22);
        for buffer in 0..compute.cache_buffers() {
            let words = block_on(compute.read_cache(buffer, 200, 22).take()).unwrap();
            assert_eq!(words.len() * 4, 22 * compute.position_bytes());
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            block_on(compute.write_cache(buffer, 400, &bytes).take()).unwrap();
        }
        for first in [300, 400] {
            compute.use_cache(first);
            let found = block_on(compute.prefill_and_read(&ids[22..], 22, 22).take()).unwrap();
            assert!(found == expected, "{kv:?}: from the copy at {first}");
        }
    }
}

/// Sequences of a batch get the tokens that they would get alone.
#[test]
fn sequences_of_a_batch_do_not_depend_on_one_another() {
    let session = Setup::default().on_cpu().small();
    let compute = session.compute();
    let seats: Vec<Seat> = (0..5).map(|n| Seat { slot: n, first: 100 * n, pos: 3 + n }).collect();
    let start = || {
        for seat in &seats {
            compute.use_cache(seat.first);
            compute.use_slot(seat.slot);
            let ids = &noise(60)[10 * seat.slot..][..seat.pos];
            block_on(compute.prefill(ids, 0, 0..seat.pos).take()).unwrap();
            compute.put_token(seat.slot, 40 + seat.slot as u32);
        }
    };
    start();
    let together = block_on(compute.decode_batch(&seats, 7).take()).unwrap();
    start();
    for (seat, together) in seats.iter().zip(together) {
        compute.use_cache(seat.first);
        compute.use_slot(seat.slot);
        let alone = block_on(compute.decode_and_sample(seat.pos, 7).take()).unwrap();
        assert_eq!(alone, together, "sequence {}", seat.slot);
    }
}

/// A draft pass chooses what single steps would, also with a mask for each of its tokens.
#[test]
fn a_draft_pass_chooses_what_steps_choose() {
    let session = Setup::default().on_cpu().small();
    let compute = session.compute();
    let ids = noise(8);
    let n_vocab = compute.config().n_vocab;
    let best = |logits: &[f32], allowed: &dyn Fn(u32) -> bool| {
        let ids = (0..n_vocab as u32).filter(|&id| allowed(id));
        ids.rev().max_by(|&a, &b| logits[a as usize].total_cmp(&logits[b as usize])).unwrap()
    };
    let logits: Vec<Vec<f32>> = (1..=8).map(|n| logits(compute, 0, &ids[..n])).collect();
    let chosen = |masked: bool| {
        compute.set_choosing(&tritloom::compute::Choosing { masked, ..Default::default() });
        let masks: Vec<Mask> = (0..8)
            .map(|n| Mask::of(n_vocab, (0..n_vocab as u32).filter(|id| id % 8 == n)))
            .collect();
        compute.write_masks(0, &masks).unwrap();
        let choices = block_on(compute.decode_and_choose(&ids, 0, &[]).take()).unwrap();
        choices.iter().map(|choice| choice.id).collect::<Vec<u32>>()
    };
    let free: Vec<u32> = logits.iter().map(|logits| best(logits, &|_| true)).collect();
    assert_eq!(chosen(false), free);
    let masked = logits.iter().zip(0..).map(|(logits, n)| best(logits, &|id| id % 8 == n));
    assert_eq!(chosen(true), masked.collect::<Vec<u32>>());
}

/// A pass of several texts reads the values that each text has alone.
#[test]
fn products_and_hidden_states_are_those_of_the_text_alone() {
    let session = Setup::default().on_cpu().small();
    let compute = session.compute();
    let (a, b) = (noise(5), noise(3));
    let sites = [Site::Qkv, Site::Output, Site::GateUp, Site::Down];
    for tap in sites.map(|site| Tap::Product(1, site)).into_iter().chain([Tap::Hidden]) {
        let span = |first, ids| Span { first, pos: 0, ids, next: None };
        let both = [span(0, &a[..]), span(50, &b[..])];
        let chosen: Vec<usize> = (0..8).collect();
        let together = block_on(compute.tap(&both, &chosen, tap).take()).unwrap();
        let alone: Vec<Vec<f32>> = both
            .iter()
            .flat_map(|&span| {
                block_on(compute.tap(&[span], &chosen[..span.ids.len()], tap).take()).unwrap()
            })
            .collect();
        assert!(together == alone, "{tap:?}");
    }
}

#[test]
fn info_says_that_the_cpu_computes() {
    let session = Setup::default().on_cpu().threads(2).small();
    let info = serde_json::to_value(session.info()).unwrap();
    assert_eq!(info["backend"], "cpu");
    let adapter = info["adapter"].as_str().unwrap();
    assert!(adapter.contains("2 threads"), "{adapter}");
}

#[test]
fn bad_options_are_refused() {
    let load = |cpu: OnCpu, options: LoadOptions| {
        let bytes = small().build();
        block_on(Session::load(cpu, &mut Reader::new(&bytes[..]), &options, &mut |_| {}))
    };
    let none = OnCpu { threads: Some(0), ..OnCpu::default() };
    assert_error(load(none, LoadOptions::default()), "bad-option", &["threads"]);
    for (context, fact) in [(0, "at least 1"), (1025, "1024")] {
        let mut options = LoadOptions::default();
        options.engine.context = Some(context);
        assert_error(load(OnCpu::default(), options), "bad-option", &["context", fact]);
    }
}

/// The profile of a step has its bytes, and the rates that follow from its times.
#[test]
fn a_step_is_timed_in_two_parts() {
    let greedy = Choosing::default();
    let mut session = Setup::default().on_cpu().small();
    for (pos, tokens) in [(10, 1), (0, 30)] {
        let profile = block_on(session.profile(pos, tokens, &greedy)).unwrap();
        let mut names: Vec<&str> = profile.kernels.iter().map(|part| &*part.kernel).collect();
        names.sort_unstable();
        assert_eq!(names, ["layers", "lm_head"]);
        let bytes: u64 = profile.kernels.iter().map(|part| part.bytes).sum();
        assert_eq!(bytes, session.bytes_per_token(pos + tokens - 1));
        for part in &profile.kernels {
            let rate = part.bytes as f64 / part.microseconds / 1e3;
            assert!((part.gigabytes_per_second - rate).abs() <= 1e-9 * rate, "{part:?}");
            assert!((part.share - rate / profile.bandwidth).abs() <= 1e-9 * part.share, "{part:?}");
        }
    }
    let mut session = Setup::default().on_reference().small();
    let why = block_on(session.profile(10, 1, &greedy)).map(drop);
    assert_error(why, "missing-feature", &["reference"]);
}
