//! The roles of tensors in a model.

/// The role of a tensor in the model. Roles are named as in GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The embedding `[n_embd, n_vocab]`.
    TokenEmbd,
    /// The LM head `[n_embd, n_vocab]`. If a file has none, the embedding is the LM head too.
    Output,
    /// The last norm `[n_embd]`.
    OutputNorm,
    /// Divisors of RoPE's frequencies `[head_dim / 2]`.
    RopeFreqs,
    /// Divisors of RoPE's frequencies, for contexts that are not extended.
    RopeFactorsShort,
    /// Divisors of RoPE's frequencies, for extended contexts.
    RopeFactorsLong,
    /// The norm before attention `[n_embd]`.
    AttnNorm,
    /// Queries `[n_embd, n_head * head_dim]`.
    AttnQ,
    /// Keys `[n_embd, n_head_kv * head_dim]`.
    AttnK,
    /// Values `[n_embd, n_head_kv * head_dim]`.
    AttnV,
    /// The norm of each head's queries `[head_dim]`, before RoPE.
    AttnQNorm,
    /// The norm of each head's keys `[head_dim]`, before RoPE.
    AttnKNorm,
    /// The norm of the queries' input `[n_embd]`, after the norm before attention.
    AttnQNormIn,
    /// The norm of the keys' input `[n_embd]`, after the norm before attention.
    AttnKNormIn,
    /// The norm of the values' input `[n_embd]`, after the norm before attention.
    AttnVNormIn,
    /// The norm of the results of all heads `[n_head * head_dim]`.
    AttnSubNorm,
    /// The same, as models name it that have a norm for each matrix.
    AttnOutputNormIn,
    /// The product that brings the results of all heads back to the residual stream
    /// `[n_head * head_dim, n_embd]`.
    AttnOutput,
    /// The norm before the feed-forward network `[n_embd]`.
    FfnNorm,
    /// Gate `[n_embd, n_ff]`.
    FfnGate,
    /// Up `[n_embd, n_ff]`.
    FfnUp,
    /// The norm of gate's input `[n_embd]`, after the norm before the feed-forward network.
    FfnGateNormIn,
    /// The norm of up's input `[n_embd]`, after the norm before the feed-forward network.
    FfnUpNormIn,
    /// The norm before down `[n_ff]`.
    FfnSubNorm,
    /// The same, as models name it that have a norm for each matrix.
    FfnDownNormIn,
    /// Down `[n_ff, n_embd]`.
    FfnDown,
}

/// The kind of a tensor, which decides its shape and types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A row for each token: the embedding and the LM head.
    Vocabulary,
    /// A matrix of a block.
    Matrix,
    /// A norm, or RoPE's divisors.
    Vector,
}

impl Role {
    /// The tensors that each block of every architecture has.
    pub(super) const BLOCK: &[Self] = &[
        Self::AttnNorm,
        Self::AttnQ,
        Self::AttnK,
        Self::AttnV,
        Self::AttnOutput,
        Self::FfnNorm,
        Self::FfnGate,
        Self::FfnUp,
        Self::FfnDown,
    ];

    /// The name in GGUF without `blk.N.` and `.weight`.
    pub fn name(self) -> &'static str {
        match self {
            Self::TokenEmbd => "token_embd",
            Self::Output => "output",
            Self::OutputNorm => "output_norm",
            Self::RopeFreqs => "rope_freqs",
            Self::RopeFactorsShort => "rope_factors_short",
            Self::RopeFactorsLong => "rope_factors_long",
            Self::AttnNorm => "attn_norm",
            Self::AttnQ => "attn_q",
            Self::AttnK => "attn_k",
            Self::AttnV => "attn_v",
            Self::AttnQNorm => "attn_q_norm",
            Self::AttnKNorm => "attn_k_norm",
            Self::AttnQNormIn => "attn_q_norm_in",
            Self::AttnKNormIn => "attn_k_norm_in",
            Self::AttnVNormIn => "attn_v_norm_in",
            Self::AttnSubNorm => "attn_sub_norm",
            Self::AttnOutputNormIn => "attn_output_norm_in",
            Self::AttnOutput => "attn_output",
            Self::FfnNorm => "ffn_norm",
            Self::FfnGate => "ffn_gate",
            Self::FfnUp => "ffn_up",
            Self::FfnGateNormIn => "ffn_gate_norm_in",
            Self::FfnUpNormIn => "ffn_up_norm_in",
            Self::FfnSubNorm => "ffn_sub_norm",
            Self::FfnDownNormIn => "ffn_down_norm_in",
            Self::FfnDown => "ffn_down",
        }
    }

    /// The kind of tensors with this role.
    pub fn kind(self) -> Kind {
        match self {
            Self::TokenEmbd | Self::Output => Kind::Vocabulary,
            Self::AttnQ
            | Self::AttnK
            | Self::AttnV
            | Self::AttnOutput
            | Self::FfnGate
            | Self::FfnUp
            | Self::FfnDown => Kind::Matrix,
            _ => Kind::Vector,
        }
    }
}
