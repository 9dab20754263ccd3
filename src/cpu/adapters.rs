//! Adapters as matrices of floats, which the kernels of the model's own matrices multiply.

use super::formats::{Kernel, kernel_of};
use super::input::{Input, Order};
use super::machine::InstructionSet;
use super::pool::{Pool, each};
use super::product::{Matrix, Products, multiply};
use crate::error::{Error, Result};
use crate::gguf::TensorType;
use crate::model::adapter::NearOne;
use crate::model::{Adapters, Config, Role};

/// Rows of floats are a multiple of this.
const UNIT: usize = 32;

/// The adapters that are applied to a model.
pub(super) struct Deltas {
    /// By block, in the order of [`ROLES`].
    blocks: Vec<[Option<Delta>; ROLES.len()]>,
    output: Option<Delta>,
    /// For the embedding, of which each token takes a row.
    adapters: Adapters,
}

const ROLES: [Role; 7] = [
    Role::AttnQ,
    Role::AttnK,
    Role::AttnV,
    Role::AttnOutput,
    Role::FfnGate,
    Role::FfnUp,
    Role::FfnDown,
];

/// All pairs on a matrix.
struct Delta {
    /// `[ranks][in]`: the first matrices of all pairs, one below the other.
    a: Matrix,
    /// `[out][ranks]`: the second matrices, each times its factor.
    b: Matrix,
}

/// Memory that every step uses.
#[derive(Default)]
pub(super) struct Room {
    inputs: Vec<Input>,
    thin: Products,
    thin_values: Vec<Vec<f32>>,
    thin_inputs: Vec<Input>,
    added: Products,
}

impl Deltas {
    /// The deltas of a model; `None` without adapters.
    ///
    /// Errors: `out-of-memory`.
    pub(super) fn new(
        adapters: &Adapters,
        config: &Config,
        sets: &[InstructionSet],
    ) -> Result<Option<Self>> {
        if adapters.is_empty() {
            return Ok(None);
        }
        let ty = TensorType::F32;
        let kernel = kernel_of(ty).ok_or_else(|| Error::Internal(format!("no kernel for {ty}")))?;
        let set = kernel.choose(sets);
        let mut blocks = Vec::new();
        let delta = |role: Role, block| {
            // The LM head has no rows that only pad the vocabulary.
            let most = if role == Role::Output { config.n_vocab } else { usize::MAX };
            Delta::new(adapters, (role, block), most, (kernel, set))
        };
        for block in 0..config.n_layer {
            let mut of_block = [const { None }; ROLES.len()];
            for (of_role, role) in of_block.iter_mut().zip(ROLES) {
                *of_role = delta(role, block)?;
            }
            blocks.push(of_block);
        }
        let output = delta(Role::Output, 0)?;
        Ok(Some(Self { blocks, output, adapters: adapters.clone() }))
    }

    /// Adds to the embedding of a token.
    pub(super) fn add_to_embedding(&self, id: usize, x: &mut [f32]) {
        for (pair, factor) in self.adapters.on(Role::TokenEmbd, 0) {
            let pair = pair.near_one(factor);
            for (row, x) in x.iter_mut().enumerate() {
                let products = pair.a(id * pair.rank()..(id + 1) * pair.rank()).zip(pair.b(row));
                *x += pair.factor * products.map(|(a, b)| a * b).sum::<f32>();
            }
        }
    }

    /// Adds the adapters' products to those of matrices that share their inputs. `x` has an input for each token.
    pub(super) fn add<'a, const N: usize>(
        &self,
        pool: &dyn Pool,
        (block, roles): (usize, [Role; N]),
        x: impl Fn(usize) -> &'a [f32] + Sync,
        products: [&mut Products; N],
        room: &mut Room,
    ) {
        for (role, products) in roles.into_iter().zip(products) {
            let of_block = self.blocks[block].iter().zip(ROLES);
            let delta =
                of_block.filter(|(_, other)| *other == role).find_map(|(one, _)| one.as_ref());
            if let Some(delta) = delta {
                delta.add(pool, &x, products, room);
            }
        }
    }

    /// Whether they add to the products of the LM head.
    pub(super) fn changes_head(&self) -> bool {
        self.output.is_some()
    }

    /// Adds to the products of the LM head.
    pub(super) fn add_to_logits<'a>(
        &self,
        pool: &dyn Pool,
        x: impl Fn(usize) -> &'a [f32] + Sync,
        products: &mut Products,
        room: &mut Room,
    ) {
        if let Some(delta) = &self.output {
            delta.add(pool, &x, products, room);
        }
    }
}

impl Delta {
    fn new(
        adapters: &Adapters,
        (role, block): (Role, usize),
        most_rows: usize,
        (kernel, set): (&'static Kernel, InstructionSet),
    ) -> Result<Option<Self>> {
        let on = adapters.on(role, block);
        let pairs: Vec<NearOne<'_>> = on.map(|(pair, factor)| pair.near_one(factor)).collect();
        let Some(first) = pairs.first() else { return Ok(None) };
        let columns = first.columns();
        let rows = first.rows().min(most_rows);
        let ranks = pairs.iter().map(NearOne::rank).sum::<usize>().next_multiple_of(UNIT);
        let matrix = |rows: usize, bytes| Matrix {
            kernel,
            set,
            rows,
            bytes,
            factor: 1.0,
            of_floats: false,
            split: None,
        };
        let mut a = zeros(ranks * columns)?;
        let of_pairs = pairs.iter().flat_map(|pair| pair.a(0..pair.rank() * columns));
        for (bytes, value) in a.as_chunks_mut::<4>().0.iter_mut().zip(of_pairs) {
            *bytes = value.to_le_bytes();
        }
        let mut b = zeros(rows * ranks)?;
        for (row, bytes) in b.chunks_exact_mut(4 * ranks).enumerate() {
            let of_row = pairs.iter().flat_map(|pair| pair.b(row).map(|value| pair.factor * value));
            for (bytes, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(of_row) {
                *bytes = value.to_le_bytes();
            }
        }
        Ok(Some(Self { a: matrix(ranks, a), b: matrix(rows, b) }))
    }

    fn add<'a>(
        &self,
        pool: &dyn Pool,
        x: &(impl Fn(usize) -> &'a [f32] + Sync),
        products: &mut Products,
        Room { inputs, thin, thin_values, thin_inputs, added }: &mut Room,
    ) {
        let tokens = products.tokens();
        inputs.resize_with(tokens, Input::default);
        thin_values.resize_with(tokens, Vec::new);
        thin_inputs.resize_with(tokens, Input::default);
        each(pool, inputs, |token, input| input.prepare(Order::Floats, self.a.set, x(token)));
        multiply(pool, [&self.a], inputs, [&mut *thin]);
        for (token, (values, input)) in thin_values.iter_mut().zip(&mut *thin_inputs).enumerate() {
            thin.take(token, values);
            input.prepare(Order::Floats, self.b.set, values);
        }
        multiply(pool, [&self.b], thin_inputs, [&mut *added]);
        products.add(added);
    }
}

/// The bytes of `n` floats, all 0.
///
/// Errors: `out-of-memory`.
fn zeros(n: usize) -> Result<Vec<u8>> {
    let needed = 4 * n;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(needed).map_err(|_| Error::OutOfMemory {
        what: "an adapter".into(),
        needed: needed as u64,
        granted: 0,
    })?;
    bytes.resize(needed, 0);
    Ok(bytes)
}
