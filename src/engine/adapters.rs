//! Adapters on the GPU: the pairs of f16 beside the matrices of each block.
//!
//! `adapter_thin` makes the products of the first matrices of all pairs that share an input. The second ones
//! are added by the product itself, if it norms its own input (`norm_gemv_adapted`); if not, it is stored
//! apart, and `adapter_add` adds both.

use half::f16;

use super::weights::Weights;
use crate::compute::Site;
use crate::error::{Error, Result};
use crate::gpu::{Allocation, Buffer, Gpu, Used};
use crate::kernels::{Dense, DenseType, Shard, Thin, Wide};
use crate::model::adapter::Pair;
use crate::model::{Adapters, Config, Role, RopePairs};

/// The pairs of all adapters, and the buffers that their products need.
pub(super) struct Deltas {
    blocks: Vec<[Option<Delta>; SITES.len()]>,
    pub(super) embedding: Option<EmbeddingDelta>,
    pub(super) head: Option<HeadDelta>,
    /// The products of the first matrices `[chunk, matrices, rank]`.
    pub(super) thin: Buffer<f32>,
    /// The results of a product `[chunk, n]` before pairs add to them, for the widest product of a block.
    pub(super) apart: Buffer<f32>,
}

/// The pairs on matrices that share their input.
pub(super) struct Delta {
    pub(super) thin: Thin,
    pub(super) wide: Wide,
}

/// The pairs on the LM head. Its logits are then always computed whole: its upper bytes alone would not say
/// which tokens may be the best.
pub(super) struct HeadDelta {
    pub(super) delta: Delta,
    /// The logits `[few, n_vocab]` without the adapters. `adapter_add` then adds what the pairs give.
    pub(super) apart: Buffer<f32>,
}

/// The pairs on the embedding.
pub(super) struct EmbeddingDelta {
    /// The rows of the tokens, times the factors and the scale of the embedding.
    pub(super) rows: Dense,
    pub(super) wide: Wide,
}

/// The sites of a block, with the matrices that share their input.
const SITES: [(Site, &[Role]); 4] = [
    (Site::Qkv, &[Role::AttnQ, Role::AttnK, Role::AttnV]),
    (Site::Output, &[Role::AttnOutput]),
    (Site::GateUp, &[Role::FfnGate, Role::FfnUp]),
    (Site::Down, &[Role::FfnDown]),
];

/// The values of the pairs on matrices that share their input, before they are on the GPU.
struct Values {
    k: usize,
    rows: Vec<usize>,
    rank: usize,
    /// Rows of f16, two values in a word.
    a: Vec<u32>,
    b: Vec<u32>,
    factor: Vec<f32>,
}

