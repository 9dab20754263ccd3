//! How the matrix kernels divide rows among lanes, workgroups and dispatches.

use std::ops::Range;

use super::{Dense, DenseType, NO_TOKEN, Product, Shard, Ternary, in_a_row};
use crate::gpu::{Bound, Buffer, Const, Extent, Kernel, Recorder};

/// The longest row whose int8 activations fit into the 16 KiB of workgroup memory that every
/// adapter has, beside what reductions without subgroup operations take.
pub const MAX_NORMED_COLUMNS: usize = 8960;
/// The same for `norm_gemv_rope_kv`, whose lanes also exchange their results.
pub const MAX_ROPE_COLUMNS: usize = 8192;

/// How a workgroup divides rows: each slot of `lanes` neighbouring lanes computes `each` rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowGroups {
    /// Lanes in the workgroup.
    pub(super) workgroup: u32,
    pub(super) lanes: u32,
    pub(super) each: u32,
}

impl RowGroups {
    const fn slots(self) -> u32 {
        self.workgroup / self.lanes
    }

    /// Rows of one workgroup.
    pub(super) const fn rows(self) -> usize {
        (self.slots() * self.each) as usize
    }

    pub(super) fn consts(self) -> Vec<Const> {
        vec![
            Const::U32("WORKGROUP", self.workgroup),
            Const::U32("LANES", self.lanes),
            Const::U32("SLOTS", self.slots()),
            Const::U32("EACH", self.each),
        ]
    }
}

/// The rows of one shard.
pub(super) struct ShardRows {
    /// Values in a row.
    pub(super) k: usize,
    /// Rows of the whole matrix.
    pub(super) all: usize,
    pub(super) shard: Range<usize>,
}

impl ShardRows {
    pub(super) fn consts(&self) -> Vec<Const> {
        vec![
            Const::size("K", self.k),
            Const::size("ALL_ROWS", self.all),
            Const::size("FIRST_ROW", self.shard.start),
            Const::size("N_ROWS", self.shard.len()),
        ]
    }
}

/// The constants that all products of ternary matrices have in common.
pub(super) fn ternary_consts(rows: &ShardRows, product: Product, packed_dot: bool) -> Vec<Const> {
    let mut consts = rows.consts();
    consts.extend(product.consts());
    consts.push(Const::Bool("PACKED_DOT", packed_dot));
    consts
}

/// A product of a ternary matrix, as one dispatch for each shard.
pub(super) struct TernaryProduct<'a> {
    pub(super) kernel: &'static Kernel,
    pub(super) w: &'a Ternary,
    pub(super) product: Product,
    /// Rows of one workgroup. A gate and its up are two.
    pub(super) rows_per_workgroup: usize,
    /// Workgroups along the tokens.
    pub(super) tokens: Extent,
    /// The kernel's own constants.
    pub(super) consts: Vec<Const>,
    /// What the kernel binds after `w` and `w_scale`.
    pub(super) buffers: &'a [&'a dyn Bound],
}

impl TernaryProduct<'_> {
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        let Self { kernel, w, product, .. } = self;
        debug_assert_eq!(w.matrices, product.matrices(), "{}: {product:?}", kernel.name);
        let packed_dot = recorder.tuning().has_packed_dot();
        for Shard { buffer, rows } in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: rows.clone() };
            let consts = [ternary_consts(&rows, product, packed_dot), self.consts.clone()].concat();
            let buffers = [&[buffer as &dyn Bound, &w.scale], self.buffers].concat();
            let groups = (rows.shard.len() * w.matrices).div_ceil(self.rows_per_workgroup);
            let groups = [Extent::Fixed(groups as u32), self.tokens, Extent::Fixed(1)];
            recorder.dispatch(kernel, &consts, &buffers, groups);
        }
    }
}

/// The constants that all kernels of the LM head have in common.
pub(super) fn dense_consts(rows: &ShardRows, ty: DenseType, first_group: usize) -> Vec<Const> {
    let mut consts = rows.consts();
    consts.extend([
        Const::Bool("F16", ty == DenseType::F16),
        Const::Bool("SPLIT", ty == DenseType::F16Split),
        Const::size("FIRST_GROUP", first_group),
        Const::U32("NO_TOKEN", NO_TOKEN),
    ]);
    consts
}

/// A pass over the rows of the LM head, as one dispatch for each shard.
pub(super) struct LmHeadRows<'a> {
    pub(super) kernel: &'static Kernel,
    pub(super) embd: &'a Dense,
    /// Rows of one workgroup. The workgroups of all shards are counted on, from `FIRST_GROUP`.
    pub(super) rows_per_workgroup: usize,
    /// The kernel's own constants.
    pub(super) consts: Vec<Const>,
    /// What the kernel binds after `embd`.
    pub(super) buffers: &'a [&'a dyn Bound],
}

impl LmHeadRows<'_> {
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        self.record_using(recorder, |shard| shard.buffer.clone());
    }

    /// Like [`LmHeadRows::record`], but binds `used(shard)`: the shard's buffer, marked with the part
    /// that the kernel uses.
    pub(super) fn record_using(
        self,
        recorder: &mut Recorder<'_>,
        used: impl Fn(&Shard) -> Buffer<u32>,
    ) {
        let Self { kernel, embd, .. } = self;
        let mut first_group = 0;
        for shard in &embd.shards {
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: shard.rows.clone() };
            let consts = [dense_consts(&rows, embd.ty, first_group), self.consts.clone()].concat();
            let buffer = used(shard);
            let buffers = [&[&buffer as &dyn Bound], self.buffers].concat();
            let groups = rows.shard.len().div_ceil(self.rows_per_workgroup);
            recorder.dispatch(kernel, &consts, &buffers, in_a_row(groups));
            first_group += groups;
        }
    }
}

/// Workgroups of a pass over `embd`, each with `rows_per_workgroup` rows.
pub(super) fn workgroups(embd: &Dense, rows_per_workgroup: usize) -> usize {
    embd.shards.iter().map(|shard| shard.rows.len().div_ceil(rows_per_workgroup)).sum()
}
