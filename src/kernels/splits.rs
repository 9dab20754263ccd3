//! The number of splits of attention, and the pipelines that merge them.

use crate::gpu::{Const, Step};

/// The most splits of one token's attention. Each product that merges splits reads the partials of
/// all of them. With more splits, this reading costs more time than attention saves.
pub const MAX_SPLITS: u32 = 12;

// `shaders/shared/merged.wgsl` adds exactly so many.
const _: () = assert!(MAX_SPLITS == 12);

/// Steps with few splits have pipelines of their own. Each entry is the most splits of a pipeline,
/// and the test for steps that it serves. With few splits a pipeline needs no loop, and with one
/// split it loads nothing of others. A step takes the first pipeline that serves it.
pub(super) const FEW_SPLITS: [(u32, IsTaken); 2] = [(1, has_at_most::<1>), (4, has_at_most::<4>)];

type IsTaken = fn(&Step) -> bool;

fn has_at_most<const SPLITS: u32>(step: &Step) -> bool {
    step.n_splits <= SPLITS
}

/// The constant of `shaders/shared/merged.wgsl` that says how many splits a pipeline can merge.
pub(super) fn splits_const(most: u32) -> Const {
    Const::U32("MAX_SPLITS", most)
}