impl Deltas {
    /// Uploads the adapters.
    ///
    /// Errors: `bad-adapter` for a pair on gate or up that cannot be bound apart, `out-of-memory`,
    /// `device-lost`.
    pub(super) async fn upload(
        gpu: &Gpu,
        (config, weights): (&Config, &Weights),
        (chunk, few): (usize, usize),
        adapters: &Adapters,
    ) -> Result<Self> {
        let values: Vec<Vec<Option<Values>>> = (0..config.n_layer)
            .map(|n| SITES.map(|site| Values::of_site(config, adapters, site, n)).into())
            .collect();
        let is_split =
            |block: usize| values[block][2].is_none() || weights.blocks[block].ffn_gate_up.splits();
        if !(0..config.n_layer).all(is_split) {
            let why = "the GPU cannot bind gate and up apart; the CPU applies it";
            return Err(Error::BadAdapter(why.into()));
        }
        let head = Values::new(config, adapters, (&[Role::Output], 1.0), 0);
        let embedding = EmbeddingValues::new(config, adapters);
        let all = || values.iter().flatten().flatten();
        let thin = all().map(|values| values.factor.len()).max().unwrap_or(0);
        let thin = thin.max(embedding.as_ref().map_or(0, |embedding| embedding.rank));
        let thin = thin.max(head.as_ref().map_or(0, |head| head.rank));
        let widest = all().map(|values| values.rows.iter().sum()).fold(config.n_embd, usize::max);
        let logits = if head.is_some() { few.max(1) * config.n_vocab } else { 0 };
        let words = all().chain(&head).flat_map(|values| [values.a.len(), values.b.len()]);
        let of_embedding = embedding.as_ref().map_or(0, |values| values.rows.len());
        let words = words.chain([chunk * widest.max(thin), logits, of_embedding]);
        let needed = 4 * words.max().unwrap_or(0) as u64;
        if needed > gpu.max_binding {
            let (what, granted) =
                ("an adapter, or its products, in one binding".into(), gpu.max_binding);
            return Err(Error::OutOfMemory { what, needed, granted });
        }
        let pairs = gpu
            .allocating("an adapter", |a| {
                let mut blocks = Vec::new();
                for sites in &values {
                    let mut of_block = [const { None }; SITES.len()];
                    for (delta, values) in of_block.iter_mut().zip(sites) {
                        *delta = values.as_ref().map(|values| values.allocate(a));
                    }
                    blocks.push(of_block);
                }
                let embedding = embedding.as_ref().map(|embedding| embedding.allocate(a, config));
                (blocks, embedding, head.as_ref().map(|head| head.allocate(a)))
            })
            .await?;
        let (blocks, of_embedding, of_head) = pairs;
        let deltas = blocks.iter().flatten().flatten().chain(&of_head);
        for (delta, values) in deltas.zip(all().chain(&head)) {
            gpu.write(&delta.thin.a, 0, &values.a);
            gpu.write(&delta.thin.factor, 0, &values.factor);
            gpu.write(&delta.wide.b, 0, &values.b);
        }
        if let (Some(delta), Some(values)) = (&of_embedding, &embedding) {
            gpu.write(&delta.rows.shards[0].buffer.cast::<f32>(), 0, &values.rows);
            gpu.write(&delta.wide.b, 0, &values.b);
        }
        let buffer = |a: &mut Allocation<'_>, label: &str, row: usize| {
            a.buffer(label, chunk * row).using(Used::Tokens(4 * row as u64))
        };
        let [thin, apart] = gpu
            .allocating("the products of an adapter", |a| {
                [("thin", thin), ("products", widest)].map(|(label, row)| buffer(a, label, row))
            })
            .await?;
        let head = match of_head {
            None => None,
            Some(delta) => {
                let allocated =
                    gpu.allocating("the logits of an adapter", |a| a.buffer("logits", logits));
                Some(HeadDelta { delta, apart: allocated.await? })
            }
        };
        Ok(Self { blocks, embedding: of_embedding, head, thin, apart })
    }

    /// Frees the memory at once, for adapters that follow.
    pub(super) fn free(self, gpu: &Gpu) {
        let of_head = self.head.iter().map(|head| &head.delta);
        for Delta { thin, wide } in self.blocks.iter().flatten().flatten().chain(of_head) {
            gpu.free(&thin.a);
            gpu.free(&thin.factor);
            gpu.free(&wide.b);
        }
        if let Some(EmbeddingDelta { rows, wide }) = &self.embedding {
            rows.shards.iter().for_each(|shard| gpu.free(&shard.buffer));
            gpu.free(&rows.shifts);
            gpu.free(&wide.b);
        }
        if let Some(head) = &self.head {
            gpu.free(&head.apart);
        }
        gpu.free(&self.thin);
        gpu.free(&self.apart);
    }

    /// The pairs at a site of a block.
    pub(super) fn at(&self, block: usize, site: Site) -> Option<&Delta> {
        let of_block = self.blocks[block].iter().zip(SITES);
        of_block.filter(|(_, (other, _))| *other == site).find_map(|(delta, _)| delta.as_ref())
    }
}

impl Values {
    fn of_site(
        config: &Config,
        adapters: &Adapters,
        (site, roles): (Site, &[Role]),
        block: usize,
    ) -> Option<Self> {
        let scale = match site {
            Site::Output | Site::Down => config.residual_scale,
            Site::Qkv | Site::GateUp => 1.0,
        };
        Self::new(config, adapters, (roles, scale), block)
    }

    /// The pairs on matrices that share their input. Their products are multiplied by `scale`.
    fn new(
        config: &Config,
        adapters: &Adapters,
        (roles, scale): (&[Role], f32),
        block: usize,
    ) -> Option<Self> {
        let on: Vec<Vec<(&Pair, f32)>> =
            roles.iter().map(|&role| adapters.on(role, block).collect()).collect();
        let ranks = on.iter().map(|pairs| pairs.iter().map(|(pair, _)| pair.rank).sum::<usize>());
        let rank = ranks.max().filter(|&rank| rank > 0)?.next_multiple_of(8);
        let (k, rows) = shape(config, roles);
        let (mut a, mut b, mut factor) = (Vec::new(), Vec::new(), Vec::new());
        for (matrix, ((pairs, &rows), &role)) in on.iter().zip(&rows).zip(roles).enumerate() {
            let halved: Vec<Halved<'_>> =
                pairs.iter().map(|&(pair, factor)| Halved::new(pair, factor * scale)).collect();
            let mut of_matrix = Vec::new();
            for half in &halved {
                of_matrix.extend(half.pair.a.iter().map(|value| value * half.of_a));
                factor.extend(vec![half.factor; half.pair.rank]);
            }
            of_matrix.resize(rank * k, 0.0);
            a.extend(words(&of_matrix));
            factor.resize((matrix + 1) * rank, 0.0);
            for row in 0..rows {
                let row = of_file(config, role, row);
                b.extend(words(&wide_row(&halved, row, rank)));
            }
        }
        Some(Self { k, rows, rank, a, b, factor })
    }

