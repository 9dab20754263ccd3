//! A small model of every family on the GPU, compared with a float64 program. That takes over ten
//! seconds for each way to run them, because every model has pipelines of its own.

use std::io::Write;

use tritloom::gguf::{Header, TensorType, type_id};
use tritloom::native::block_on;
use tritloom::session::KvType;

use crate::setup::{Setup, check_families};
use crate::support::families::{Expected, OF_EACH_ARCHITECTURE, distance, expectations};
use crate::support::{path, read};

/// With float activations and an f32 cache nothing is rounded: this proves the graph.
#[test]
fn with_float_activations_every_family_has_its_logits() {
    check_families(expectations(), Setup::exact, Expected::of_floats);
    check_families(expectations(), || Setup::exact().like_a_card(), Expected::of_floats);
}

/// int8 activations are no further off than those of the program the file was made for.
#[test]
fn with_int8_activations_every_family_is_as_near_as_other_programs() {
    check_families(expectations(), Setup::default, Expected::of_int8);
}

/// With float activations the tuning of a card is tested on every model. Here one of each architecture
/// and of each type of weights is enough.
#[test]
fn with_the_tuning_of_a_card_too() {
    let further = ["llama-tq1_0", "qwen3-yarn-pq2_0", "qwen3-yarn-q1_0"];
    let mut some = expectations();
    some.retain(|one| OF_EACH_ARCHITECTURE.iter().chain(&further).any(|name| *name == one.model));
    check_families(some, || Setup::default().like_a_card(), Expected::of_int8);
}

/// One model is enough: the tests of the kernels cover such cards.
#[test]
fn with_the_tuning_of_a_card_that_has_neither_subgroups_nor_packed_products_too() {
    let one =
        expectations().into_iter().filter(|expected| expected.model == "qwen3-q2_0").collect();
    let setup = || Setup::default().like_a_card().no_subgroups().packed_dot(Some(false));
    check_families(one, setup, Expected::of_int8);
}

/// The step of an int8 is 1/127 of its head's largest value: that moves the logits by about 1 % of
/// their deviation, and in a model of I2_S, whose roundings it tips, by half as much again as f16
/// does. docs/results/DIARY.md has the figures. Long prompts average the error of a key.
#[test]
fn with_an_int8_cache_every_family_is_nearly_as_near() {
    let allowed = |e: &Expected| if e.rounds_inputs { 1.6 * e.others } else { 1.5e-2 };
    let short = expectations().into_iter().filter(|expected| expected.ids.len() <= 100).collect();
    check_families(short, || Setup::default().float_activations().kv(KvType::Int8), allowed);
}

/// The file with each tensor of Q1_0 as one of PQ2_0: the same scales, and two bits for -1 and +1.
fn in_2_bits(bytes: &[u8]) -> Vec<u8> {
    let gguf = read(bytes).unwrap();
    let tensors = gguf.tensors.iter().map(|tensor| {
        let mut entry = tensor.entry();
        let at = tensor.offset as usize;
        let mut bytes = bytes[at..at + tensor.len as usize].to_vec();
        if tensor.ty == TensorType::Q1_0 {
            let code = |byte: u8, bit: u8| (byte >> bit & 1) << 1;
            let wide = |byte: u8, half: u8| {
                (0..4).fold(0, |wide, i| wide | code(byte, 4 * half + i) << (2 * i))
            };
            let blocks = bytes.chunks(18).map(|block| {
                let codes = block[2..].iter().flat_map(|&byte| [wide(byte, 0), wide(byte, 1)]);
                block[..2].iter().copied().chain(codes).collect::<Vec<u8>>()
            });
            bytes = blocks.flatten().collect();
            (entry.type_id, entry.len) = (type_id::PQ2_0, bytes.len() as u64);
        }
        (entry, bytes)
    });
    let (tensors, contents): (Vec<_>, Vec<_>) = tensors.unzip();
    let metadata = gguf.metadata.iter().map(|(key, value)| (key.into(), value.clone()));
    let header = Header { version: 3, alignment: 32, metadata: metadata.collect(), tensors };
    let mut file = Vec::new();
    header.write_file(&mut file, |index, out| out.write_all(&contents[index])).unwrap();
    file
}

/// The planes are the same weights. Rounding differs, because lanes divide a row differently.
#[test]
fn weights_of_1_bit_have_the_logits_of_the_same_in_2_bits_and_take_a_bit_less() {
    let bytes = std::fs::read(path("tests/data/models/qwen3-yarn-q1_0.gguf")).unwrap();
    let wide = in_2_bits(&bytes);
    let gguf = read(&bytes).unwrap();
    let of_1_bit = gguf.tensors.iter().filter(|tensor| tensor.ty == TensorType::Q1_0);
    let elements: u64 = of_1_bit.map(|tensor| tensor.elements()).sum();
    let ids: Vec<u32> = (0..40).map(|i| i * 37 % 256).collect();
    let [(narrow, narrow_bytes), (wide, wide_bytes)] = [&bytes, &wide].map(|bytes| {
        let mut session = Setup::default().float_activations().load(bytes).unwrap();
        // A chunk, then a single token.
        let logits = [39, 40].map(|n| block_on(session.logits(&ids[..n])).unwrap());
        (logits, session.info().bytes_per_token)
    });
    for (narrow, wide) in narrow.iter().zip(&wide) {
        let off = distance(narrow, wide);
        assert!(off < 1e-3, "{off}");
    }
    // A token reads every weight, and a row of the embedding a second time.
    let row = 256;
    assert_eq!(wide_bytes - narrow_bytes, (elements + row) / 8, "a bit for each weight");
}

/// The factors depend on the context that a model is opened with, so a user is told which they are.
#[test]
fn the_factors_of_longrope_are_named_with_the_context_they_were_chosen_for() {
    let notes = |model: &str, context| {
        let bytes = std::fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap();
        Setup::default().context(context).load(&bytes).unwrap().info().notes.clone()
    };
    for (context, factors) in [(256, "short"), (257, "long")] {
        let found = notes("minicpm-tq2_0", context);
        let [note] = &found[..] else { panic!("{found:?}") };
        assert!(note.contains(&format!("the file's {factors} factors")), "{note}");
        assert!(note.contains(&format!("has {context} tokens")), "{note}");
        assert!(note.ends_with("more than 256"), "{note}");
    }
    assert_eq!(notes("qwen3-yarn-q2_0", 256), [""; 0]);
}
