//! The tensor table: the name, shape, type and offset of each tensor.

use std::collections::HashMap;
use std::fmt;

use super::cursor::{Cursor, Stop};
use super::write::TensorEntry;
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

    /// The tensor as it is to be written into another file.
    pub fn entry(&self) -> TensorEntry {
        let Self { name, ne, ty, len, .. } = self.clone();
        TensorEntry { name, ne, type_id: ty.id(), len }
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
    /// Four ternary codes in a byte, and one scale for the tensor.
    I2S,
    /// Ternary codes, permuted for the look-up tables of one kind of CPU.
    Tl1,
    /// Like TL1, with three codes in five bits.
    Tl2,
    /// Bits that stand for −1 and +1, in blocks of 128.
    Q1_0,
    /// Ternary codes in blocks of 64.
    Q2_0,
    /// Ternary codes in blocks of 128, which PrismML's fork of ggml wrote under the number of Q2_0.
    Q2_0Of128,
    /// Blocks as in `Q2_0Of128`, with a type number of their own.
    Pq2_0,
    /// Five ternary codes in a byte, in blocks of 256.
    Tq1_0,
    /// Four ternary codes in a byte, in blocks of 256.
    Tq2_0,
    /// Integers of 4 bits in blocks of 32.
    Q4_0,
    /// Integers of 8 bits in blocks of 32.
    Q8_0,
    /// Integers of 4 bits in blocks of 256, with scales and offsets of 6 bits.
    Q4K,
    /// Integers of 6 bits in blocks of 256, with scales of 8 bits.
    Q6K,
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
            Self::Q1_0 => "Q1_0",
            Self::Q2_0 => "Q2_0",
            Self::Q2_0Of128 => "Q2_0 (of 128)",
            Self::Pq2_0 => "PQ2_0",
            Self::Tq1_0 => "TQ1_0",
            Self::Tq2_0 => "TQ2_0",
            Self::Q4_0 => "Q4_0",
            Self::Q8_0 => "Q8_0",
            Self::Q4K => "Q4_K",
            Self::Q6K => "Q6_K",
            Self::Other(name) => name,
        })
    }
}

impl TensorType {
    /// The format's number for the type.
    pub fn id(self) -> u32 {
        // The table has every type.
        FORMATS.iter().find(|format| format.ty == self).map_or(u32::MAX, |format| format.id)
    }
}

/// The format's numbers for the types that this crate computes with.
#[allow(missing_docs, reason = "named as ggml names them")]
pub mod type_id {
    pub const F32: u32 = 0;
    pub const F16: u32 = 1;
    pub const Q4_0: u32 = 2;
    pub const Q8_0: u32 = 8;
    pub const Q4_K: u32 = 12;
    pub const Q6_K: u32 = 14;
    pub const BF16: u32 = 30;
    pub const TQ1_0: u32 = 34;
    pub const TQ2_0: u32 = 35;
    pub const I2_S: u32 = 36;
    pub const Q1_0: u32 = 41;
    /// Older files use this number for blocks of 128 too.
    pub const Q2_0: u32 = 42;
    pub const PQ2_0: u32 = 142;
}

/// The largest number of elements. JavaScript has larger numbers, but not each of them.
const MAX_NUMBER: u64 = 1 << 53;

/// A row of the table, as it is in the file.
pub(super) struct Entry {
    name: String,
    ne: Vec<u64>,
    type_id: u32,
    /// Counted from the beginning of the tensors' bytes.
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
        // Each dimension is checked too: a product with a 0 in it is 0, whatever the others are.
        if elements.is_none_or(|n| n > MAX_NUMBER) || ne.iter().any(|&dim| dim > MAX_NUMBER) {
            return cursor.bad(format_args!("tensor `{name}` has the impossible shape {ne:?}"));
        }
        let type_id = cursor.u32("a tensor's type")?;
        let offset = cursor.u64("a tensor's offset")?;
        entries.push(Entry { name, ne, type_id, offset });
    }
    Ok(entries)
}

