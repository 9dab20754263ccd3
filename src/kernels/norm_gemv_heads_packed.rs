use super::attention::{AttentionShape, KvCache};
use super::packed::{Packed, Stream, example_matrix, lanes_of, packed_consts};
use super::rows::{RowGroups, ShardRows};
use super::weight::{Norm, Product};
use super::workgroups::in_a_row;
use crate::gpu::{Access, Buffer, Const, Kernel, Recorder, Subgroups, Tuning};
use crate::lanes_variants;

/// Rows of one slot.
const EACH: u32 = 4;

pub(super) const KERNEL: Kernel = Kernel {
    name: "norm_gemv_heads_packed",
    bindings: &[
        ("step", Access::Step),
        ("w", Access::Read),
        ("w_scale", Access::Read),
        ("stream", Access::Read),
        ("head_norms", Access::Read),
        ("rope_table", Access::Read),
        ("q", Access::Write),
        ("k_cache", Access::Write),
        ("v_cache", Access::Write),
    ],
    variants: lanes_variants!("lanes", "group", "eights";
        "shared/step",
        "shared/rows",
        "shared/dot4",
        "shared/packed",
        "shared/packed_dot",
        "shared/groups",
        "shared/packed_slots",
        "shared/copied_input",
        "shared/staged_input",
        "shared/stream_input",
        "shared/rope_kv", "shared/kv_row", "shared/quantize_group", "shared/store_head",
        "shared/rotated_head",
        "norm_gemv_heads_packed"
    ),
    example: || {
        let (rows, w) = example_matrix(1);
        let shape = AttentionShape { head_dim: 64, ..AttentionShape::EXAMPLE };
        consts(&rows, &w, &Tuning::card(Some(Subgroups(16)), 256), &shape, 1e-6)
    },
};

fn consts(
    rows: &ShardRows,
    w: &Packed,
    tuning: &Tuning,
    shape: &AttentionShape,
    eps: f32,
) -> Vec<Const> {
    let groups = RowGroups {
        workgroup: threads(tuning, rows.k, shape.head_dim),
        lanes: lanes_of(rows.k, Product::Store, tuning.lanes),
        each: EACH,
    };
    let product = packed_consts(rows, w, Product::Store, tuning.has_packed_dot());
    [
        product,
        groups.consts(),
        shape.consts(),
        vec![Const::F32("EPS", eps), Const::Bool("ROWS", true)],
    ]
    .concat()
}

/// Threads for a head of rows of `k` values.
fn threads(tuning: &Tuning, k: usize, head_dim: usize) -> u32 {
    lanes_of(k, Product::Store, tuning.lanes) * head_dim as u32 / EACH
}

impl Packed {
    /// Whether [`Recorder::norm_gemv_heads_packed`] takes these rows as heads of `head_dim`.
    pub fn takes_heads(&self, tuning: &Tuning, head_dim: usize) -> bool {
        head_dim.is_power_of_two()
            && (64..=256).contains(&head_dim)
            && threads(tuning, self.k, head_dim) <= tuning.stream_threads
            && self.shards.iter().all(|shard| shard.rows.end.is_multiple_of(head_dim))
    }
}

/// Where the heads of a token go, and by which norms and angles.
pub struct Heads<'a> {
    /// As in [`Recorder::norm_rope_kv`].
    pub norms: &'a Norm,
    /// As in [`Recorder::rope_kv`].
    pub rope_table: &'a Buffer<[f32; 2]>,
    /// `[n_head * head_dim]`.
    pub q: &'a Buffer<f32>,
    /// The step's position is written.
    pub cache: &'a KvCache,
}

impl Recorder<'_> {
    /// The product of `w`, whose codes have 1 or 2 bits, with the norm of the residual stream `x`, as
    /// [`Recorder::norm_gemv_packed`], and then what [`Recorder::norm_rope_kv`] does. `eps` is the
    /// norm's of `x`. [`Packed::takes_heads`] says whether it takes `w`.
    pub fn norm_gemv_heads_packed(&mut self, w: &Packed, x: &Stream, eps: f32, to: &Heads<'_>) {
        let KvCache { shape, keys, values } = to.cache;
        // Both norms have the model's epsilon.
        debug_assert!(eps == to.norms.eps);
        for shard in &w.shards {
            let rows = ShardRows { k: w.k, all: w.rows, shard: shard.rows.clone() };
            self.dispatch(
                &KERNEL,
                &consts(&rows, w, self.tuning(), shape, eps),
                &[
                    &shard.codes,
                    &shard.scales,
                    &x.words,
                    &to.norms.weight,
                    to.rope_table,
                    to.q,
                    keys,
                    values,
                ],
                in_a_row(rows.shard.len() / shape.head_dim),
            );
        }
    }
}
