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
use crate::model::adapter::{NearOne, Pair};
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

/// The pairs on matrices that share their input, before they are on the GPU.
struct Group<'a> {
    /// The matrices, with the pairs on each.
    matrices: Vec<(Role, Vec<NearOne<'a>>)>,
    k: usize,
    rows: Vec<usize>,
    rank: usize,
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
        let groups: Vec<[Option<Group<'_>>; SITES.len()]> = (0..config.n_layer)
            .map(|n| SITES.map(|site| Group::of_site(config, adapters, site, n)))
            .collect();
        let is_split =
            |block: usize| groups[block][2].is_none() || weights.blocks[block].ffn_gate_up.splits();
        if !(0..config.n_layer).all(is_split) {
            let why = "the GPU cannot bind gate and up apart; the CPU applies it";
            return Err(Error::BadAdapter(why.into()));
        }
        let head = Group::new(config, adapters, (&[Role::Output], 1.0), 0);
        let embedding = OnEmbedding::new(config, adapters);
        let all = || groups.iter().flatten().flatten();
        let thin = all().map(Group::factors).max().unwrap_or(0);
        let thin = thin.max(embedding.as_ref().map_or(0, |embedding| embedding.rank));
        let thin = thin.max(head.as_ref().map_or(0, |head| head.rank));
        let widest = all().map(Group::all_rows).fold(config.n_embd, usize::max);
        let logits = if head.is_some() { few.max(1) * config.n_vocab } else { 0 };
        let words = all().chain(&head).flat_map(|group| [group.words_of_a(), group.words_of_b()]);
        let of_embedding =
            embedding.as_ref().map_or(0, |embedding| embedding.rank * config.n_vocab);
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
                for groups in &groups {
                    let mut of_block = [const { None }; SITES.len()];
                    for (delta, group) in of_block.iter_mut().zip(groups) {
                        *delta = group.as_ref().map(|group| group.allocate(a));
                    }
                    blocks.push(of_block);
                }
                let embedding = embedding.as_ref().map(|embedding| embedding.allocate(a, config));
                (blocks, embedding, head.as_ref().map(|head| head.allocate(a)))
            })
            .await?;
        let (blocks, of_embedding, of_head) = pairs;
        let deltas = blocks.iter().flatten().flatten().chain(&of_head);
        for (delta, group) in deltas.zip(all().chain(&head)) {
            group.write(gpu, config, delta);
        }
        if let (Some(delta), Some(embedding)) = (&of_embedding, &embedding) {
            embedding.write(gpu, config, delta);
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

impl<'a> Group<'a> {
    fn of_site(
        config: &Config,
        adapters: &'a Adapters,
        (site, roles): (Site, &[Role]),
        block: usize,
    ) -> Option<Self> {
        let scale = match site {
            Site::Output | Site::Down => config.residual_scale,
            Site::Qkv | Site::GateUp => 1.0,
        };
        Self::new(config, adapters, (roles, scale), block)
    }

    /// The pairs on the matrices of `roles`. Their products are multiplied by `scale`.
    fn new(
        config: &Config,
        adapters: &'a Adapters,
        (roles, scale): (&[Role], f32),
        block: usize,
    ) -> Option<Self> {
        let near_one = |(pair, factor): (&'a Pair, f32)| pair.near_one(factor * scale);
        let on = |&role: &Role| (role, adapters.on(role, block).map(near_one).collect());
        let matrices: Vec<(Role, Vec<NearOne<'_>>)> = roles.iter().map(on).collect();
        let rank = matrices.iter().map(|(_, pairs)| rank(pairs)).max().filter(|&rank| rank > 0)?;
        let (k, rows) = shape(config, roles);
        Some(Self { matrices, k, rows, rank: rank.next_multiple_of(8) })
    }

    /// Factors, and products of the first matrices of a token.
    fn factors(&self) -> usize {
        self.matrices.len() * self.rank
    }

    fn all_rows(&self) -> usize {
        self.rows.iter().sum()
    }

    /// Words of the first matrices: rows of f16, two values in a word.
    fn words_of_a(&self) -> usize {
        self.factors() * self.k / 2
    }

    /// Words of the second matrices.
    fn words_of_b(&self) -> usize {
        self.all_rows() * self.rank / 2
    }

    fn allocate(&self, a: &mut Allocation<'_>) -> Delta {
        Delta {
            thin: Thin {
                k: self.k,
                a: a.buffer("adapter_a", self.words_of_a()),
                factor: a.buffer("adapter_factor", self.factors()),
            },
            wide: Wide {
                rows: self.rows.clone(),
                rank: self.rank,
                b: a.buffer("adapter_b", self.words_of_b()),
            },
        }
    }

    fn write(&self, gpu: &Gpu, config: &Config, delta: &Delta) {
        let (mut factor, mut a) = (Vec::new(), Vec::with_capacity(self.words_of_a()));
        let mut b = Vec::with_capacity(self.words_of_b());
        for (n, ((role, pairs), &rows)) in self.matrices.iter().zip(&self.rows).enumerate() {
            let mut of_matrix = Vec::new();
            for pair in pairs {
                of_matrix.extend(pair.a(0..pair.rank() * self.k));
                factor.extend(vec![pair.factor; pair.rank()]);
            }
            of_matrix.resize(self.rank * self.k, 0.0);
            a.extend(words(&of_matrix));
            factor.resize((n + 1) * self.rank, 0.0);
            for row in 0..rows {
                b.extend(words(&row_of_b(pairs, of_file(config, *role, row), self.rank)));
            }
        }
        gpu.write(&delta.thin.a, 0, &a);
        gpu.write(&delta.thin.factor, 0, &factor);
        gpu.write(&delta.wide.b, 0, &b);
    }
}

/// The pairs on the embedding, before they are on the GPU.
struct OnEmbedding<'a> {
    pairs: Vec<NearOne<'a>>,
    rank: usize,
}

impl<'a> OnEmbedding<'a> {
    fn new(config: &Config, adapters: &'a Adapters) -> Option<Self> {
        let on = adapters.on(Role::TokenEmbd, 0);
        let pairs: Vec<NearOne<'_>> =
            on.map(|(pair, factor)| pair.near_one(factor * config.embedding_scale)).collect();
        let rank = Some(rank(&pairs)).filter(|&rank| rank > 0)?.next_multiple_of(8);
        Some(Self { pairs, rank })
    }

    fn allocate(&self, a: &mut Allocation<'_>, config: &Config) -> EmbeddingDelta {
        let rows = config.n_vocab;
        let buffer = a.buffer("adapter_rows", rows * self.rank);
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
                b: a.buffer("adapter_b", config.n_embd * self.rank / 2),
            },
        }
    }

    fn write(&self, gpu: &Gpu, config: &Config, delta: &EmbeddingDelta) {
        let rows = delta.rows.shards[0].buffer.cast::<f32>();
        for first in (0..config.n_vocab).step_by(ROWS_AT_ONCE) {
            let tokens = first..config.n_vocab.min(first + ROWS_AT_ONCE);
            let mut values = Vec::with_capacity(tokens.len() * self.rank);
            for (n, token) in tokens.enumerate() {
                for pair in &self.pairs {
                    let row = token * pair.rank()..(token + 1) * pair.rank();
                    values.extend(pair.a(row).map(|value| value * pair.factor));
                }
                values.resize((n + 1) * self.rank, 0.0);
            }
            gpu.write(&rows, first * self.rank, &values);
        }
        let row = |row| words(&row_of_b(&self.pairs, row, self.rank)).collect::<Vec<u32>>();
        let b: Vec<u32> = (0..config.n_embd).flat_map(row).collect();
        gpu.write(&delta.wide.b, 0, &b);
    }
}

/// The embedding has a row for each token. So many of an adapter's rows are uploaded at a time, to save memory.
const ROWS_AT_ONCE: usize = 4096;

/// The ranks of pairs on the same matrix, together.
fn rank(pairs: &[NearOne<'_>]) -> usize {
    pairs.iter().map(NearOne::rank).sum()
}

/// The second matrices' values in a row.
fn row_of_b(pairs: &[NearOne<'_>], row: usize, rank: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(rank);
    pairs.iter().for_each(|pair| values.extend(pair.b(row)));
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
