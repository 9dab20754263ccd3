//! What a load chooses by itself.

use ternlight::gpu::Gpu;

use crate::setup::Setup;

/// If every tensor fits, small bindings cause no more dispatches.
#[test]
fn a_small_model_needs_no_shards() {
    let mut setup = Setup::default();
    let whole = setup.small().info().dispatches_per_token;
    setup.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    assert_eq!(setup.small().info().dispatches_per_token, whole);
}

/// The integer product and the float product are timed once for each adapter. Every session uses
/// the faster one.
#[test]
fn every_session_uses_the_faster_product() {
    let setup = Setup::default().like_a_card().packed_dot(None);
    let found = |gpu: &Gpu| gpu.tuning.packed_dot.expect("both products were timed");
    let first = setup.small();
    let uses_floats = first.info().kernels.iter().any(|kernel| kernel == "gemm_i2s/f32-dot");
    assert_eq!(uses_floats, !found(first.gpu()));
    let second = setup.small();
    assert_eq!(found(second.gpu()), found(first.gpu()), "an adapter is timed once");
    if !Setup::default().open().tuning.tiles {
        // On a processor with an instruction for integer products, float products take three times
        // as long.
        assert!(found(first.gpu()), "the slower product is used");
    }
}