/// Finds each tensor's bytes. They must be aligned, within the file, and in no other tensor.
pub(super) fn place(
    entries: Vec<Entry>,
    data_start: u64,
    alignment: u64,
    file_len: u64,
) -> Result<Vec<TensorInfo>> {
    let data_len = file_len.saturating_sub(data_start);
    for Entry { name, offset, .. } in &entries {
        let bad = |why: String| Err(Error::BadGguf(format!("tensor `{name}` {why}")));
        if !offset.is_multiple_of(alignment) {
            return bad(format!("begins at {offset}, not a multiple of {alignment}"));
        }
        if *offset > data_len || data_start > file_len {
            return bad(format!(
                "begins {offset} bytes into the data, but the file has {data_len}: it is cut off"
            ));
        }
    }
    let formats = formats(&entries, data_len, alignment)?;

    let mut tensors = Vec::with_capacity(entries.len());
    for Entry { name, ne, type_id, offset } in entries {
        let bad =
            |why: String| Error::BadGguf(format!("tensor `{name}` ({ne:?}, type {type_id}) {why}"));
        let Format { ty, size, .. } =
            formats.get(&type_id).ok_or_else(|| bad("is of an unknown type".into()))?;
        let len = size
            .bytes(&ne)
            .ok_or_else(|| bad(format!("cannot be {ty}, which has {}", size.rule())))?;
        if len > data_len - offset {
            return Err(bad(format!(
                "ends at {}, but the file at {file_len}: it is cut off",
                u128::from(data_start) + u128::from(offset) + u128::from(len)
            )));
        }
        tensors.push(TensorInfo { name, ne, ty: *ty, offset: data_start + offset, len });
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

/// The type that each number stands for in this file.
///
/// Forks of ggml gave some numbers to types of their own. Such a number means the type that fits
/// the bytes of every tensor with it. A small tensor fits several types, but it has the type of the
/// larger ones. If all are small, the number means ggml's own type. The name of a file says
/// nothing.
fn formats(
    entries: &[Entry],
    data_len: u64,
    alignment: u64,
) -> Result<HashMap<u32, &'static Format>> {
    let mut starts: Vec<u64> = entries.iter().map(|entry| entry.offset).collect();
    starts.sort_unstable();
    // Bytes up to the next tensor, and whether there is no next one.
    let extent = |entry: &Entry| {
        let next = starts.partition_point(|&start| start <= entry.offset);
        let end = starts.get(next).unwrap_or(&data_len);
        (end.saturating_sub(entry.offset), next == starts.len())
    };

    let mut formats = HashMap::new();
    // In the order of the file, so that an error names the first tensor that is wrong.
    for entry in entries {
        let candidates = || FORMATS.iter().filter(|format| format.id == entry.type_id);
        if formats.contains_key(&entry.type_id) || candidates().next().is_none() {
            continue;
        }
        let mut left: Vec<&Format> = candidates().collect();
        let ambiguous = left.len() > 1;
        for other in entries.iter().filter(|other| ambiguous && other.type_id == entry.type_id) {
            let (extent, last) = extent(other);
            let fits = |format: &Format| format.fits(&other.ne, extent, last, alignment);
            left.retain(|format| fits(format));
            if left.is_empty() {
                let Entry { name, ne, type_id, .. } = other;
                let why = if candidates().any(fits) {
                    "is packed in another way than the tensors of its type before it".into()
                } else {
                    format!("has {extent} bytes, which fits no type of that number")
                };
                let why = format!("tensor `{name}` ({ne:?}, type {type_id}) {why}");
                return Err(Error::BadGguf(why));
            }
        }
        formats.insert(entry.type_id, left[0]);
    }
    Ok(formats)
}

struct Format {
    id: u32,
    ty: TensorType,
    size: Size,
}

impl Format {
    /// Whether a tensor of this type and of the shape `ne` fits into `extent` bytes, which is the
    /// room up to the next tensor. Behind the last tensor there may be anything.
    fn fits(&self, ne: &[u64], extent: u64, last: bool, alignment: u64) -> bool {
        // Behind a TL tensor is a scale that the table does not count. It takes one more unit.
        let units = if self.ty == TensorType::Tl2 { 2 } else { 1 };
        let rest = self.size.bytes(ne).and_then(|len| extent.checked_sub(len));
        rest.is_some_and(|rest| last || rest < alignment.saturating_mul(units))
    }
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

/// All types that a valid file may have. `inspect` names even those that this crate does not
/// compute with.
const FORMATS: &[Format] = &[
    blocks(type_id::F32, TensorType::F32, 1, 4),
    blocks(type_id::F16, TensorType::F16, 1, 2),
    blocks(type_id::Q4_0, TensorType::Q4_0, 32, 18),
    other(3, "Q4_1", 32, 20),
    other(6, "Q5_0", 32, 22),
    other(7, "Q5_1", 32, 24),
    blocks(type_id::Q8_0, TensorType::Q8_0, 32, 34),
    other(9, "Q8_1", 32, 36),
    other(10, "Q2_K", 256, 84),
    other(11, "Q3_K", 256, 110),
    blocks(type_id::Q4_K, TensorType::Q4K, 256, 144),
    other(13, "Q5_K", 256, 176),
    blocks(type_id::Q6_K, TensorType::Q6K, 256, 210),
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
    blocks(type_id::TQ1_0, TensorType::Tq1_0, 256, 54),
    blocks(type_id::TQ2_0, TensorType::Tq2_0, 256, 66),
    Format { id: type_id::I2_S, ty: TensorType::I2S, size: Size::I2S },
    Format { id: 38, ty: TensorType::Tl1, size: Size::I2S },
    other(39, "MXFP4", 32, 17),
    Format { id: 39, ty: TensorType::Tl2, size: Size::Tl2 },
    other(40, "NVFP4", 64, 36),
    blocks(type_id::Q1_0, TensorType::Q1_0, 128, 18),
    blocks(type_id::Q2_0, TensorType::Q2_0, 64, 18),
    blocks(type_id::Q2_0, TensorType::Q2_0Of128, 128, 34),
    Format { id: type_id::Q2_0, ty: TensorType::Tl2, size: Size::Tl2 },
    blocks(type_id::PQ2_0, TensorType::Pq2_0, 128, 34),
];