    fn allocate(&self, a: &mut Allocation<'_>) -> Delta {
        Delta {
            thin: Thin {
                k: self.k,
                a: a.buffer("adapter_a", self.a.len()),
                factor: a.buffer("adapter_factor", self.factor.len()),
            },
            wide: Wide {
                rows: self.rows.clone(),
                rank: self.rank,
                b: a.buffer("adapter_b", self.b.len()),
            },
        }
    }
}

/// The pairs on the embedding, before they are on the GPU.
struct EmbeddingValues {
    rank: usize,
    /// `[n_vocab, rank]`.
    rows: Vec<f32>,
    b: Vec<u32>,
}

impl EmbeddingValues {
    fn new(config: &Config, adapters: &Adapters) -> Option<Self> {
        let halved: Vec<Halved<'_>> = adapters
            .on(Role::TokenEmbd, 0)
            .map(|(pair, factor)| Halved::new(pair, factor * config.embedding_scale))
            .collect();
        let rank = halved.iter().map(|half| half.pair.rank).sum::<usize>();
        let rank = Some(rank).filter(|&rank| rank > 0)?.next_multiple_of(8);
        let mut rows = Vec::new();
        for token in 0..config.n_vocab {
            for Halved { pair, of_a, factor, .. } in &halved {
                let row = &pair.a[token * pair.rank..][..pair.rank];
                rows.extend(row.iter().map(|value| value * of_a * factor));
            }
            rows.resize((token + 1) * rank, 0.0);
        }
        let row = |row| words(&wide_row(&halved, row, rank)).collect::<Vec<u32>>();
        let b = (0..config.n_embd).flat_map(row).collect();
        Some(Self { rank, rows, b })
    }

    fn allocate(&self, a: &mut Allocation<'_>, config: &Config) -> EmbeddingDelta {
        let rows = config.n_vocab;
        let buffer = a.buffer("adapter_rows", self.rows.len());
        EmbeddingDelta {
            rows: Dense {
                k: self.rank,
                rows,
                ty: DenseType::F32,
                shards: vec![Shard { buffer, rows: 0..rows }],
                shifts: a.buffer("shifts", 1),
            },
            wide: Wide {
                rows: vec![config.n_embd],
                rank: self.rank,
                b: a.buffer("adapter_b", self.b.len()),
            },
        }
    }
}

/// A pair whose values are brought near 1, because f16 has few bits for small values. Powers of two lose
/// nothing.
struct Halved<'a> {
    pair: &'a Pair,
    of_a: f32,
    of_b: f32,
    /// The factor that makes the product of such values the one that was asked for.
    factor: f32,
}

impl<'a> Halved<'a> {
    fn new(pair: &'a Pair, factor: f32) -> Self {
        let (of_a, of_b) = (to_one(&pair.a), to_one(&pair.b));
        Self { pair, of_a, of_b, factor: factor / of_a / of_b }
    }
}

/// The power of two that brings the largest of `values` to 1 or above, below 2.
fn to_one(values: &[f32]) -> f32 {
    let largest = values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    // Smaller values than these count as zeros: their inverse would not be finite.
    if largest < 1e-30 { 1.0 } else { (-largest.log2().floor()).exp2() }
}

/// The second matrices' values in a row.
fn wide_row(halved: &[Halved<'_>], row: usize, rank: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(rank);
    for Halved { pair, of_b, .. } in halved {
        values.extend(pair.b[row * pair.rank..][..pair.rank].iter().map(|value| value * of_b));
    }
    values.resize(rank, 0.0);
    values
}

/// Values as f16, two in a word.
fn words(values: &[f32]) -> impl Iterator<Item = u32> + '_ {
    let bits = |value: f32| u32::from(f16::from_f32(value).to_bits());
    values.as_chunks::<2>().0.iter().map(move |[low, high]| bits(*low) | bits(*high) << 16)
}

/// The columns of matrices that share their input, and the rows of each.
fn shape(config: &Config, roles: &[Role]) -> (usize, Vec<usize>) {
    let shapes: Vec<Vec<u64>> = roles.iter().map(|role| role.shape(config)).collect();
    (shapes[0][0] as usize, shapes.iter().map(|shape| shape[1] as usize).collect())
}

/// The row of the file that the engine has at `row` of a matrix: see `upload.rs`.
fn of_file(config: &Config, role: Role, row: usize) -> usize {
    let is_head = matches!(role, Role::AttnQ | Role::AttnK);
    if !is_head || config.architecture.rope_pairs != RopePairs::Neighbours {
        return row;
    }
    let (head, within) = (row / config.head_dim, row % config.head_dim);
    let half = config.head_dim / 2;
    head * config.head_dim + 2 * (within % half) + within / half
}
