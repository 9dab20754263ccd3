//! The constants of the products of one token, for each row of the table in `products.rs`.

use super::adapter_add::wide_consts;
use super::attention::AttentionShape;
use super::packed::{Packed, example_matrix, lanes_of, packed_consts, teams_consts};
use super::rows::{RowGroups, ShardRows, norm_consts, ternary_consts};
use super::splits::{MAX_SPLITS, splits_const};
use super::step_rows::StepRows;
use super::weight::Product;
use crate::gpu::{Const, Subgroups, Tuning};

/// The longest row whose activations fit into the 16 KiB of workgroup memory that every adapter
/// has, beside what reductions without subgroup operations take.
const MAX_MERGED_COLUMNS: usize = 4096;

/// Rows of one team of whole heads.
const EACH_OF_HEAD: u32 = 4;

impl Packed {
    /// Whether [`Recorder::merge_stream_packed`](crate::gpu::Recorder::merge_stream_packed) takes rows as
    /// long as these.
    pub fn merges(&self) -> bool {
        self.k <= MAX_MERGED_COLUMNS
    }

    /// Whether [`Recorder::norm_gemv_heads_packed`](crate::gpu::Recorder::norm_gemv_heads_packed) takes
    /// these rows as heads of `head_dim`.
    pub fn takes_heads(&self, tuning: &Tuning, head_dim: usize) -> bool {
        head_dim.is_power_of_two()
            && (64..=256).contains(&head_dim)
            && threads_of_head(tuning, self.k, head_dim) <= tuning.stream_threads
            && self.shards.iter().all(|shard| shard.rows.end.is_multiple_of(head_dim))
    }
}

/// Threads for a head of rows of `k` values.
fn threads_of_head(tuning: &Tuning, k: usize, head_dim: usize) -> u32 {
    lanes_of(k, Product::Store, tuning.lanes) * head_dim as u32 / EACH_OF_HEAD
}

/// Of the prologue `norm`, before the epilogues `rows` and `gate`.
pub(super) fn norm(
    rows: &ShardRows,
    w: &Packed,
    product: Product,
    tuning: &Tuning,
    eps: f32,
) -> Vec<Const> {
    [teams_consts(rows, w, product, tuning), vec![Const::F32("EPS", eps)]].concat()
}

/// Of the prologue `norm`, before the epilogue `heads`.
pub(super) fn norm_heads(
    rows: &ShardRows,
    w: &Packed,
    tuning: &Tuning,
    shape: &AttentionShape,
    eps: f32,
) -> Vec<Const> {
    let groups = RowGroups {
        workgroup: threads_of_head(tuning, rows.k, shape.head_dim),
        lanes: lanes_of(rows.k, Product::Store, tuning.lanes),
        each: EACH_OF_HEAD,
    };
    let product = packed_consts(rows, w, Product::Store, tuning.has_packed_dot());
    let own = vec![Const::F32("EPS", eps)];
    [product, groups.consts(), shape.consts(), StepRows::Tokens.consts().into(), own].concat()
}

/// Of the prologue `given`, before the epilogue `stream`.
pub(super) fn given(rows: &ShardRows, w: &Packed, tuning: &Tuning) -> Vec<Const> {
    teams_consts(rows, w, Product::Add, tuning)
}

/// Of the prologue `merge`, before the epilogue `stream`.
pub(super) fn merge(
    rows: &ShardRows,
    w: &Packed,
    tuning: &Tuning,
    shape: &AttentionShape,
    splits: u32,
) -> Vec<Const> {
    [given(rows, w, tuning), shape.consts(), vec![splits_const(splits)]].concat()
}

/// Each workgroup norms the input anew, so it has many rows; but so few that a large card has a
/// workgroup for each of its processors. These numbers, here and below, are the best of those tried on an
/// NVIDIA H200 with the sizes of the 2B-4T model.
pub(super) fn groups_of_rows(tuning: &Tuning, k: usize, product: Product) -> RowGroups {
    let matrices = product.matrices();
    RowGroups::normed(tuning, k, if matrices == 2 { 8 } else { 16 }, matrices as u32)
}

/// For the prologue `merged_row`.
pub(super) fn groups_of_merged(tuning: &Tuning, k: usize) -> RowGroups {
    RowGroups::normed(tuning, k, 16, 1)
}

