//! A small model of every family, compared with a float64 program, with the tolerances of the GPU.

use tritloom::compute::KvType;
use tritloom::cpu::InstructionSet;

use crate::setup::{Setup, check_families};
use crate::support::families::{Expected, expectations};

/// With float activations and an f32 cache nothing is rounded: this proves the graph.
#[test]
fn with_float_activations_every_family_has_its_logits() {
    check_families(expectations(), || Setup::exact().on_cpu(), Expected::of_floats);
}

/// int8 activations are no further off than those of the program the file was made for.
#[test]
fn with_int8_activations_every_family_is_as_near_as_other_programs() {
    for set in InstructionSet::available() {
        // Plain Rust takes ten times as long.
        let all = expectations().into_iter();
        let fast = |e: &Expected| set != InstructionSet::SCALAR || e.ids.len() <= 100;
        check_families(
            all.filter(fast).collect(),
            || Setup::default().with(set),
            Expected::of_int8,
        );
    }
}

/// As on the GPU.
#[test]
fn with_an_int8_cache_every_family_is_nearly_as_near() {
    let allowed = |e: &Expected| if e.rounds_inputs { 1.6 * e.others } else { 1.5e-2 };
    let short = expectations().into_iter().filter(|expected| expected.ids.len() <= 100).collect();
    let setup = || Setup::default().on_cpu().float_activations().kv(KvType::Int8);
    check_families(short, setup, allowed);
}
