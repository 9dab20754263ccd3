//! The architectures that this crate runs, as a table of their differences.
//!
//! All are the same transformer: norm, q, k and v, RoPE, attention, output, norm, gate and up, an
//! activation, down. The graph, the list of tensors and the plain reference read the differences
//! from this table.

use super::role::Role;
use crate::gguf::Gguf;

/// The differences of one architecture.
#[derive(Debug, PartialEq)]
pub struct Architecture {
    /// `general.architecture`.
    pub name: &'static str,
    /// The norms of a block besides those before attention and before the feed-forward network,
    /// which all architectures have.
    pub norms: &'static [Role],
    /// The function of the gate, whose result multiplies up.
    pub activation: Activation,
    /// Which elements of q and k rotate together.
    pub rope_pairs: RopePairs,
    /// The tensors that divide the frequencies of RoPE, if the file has them.
    pub rope_factors: &'static [Role],
    /// Whether the file has factors for the embedding, the residual stream and the logits.
    pub scales: bool,
    /// Whether the heads together must be as wide as the residual stream.
    pub square_attention: bool,
    /// Whether the LM head is always the embedding. An `output.weight` beside it is then a copy.
    pub always_tied: bool,
}

/// The function of the gate in the feed-forward network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(0, x)²`.
    Relu2,
    /// `x / (1 + exp(-x))`.
    Silu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x³)))`.
    Gelu,
}

/// Which elements of a head RoPE rotates together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopePairs {
    /// `2i` and `2i + 1` (ggml's NORM).
    Neighbours,
    /// `i` and `i + head_dim / 2` (ggml's NEOX).
    Halves,
}

const SUB_NORMS: &[Role] = &[Role::AttnSubNorm, Role::FfnSubNorm];

const BITNET: Architecture = Architecture {
    name: "bitnet",
    norms: SUB_NORMS,
    activation: Activation::Silu,
    rope_pairs: RopePairs::Halves,
    rope_factors: &[],
    scales: false,
    square_attention: true,
    always_tied: true,
};

const LLAMA: Architecture = Architecture {
    name: "llama",
    norms: &[],
    activation: Activation::Silu,
    rope_pairs: RopePairs::Neighbours,
    rope_factors: &[Role::RopeFreqs],
    scales: false,
    square_attention: false,
    always_tied: false,
};

const QWEN3: Architecture = Architecture {
    name: "qwen3",
    norms: &[Role::AttnQNorm, Role::AttnKNorm],
    rope_pairs: RopePairs::Halves,
    rope_factors: &[],
    ..LLAMA
};

/// BitNet's embedding models. Their files say `qwen3`, but each matrix of a block has a norm of its own for
/// its input: [`Architecture::of_file`].
const NORMED_INPUTS: Architecture = Architecture {
    norms: &[
        Role::AttnQNorm,
        Role::AttnKNorm,
        Role::AttnQNormIn,
        Role::AttnKNormIn,
        Role::AttnVNormIn,
        Role::AttnOutputNormIn,
        Role::FfnGateNormIn,
        Role::FfnUpNormIn,
        Role::FfnDownNormIn,
    ],
    ..QWEN3
};

/// Every architecture that this crate runs, by its name.
pub const ARCHITECTURES: &[Architecture] = &[
    // The official 2B-4T, and the files of today's converters.
    Architecture { name: "bitnet-b1.58", activation: Activation::Relu2, ..BITNET },
    // The first upload of 2B-4T, and models derived from it.
    Architecture { name: "bitnet-25", activation: Activation::Relu2, ..BITNET },
    // 1bitLLM's reproductions of b1.58.
    BITNET,
    // Falcon-E, Falcon3-1.58bit, Llama3-8B-1.58.
    LLAMA,
    // Bonsai and Ternary-Bonsai.
    QWEN3,
    // BitCPM-CANN.
    Architecture {
        name: "minicpm",
        rope_factors: &[Role::RopeFactorsShort, Role::RopeFactorsLong],
        scales: true,
        ..LLAMA
    },
];

impl Architecture {
    /// The architecture of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.name == name)
    }

    /// The architecture of a file with this name and these tensors. The name alone does not tell the norms
    /// of inputs.
    pub fn of_file(name: &str, gguf: &Gguf) -> Option<&'static Self> {
        let first = format!("blk.0.{}.weight", Role::AttnQNormIn.name());
        let named = Self::named(name)?;
        named.with_normed_inputs().filter(|_| gguf.tensor(&first).is_some()).or(Some(named))
    }

    /// The architecture of this name whose matrices each norm their input; `None` if there is none.
    pub fn with_normed_inputs(&self) -> Option<&'static Self> {
        (self.name == NORMED_INPUTS.name).then_some(&NORMED_INPUTS)
    }

    /// Whether every matrix of a block norms its input by itself. Then matrices do not share one.
    pub fn norms_inputs(&self) -> bool {
        self.has(Role::AttnQNormIn)
    }

    /// Whether the blocks of the architecture have this norm.
    pub fn has(&self, norm: Role) -> bool {
        self.norms.contains(&norm)
    }
}
