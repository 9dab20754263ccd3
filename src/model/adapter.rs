//! Adapters (LoRA): thin matrices beside those of a model, in llama.cpp's GGUF files.
//!
//! A pair on a matrix `W` makes its product `W x + s B (A x)`. `x` is the product's input before it is
//! rounded, and `s` is `scale * alpha / rank`, or the scale alone in a file without alpha.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use super::config::Config;
use super::role::{Kind, Role};
use super::weights::Weight;
use crate::error::{Error, Result};
use crate::gguf::{Gguf, Metadata, TensorInfo, TensorType, shortened};
use crate::source::{Reader, Source};

/// The largest rank of a pair.
pub const MAX_RANK: usize = 512;

/// The factor of a pair near 1 is below this, so that the model's own scales make no infinity of it.
const MAX_FACTOR: f32 = 1e30;

/// The types that a tensor of an adapter may have.
const TYPES: [TensorType; 4] =
    [TensorType::F32, TensorType::F16, TensorType::Bf16, TensorType::Q8_0];

/// An adapter, checked against a model.
#[derive(Debug)]
pub struct Adapter {
    /// `general.name`; empty if the file has none.
    pub name: String,
    /// The scale of a pair is multiplied by this and divided by the rank; `None`: the scale stays as it is.
    pub alpha: Option<f32>,
    /// Its pairs, in the order of the model's file.
    pub pairs: Vec<Pair>,
    /// Bytes of the file.
    pub bytes: u64,
    /// A hash of everything that changes results.
    pub hash: u64,
    /// The pair on each matrix.
    index: HashMap<(Role, usize), usize>,
}

/// Two thin matrices on a matrix `[out][in]` of the model.
#[derive(Debug)]
pub struct Pair {
    /// The role of the model's matrix.
    pub role: Role,
    /// Its block.
    pub block: usize,
    /// Rows of `a`, columns of `b`.
    pub rank: usize,
    /// `[rank][in]`. On the embedding it has a row for each token: `[n_vocab][rank]`.
    pub a: Vec<f32>,
    /// `[out][rank]`.
    pub b: Vec<f32>,
    /// The powers of two that bring the largest value of `a`, and of `b`, to 1 or above, below 2. Values so near to 1
    /// fit into f16, and their products do not overflow. f64, because an f32 cannot hold all of them.
    to_one: [f64; 2],
}

impl Pair {
    fn new(role: Role, block: usize, rank: usize, a: Vec<f32>, b: Vec<f32>) -> Self {
        let to_one = [&a, &b].map(|values| to_one(values));
        Self { role, block, rank, a, b, to_one }
    }

    /// The pair near 1, whose product is to be multiplied by `factor`.
    pub fn near_one(&self, factor: f32) -> NearOne<'_> {
        let [of_a, of_b] = self.to_one;
        let factor = (f64::from(factor) / of_a / of_b) as f32;
        NearOne { pair: self, factor, of_a, of_b }
    }
}

/// A pair whose values are brought near 1. Powers of two lose nothing.
pub struct NearOne<'a> {
    pair: &'a Pair,
    /// The factor of the product of such values.
    pub factor: f32,
    of_a: f64,
    of_b: f64,
}

impl NearOne<'_> {
    /// Rows of `a`, columns of `b`.
    pub fn rank(&self) -> usize {
        self.pair.rank
    }

    /// Rows of `b`.
    pub fn rows(&self) -> usize {
        self.pair.b.len() / self.pair.rank
    }

    /// Columns of `a`, where it is not on the embedding.
    pub fn columns(&self) -> usize {
        self.pair.a.len() / self.pair.rank
    }

    /// Values of `a` from `range`.
    pub fn a(&self, range: Range<usize>) -> impl Iterator<Item = f32> + '_ {
        self.pair.a[range].iter().map(|&value| (f64::from(value) * self.of_a) as f32)
    }

    /// A row of `b`.
    pub fn b(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let row = &self.pair.b[row * self.pair.rank..][..self.pair.rank];
        row.iter().map(|&value| (f64::from(value) * self.of_b) as f32)
    }
}

fn to_one(values: &[f32]) -> f64 {
    let largest = values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
    if largest == 0.0 { 1.0 } else { (-f64::from(largest).log2().floor()).exp2() }
}

