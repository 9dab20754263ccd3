//! The greedy text of a model of two layers, token by token to the end, on every way to run it.
//!
//! Every lead in `tests/data/golden` is above 2, and a rounding changes far less: whatever differs
//! is an error. `tests/reference.rs` shows that each tensor of the model decides about tokens.

use std::time::Duration;

use ternlight::gpu::Gpu;
use ternlight::session::{FinishReason, GenerateOptions, LmHead, Session, Stats};

use crate::setup::{Golden, Goldens, Setup, generate, greedy, is_slow};

/// Loads the model and generates all texts, with prompt lookup and without.
#[track_caller]
fn check(setup: &Setup, kernels: &[&str]) -> Session {
    let mut session = setup.golden();
    let found = &session.info().kernels;
    for kernel in kernels {
        assert!(found.iter().any(|name| name == kernel), "no {kernel} in {found:?}");
    }
    check_texts(&mut session);
    session
}

#[track_caller]
fn check_texts(session: &mut Session) {
    let context = session.info().context_length;
    // SwiftShader takes minutes for a card's kernels with long prompts; tests/kernels has them all.
    let slow = is_slow(session) && session.gpu().tuning.tiles;
    if slow {
        for name in ["once", "count"] {
            let goldens = Goldens::golden();
            let golden = goldens.prompt(name);
            let options =
                GenerateOptions { prompt_lookup: Some(true), ..greedy(golden.greedy.len()) };
            check_text(session, golden, &options);
        }
        return;
    }
    let (mut drafted, mut accepted) = (0, 0);
    for golden in &Goldens::golden().prompts {
        // Small bindings hold a small cache.
        if golden.ids.len() + golden.greedy.len() > context {
            assert_eq!(golden.name, "long", "the context is {context}");
            continue;
        }
        for prompt_lookup in [false, true] {
            let options = GenerateOptions {
                prompt_lookup: Some(prompt_lookup),
                ..greedy(golden.greedy.len())
            };
            let stats = check_text(session, golden, &options);
            drafted += stats.drafted_tokens;
            accepted += stats.accepted_tokens;
        }
    }
    assert!(accepted > 0, "no drafted token was right");
    assert!(drafted > accepted, "no drafted token was wrong");
}

#[track_caller]
fn check_text(session: &mut Session, golden: &Golden, options: &GenerateOptions) -> Stats {
    let found = generate(session, &golden.ids, options).unwrap();
    let what = format!("{}, prompt lookup {:?}", golden.name, options.prompt_lookup);
    assert_eq!(found.ids, golden.expected(), "{what}");
    assert_eq!(found.text, golden.greedy_text, "{what}");
    let reason = if golden.greedy_stopped { FinishReason::Stop } else { FinishReason::Length };
    assert_eq!(found.stats.finish_reason, reason, "{what}");
    found.stats
}

#[test]
fn as_the_adapter_is() {
    let session = check(&Setup::default(), &["attention"]);
    let longest = Goldens::golden().prompts.iter().map(|golden| golden.ids.len()).max();
    assert!(longest > Some(512), "no prompt is longer than a card's chunk");
    if session.gpu().subgroups.is_some() {
        let kernels = &session.info().kernels;
        assert!(kernels.iter().any(|name| name == "gemv_i2s/subgroup"), "{kernels:?}");
    }
}

#[test]
fn without_subgroups() {
    let session = check(&Setup::default().no_subgroups(), &["gemv_i2s/workgroup"]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().all(|kernel| !kernel.ends_with("/subgroup")), "{kernels:?}");
}

#[test]
fn with_an_f32_cache() {
    check(&Setup::default().kv_f32(), &[]);
}

/// Steps one after another, then several in flight, on one device.
#[test]
fn as_on_a_card() {
    let kernels = ["gemm_i2s", "attention_prefill"];
    let mut session = check(&Setup::default().like_a_card(), &kernels);
    session.suppose_steps_of(Duration::from_millis(1));
    check_texts(&mut session);
}

#[test]
fn as_on_a_card_without_subgroups_with_an_f32_cache() {
    check(&Setup::default().like_a_card().no_subgroups().kv_f32(), &["gemm_i2s"]);
}

#[test]
fn as_on_a_card_with_products_of_floats() {
    check(&Setup::default().like_a_card().packed_dot(Some(false)), &["gemm_i2s/f32-dot"]);
}

#[test]
fn with_an_int8_lm_head() {
    let session = check(&Setup::default().head(LmHead::Int8), &[]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|name| name.starts_with("rescore")), "{kernels:?}");
}

/// Bindings so small that the embedding is in three buffers. Each takes a dispatch more to look
/// tokens up, and one more for their logits.
#[test]
fn in_shards() {
    let whole = Setup::default().golden().info().dispatches_per_token;
    let mut setup = Setup::default();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(64 << 10);
    let session = check(&setup, &[]);
    assert_eq!(session.info().dispatches_per_token, whole + 2 * 2);

    let mut setup = Setup::default().like_a_card().head(LmHead::Int8);
    setup.gpu.limits.max_storage_buffer_binding_size = Some(96 << 10);
    let session = check(&setup, &["gemm_i2s"]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|name| name.starts_with("rescore")), "{kernels:?}");
}

/// A model whose tensors fit takes no more dispatches where bindings are small.
#[test]
fn a_small_model_needs_no_shards() {
    let mut setup = Setup::default();
    let whole = setup.small().info().dispatches_per_token;
    setup.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    assert_eq!(setup.small().info().dispatches_per_token, whole);
}

/// The product of integers and that of floats are timed once for each adapter, and the faster one
/// is used by every session.
#[test]
fn the_faster_product_is_found() {
    let setup = Setup::default().like_a_card().packed_dot(None);
    let found = |gpu: &Gpu| gpu.tuning.packed_dot.expect("both ways were tried");
    let first = setup.small();
    let uses_floats = first.info().kernels.iter().any(|kernel| kernel == "gemm_i2s/f32-dot");
    assert_eq!(uses_floats, !found(first.gpu()));
    let second = setup.small();
    assert_eq!(found(second.gpu()), found(first.gpu()), "an adapter is tried once");
    if !Setup::default().open().tuning.tiles {
        // Floats take three times as long on a processor that has the product of integers.
        assert!(found(first.gpu()), "the slower product is used");
    }
}
