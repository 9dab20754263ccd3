//! The shapes that models are published in.

use clap::ValueEnum;

use tritloom::gguf::TensorType;
use tritloom::model::{Architecture, Config, Pooling, Rope, RopeScaling};
use tritloom::{Error, Result};

use super::vocabulary::{self, Vocabulary};

/// A shape that models are published in.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Shape {
    /// microsoft/bitnet-b1.58-2B-4T: 30 layers, width 2560, I2_S, 1.18 GB
    #[value(name = "2b4t")]
    Bitnet2b4t,
    /// An unpublished 8B of the same kind: 36 layers, width 4096, I2_S, 2.8 GB
    #[value(name = "bitnet-8b")]
    Bitnet8b,
    /// The bundled model: 8 layers, width 512, I2_S, 10 MB
    Tiny,
    /// prism-ml/Ternary-Bonsai-1.7B: 28 layers, width 2048, Q2_0, 0.48 GB
    #[value(name = "bonsai-1.7b")]
    Bonsai1_7b,
    /// prism-ml/Ternary-Bonsai-4B: 36 layers, width 2560, Q2_0, 1.1 GB
    #[value(name = "bonsai-4b")]
    Bonsai4b,
    /// prism-ml/Ternary-Bonsai-8B: 36 layers, width 4096, Q2_0, 2.3 GB
    #[value(name = "bonsai-8b")]
    Bonsai8b,
    /// prism-ml/Bonsai-1.7B: the same with weights of -1 and +1, Q1_0, 0.24 GB
    #[value(name = "bonsai-1.7b-q1_0")]
    Bonsai1_7bQ1_0,
    /// prism-ml/Bonsai-4B: Q1_0, 0.57 GB
    #[value(name = "bonsai-4b-q1_0")]
    Bonsai4bQ1_0,
    /// prism-ml/Bonsai-8B: Q1_0, 1.15 GB
    #[value(name = "bonsai-8b-q1_0")]
    Bonsai8bQ1_0,
    /// microsoft/bitnet-embedding-0.6b: 28 layers, width 1024, norms of inputs, I2_S, 0.43 GB
    #[value(name = "bitnet-embedding-0.6b")]
    BitnetEmbedding0_6b,
    /// openbmb/BitCPM-CANN-0.5B: 24 layers, width 1024, TQ2_0, 0.24 GB
    #[value(name = "bitcpm-0.5b")]
    Bitcpm0_5b,
    /// openbmb/BitCPM-CANN-1B: 52 layers, width 1536, TQ2_0, 0.55 GB
    #[value(name = "bitcpm-1b")]
    Bitcpm1b,
    /// tiiuae/Falcon-E-3B: 32 layers, width 2048, I2_S, 1.0 GB
    #[value(name = "falcon-e-3b")]
    FalconE3b,
    /// tiiuae/Falcon3-7B-1.58bit: 28 layers, width 3072, heads of 256, I2_S, 3.3 GB
    #[value(name = "falcon3-7b")]
    Falcon3_7b,
}

/// A model's sizes, the types of its weights and its tokenizer.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(super) architecture: &'static str,
    /// How it embeds texts: it then has a norm for the input of each matrix.
    pub(super) pooling: Option<Pooling>,
    pub(super) n_vocab: usize,
    pub(super) n_ctx: usize,
    pub(super) n_embd: usize,
    pub(super) n_layer: usize,
    pub(super) n_head: usize,
    pub(super) n_head_kv: usize,
    pub(super) head_dim: usize,
    pub(super) n_ff: usize,
    pub(super) eps: f32,
    pub(super) rope_freq_base: f32,
    pub(super) rope_scaling: RopeScaling,
    /// The type of the matrices.
    pub(super) body: TensorType,
    /// The type of the embedding.
    pub(super) embedding: TensorType,
    /// The type of the LM head; `None` if the embedding is the LM head.
    pub(super) head: Option<TensorType>,
    pub(super) vocabulary: &'static Vocabulary,
}

const NO_SCALING: RopeScaling = RopeScaling::Linear { factor: 1.0 };