/// For the epilogue `pairs`: a team computes the two values of a pair.
pub(super) fn groups_of_pairs(tuning: &Tuning, k: usize) -> RowGroups {
    // With 32 lanes, rows of 4096 values are 1 % of a decode step faster, and rows of 2560 are slower.
    RowGroups::normed(tuning, k, if k >= 4096 { 32 } else { 16 }, 2)
}

/// Of the prologue `row`, beside those of all ternary products.
pub(super) fn row(groups: Vec<Const>, eps: Option<f32>) -> Vec<Const> {
    [groups, norm_consts(eps)].concat()
}

/// Of the prologue `merged_row`.
pub(super) fn merged_row(
    shape: &AttentionShape,
    groups: Vec<Const>,
    eps: Option<f32>,
    splits: u32,
) -> Vec<Const> {
    [shape.consts(), row(groups, eps), vec![splits_const(splits)]].concat()
}

/// Of the prologue `row` before the epilogue `pairs`.
pub(super) fn row_pairs(shape: &AttentionShape, groups: Vec<Const>, eps: f32) -> Vec<Const> {
    [shape.consts(), row(groups, Some(eps))].concat()
}

// Examples, for `Kernel::example`.

pub(super) fn norm_rows_example() -> Vec<Const> {
    let (rows, w) = example_matrix(1);
    norm(&rows, &w, Product::Store, &Tuning::card(None, 256), 1e-6)
}

pub(super) fn norm_gate_example() -> Vec<Const> {
    let (rows, w) = example_matrix(2);
    norm(&rows, &w, Product::EXAMPLE, &Tuning::card(None, 256), 1e-6)
}

pub(super) fn norm_heads_example() -> Vec<Const> {
    let (rows, w) = example_matrix(1);
    let shape = AttentionShape { head_dim: 64, ..AttentionShape::EXAMPLE };
    norm_heads(&rows, &w, &Tuning::card(Some(Subgroups(16)), 256), &shape, 1e-6)
}

pub(super) fn given_example() -> Vec<Const> {
    let (rows, w) = example_matrix(1);
    given(&rows, &w, &Tuning::card(None, 256))
}

pub(super) fn merge_example() -> Vec<Const> {
    let (_, w) = example_matrix(1);
    let shape = AttentionShape { n_head: MAX_MERGED_COLUMNS / 128, ..AttentionShape::EXAMPLE };
    let rows = ShardRows { k: MAX_MERGED_COLUMNS, all: w.rows, shard: 0..w.rows };
    merge(&rows, &w, &Tuning::card(None, 256), &shape, MAX_SPLITS)
}

pub(super) fn row_example() -> Vec<Const> {
    let rows = ShardRows { k: 2560, all: 6912, shard: 0..6912 };
    let product = Product::EXAMPLE;
    let groups = groups_of_rows(&Tuning::card(None, 256), rows.k, product);
    let own = row(groups.normed_consts_if(false), Some(1e-5));
    [ternary_consts(&rows, product, true), own].concat()
}

pub(super) fn merged_row_example() -> Vec<Const> {
    let rows = ShardRows { k: 2560, all: 2560, shard: 0..2560 };
    let groups = groups_of_merged(&Tuning::card(None, 256), rows.k).normed_consts_if(false);
    let own = merged_row(&AttentionShape::EXAMPLE, groups, Some(1e-5), MAX_SPLITS);
    [ternary_consts(&rows, Product::Add, true), own].concat()
}

pub(super) fn row_pairs_example() -> Vec<Const> {
    let rows = ShardRows { k: 2560, all: 3840, shard: 0..3840 };
    let groups = groups_of_pairs(&Tuning::card(None, 256), rows.k).normed_consts_if(false);
    let own = row_pairs(&AttentionShape::EXAMPLE, groups, 1e-5);
    [ternary_consts(&rows, Product::Store, true), own].concat()
}

pub(super) fn adapted_row_example() -> Vec<Const> {
    [row_example(), wide_consts(&[6912, 6912], 16)].concat()
}

pub(super) fn adapted_merged_row_example() -> Vec<Const> {
    [merged_row_example(), wide_consts(&[2560], 16)].concat()
}
