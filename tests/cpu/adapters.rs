//! Adapters on the CPU, compared with a float64 program.

use tritloom::cpu::InstructionSet;

use crate::setup::{Setup, check_adapted};
use crate::support::adapters::adapted;

/// Nothing is rounded but the inputs of matrices of I2_S.
#[test]
fn with_float_activations_every_run_has_its_logits() {
    for threads in [1, 3] {
        let setup = || Setup::exact().on_cpu().threads(threads);
        check_adapted(adapted(), setup, |one| if one.rounds_inputs() { 1e-2 } else { 1e-4 });
    }
}

#[test]
fn with_int8_activations_every_run_is_as_near_as_without_adapters() {
    for set in InstructionSet::available() {
        check_adapted(adapted(), || Setup::default().with(set), |_| 0.04);
    }
}