/// The two halves of a pair, as the file's table has them.
#[derive(Default)]
struct Halves<'a> {
    a: Option<&'a TensorInfo>,
    b: Option<&'a TensorInfo>,
}

impl Adapter {
    /// Reads an adapter for the model of `config` with the tensors of `table`. Everything is checked
    /// before a tensor is read.
    ///
    /// Errors: `bad-gguf` for a damaged file, `bad-adapter` for one that cannot be applied to the model,
    /// `out-of-memory`, and those of the source.
    pub async fn read<S: Source>(
        reader: &mut Reader<S>,
        config: &Config,
        table: &[Weight],
    ) -> Result<Self> {
        let gguf = Gguf::read(reader).await?;
        if config.architecture.norms_inputs() {
            return bad("a model whose matrices norm their inputs takes none");
        }
        let alpha = check_metadata(&gguf.metadata, config)?;
        let mut found: Vec<(usize, TensorInfo, TensorInfo)> = Vec::new();
        for (name, halves) in pairs_by_name(&gguf)? {
            let index = table.iter().position(|weight| weight.tensor.name == name);
            let weight = match index.map(|index| &table[index]) {
                None if name == "output.weight" => {
                    return bad(
                        "it changes `output.weight`, but the model's LM head is its embedding",
                    );
                }
                None => return bad(format!("the model has no tensor `{}`", shortened(&name))),
                Some(weight) => weight,
            };
            let is_tied = !table.iter().any(|weight| weight.role == Role::Output);
            if weight.role == Role::TokenEmbd && is_tied {
                return bad("it changes `token_embd.weight`, which is the model's LM head too");
            }
            let missing = |half| bad(format!("`{name}` has no `{half}`"));
            let Some(a) = halves.a else { return missing("lora_a") };
            let Some(b) = halves.b else { return missing("lora_b") };
            check_pair(weight, a, b)?;
            found.extend(index.map(|index| (index, a.clone(), b.clone())));
        }
        if found.is_empty() {
            return bad("it has no pair");
        }
        found.sort_by_key(|(index, ..)| *index);
        let name = gguf.metadata.text("general.name")?.unwrap_or_default().to_owned();
        let values = read_all(reader, found.iter().flat_map(|(_, a, b)| [a, b])).await?;
        let mut values = values.into_iter();
        let mut hasher = DefaultHasher::new();
        alpha.map(f32::to_bits).hash(&mut hasher);
        let mut pairs = Vec::new();
        for (index, _, b) in found {
            let Weight { role, block, .. } = table[index];
            let rank = b.ne[0] as usize;
            let (a, b) = (values.next().unwrap_or_default(), values.next().unwrap_or_default());
            (role, block, rank).hash(&mut hasher);
            a.iter().chain(&b).for_each(|value| value.to_bits().hash(&mut hasher));
            pairs.push(Pair::new(role, block, rank, a, b));
        }
        let index = pairs.iter().enumerate().map(|(n, pair)| ((pair.role, pair.block), n));
        let index = index.collect();
        Ok(Self { name, alpha, pairs, bytes: reader.len(), hash: hasher.finish(), index })
    }

    /// The smallest and the largest rank of its pairs.
    pub fn ranks(&self) -> [usize; 2] {
        let ranks = || self.pairs.iter().map(|pair| pair.rank);
        [ranks().min().unwrap_or(0), ranks().max().unwrap_or(0)]
    }

    /// The names of the matrices that it changes, without their blocks.
    pub fn targets(&self) -> Vec<&'static str> {
        let mut targets = Vec::new();
        for pair in &self.pairs {
            if !targets.contains(&pair.role.name()) {
                targets.push(pair.role.name());
            }
        }
        targets
    }

    /// The factor of a pair's product.
    fn factor(&self, pair: &Pair, scale: f32) -> f32 {
        self.alpha.map_or(scale, |alpha| scale * alpha / pair.rank as f32)
    }
}

/// The adapters that are applied, each with its scale.
#[derive(Clone, Debug, Default)]
pub struct Adapters(Vec<(Arc<Adapter>, f32)>);

