use super::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Plan, Recorder};
use crate::one_variant;

/// Reads of one thread, 16 bytes each: many under way at once, and few sums to write.
const EACH: u32 = 32;

pub(super) const KERNEL: Kernel = Kernel {
    name: "probe_read",
    bindings: &[("data", Access::Read), ("sums", Access::Write)],
    variants: one_variant!("probe_read"),
    example: &consts(1 << 20),
};

const fn consts(count: usize) -> [Const; 3] {
    [
        Const::U32("WORKGROUP", WORKGROUP),
        Const::U32("EACH", EACH),
        Const::U32("COUNT", count as u32),
    ]
}

/// The sums that [`probe_read`] makes of `count` vectors: one in each workgroup.
pub const fn probed_sums(count: usize) -> usize {
    count.div_ceil((WORKGROUP * EACH) as usize)
}

/// `sums` `[probed_sums()]` = the sum, modulo 2³², of each workgroup's stretch of `data`: a kernel that
/// takes the time of reading.
pub fn probe_read(
    recorder: &mut Recorder,
    plan: &mut Plan,
    data: &Buffer<[u32; 4]>,
    sums: &Buffer<u32>,
) {
    let groups = probed_sums(data.len()) as u32;
    recorder.dispatch(
        plan,
        &KERNEL,
        &consts(data.len()),
        &[data, sums],
        [Extent::Fixed(groups), Extent::Fixed(1), Extent::Fixed(1)],
    );
}
