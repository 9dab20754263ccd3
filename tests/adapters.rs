//! The plain reference with adapters, compared with a float64 program; adapters that are refused.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::fs;
use std::sync::Arc;

use support::adapters::{Adapted, adapted, good_and_bad, random};
use support::families::distance;
use support::{assert_error, open, path};
use tritloom::Result;
use tritloom::model::{Adapter, Adapters};
use tritloom::native::block_on;
use tritloom::reference::{Reference, ReferenceOptions};
use tritloom::source::Reader;

const BASE: &str = "tests/data/models/bitnet-b1.58-embd-q6_k.gguf";

fn reference(model: &str, context: usize) -> Reference {
    let options = ReferenceOptions { context: Some(context), ..Default::default() };
    block_on(Reference::load_as(&mut open(&format!("tests/data/models/{model}.gguf")), options))
        .unwrap()
}

fn adapter(model: &Reference, name: &str) -> Arc<Adapter> {
    Arc::new(block_on(model.load_adapter(&mut open(&Adapted::path(name)))).unwrap())
}

/// The logits after each of `ids`, by a model whose context is empty.
fn logits(model: &mut Reference, ids: &[u32], all: &[(Arc<Adapter>, f32)]) -> Vec<f32> {
    model.set_adapters(Adapters::new(all).unwrap());
    model.reset();
    model.forward(ids).unwrap().concat()
}

/// The reference rounds nothing, except the inputs of products with I2_S, so that one value can fall to
/// the other side. The smallest mistake of the vectors' list moves them by 0.027.
#[test]
fn every_run_has_the_logits_of_a_float64_program() {
    for expected in adapted() {
        let mut model = reference(&expected.model, expected.context);
        let load = |(name, scale): &(String, f32)| (adapter(&model, name), *scale);
        let mut all: Vec<_> = expected.adapters.iter().map(load).collect();
        let found = logits(&mut model, &expected.ids, &all);
        let off = distance(&found, &expected.logits);
        println!("{}: {off:.2e}", expected.name);
        let allowed = if expected.rounds_inputs() { 1e-2 } else { 1e-4 };
        assert!(off <= allowed, "{}: {off} of the logits' deviation", expected.name);
        all.reverse();
        let reversed = logits(&mut model, &expected.ids, &all);
        assert!(distance(&reversed, &found) <= allowed, "{}", expected.name);
    }
}

/// Without adapters the model has the bits that it has alone, also after some were applied. The same
/// adapter twice has the sum of its scales.
#[test]
fn scales_add_up_and_zero_is_off() {
    let expected = adapted().into_iter().find(|one| one.model == "qwen3-q2_0").unwrap();
    let mut model = reference(&expected.model, expected.context);
    let alone = logits(&mut model, &expected.ids, &[]);
    let one = adapter(&model, "qwen3-r8");
    let mut with = |scales: &[f32]| {
        let all: Vec<_> = scales.iter().map(|&scale| (Arc::clone(&one), scale)).collect();
        logits(&mut model, &expected.ids, &all)
    };
    let full = with(&[1.0]);
    assert!(distance(&full, &alone) > 0.1);
    assert_eq!(with(&[0.5, 0.5]), full);
    assert_eq!(with(&[0.0]), alone);
    assert_eq!(with(&[0.25, -0.25]), alone);
    assert_eq!(with(&[]), alone);
}

#[test]
fn a_scale_is_a_finite_number() {
    let model = reference("qwen3-q2_0", 64);
    let one = adapter(&model, "qwen3-r8");
    for scale in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        assert_error(Adapters::new(&[(Arc::clone(&one), scale)]), "bad-option", &["scale"]);
    }
}

/// Words of the message with which a file of `tests/data/lora/bad` must be refused.
fn reason(name: &str) -> &'static [&'static str] {
    match name {
        "bad_type" | "bad_type_missing" => &["general.type", "adapter"],
        "bad_adapter_type" => &["adapter.type", "loha"],
        "bad_arch" => &["general.architecture", "bitnet-b1.58"],
        "bad_missing_b" => &["lora_b"],
        "bad_unknown_tensor" => &["the model has no tensor"],
        "bad_shape_a" | "bad_shape_b" | "bad_rank" | "bad_transposed" => &["are no pair"],
        // The empty one has a norm alone.
        "bad_suffix" | "bad_norm" | "bad_empty" => &["neither `.lora_a` nor `.lora_b`"],
        "bad_alora" => &["adapter.alora.invocation_tokens"],
        "bad_embd_tied" => &["token_embd.weight", "LM head"],
        "bad_nan" => &["alpha is NaN"],
        "bad_on_norm" => &["no matrix"],
        _ => &[],
    }
}

#[test]
fn an_adapter_that_cannot_be_applied_is_refused() {
    let model = block_on(Reference::load(&mut open(BASE))).unwrap();
    for name in good_and_bad() {
        let file = format!("bad/{name}");
        let result = block_on(model.load_adapter(&mut open(&Adapted::path(&file))));
        if name.starts_with("ok_") {
            assert!(!result.unwrap().pairs.is_empty(), "{name}");
        } else {
            assert!(!reason(&name).is_empty(), "{name} has no reason here");
            assert_error(result, "bad-adapter", reason(&name));
        }
    }
}

/// Reads the adapter `bitnet-r4` with some of its bytes changed.
fn changed(model: &Reference, change: impl FnOnce(&mut Vec<u8>)) -> Result<Adapter> {
    let mut bytes = fs::read(path(&Adapted::path("bitnet-r4"))).unwrap();
    change(&mut bytes);
    block_on(model.load_adapter(&mut Reader::new(&bytes[..])))
}

#[test]
fn damaged_adapters_and_those_of_other_models_are_refused() {
    let model = block_on(Reference::load(&mut open(BASE))).unwrap();
    let nan = |bytes: &mut Vec<u8>| {
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    };
    assert_error(changed(&model, nan), "bad-gguf", &["not finite"]);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 64);
    assert_error(changed(&model, cut), "bad-gguf", &["cut off"]);
    assert_error(changed(&model, |bytes| bytes.truncate(9)), "bad-gguf", &[]);
    let of_another = block_on(model.load_adapter(&mut open(&Adapted::path("qwen3-r8"))));
    assert_error(of_another, "bad-adapter", &["general.architecture", "qwen3"]);
    let empty = random("bitnet-b1.58", &[], 1);
    let empty = block_on(model.load_adapter(&mut Reader::new(&empty[..])));
    assert_error(empty, "bad-adapter", &["no pair"]);
    // A model is no adapter.
    assert_error(block_on(model.load_adapter(&mut open(BASE))), "bad-adapter", &["general.type"]);
}

/// Its matrices norm their inputs by themselves, and no program says which input an adapter takes.
#[test]
fn embedding_models_take_no_adapters() {
    let path = "tests/data/embed/bitnet-embd-i2_s.gguf";
    let model = block_on(Reference::load(&mut open(path))).unwrap();
    let result = block_on(model.load_adapter(&mut open(&Adapted::path("qwen3-r8"))));
    assert_error(result, "bad-adapter", &["norm their inputs"]);
}
