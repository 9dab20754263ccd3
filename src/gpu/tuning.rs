//! How work is divided on an adapter. A graphics card and a CPU need different divisions.

use super::Subgroups;

/// The most steps that are submitted to the GPU together.
pub const MAX_BATCH_STEPS: usize = 4;

/// The choices that are made for the adapter when its device is opened. No choice changes a token.
///
/// No module above this asks whether the adapter is a CPU: every difference has a field here.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Lanes that share a row of a matrix-vector product, a power of two.
    ///
    /// A card waits for memory: 32 lanes read a row in few steps, and more lanes than a subgroup
    /// has would need a barrier. A CPU reads no faster with more lanes, and adding their sums takes
    /// time.
    pub lanes: u32,
    /// Threads of a workgroup that computes 32 values of the residual stream, or norms a long row.
    /// It is a power of two. With more threads, each has fewer rows, and more of them wait for
    /// memory at once.
    pub stream_threads: u32,
    /// Lanes that norm a row together. A row has work for few lanes only, and a CPU pays for each
    /// lane at every barrier.
    pub norm_lanes: u32,
    /// Rows of the LM head, 1 or 4, that the same lanes compute together in a draft pass. The lanes
    /// then read each token once for all of these rows. On a CPU this only makes compiling slower.
    pub lm_head_rows: u32,
    /// Whether to multiply four int8 values in one operation, instead of two or one; `None`: a load
    /// measures which is faster. CPUs have an operation for four.
    pub packed_dot: Option<bool>,
    /// Whether products and attention of several tokens work on tiles in workgroup memory. This way
    /// a card reads each weight once. A CPU has caches of its own, and pays for every barrier.
    pub tiles: bool,
    /// Whether the products of a single token norm their own input. This saves half the dispatches,
    /// and a card waits longer for dispatches than for memory. On a CPU dispatches cost nothing,
    /// but every workgroup would repeat the norm.
    pub fused: bool,
    /// Whether `lm_head: auto` may split the f16 values of the LM head into bytes. On a CPU,
    /// computing with half of the bytes takes longer than reading the other half.
    pub split_lm_head: bool,
    /// The most prompt tokens of one prefill step. 512 are enough tiles to fill a large card. At
    /// the end of each dispatch some of the card has nothing left to do. With 1024 tokens there are
    /// half as many ends.
    pub chunk: usize,
    /// Positions of a decode step's split are a multiple of this. They are a multiple of less if
    /// the kernel takes fewer at a time, or if the sequence is short. On a card the kernel takes
    /// 128. A CPU may have more cores than there are heads, so shorter splits keep it busy.
    pub min_split: usize,
    /// The most splits of attention in a prefill step. Each split takes memory for every token of a
    /// chunk. On a CPU the tokens alone keep all cores busy.
    pub max_prefill_splits: usize,
    /// The most batches of decode steps in flight, including the one whose tokens are awaited.
    ///
    /// Waiting for each token costs a fast card two thirds of its speed. A browser prepares all
    /// steps of a batch before the GPU gets the first. With two batches of four steps the GPU waits
    /// so long that single steps are faster, and with three batches it still waits. An answer
    /// begins with batches of one step, so it needs more of them. A CPU gains nothing, and would
    /// compute tokens that are not needed.
    pub max_batches: usize,
    /// The most steps of one batch. It is at most [`MAX_BATCH_STEPS`].
    pub max_batch_steps: usize,
    /// Whether generations use prompt lookup by default. On a CPU a draft pass of eight tokens
    /// costs as much as it saves.
    pub prompt_lookup: bool,
    /// Whether a load also compiles and runs the kernels of long prompts and far positions. On a
    /// CPU compiling them takes longer than running them.
    pub warms_long: bool,
    /// Bytes that the measurement of the memory's speed reads. They are several times as many as
    /// caches hold.
    pub probe_bytes: u64,
}

impl Tuning {
    /// For a graphics card, with at most `threads` in a workgroup.
    pub fn card(subgroups: Option<Subgroups>, threads: u32) -> Self {
        Self {
            lanes: subgroups.map_or(32, |Subgroups(lanes)| lanes.min(32)),
            // Without subgroups, the sums of more threads would exceed the workgroup memory of many
            // cards.
            stream_threads: if subgroups.is_some() { threads } else { 256 },
            norm_lanes: 256,
            lm_head_rows: 4,
            packed_dot: None,
            tiles: true,
            fused: true,
            split_lm_head: true,
            chunk: 1024,
            min_split: 128,
            max_prefill_splits: 4,
            max_batches: 6,
            max_batch_steps: MAX_BATCH_STEPS,
            prompt_lookup: true,
            warms_long: true,
            probe_bytes: 256 << 20,
        }
    }

    /// The same division without subgroup operations.
    pub(super) fn without_subgroups(self) -> Self {
        if self.lanes == Self::cpu().lanes {
            return self;
        }
        let Self { lanes, stream_threads, .. } = Self::card(None, self.stream_threads);
        Self { lanes, stream_threads, ..self }
    }

    /// For a CPU that acts as an adapter, such as SwiftShader and llvmpipe.
    pub fn cpu() -> Self {
        Self {
            lanes: 1,
            stream_threads: 256,
            norm_lanes: 32,
            lm_head_rows: 1,
            packed_dot: Some(true),
            tiles: false,
            fused: false,
            split_lm_head: false,
            chunk: 64,
            min_split: 64,
            max_prefill_splits: 1,
            max_batches: 1,
            max_batch_steps: 1,
            prompt_lookup: false,
            warms_long: false,
            probe_bytes: 64 << 20,
        }
    }

    /// Whether to multiply four int8 values in one operation. Where nothing was measured it does,
    /// because most cards are faster so.
    pub(crate) fn has_packed_dot(&self) -> bool {
        self.packed_dot.unwrap_or(true)
    }
}