/// microsoft/bitnet-b1.58-2B-4T: from its file.
const BITNET: Sizes = Sizes {
    architecture: "bitnet-b1.58",
    pooling: None,
    n_vocab: 128_256,
    n_ctx: 4096,
    n_embd: 2560,
    n_layer: 30,
    n_head: 20,
    n_head_kv: 5,
    head_dim: 128,
    n_ff: 6912,
    eps: 1e-5,
    rope_freq_base: 500_000.0,
    rope_scaling: NO_SCALING,
    body: TensorType::I2S,
    embedding: TensorType::F16,
    head: None,
    vocabulary: &vocabulary::LLAMA_3,
};

/// Ternary-Bonsai 1.7B. The manifests of other engines for the 1-bit models have these sizes, and
/// those of 4B and 8B. It is reported that the embedding has the type of the body. None of these
/// files was read for this.
const BONSAI: Sizes = Sizes {
    architecture: "qwen3",
    pooling: None,
    n_vocab: 151_669,
    n_ctx: 32_768,
    n_embd: 2048,
    n_layer: 28,
    n_head: 16,
    n_head_kv: 8,
    head_dim: 128,
    n_ff: 6144,
    eps: 1e-6,
    rope_freq_base: 1e6,
    rope_scaling: RopeScaling::Yarn { factor: 4.0, original: 8192.0 },
    body: TensorType::Q2_0,
    embedding: TensorType::Q2_0,
    head: None,
    vocabulary: &vocabulary::QWEN_2,
};

/// BitCPM-CANN 0.5B. The sizes are those of MiniCPM4-0.5B, from which it was trained. They give a
/// file of 243 MB, and the published one has 245. It is reported that the embedding is tied and
/// F16.
const BITCPM: Sizes = Sizes {
    architecture: "minicpm",
    pooling: None,
    n_vocab: 73_448,
    n_ctx: 32_768,
    n_embd: 1024,
    n_layer: 24,
    n_head: 16,
    n_head_kv: 2,
    head_dim: 64,
    n_ff: 4096,
    eps: 1e-6,
    rope_freq_base: 10_000.0,
    rope_scaling: RopeScaling::LongRope { factor: 1.0, original: 32_768 },
    body: TensorType::Tq2_0,
    embedding: TensorType::F16,
    head: None,
    vocabulary: &vocabulary::MINICPM,
};

/// Falcon3-7B: from its published configuration.
const FALCON: Sizes = Sizes {
    architecture: "llama",
    pooling: None,
    n_vocab: 131_072,
    n_ctx: 32_768,
    n_embd: 3072,
    n_layer: 28,
    n_head: 12,
    n_head_kv: 4,
    head_dim: 256,
    n_ff: 23_040,
    eps: 1e-6,
    rope_freq_base: 1_000_042.0,
    rope_scaling: NO_SCALING,
    body: TensorType::I2S,
    embedding: TensorType::F16,
    head: Some(TensorType::F16),
    vocabulary: &vocabulary::FALCON_3,
};

/// The constants of all MiniCPM models: `scale_emb`, `scale_depth` and `dim_model_base`.
const EMBEDDING_SCALE: f32 = 12.0;
const DEPTH_SCALE: f32 = 1.4;
const BASE_WIDTH: f32 = 256.0;

