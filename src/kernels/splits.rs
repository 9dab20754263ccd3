//! How many splits of attention a kernel merges.

use crate::gpu::{Const, Step};

/// Splits of one token's attention, at most. All products with the merged output read all partials:
/// with more of them these take longer than the attention gains.
pub const MAX_SPLITS: u32 = 12;

// As many as `shaders/shared/merged.wgsl` adds.
const _: () = assert!(MAX_SPLITS == 12);

/// The products with the merged output have pipelines of their own for steps with so few splits: without
/// a loop, and for one split without the loads of others. The first that serves a step is taken.
pub(super) const FEW_SPLITS: [(u32, IsTaken); 2] = [(1, has_at_most::<1>), (4, has_at_most::<4>)];

type IsTaken = fn(&Step) -> bool;

fn has_at_most<const SPLITS: u32>(step: &Step) -> bool {
    step.n_splits <= SPLITS
}

/// The constant of `shaders/shared/merged.wgsl`: the most splits of the steps that a pipeline is for.
pub(super) fn splits_const(most: u32) -> Const {
    Const::U32("MAX_SPLITS", most)
}
