//! The tensor table: the name, shape, type and offset of each tensor.

use std::fmt;

use super::cursor::{Cursor, Stop};
use crate::error::{Error, Result};

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorInfo {
    /// The GGUF name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Elements in each dimension, the fastest first: `[columns, rows]` of a matrix.
    pub ne: Vec<u64>,
    /// How the elements are packed.
    pub ty: TensorType,
    /// The offset in the file at which its bytes begin.
    pub offset: u64,
    /// Bytes it takes. Those of I2_S include the scale and the padding after it.
    pub len: u64,
}

impl TensorInfo {
    /// The number of elements.
    pub fn elements(&self) -> u64 {
        self.ne.iter().product()
    }
}

/// Type and shape, such as `F16 [512, 4096]`.
impl fmt::Display for TensorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.ty, self.ne)
    }
}

/// How a tensor's elements are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorType {
    /// IEEE single precision.
    F32,
    /// IEEE half precision.
    F16,
    /// The upper half of an F32.
    Bf16,
    /// Four ternary codes in a byte, one scale for the tensor.
    I2S,
    /// Ternary codes, permuted for the look-up tables of one kind of CPU.
    Tl1,
    /// Like TL1, with three codes in five bits.
    Tl2,
    /// Another type of ggml, which this crate does not compute with.
    Other(&'static str),
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::Bf16 => "BF16",
            Self::I2S => "I2_S",
            Self::Tl1 => "TL1",
            Self::Tl2 => "TL2",
            Self::Other(name) => name,
        })
    }
}

/// The format's numbers for the types that this crate computes with.
#[allow(missing_docs, reason = "named as ggml names them")]
pub mod type_id {
    pub const F32: u32 = 0;
    pub const F16: u32 = 1;
    pub const BF16: u32 = 30;
    pub const I2_S: u32 = 36;
}

/// A row of the table, as it is in the file.
pub(super) struct Entry {
    name: String,
    ne: Vec<u64>,
    type_id: u32,
    /// From the beginning of the tensors' bytes.
    offset: u64,
}

