//! How the kernels that norm their own input (`shared/normed_rows.wgsl`) deal out rows.

use super::WORKGROUP;

/// The longest row whose int8 activations fit into the 16 KiB of workgroup memory that every adapter
/// has, beside what reductions without subgroup operations take.
pub const MAX_NORMED_COLUMNS: usize = 8960;
/// The same for `norm_gemv_rope_kv`, whose lanes exchange what they make besides.
pub const MAX_ROPE_COLUMNS: usize = 8192;

/// `lanes` neighbouring lanes share `each` rows, of which there are at most four.
///
/// Many rows in a workgroup, because each norms the input anew; but so few that a large card has
/// a workgroup for each of its processors. The numbers at each use are the best of those tried on an
/// NVIDIA H200 with the sizes of the 2B-4T model.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowGroups {
    pub(super) lanes: u32,
    pub(super) each: u32,
}

impl RowGroups {
    /// Workgroups that have `rows` rows between them.
    pub(super) fn workgroups(self, rows: usize) -> u32 {
        (rows as u32).div_ceil(WORKGROUP / self.lanes * self.each)
    }
}
