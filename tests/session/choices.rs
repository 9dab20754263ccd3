//! The choices that a load makes by itself.

use tritloom::chat::TemplateChoice;
use tritloom::engine::tested;
use tritloom::gpu::{Gpu, Subgroups};
use tritloom::native::block_on;
use tritloom::session::{LoadOptions, Session};
use tritloom::source::Reader;

use crate::setup::{Setup, engine, noise, small};
use crate::support::{F32, I2_S, Kv, Random, assert_error, path};

/// If every tensor fits, small bindings cause no more dispatches.
#[test]
fn a_small_model_needs_no_shards() {
    let mut setup = Setup::default();
    let whole = setup.small().info().dispatches_per_token;
    setup.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    assert_eq!(setup.small().info().dispatches_per_token, whole);
}

/// Products of four int8 values at once, and of fewer, are timed once for each adapter. Every session
/// uses the faster ones.
#[test]
fn every_session_uses_the_faster_product() {
    let setup = Setup::default().like_a_card().packed_dot(None);
    let found = |gpu: &Gpu| gpu.tuning.packed_dot.expect("both products were timed");
    let first = engine(&setup);
    let uses_fewer = first.kernels().iter().any(|kernel| kernel == "gemm_i2s/no-packed-dot");
    assert_eq!(uses_fewer, !found(first.gpu()));
    let second = engine(&setup);
    assert_eq!(found(second.gpu()), found(first.gpu()), "an adapter is timed once");
}

/// Each product of one token norms its input itself, or just quantises it: also where the
/// feed-forward network is so wide that its activations take most of a workgroup's memory, and in
/// models without sub-norms.
#[test]
fn a_block_of_i2_s_takes_five_dispatches() {
    let mut wide = small();
    wide.set("bitnet-b1.58.feed_forward_length", Kv::U32(12_288));
    wide.tensors.retain(|tensor| !tensor.name.contains(".ffn_"));
    let mut random = Random(5);
    for block in 0..2 {
        for (name, ne, type_id) in [
            ("ffn_norm", &[128][..], F32),
            ("ffn_gate", &[128, 12_288], I2_S),
            ("ffn_up", &[128, 12_288], I2_S),
            ("ffn_sub_norm", &[12_288], F32),
            ("ffn_down", &[12_288, 128], I2_S),
        ] {
            wide.add(&format!("blk.{block}.{name}.weight"), ne, type_id, &mut random);
        }
    }
    let without_sub_norms = std::fs::read(path("tests/data/models/llama-i2_s.gguf")).unwrap();
    for bytes in [small().build(), wide.build(), without_sub_norms] {
        let session = Setup::default().like_a_card().load(&bytes).unwrap();
        let around = 5; // the embedding, the norm and three of the LM head
        assert_eq!(session.info().dispatches_per_token, 2 * 5 + around);
    }
}

/// A session of the model of [`small`] on `gpu`, which is tested before.
fn load(gpu: Gpu, options: &LoadOptions) -> tritloom::Result<Session> {
    let file = small().build();
    let mut reader = Reader::new(&file[..]);
    block_on(Session::load(tested(gpu), &mut reader, options, &mut |_| {}))
}

/// A load that replaces nothing. The model of [`small`] has no template.
fn strict() -> LoadOptions {
    LoadOptions { strict: true, template: TemplateChoice::Builtin, ..LoadOptions::default() }
}

/// Matrix units that fail their test are not used, and cause no error. Natively their kernel does not
/// even compile.
#[test]
fn a_load_does_without_matrix_units_that_fail() {
    let mut gpu = Setup::default().like_a_card().open();
    gpu.matrix_units = true;
    // They were not asked for, so a strict load does without them too.
    let session = load(gpu, &strict()).unwrap();
    let is_used = |name| session.info().kernels.iter().any(|kernel| kernel == name);
    assert!(is_used("gemm_i2s") && !is_used("gemm_i2s_matrix"));
    let [note] = &session.info().notes[..] else { panic!("{:?}", session.info().notes) };
    assert!(note.contains("matrix units"), "{note}");
}

/// These subgroups have half as many lanes as the kernels are told, so that sums lack values.
/// `tests/web/miscompiled.spec.ts` has errors of other kinds.
#[test]
fn a_load_does_without_subgroups_that_compute_wrong_numbers() {
    let wrong = || {
        let mut gpu = Setup::default().like_a_card().open();
        let Some(Subgroups(lanes)) = &mut gpu.subgroups else { panic!("{}", gpu.adapter) };
        *lanes *= 2;
        gpu
    };
    let mut session = load(wrong(), &LoadOptions::default()).unwrap();
    let [note] = &session.info().notes[..] else { panic!("{:?}", session.info().notes) };
    assert!(note.contains("subgroup operations"), "{note}");
    let mut expected = Setup::default().like_a_card().no_subgroups().small();
    assert_eq!(session.info().kernels, expected.info().kernels);
    let [found, expected] =
        [&mut session, &mut expected].map(|session| block_on(session.logits(&noise(20))).unwrap());
    assert_eq!(found, expected);

    let refused = load(wrong(), &strict()).map(|_| ());
    assert_error(refused, "missing-feature", &["strict", "subgroup operations"]);
}