/// Reads `count` rows of the tensor table.
pub(super) fn parse(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<Entry>, Stop> {
    let mut entries = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..count {
        let name = cursor.name(64, "a tensor's name")?;
        if !seen.insert(name.clone()) {
            return cursor.bad(format_args!("tensor `{name}` appears twice"));
        }
        let n_dims = cursor.u32("a tensor's dimensions")?;
        if n_dims > 4 {
            return cursor.bad(format_args!("tensor `{name}` has {n_dims} dimensions"));
        }
        let mut ne = Vec::new();
        for _ in 0..n_dims {
            ne.push(cursor.u64("a tensor's dimensions")?);
        }
        let elements = ne.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
        if elements.is_none_or(|n| n > i64::MAX as u64) {
            return cursor.bad(format_args!("tensor `{name}` has the impossible shape {ne:?}"));
        }
        let type_id = cursor.u32("a tensor's type")?;
        let offset = cursor.u64("a tensor's offset")?;
        entries.push(Entry { name, ne, type_id, offset });
    }
    Ok(entries)
}

/// Finds each tensor's bytes, which must be aligned, within the file, and in no other tensor.
pub(super) fn place(
    entries: Vec<Entry>,
    data_start: u64,
    alignment: u64,
    file_len: u64,
) -> Result<Vec<TensorInfo>> {
    let mut starts: Vec<u64> = entries.iter().map(|entry| entry.offset).collect();
    starts.sort_unstable();
    let data_len = file_len.saturating_sub(data_start);

    let mut tensors = Vec::with_capacity(entries.len());
    for Entry { name, ne, type_id, offset } in entries {
        let bad = |why: String| Error::BadGguf(format!("tensor `{name}` {why}"));
        if !offset.is_multiple_of(alignment) {
            return Err(bad(format!("begins at {offset}, not a multiple of {alignment}")));
        }
        if offset > data_len || data_start > file_len {
            return Err(bad(format!("begins {offset} bytes into the {data_len} bytes of data")));
        }
        let next = starts.partition_point(|&start| start <= offset);
        let extent = starts.get(next).unwrap_or(&data_len).saturating_sub(offset);
        let (ty, len) = resolve(type_id, &ne, extent, next == starts.len(), alignment)
            .map_err(|why| bad(format!("({ne:?}, type {type_id}) {why}")))?;
        if len > data_len - offset {
            return Err(bad(format!(
                "ends at {}, but the file at {file_len}: it is cut off",
                u128::from(data_start) + u128::from(offset) + u128::from(len)
            )));
        }
        tensors.push(TensorInfo { name, ne, ty, offset: data_start + offset, len });
    }

    let mut order: Vec<&TensorInfo> = tensors.iter().collect();
    order.sort_by_key(|tensor| (tensor.offset, tensor.len));
    for pair in order.windows(2) {
        if pair[0].offset + pair[0].len > pair[1].offset {
            let (first, second) = (&pair[0].name, &pair[1].name);
            return Err(Error::BadGguf(format!("tensors `{first}` and `{second}` overlap")));
        }
    }
    Ok(tensors)
}

/// The type that an id stands for, and the bytes that the tensor takes. Forks of ggml gave the ids
/// 39 and 42 to types of their own: of these, the bytes up to the next tensor decide.
fn resolve(
    id: u32,
    ne: &[u64],
    extent: u64,
    last: bool,
    alignment: u64,
) -> Result<(TensorType, u64), String> {
    let candidates: Vec<&Format> = FORMATS.iter().filter(|format| format.id == id).collect();
    match candidates[..] {
        [] => Err("is of an unknown type".into()),
        [format] => {
            let len = format.size.bytes(ne).ok_or_else(|| {
                format!("cannot be {}, which has {}", format.ty, format.size.rule())
            })?;
            Ok((format.ty, len))
        }
        _ => candidates
            .iter()
            .filter_map(|format| Some((format.ty, format.size.bytes(ne)?)))
            // Behind a TL tensor is a scale that the table does not count: one more unit.
            .find(|&(ty, len)| {
                let units = if ty == TensorType::Tl2 { 2 } else { 1 };
                extent.checked_sub(len).is_some_and(|rest| last || rest < units * alignment)
            })
            .ok_or_else(|| format!("has {extent} bytes, which fits no type of that number")),
    }
}

struct Format {
    id: u32,
    ty: TensorType,
    size: Size,
}

/// How many bytes a tensor takes.
enum Size {
    /// Rows are whole blocks of this many elements and bytes.
    Blocks(u64, u64),
    /// Two bits for each element, then 32 bytes with the scale of the whole tensor.
    I2S,
    Tl2,
}

impl Size {
    fn bytes(&self, ne: &[u64]) -> Option<u64> {
        let elements: u64 = ne.iter().product();
        let columns = ne.first().copied().unwrap_or(1);
        let matrix = ne.get(2..).is_none_or(|rest| rest.iter().all(|&n| n == 1));
        match *self {
            Self::Blocks(block, bytes) => {
                columns.is_multiple_of(block).then_some(())?;
                (elements / block).checked_mul(bytes)
            }
            Self::I2S => (columns.is_multiple_of(128) && matrix).then_some(elements / 4 + 32),
            Self::Tl2 => {
                let rows = ne.get(1).copied().unwrap_or(1);
                let threes = columns.checked_sub(256)?.checked_mul(rows)? / 3 * 5 / 8;
                let twos = rows.checked_mul(64)?;
                let codes = threes.checked_add(twos)?.checked_next_multiple_of(32)?;
                matrix.then_some(codes.checked_add(32)?)
            }
        }
    }

    fn rule(&self) -> String {
        match self {
            Self::Blocks(block, _) => format!("rows of a multiple of {block} elements"),
            Self::I2S => "rows of a multiple of 128 elements and two dimensions".into(),
            Self::Tl2 => "rows of at least 256 elements and two dimensions".into(),
        }
    }
}

const fn blocks(id: u32, ty: TensorType, block: u64, bytes: u64) -> Format {
    Format { id, ty, size: Size::Blocks(block, bytes) }
}

const fn other(id: u32, name: &'static str, block: u64, bytes: u64) -> Format {
    blocks(id, TensorType::Other(name), block, bytes)
}

/// All types of a valid file. `inspect` names those too that this crate does not compute with.
const FORMATS: &[Format] = &[
    blocks(type_id::F32, TensorType::F32, 1, 4),
    blocks(type_id::F16, TensorType::F16, 1, 2),
    other(2, "Q4_0", 32, 18),
    other(3, "Q4_1", 32, 20),
    other(6, "Q5_0", 32, 22),
    other(7, "Q5_1", 32, 24),
    other(8, "Q8_0", 32, 34),
    other(9, "Q8_1", 32, 36),
    other(10, "Q2_K", 256, 84),
    other(11, "Q3_K", 256, 110),
    other(12, "Q4_K", 256, 144),
    other(13, "Q5_K", 256, 176),
    other(14, "Q6_K", 256, 210),
    other(15, "Q8_K", 256, 292),
    other(16, "IQ2_XXS", 256, 66),
    other(17, "IQ2_XS", 256, 74),
    other(18, "IQ3_XXS", 256, 98),
    other(19, "IQ1_S", 256, 50),
    other(20, "IQ4_NL", 32, 18),
    other(21, "IQ3_S", 256, 110),
    other(22, "IQ2_S", 256, 82),
    other(23, "IQ4_XS", 256, 136),
    other(24, "I8", 1, 1),
    other(25, "I16", 1, 2),
    other(26, "I32", 1, 4),
    other(27, "I64", 1, 8),
    other(28, "F64", 1, 8),
    other(29, "IQ1_M", 256, 56),
    blocks(type_id::BF16, TensorType::Bf16, 1, 2),
    other(34, "TQ1_0", 256, 54),
    other(35, "TQ2_0", 256, 66),
    Format { id: type_id::I2_S, ty: TensorType::I2S, size: Size::I2S },
    Format { id: 38, ty: TensorType::Tl1, size: Size::I2S },
    other(39, "MXFP4", 32, 17),
    Format { id: 39, ty: TensorType::Tl2, size: Size::Tl2 },
    other(40, "NVFP4", 64, 36),
    other(41, "Q1_0", 128, 18),
    other(42, "Q2_0", 64, 18),
    other(42, "Q2_0 (of 128)", 128, 34),
    Format { id: 42, ty: TensorType::Tl2, size: Size::Tl2 },
];
