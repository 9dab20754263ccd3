//! The header of a safetensors file: the name, type, shape and offsets of each tensor.
//!
//! A file has the length of its JSON in eight bytes, then the JSON, then the tensors' bytes. Files
//! come from strangers: every number is compared with the file's length before it is used.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Bytes before the JSON. They are its length.
pub(crate) const PREFIX: u64 = 8;

/// The longest JSON that the format's own reader accepts.
const MAX_JSON: u64 = 100_000_000;

/// A tensor of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    /// Elements in each dimension, the slowest first: `[rows, columns]` of a matrix.
    pub(crate) shape: Vec<u64>,
    /// Where its bytes are in the file.
    pub(crate) range: Range<u64>,
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F32,
    F16,
    Bf16,
    U8,
    /// A type that no ternary model has.
    Other(&'static str),
}

/// Each type's name in the file, the type, and the bytes of one element.
const DTYPES: &[(&str, Dtype, u64)] = &[
    ("F32", Dtype::F32, 4),
    ("F16", Dtype::F16, 2),
    ("BF16", Dtype::Bf16, 2),
    ("U8", Dtype::U8, 1),
    ("BOOL", Dtype::Other("BOOL"), 1),
    ("I8", Dtype::Other("I8"), 1),
    ("F8_E4M3", Dtype::Other("F8_E4M3"), 1),
    ("F8_E5M2", Dtype::Other("F8_E5M2"), 1),
    ("I16", Dtype::Other("I16"), 2),
    ("U16", Dtype::Other("U16"), 2),
    ("I32", Dtype::Other("I32"), 4),
    ("U32", Dtype::Other("U32"), 4),
    ("I64", Dtype::Other("I64"), 8),
    ("U64", Dtype::Other("U64"), 8),
    ("F64", Dtype::Other("F64"), 8),
];

impl Dtype {
    /// Bytes of an element.
    pub(crate) fn size(self) -> u64 {
        DTYPES.iter().find(|(_, dtype, _)| *dtype == self).map_or(0, |(.., size)| *size)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(DTYPES.iter().find(|(_, dtype, _)| dtype == self).map_or("", |row| row.0))
    }
}

/// Type and shape, such as `BF16 [4096, 512]`.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.dtype, self.shape)
    }
}

/// Bytes of JSON in a file of `file_len` bytes.
///
/// Errors: the reason why the file cannot have that many. Errors are texts in all of this module.
pub(crate) fn json_len(prefix: [u8; PREFIX as usize], file_len: u64) -> Result<u64, String> {
    let len = u64::from_le_bytes(prefix);
    let rest = file_len.saturating_sub(PREFIX);
    if len > MAX_JSON {
        return Err(format!("its header has {len} bytes, more than the {MAX_JSON} allowed"));
    }
    if len > rest {
        return Err(format!("its header has {len} bytes, but the file only {rest} after it"));
    }
    Ok(len)
}

/// The tensors of a file of `file_len` bytes, in the order of their bytes.
pub(crate) fn parse(json: &[u8], file_len: u64) -> Result<Vec<Tensor>, String> {
    let Entries(entries) = serde_json::from_slice(json)
        .map_err(|error| format!("its header is damaged: {}", short(&error.to_string())))?;
    let start = PREFIX + json.len() as u64;
    let data_len = file_len.checked_sub(start).ok_or("it ends within its header")?;
    let mut tensors =
        entries.into_iter().map(|entry| entry.place(start)).collect::<Result<Vec<_>, _>>()?;
    tensors.sort_by_key(|tensor| (tensor.range.start, tensor.range.end));

    // The format allows no gaps, so that nothing can be hidden in a file.
    let mut end = start;
    for Tensor { name, range, .. } in &tensors {
        if range.start != end {
            let what =
                if range.start < end { "overlaps the one before it" } else { "leaves a gap" };
            return Err(format!("tensor `{}` {what}", short(name)));
        }
        end = range.end;
    }
    if end != file_len {
        let found = end - start;
        return Err(format!("its tensors have {found} bytes, but the file has {data_len} of them"));
    }
    let mut names: Vec<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("tensor `{}` appears twice", short(pair[0]))),
        None => Ok(tensors),
    }
}

/// The beginning of a text from a file, so that no file can fill the console.
pub(crate) fn short(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

/// A tensor as the JSON describes it.
struct Entry {
    name: String,
    info: Info,
}

#[derive(serde::Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<u64>,
    /// Counted from the end of the JSON.
    data_offsets: [u64; 2],
}

impl Entry {
    /// The tensor, if its type, shape and offsets agree. `start` is where the tensors' bytes begin.
    fn place(self, start: u64) -> Result<Tensor, String> {
        let Self { name, info: Info { dtype, shape, data_offsets: [from, to] } } = self;
        let named = |why: &str| format!("tensor `{}` {why}", short(&name));
        let &(_, dtype, size) = DTYPES
            .iter()
            .find(|(known, ..)| *known == dtype)
            .ok_or_else(|| named(&format!("has the unknown type `{}`", short(&dtype))))?;
        // More dimensions than any tensor has would only make messages long.
        if shape.len() > 8 {
            return Err(named(&format!("has {} dimensions", shape.len())));
        }
        let len = shape.iter().try_fold(size, |len, &n| len.checked_mul(n));
        if to.checked_sub(from) != len || len.is_none() {
            return Err(named(&format!(
                "is {dtype} {shape:?}, but its offsets are {from} and {to}"
            )));
        }
        let place = |offset: u64| {
            offset.checked_add(start).ok_or_else(|| named(&format!("is at the offset {offset}")))
        };
        let range = place(from)?..place(to)?;
        Ok(Tensor { name, dtype, shape, range })
    }
}

/// The JSON: an object with a tensor for each key, except the key of the metadata.
struct Entries(Vec<Entry>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries, M::Error> {
                let mut entries = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        let info = map.next_value().map_err(|error: M::Error| {
                            de::Error::custom(format_args!("tensor `{}`: {error}", short(&name)))
                        })?;
                        entries.push(Entry { name, info });
                    }
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
