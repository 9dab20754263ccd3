//! How many splits of attention a kernel merges.

use crate::gpu::{Const, Step};

/// Splits of one token's attention, at most. All products with the merged output read all partials:
/// with more of them these take longer than the attention gains.
pub const MAX_SPLITS: u32 = 12;

// As many as `shaders/shared/merged.wgsl` adds.
const _: () = assert!(MAX_SPLITS == 12);

/// The numbers of splits for which a product with the merged output has a pipeline of its own, and the
/// steps with that number. It then has no loop over them, and loads none twice.
pub(super) const KNOWN: [(u32, IsTaken); 4] =
    [(1, has::<1>), (2, has::<2>), (3, has::<3>), (4, has::<4>)];

type IsTaken = fn(&Step) -> bool;

/// For steps with any number: the kernel asks the step.
pub(super) const UNKNOWN: u32 = 0;

fn has<const SPLITS: u32>(step: &Step) -> bool {
    step.n_splits == SPLITS
}

/// The constant of `shaders/shared/merged.wgsl`.
pub(super) fn splits_const(splits: u32) -> Const {
    Const::U32("SPLITS", splits)
}