impl Adapters {
    /// An adapter that is named several times has the sum of its scales. One with the scale 0 is off. They are
    /// applied in an order of their own, so that the bits do not depend on the caller's.
    ///
    /// Errors: `bad-option` (`scale`) for a scale that is not finite, or too large.
    pub fn new(all: &[(Arc<Adapter>, f32)]) -> Result<Self> {
        let mut kept: Vec<(Arc<Adapter>, f32)> = Vec::new();
        for (adapter, scale) in all {
            if !scale.is_finite() {
                return Err(bad_scale(format!("{scale} is no finite number")));
            }
            match kept.iter_mut().find(|(other, _)| Arc::ptr_eq(other, adapter)) {
                Some((_, sum)) => *sum += scale,
                None => kept.push((Arc::clone(adapter), *scale)),
            }
        }
        kept.retain(|(_, scale)| *scale != 0.0);
        kept.sort_by_key(|(adapter, scale)| (adapter.hash, scale.to_bits()));
        let too_large = |(adapter, scale): &&(Arc<Adapter>, f32)| {
            let factor = |pair| adapter.factor(pair, *scale);
            // A factor that is no number is not below either.
            !adapter.pairs.iter().all(|pair| pair.near_one(factor(pair)).factor.abs() < MAX_FACTOR)
        };
        match kept.iter().find(too_large) {
            Some((_, scale)) => Err(bad_scale(format!("{scale} is too large"))),
            None => Ok(Self(kept)),
        }
    }

    /// Whether none is applied.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The adapters with their scales, which are not 0.
    pub fn all(&self) -> &[(Arc<Adapter>, f32)] {
        &self.0
    }

    /// The pairs on a matrix, each with the factor of its product.
    pub fn on(&self, role: Role, block: usize) -> impl Iterator<Item = (&Pair, f32)> {
        self.0.iter().filter_map(move |(adapter, scale)| {
            let pair = &adapter.pairs[*adapter.index.get(&(role, block))?];
            Some((pair, adapter.factor(pair, *scale)))
        })
    }

    /// A hash of everything by which they change results; `None` without adapters. It does not depend on
    /// their order.
    pub fn hash(&self) -> Option<u64> {
        let of_each = self.0.iter().map(|(adapter, scale)| {
            let mut hasher = DefaultHasher::new();
            (adapter.hash, scale.to_bits()).hash(&mut hasher);
            hasher.finish()
        });
        of_each.reduce(u64::wrapping_add)
    }
}

/// Checks what an adapter says of itself. Gives its alpha, if it counts.
fn check_metadata(metadata: &Metadata, config: &Config) -> Result<Option<f32>> {
    let is = |key: &str, wanted: &str| match metadata.text(key).map_err(of_metadata)? {
        Some(found) if found == wanted => Ok(()),
        Some(found) => bad(format!("`{key}` is `{}`, not `{wanted}`", shortened(found))),
        None => bad(format!("there is no `{key}`, which must be `{wanted}`")),
    };
    is("general.type", "adapter")?;
    is("adapter.type", "lora")?;
    is("general.architecture", config.architecture.name)?;
    let activated = "adapter.alora.invocation_tokens";
    if metadata.get(activated).is_some() {
        return bad(format!("it has `{activated}`: it works from some tokens on, not for all"));
    }
    let alpha = metadata.float("adapter.lora.alpha").map_err(of_metadata)?;
    match alpha {
        Some(alpha) if !alpha.is_finite() => bad(format!("its alpha is {alpha}")),
        alpha => Ok(alpha.filter(|&alpha| alpha != 0.0)),
    }
}

/// The halves of each pair, by the name of the model's tensor.
fn pairs_by_name(gguf: &Gguf) -> Result<Vec<(String, Halves<'_>)>> {
    let mut pairs: Vec<(String, Halves<'_>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for tensor in &gguf.tensors {
        let half = |suffix| tensor.name.strip_suffix(suffix);
        let (name, is_a) = match (half(".lora_a"), half(".lora_b")) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => {
                return bad(format!(
                    "tensor `{}` is neither `.lora_a` nor `.lora_b`, and would be left out",
                    shortened(&tensor.name)
                ));
            }
        };
        let index = *known.entry(name).or_insert_with(|| {
            pairs.push((name.to_owned(), Halves::default()));
            pairs.len() - 1
        });
        let halves = &mut pairs[index].1;
        *(if is_a { &mut halves.a } else { &mut halves.b }) = Some(tensor);
    }
    Ok(pairs)
}

