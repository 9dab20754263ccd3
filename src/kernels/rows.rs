//! How the matrix kernels divide rows among lanes, workgroups and dispatches.

use std::ops::Range;

use super::weight::{Dense, DenseType, Norm, Product, Shard, Ternary};
use super::workgroups::{WORKGROUP, in_a_row};
use crate::compute::NO_TOKEN;
use crate::gpu::{
    Bound, Buffer, Const, Extent, Gpu, Kernel, Recorder, Step, Subgroups, Tuning, Used,
};

/// The bytes of workgroup memory that every adapter has. More would not help, because longer rows
/// would also need more registers than a thread has.
const WORKGROUP_MEMORY: usize = 16 << 10;

/// The most values of a row that is not long. Long rows get more threads, if a card allows them.
const LONG_ROW: usize = 8960;

/// The most threads that norm a long row. With 1024, an NVIDIA H200 decodes a model of such rows 2
/// % slower.
const LONG_ROW_THREADS: u32 = 512;

/// Rows of a workgroup that norms a long row.
const LONG_ROWS: u32 = 32;

/// How a workgroup divides rows: each team of `lanes` neighbouring lanes computes `each` rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowGroups {
    /// Lanes in the workgroup.
    pub(super) workgroup: u32,
    pub(super) lanes: u32,
    pub(super) each: u32,
}

impl RowGroups {
    const fn teams(self) -> u32 {
        self.workgroup / self.lanes
    }

    /// Rows of one workgroup.
    pub(super) const fn rows(self) -> usize {
        (self.teams() * self.each) as usize
    }

    pub(super) fn consts(self) -> Vec<Const> {
        vec![
            Const::U32("WORKGROUP", self.workgroup),
            Const::U32("LANES", self.lanes),
            Const::U32("TEAMS", self.teams()),
            Const::U32("EACH", self.each),
        ]
    }

    /// For a product with rows of `k` values that norms its input. Rows that are not long have
    /// `lanes` lanes each, and teams have two rows. Long rows have more lanes, and teams have as
    /// few rows as the kernel needs: `least`.
    pub(super) fn normed(tuning: &Tuning, k: usize, lanes: u32, least: u32) -> Self {
        if k > LONG_ROW {
            return Self::long(tuning, least);
        }
        Self { workgroup: WORKGROUP, lanes, each: 2 }
    }

    fn long(tuning: &Tuning, each: u32) -> Self {
        let workgroup = long_row_threads(tuning);
        Self { workgroup, lanes: workgroup * each / LONG_ROWS, each }
    }

    /// The constants for a product that norms its input, with `others` bytes of workgroup memory.
    pub(super) fn normed_consts(self, gpu: &Gpu, k: usize, others: usize) -> Vec<Const> {
        let fit = k <= self.max_columns(gpu.subgroups, others, 2);
        self.normed_consts_if(fit && !gpu.tuning.has_packed_dot())
    }

    /// Like [`RowGroups::normed_consts`]. `wide` says whether the activations in workgroup memory
    /// have 16 bits.
    pub(super) fn normed_consts_if(self, wide: bool) -> Vec<Const> {
        [self.consts(), vec![Const::Bool("WIDE", wide)]].concat()
    }

    /// Bytes of workgroup memory for the results of each team.
    pub(super) const fn results(self) -> usize {
        self.rows() * size_of::<f32>()
    }

    /// The longest row whose activations of `size` bytes fit into workgroup memory. The sums of
    /// `shaders/products/ternary.wgsl` and `others` bytes are in it too.
    fn max_columns(self, subgroups: Option<Subgroups>, others: usize, size: usize) -> usize {
        let partials = match subgroups {
            None => self.workgroup,
            Some(Subgroups(lanes)) if lanes < self.workgroup => self.workgroup / lanes,
            Some(_) => 1,
        };
        // First the sum of squares with the largest value, then the sum of the activations, then
        // the sums of two rows.
        let bytes = |of_each: usize| (partials as usize * of_each).next_multiple_of(16);
        let sums = bytes(8) + bytes(4) + bytes(8);
        // Lanes read 64 values each in one step.
        let step = self.lanes as usize * 64;
        (WORKGROUP_MEMORY - sums - others) / (step * size) * step
    }
}

/// The weight of `norm`, for its binding. Without a norm, `other` is bound instead, and is not
/// used.
pub(super) fn weight_or(norm: Option<&Norm>, other: &Buffer<f32>) -> Buffer<f32> {
    match norm {
        Some(norm) => norm.weight.clone(),
        None => other.clone().using(Used::Fixed(0)),
    }
}

/// The constants of a norm. Without an `eps` there is none.
pub(super) fn norm_consts(eps: Option<f32>) -> Vec<Const> {
    vec![Const::Bool("NORM", eps.is_some()), Const::F32("EPS", eps.unwrap_or_default())]
}

/// The threads that norm a row of `k` values in a dispatch of its own. They are as many as in the
/// products that norm it, so that both add up its squares in the same order.
pub(super) fn norm_threads(tuning: &Tuning, k: usize) -> u32 {
    if k > LONG_ROW && tuning.fused { long_row_threads(tuning) } else { tuning.norm_lanes }
}

fn long_row_threads(tuning: &Tuning) -> u32 {
    tuning.stream_threads.min(LONG_ROW_THREADS)
}

/// The longest row that [`Recorder::norm_gemv`] and [`Recorder::merge_norm_gemv`] take.
pub fn max_normed_columns(tuning: &Tuning, subgroups: Option<Subgroups>) -> usize {
    RowGroups::long(tuning, 2).max_columns(subgroups, 0, 1)
}

