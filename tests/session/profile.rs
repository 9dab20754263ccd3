//! The profile of a step: its time, its bytes, and how they compare with the memory's speed.

use std::collections::BTreeSet;

use tritloom::compute::Choosing;
use tritloom::gpu::LimitCaps;
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{KvType, LmHead, Session};

use crate::setup::{Setup, generate, greedy};

/// The bytes that a decode step of the bundled model must read: every weight once, as stored on the
/// GPU, with a scale for each row.
fn weights() -> f64 {
    let (n_embd, n_kv, n_ff, n_vocab, n_layer) = (512, 256, 1408, 4096, 8);
    let matrices =
        [(n_embd + 2 * n_kv, n_embd), (n_embd, n_embd), (2 * n_ff, n_embd), (n_embd, n_ff)];
    let ternary: usize = matrices.iter().map(|(rows, columns)| rows * columns / 4 + 4 * rows).sum();
    let norms = 4 * (3 * n_embd + n_ff);
    (2 * n_vocab * n_embd + 4 * n_embd + n_layer * (ternary + norms)) as f64
}

/// The bytes of the keys and values of one position.
const POSITION: u64 = 8 * 2 * 256 * 2;

fn setups() -> [Setup; 3] {
    let mut shards = Setup::default();
    shards.gpu.limits =
        LimitCaps { max_storage_buffer_binding_size: Some(1 << 20), ..LimitCaps::default() };
    [Setup::default(), Setup::default().like_a_card(), shards]
}

#[test]
fn a_token_of_the_bundled_model_reads_the_weights_and_the_cache() {
    for setup in setups() {
        let session = setup.bundled();
        // Activations add a few per cent in so small a model, also in shards.
        for pos in [0, 100, 1000] {
            let least = weights() + (POSITION * (pos + 2)) as f64;
            let share = session.bytes_per_token(pos as usize) as f64 / least;
            assert!((1.0..1.06).contains(&share), "{share} of the least at {pos}");
        }
        // With the same number of splits in attention, only the cache differs.
        let more = session.bytes_per_token(120) - session.bytes_per_token(100);
        assert_eq!(more, 20 * POSITION);
    }
    // A greedy token reads half of a split embedding.
    let mut int8 = Setup::default();
    int8.load.engine.lm_head = LmHead::Int8;
    let whole = Setup::default().bundled();
    assert_eq!(whole.info().bytes_per_token, whole.bytes_per_token(0));
    let whole = whole.bytes_per_token(0) as f64;
    let half = whole - int8.bundled().bytes_per_token(0) as f64;
    assert!((0.95..1.0).contains(&(half / (4096.0 * 512.0))), "{half} bytes fewer");
    let f32 = Setup::default().kv(KvType::F32).bundled();
    assert_eq!(f32.bytes_per_token(120) - f32.bytes_per_token(100), 20 * 2 * POSITION);
}

#[test]
fn measuring_the_bandwidth_frees_its_memory() {
    // If a binding is smaller than the probe, the probe uses several.
    for setup in setups() {
        let session = setup.small();
        let before = session.compute().about().gpu_bytes;
        let measured = block_on(session.bandwidth()).unwrap();
        assert!(measured.is_finite() && measured > 0.01, "{measured} GB/s");
        assert_eq!(block_on(session.bandwidth()).unwrap(), measured, "measured once");
        // A staging buffer may stay for the next read-back.
        assert!((0..=256).contains(&(session.compute().about().gpu_bytes - before)));
    }
}

/// The profiler runs a step and so overwrites the cache at its position. The next generation must
/// still be right. It is greedy again, whatever the profiled step was.
#[test]
fn profiling_leaves_the_session_usable() {
    let mut session = Setup::default().small();
    let prompt: Vec<u32> = (1..21).collect();
    let expected = generate(&mut session, &prompt, &greedy(8)).unwrap();
    check(&mut session);
    let found = generate(&mut session, &prompt, &greedy(8)).unwrap();
    assert_eq!((found.stats.reused_tokens, found.ids), (0, expected.ids));
    for (pos, tokens) in [(1020, 5), (0, 0), (usize::MAX, 1)] {
        let error = block_on(session.profile(pos, tokens, &Choosing::default())).unwrap_err();
        assert_eq!(error.code(), "bad-option");
    }
}

/// The profile adds up if the adapter has timestamps. llvmpipe has them.
fn check(session: &mut Session) {
    let profile = match block_on(session.profile(10, 1, &Choosing::default())) {
        Ok(profile) => profile,
        Err(error) => {
            let adapter = &session.info().adapter;
            assert!(!adapter.contains("llvmpipe"), "llvmpipe has timestamps: {error}");
            return assert_eq!(error.code(), "missing-feature");
        }
    };
    let calls: usize = profile.kernels.iter().map(|kernel| kernel.calls).sum();
    assert_eq!(calls, session.info().dispatches_per_token);
    let bytes: u64 = profile.kernels.iter().map(|kernel| kernel.bytes).sum();
    assert_eq!(bytes, session.bytes_per_token(10));
    let greedy: BTreeSet<_> = profile.kernels.iter().map(|kernel| &*kernel.kernel).collect();
    for kernel in &profile.kernels {
        assert!(session.info().kernels.contains(&kernel.kernel));
        let rate = kernel.bytes as f64 / kernel.microseconds / 1e3;
        assert!((kernel.gigabytes_per_second - rate).abs() <= 1e-9 * rate, "{kernel:?}");
        assert!(
            (kernel.share - rate / profile.bandwidth).abs() <= 1e-9 * kernel.share,
            "{kernel:?}"
        );
    }
    // A step that draws has other kernels at its end, which choose the token. Those before are a greedy step's.
    let drawn = Sampling { temperature: 0.7, top_k: 40, top_p: 0.95, ..Sampling::default() };
    let penalized = Sampling { repeat_penalty: 1.1, ..drawn };
    let filter = ["sample_bins", "sample_decide", "sample_max", "sample_sift"];
    for (sampling, more) in
        [(drawn, &filter[..]), (penalized, &[&["penalize"], &filter[..]].concat())]
    {
        let drawn = block_on(session.profile(10, 1, &sampling.into())).unwrap();
        let kernels: Vec<_> = drawn.kernels.iter().map(|kernel| &*kernel.kernel).collect();
        let mut others: Vec<_> = kernels.iter().copied().filter(|k| !greedy.contains(k)).collect();
        others.sort_unstable();
        assert_eq!(others, more, "{sampling:?}");
        let missing: Vec<_> = greedy.iter().filter(|k| !kernels.contains(k)).collect();
        assert_eq!(missing, [&"sample_best", &"sample_commit"]);
    }
}