impl Shape {
    pub(crate) fn sizes(self) -> Sizes {
        match self {
            Self::Bitnet2b4t => BITNET,
            Self::Bitnet8b => Sizes {
                n_embd: 4096,
                n_layer: 36,
                n_head: 32,
                n_head_kv: 8,
                n_ff: 12_288,
                ..BITNET
            },
            Self::Tiny => Sizes {
                n_vocab: 4096,
                n_ctx: 1024,
                n_embd: 512,
                n_layer: 8,
                n_head: 8,
                n_head_kv: 4,
                head_dim: 64,
                n_ff: 1408,
                rope_freq_base: 10_000.0,
                ..BITNET
            },
            Self::Bonsai1_7b => BONSAI,
            Self::Bonsai4b => Sizes {
                n_embd: 2560,
                n_layer: 36,
                n_head: 32,
                n_ff: 9728,
                rope_freq_base: 5e6,
                ..BONSAI
            },
            Self::Bonsai8b => Sizes {
                n_ctx: 65_536,
                n_embd: 4096,
                n_layer: 36,
                n_head: 32,
                n_ff: 12_288,
                rope_scaling: RopeScaling::Yarn { factor: 4.0, original: 16_384.0 },
                head: Some(TensorType::Q2_0),
                ..BONSAI
            },
            Self::Bonsai1_7bQ1_0 => Self::Bonsai1_7b.sizes().with_weights(TensorType::Q1_0),
            Self::Bonsai4bQ1_0 => Self::Bonsai4b.sizes().with_weights(TensorType::Q1_0),
            Self::Bonsai8bQ1_0 => Self::Bonsai8b.sizes().with_weights(TensorType::Q1_0),
            // From its published configuration.
            Self::BitnetEmbedding0_6b => Sizes {
                pooling: Some(Pooling::Last),
                n_vocab: 151_936,
                n_embd: 1024,
                n_ff: 3072,
                rope_scaling: NO_SCALING,
                body: TensorType::I2S,
                embedding: TensorType::F16,
                ..BONSAI
            },
            Self::Bitcpm0_5b => BITCPM,
            // No configuration was available. The sizes of MiniCPM-1B with this vocabulary give a
            // file of 547 MB, and the published one has 551.
            Self::Bitcpm1b => {
                Sizes { n_embd: 1536, n_layer: 52, n_head: 24, n_head_kv: 8, n_ff: 3840, ..BITCPM }
            }
            // No configuration was available. These sizes give the 1.0 GB of the published file.
            // The base and the epsilon are Falcon3's: no time depends on them.
            Self::FalconE3b => Sizes {
                n_vocab: 32_768,
                n_embd: 2048,
                n_layer: 32,
                n_head: 16,
                n_head_kv: 2,
                head_dim: 128,
                n_ff: 13_312,
                vocabulary: &vocabulary::FALCON_E,
                ..FALCON
            },
            Self::Falcon3_7b => FALCON,
        }
    }
}

impl Sizes {
    /// These sizes, with another type for all matrices and the vocabulary.
    fn with_weights(self, ty: TensorType) -> Self {
        Self { body: ty, embedding: ty, head: self.head.map(|_| ty), ..self }
    }

    /// The configuration that the loader would read from a file of these sizes.
    pub(super) fn config(&self) -> Result<Config> {
        let architecture = Architecture::named(self.architecture)
            .ok_or_else(|| Error::Internal(format!("no architecture `{}`", self.architecture)))?;
        let architecture = match self.pooling {
            Some(_) => architecture.with_normed_inputs().unwrap_or(architecture),
            None => architecture,
        };
        let scale = |value: f32| if architecture.scales { value } else { 1.0 };
        Ok(Config {
            architecture,
            name: String::new(),
            n_vocab: self.n_vocab,
            n_ctx: self.n_ctx,
            n_embd: self.n_embd,
            n_layer: self.n_layer,
            n_head: self.n_head,
            n_head_kv: self.n_head_kv,
            head_dim: self.head_dim,
            n_ff: self.n_ff,
            eps: self.eps,
            rope: Rope {
                base: self.rope_freq_base.into(),
                scaling: self.rope_scaling,
                attn_factor: 1.0,
            },
            embedding_scale: scale(EMBEDDING_SCALE),
            residual_scale: scale(DEPTH_SCALE / (self.n_layer as f32).sqrt()),
            logit_scale: scale(self.n_embd as f32 / BASE_WIDTH),
            pooling: self.pooling,
        })
    }

    /// Refuses sizes whose embedding or LM head is not F16: no other type can hold all values.
    pub(super) fn check_deviation(&self) -> Result<()> {
        let types = [Some(self.embedding), self.head].into_iter().flatten();
        match types.into_iter().find(|&ty| ty != TensorType::F16) {
            None => Ok(()),
            Some(ty) => Err(Error::BadOption {
                name: "embedding-deviation".into(),
                why: format!("only an embedding and an LM head of F16 take one, not of {ty}"),
            }),
        }
    }

    /// Refuses sizes that a model that counts cannot have. `option` is the name of the option that
    /// asked for one.
    pub(crate) fn check_counting(&self, option: &str) -> Result<()> {
        let vocabulary = (self.embedding, self.head);
        if self.architecture == BITNET.architecture && vocabulary == (TensorType::F16, None) {
            return Ok(());
        }
        Err(Error::BadOption {
            name: option.into(),
            why: "only the shapes `2b4t`, `bitnet-8b` and `tiny`, with an embedding of F16, can count".into(),
        })
    }
}