/// Checks a pair on a matrix of the model.
fn check_pair(weight: &Weight, a: &TensorInfo, b: &TensorInfo) -> Result<()> {
    let name = &weight.tensor.name;
    if weight.role.kind() == Kind::Vector {
        return bad(format!("it has a pair on `{name}`, which is no matrix"));
    }
    for half in [a, b] {
        if !TYPES.contains(&half.ty) {
            let types = TYPES.map(|ty| ty.to_string()).join(", ");
            return bad(format!("tensor `{}` is {}, not one of {types}", half.name, half.ty));
        }
    }
    let (columns, rows) = (weight.columns() as u64, weight.rows() as u64);
    // The converter turns the first half of a pair on the embedding, which is read by rows.
    let rank = match (weight.role, &a.ne[..], &b.ne[..]) {
        (Role::TokenEmbd, &[rank, n_vocab], &[of_b, n_embd]) => {
            ([n_vocab, n_embd, of_b] == [rows, columns, rank]).then_some(rank)
        }
        (Role::TokenEmbd, ..) => None,
        (_, &[n_in, rank], &[of_b, n_out]) => {
            ([n_in, n_out, of_b] == [columns, rows, rank]).then_some(rank)
        }
        _ => None,
    };
    let Some(rank) = rank else {
        return bad(format!(
            "`{}` {:?} and `{}` {:?} are no pair on a matrix of [{columns}, {rows}]",
            a.name, a.ne, b.name, b.ne
        ));
    };
    if !(1..=MAX_RANK as u64).contains(&rank) {
        return bad(format!("`{}` has the rank {rank}, not 1 to {MAX_RANK}", a.name));
    }
    Ok(())
}

/// The values of tensors, which are read in the order of the file.
async fn read_all<'a, S: Source>(
    reader: &mut Reader<S>,
    tensors: impl Iterator<Item = &'a TensorInfo>,
) -> Result<Vec<Vec<f32>>> {
    let mut tensors: Vec<(usize, &TensorInfo)> = tensors.enumerate().collect();
    check_memory(tensors.iter().map(|(_, tensor)| tensor.ne.iter().product::<u64>()).sum())?;
    tensors.sort_by_key(|(_, tensor)| tensor.offset);
    let mut all = vec![Vec::new(); tensors.len()];
    for (index, tensor) in tensors {
        let bytes = reader.read(tensor.offset..tensor.offset + tensor.len).await?;
        // The role is of no account for the values.
        let weight = Weight { role: Role::TokenEmbd, block: 0, tensor: tensor.clone() };
        all[index] = weight.floats(&bytes)?;
    }
    Ok(all)
}

/// Fails if there is no memory for as many floats. Where an allocation of all succeeds, those of the parts do too.
///
/// Errors: `out-of-memory`.
fn check_memory(floats: u64) -> Result<()> {
    let needed = floats.saturating_mul(4);
    let mut all = Vec::<u8>::new();
    let fits = usize::try_from(needed).is_ok_and(|needed| all.try_reserve_exact(needed).is_ok());
    // Otherwise the compiler may leave out an allocation that nothing uses.
    black_box(&mut all);
    let what = "the values of an adapter".into();
    if fits { Ok(()) } else { Err(Error::OutOfMemory { what, needed, granted: 0 }) }
}

fn bad<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::BadAdapter(why.into()))
}

fn bad_scale(why: String) -> Error {
    Error::BadOption { name: "scale".into(), why }
}

/// A key of a wrong type makes the adapter wrong, not the model.
fn of_metadata(error: Error) -> Error {
    match error {
        Error::UnsupportedModel(why) => Error::BadAdapter(why),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A real allocation of a size between, which fails on small devices only, cannot be tried everywhere.
    #[test]
    fn values_for_which_there_is_no_memory_are_an_error() {
        assert!(check_memory(1 << 10).is_ok());
        for floats in [1 << 61, u64::MAX] {
            let error = check_memory(floats).unwrap_err();
            assert_eq!(error.code(), "out-of-memory", "{error}");
        }
    }
}
