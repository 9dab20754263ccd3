//! The vectors of embedding models on each driver, compared with a float64 program.

use crate::embeddings::check_vectors;
use crate::setup::Setup;

/// Every width of a pass: rows, a short chunk, a long one.
#[test]
fn the_gpu_has_them_where_nothing_is_rounded() {
    check_vectors(Setup::exact, true);
    check_vectors(|| Setup::exact().like_a_card(), true);
}

#[test]
fn the_gpu_is_near_them_with_int8() {
    check_vectors(|| Setup::default().like_a_card(), false);
}