/// The longest row that [`Recorder::norm_gemv_rope_kv`] takes. Its lanes also exchange their
/// results.
pub fn max_rope_columns(tuning: &Tuning, subgroups: Option<Subgroups>) -> usize {
    let groups = RowGroups::long(tuning, 2);
    groups.max_columns(subgroups, groups.results(), 1)
}

/// The constants of these kernels for rows of `k` values, if that is more than `LONG_ROW`.
pub fn long_row_consts(tuning: &Tuning, k: usize) -> Vec<Const> {
    [vec![Const::size("K", k)], RowGroups::long(tuning, 2).consts()].concat()
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

/// Other constants for a kernel, and the test of the steps that take them.
pub(super) struct Instead {
    pub(super) is_taken: fn(&Step) -> bool,
    pub(super) consts: Vec<Const>,
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
    pub(super) instead: Vec<Instead>,
    /// The buffers that the kernel binds after `w` and `w_scale`.
    pub(super) buffers: &'a [&'a dyn Bound],
}

impl TernaryProduct<'_> {
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        let Self { kernel, w, product, .. } = self;
        debug_assert_eq!(w.matrices, product.matrices(), "{}: {product:?}", kernel.name);
        let packed_dot = recorder.tuning().has_packed_dot();
        for Shard { buffer, rows } in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: rows.clone() };
            let consts =
                |own: &[Const]| [&ternary_consts(&rows, product, packed_dot), own].concat();
            let buffers = [&[buffer as &dyn Bound, &w.scale], self.buffers].concat();
            let groups = (rows.shard.len() * w.matrices).div_ceil(self.rows_per_workgroup);
            let groups = [Extent::Fixed(groups as u32), self.tokens, Extent::Fixed(1)];
            recorder.dispatch(kernel, &consts(&self.consts), &buffers, groups);
            for Instead { is_taken, consts: own } in &self.instead {
                recorder.instead(*is_taken, kernel, &consts(own), groups);
            }
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

/// Where each of `shards` but the first begins among the rows of one dispatch. There are constants
/// for as many shards as any kernel takes. If there is no such shard, its constant is the end of
/// the rows.
pub(super) fn shard_consts(shards: &[Range<usize>]) -> Vec<Const> {
    const NAMES: [&str; 4] = ["SHARD_1", "SHARD_2", "SHARD_3", "SHARD_4"];
    let (first, end) = (shards[0].start, shards[shards.len() - 1].end);
    let start = |n: usize| shards.get(n).map_or(end, |rows| rows.start) - first;
    (1..).zip(NAMES).map(|(n, name)| Const::size(name, start(n))).collect()
}

/// The rows of each of `shards`.
pub(super) fn ranges(shards: &[Shard]) -> Vec<Range<usize>> {
    shards.iter().map(|shard| shard.rows.clone()).collect()
}

/// All rows of neighbouring `shards`.
pub(super) fn rows_of(shards: &[Shard]) -> Range<usize> {
    shards[0].rows.start..shards[shards.len() - 1].rows.end
}

/// The buffers of the shards, for a kernel that binds `together` of them. If there are fewer, the
/// first one is bound instead of the missing ones, and is not used there.
pub(super) fn shard_buffers(
    shards: &[Shard],
    together: usize,
    used: impl Fn(&Shard) -> Used,
) -> Vec<Buffer<u32>> {
    let bound = |n: usize| match shards.get(n) {
        Some(shard) => shard.buffer.clone().using(used(shard)),
        None => shards[0].buffer.clone().using(Used::Fixed(0)),
    };
    (0..together).map(bound).collect()
}

/// A pass over the rows of the LM head, as one dispatch for each shard, or for several together.
pub(super) struct LmHeadRows<'a> {
    pub(super) kernel: &'static Kernel,
    pub(super) embd: &'a Dense,
    /// The most shards that one dispatch reads. The kernel binds the first of them first and the
    /// others last.
    pub(super) together: usize,
    /// Rows of one workgroup. The workgroups of all shards are numbered together, from
    /// `FIRST_GROUP` on.
    pub(super) rows_per_workgroup: usize,
    /// The kernel's own constants.
    pub(super) consts: Vec<Const>,
    /// The buffers that the kernel binds after `embd`.
    pub(super) buffers: &'a [&'a dyn Bound],
}

impl LmHeadRows<'_> {
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        self.record_using(recorder, |shard| Used::Fixed(shard.buffer.bytes()));
    }

    /// Like [`LmHeadRows::record`], but the kernel uses only `used(shard)` of a shard.
    pub(super) fn record_using(self, recorder: &mut Recorder<'_>, used: impl Fn(&Shard) -> Used) {
        let Self { kernel, embd, together, .. } = self;
        let mut first_group = 0;
        for shards in embd.shards.chunks(together) {
            let rows = ShardRows { k: embd.k, all: embd.rows, shard: rows_of(shards) };
            let consts = [
                dense_consts(&rows, embd.ty, first_group),
                shard_consts(&ranges(shards)),
                self.consts.clone(),
            ]
            .concat();
            let bound = shard_buffers(shards, together, &used);
            let mut buffers: Vec<&dyn Bound> = vec![&bound[0]];
            buffers.extend(self.buffers);
            buffers.extend(bound[1..].iter().map(|buffer| buffer as &dyn Bound));
            let groups = workgroups(shards, self.rows_per_workgroup);
            recorder.dispatch(kernel, &consts, &buffers, in_a_row(groups));
            first_group += groups;
        }
    }
}

/// The number of workgroups of a pass over `shards`, with `rows_per_workgroup` rows each. No
/// workgroup has rows of two shards.
pub(super) fn workgroups(shards: &[Shard], rows_per_workgroup: usize) -> usize {
    shards.iter().map(|shard| shard.rows.len().div_ceil(rows_per_workgroup)).sum()
}
