//! How work is divided on an adapter. A graphics card and a CPU want it differently.

use super::Subgroups;

/// Steps that are submitted to the GPU together, at most.
pub const MAX_BATCH_STEPS: usize = 4;

/// What is chosen for the adapter when its device is opened. No choice changes a token.
///
/// Nothing above this asks whether the adapter is a CPU: whatever differs has a field here.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Lanes that share a row of a matrix-vector product, a power of two.
    ///
    /// A card waits for memory: 32 lanes read a row in few steps, and more than a subgroup would
    /// need a barrier. A CPU reads no faster in lanes, and their sums cost it time.
    pub lanes: u32,
    /// Threads of a workgroup that computes 32 values of the residual stream, or norms a long row, a
    /// power of two. Each lane then has fewer rows, and more of them wait for memory at once.
    pub stream_threads: u32,
    /// Lanes that norm a row together. A row has work for few of them, and a CPU pays for each lane
    /// at every barrier.
    pub norm_lanes: u32,
    /// Rows of the LM head, 1 or 4, that the same lanes compute together in a draft pass: each
    /// token is read once for all of them. On a CPU this only makes compiling slower.
    pub lm_head_rows: u32,
    /// Whether to multiply four int8 values in one operation, rather than two or one; `None`: measure
    /// which is faster when a model loads. CPUs have an operation for four.
    pub packed_dot: Option<bool>,
    /// Whether products and attention of several tokens work on tiles in workgroup memory. A card
    /// then reads each weight once. A CPU has caches of its own, and pays for every barrier.
    pub tiles: bool,
    /// Whether the products of a single token norm their own input. A card saves half the
    /// dispatches, for which it waits longer than for memory. A CPU would repeat the norm in every
    /// workgroup to save dispatches that cost it nothing.
    pub fused: bool,
    /// Whether `lm_head: auto` may split the f16 values of the LM head into bytes. A CPU computes
    /// longer on half of the bytes than it reads the other half.
    pub split_lm_head: bool,
    /// Prompt tokens of one prefill step, at most. 512 fill a large card with tiles. With 1024, the end
    /// of each dispatch, when some of the card has nothing left to do, comes half as often.
    pub chunk: usize,
    /// Positions of a decode step's split are a multiple of this, or of fewer where the kernel takes
    /// fewer at a time, or where the text is short. A card's takes 128. A CPU may have more cores than there are heads, and is busy
    /// with shorter splits.
    pub min_split: usize,
    /// Splits of a prefill step's attention, at most: each takes memory for every token of a chunk.
    /// Tokens alone keep a CPU busy.
    pub max_prefill_splits: usize,
    /// Batches of decode steps in flight, at most, counting the one whose tokens are awaited.
    ///
    /// Waiting for each token costs a fast card two thirds of its speed. A browser prepares all
    /// steps of a batch before the GPU gets the first: with two batches of four the GPU waits so
    /// long that single steps are faster, and with three it still waits. An answer begins with batches
    /// of one step, so it needs more of them. A CPU gains nothing, and would compute tokens that nobody
    /// wants.
    pub max_batches: usize,
    /// Steps of one batch, at most [`MAX_BATCH_STEPS`].
    pub max_batch_steps: usize,
    /// Whether generations use prompt lookup unless told otherwise. On a CPU a draft pass of eight
    /// tokens costs as much as it saves.
    pub prompt_lookup: bool,
    /// Whether a load also compiles and runs the kernels of long prompts and far positions. A CPU would
    /// compile them for longer than it runs them.
    pub warms_long: bool,
    /// Bytes that the measurement of the memory's speed reads: several times what caches hold.
    pub probe_bytes: u64,
}

impl Tuning {
    /// For a graphics card, with at most `threads` in a workgroup.
    pub fn card(subgroups: Option<Subgroups>, threads: u32) -> Self {
        Self {
            lanes: subgroups.map_or(32, |Subgroups(lanes)| lanes.min(32)),
            // Without subgroups, the sums of more threads exceed the workgroup memory of many cards.
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

    /// For a CPU that offers itself as an adapter, such as SwiftShader and llvmpipe.
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

    /// Whether to multiply four int8 values in one operation. Most cards are faster so: it is taken where
    /// nothing was measured.
    pub(crate) fn has_packed_dot(&self) -> bool {
        self.packed_dot.unwrap_or(true)
    }
}
