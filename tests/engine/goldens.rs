//! The greedy text of a model of two layers, token by token to the end, on every way to run it.
//!
//! Every lead in `tests/data/golden` is above 2, and a rounding changes far less: whatever differs
//! is an error. `tests/reference.rs` shows that each tensor of the model decides about tokens.

use ternlight::gpu::Gpu;
use ternlight::session::{FinishReason, GenerateOptions, LmHead, Session};

use crate::setup::{Golden, Goldens, Setup, generate, greedy};

/// Generates all texts, with prompt lookup and without.
#[track_caller]
fn check(setup: &Setup, kernels: &[&str]) -> Session {
    let mut session = setup.golden();
    let info = session.info().clone();
    for kernel in kernels {
        assert!(info.kernels.iter().any(|name| name == kernel), "{kernel}: {:?}", info.kernels);
    }
    let mut drafted = 0;
    for golden in &Goldens::golden().prompts {
        // Small bindings hold a small cache.
        if golden.ids.len() + golden.greedy.len() > info.context_length {
            assert_eq!(golden.name, "long", "the context is {}", info.context_length);
            continue;
        }
        for prompt_lookup in [false, true] {
            let options = GenerateOptions {
                prompt_lookup: Some(prompt_lookup),
                ..greedy(golden.greedy.len())
            };
            drafted += check_text(&mut session, golden, &options);
        }
    }
    assert!(drafted > 0, "prompt lookup drafts nothing");
    session
}

/// Returns how many tokens were drafted.
#[track_caller]
fn check_text(session: &mut Session, golden: &Golden, options: &GenerateOptions) -> usize {
    let found = generate(session, &golden.ids, options).unwrap();
    let what = format!("{}, prompt lookup {:?}", golden.name, options.prompt_lookup);
    assert_eq!(found.ids, golden.expected(), "{what}");
    assert_eq!(found.text, golden.greedy_text, "{what}");
    let reason = if golden.greedy_stopped { FinishReason::Stop } else { FinishReason::Length };
    assert_eq!(found.stats.finish_reason, reason, "{what}");
    found.stats.drafted_tokens
}

#[test]
fn as_the_adapter_is() {
    let session = check(&Setup::default(), &["attention"]);
    assert!(Goldens::golden().prompts.iter().any(|golden| golden.ids.len() > 512));
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
    check(&Setup::default().kv_f32().like_a_card(), &[]);
}

#[test]
fn as_on_a_card() {
    check(&Setup::default().like_a_card(), &["gemm_i2s"]);
}

#[test]
fn as_on_a_fast_card() {
    check(&Setup::default().like_a_fast_card(), &["gemm_i2s"]);
}

#[test]
fn as_on_a_card_without_subgroups() {
    check(&Setup::default().like_a_card().no_subgroups(), &["gemm_i2s"]);
}

#[test]
fn with_products_of_floats() {
    check(&Setup::default().like_a_card().packed_dot(Some(false)), &["gemm_i2s/f32-dot"]);
}

#[test]
fn with_an_int8_lm_head() {
    check(&Setup::default().head(LmHead::Int8), &[]);
    check(&Setup::default().like_a_card().head(LmHead::Int8), &[]);
}

/// Bindings so small that the embedding is in several buffers. Each takes a dispatch more to look
/// tokens up, and one more for their logits.
#[test]
fn in_shards() {
    for (setup, binding, shards) in [
        (Setup::default(), 64 << 10, 3),
        (Setup::default().like_a_card(), 96 << 10, 2),
        (Setup::default().like_a_card().head(LmHead::Int8), 96 << 10, 2),
    ] {
        let whole = setup.golden().info().dispatches_per_token;
        let mut setup = setup;
        setup.gpu.limits.max_storage_buffer_binding_size = Some(binding);
        let session = check(&setup, &[]);
        let more = session.info().dispatches_per_token - whole;
        assert!(more >= 2 * (shards - 1), "{more} dispatches more");
    }
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
    if Setup::default().open().software {
        // Floats take three times as long on a processor that has the product of integers.
        assert!(found(first.gpu()), "the slower product is used");
    }
}
