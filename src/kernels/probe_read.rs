use super::workgroups::WORKGROUP;
use crate::gpu::{Access, Buffer, Const, Extent, Kernel, Recorder};
use crate::one_variant;

/// Vectors of 16 bytes that one thread reads. They are many, so that many loads are in flight and
/// few sums are written.
const EACH: u32 = 32;

/// Vectors that one workgroup reads.
pub const PROBED_TOGETHER: usize = (WORKGROUP * EACH) as usize;

pub(super) const KERNEL: Kernel = Kernel {
    name: "probe_read",
    bindings: &[("data", Access::Read), ("sums", Access::Write)],
    variants: one_variant!("probe_read"),
    example: || consts(1 << 20),
};

fn consts(count: usize) -> Vec<Const> {
    vec![Const::U32("WORKGROUP", WORKGROUP), Const::U32("EACH", EACH), Const::size("COUNT", count)]
}

/// The number of sums that [`Recorder::probe_read`] makes of `count` vectors: one in each
/// workgroup.
pub const fn probed_sums(count: usize) -> usize {
    count.div_ceil(PROBED_TOGETHER)
}

impl Recorder<'_> {
    /// `sums` `[probed_sums()]` = the sum, modulo 2³², of every [`PROBED_TOGETHER`] vectors of
    /// `data`. The kernel takes hardly longer than reading takes.
    pub fn probe_read(&mut self, data: &Buffer<[u32; 4]>, sums: &Buffer<u32>) {
        let groups = probed_sums(data.len()) as u32;
        self.dispatch(
            &KERNEL,
            &consts(data.len()),
            &[data, sums],
            [Extent::Fixed(groups), Extent::Fixed(1), Extent::Fixed(1)],
        );
    }
}
