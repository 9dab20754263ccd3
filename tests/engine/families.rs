//! A small model of each architecture on each driver, compared with a float64 program.
//! `tests/session/families.rs` compares all files, on one driver. On SwiftShader a test can take over
//! ten seconds, because every model has pipelines of its own.

use crate::setup::{Setup, check_families};
use crate::support::families::{Expected, OF_EACH_ARCHITECTURE, expectations};

/// The expectations for the beginnings of texts: one for each file.
pub(crate) fn beginnings() -> Vec<Expected> {
    let mut of_each = expectations();
    of_each
        .retain(|expected| expected.first == 0 && OF_EACH_ARCHITECTURE.contains(&&*expected.model));
    of_each.dedup_by(|a, b| a.model == b.model);
    assert_eq!(of_each.len(), OF_EACH_ARCHITECTURE.len());
    of_each
}

#[test]
fn with_float_activations_each_architecture_has_its_logits() {
    check_families(beginnings(), Setup::exact, Expected::of_floats);
}

/// Old cards have no more.
#[test]
fn with_the_lowest_limits_and_no_features_each_architecture_has_its_logits() {
    let setup = || Setup::default().like_a_card().minimal();
    let gpu = setup().open();
    assert_eq!((gpu.max_buffer, gpu.max_binding), (256 << 20, 128 << 20));
    assert_eq!((gpu.tuning.stream_threads, gpu.subgroups), (256, None));
    check_families(beginnings(), setup, Expected::of_int8);
}

#[test]
fn with_int8_activations_each_architecture_is_as_near_as_other_programs() {
    check_families(beginnings(), Setup::default, Expected::of_int8);
}
