//! The vectors of embedding models, compared with a float64 program.

use tritloom::cpu::InstructionSet;

use crate::embeddings::check_vectors;
use crate::setup::Setup;

#[test]
fn where_nothing_is_rounded_embedding_models_have_their_vectors() {
    check_vectors(|| Setup::exact().on_cpu(), true);
}

#[test]
fn with_int8_activations_they_are_near() {
    for set in InstructionSet::available() {
        check_vectors(|| Setup::default().with(set).threads(2), false);
    }
}
