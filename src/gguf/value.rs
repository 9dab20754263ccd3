//! The metadata of a GGUF file. The errors of getters name the key.

use std::fmt;

use super::cursor::{Cursor, Stop};
use crate::error::{Error, Result};

/// The metadata, in the file's order.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
}

/// A metadata value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "GGUF's names say it all")]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Should be UTF-8, but need not be.
    String(Vec<u8>),
    Strings(Strings),
    /// An array of numbers or booleans.
    Numbers(Numbers),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of strings in one allocation: a vocabulary has hundreds of thousands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strings {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

/// An array of numbers as it is in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbers {
    pub(super) kind: u32,
    pub(super) bytes: Vec<u8>,
}

impl Strings {
    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`, as bytes: it need not be UTF-8.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)? as usize;
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        Some(&self.bytes[start..end])
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.len()).map(|i| self.get(i).unwrap_or_default())
    }

    /// Adds a string at the end.
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        // A header is far below 4 GiB (`MAX_HEADER`).
        self.ends.push(self.bytes.len() as u32);
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Strings {
    fn from_iter<I: IntoIterator<Item = T>>(strings: I) -> Self {
        let mut all = Self::default();
        strings.into_iter().for_each(|string| all.push(string.as_ref()));
        all
    }
}

impl FromIterator<i32> for Numbers {
    fn from_iter<I: IntoIterator<Item = i32>>(numbers: I) -> Self {
        Self { kind: I32, bytes: numbers.into_iter().flat_map(i32::to_le_bytes).collect() }
    }
}

impl FromIterator<f32> for Numbers {
    fn from_iter<I: IntoIterator<Item = f32>>(numbers: I) -> Self {
        Self { kind: F32, bytes: numbers.into_iter().flat_map(f32::to_le_bytes).collect() }
    }
}

impl Numbers {
    /// The number of numbers.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.width()
    }

    /// Whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    fn width(&self) -> usize {
        number_width(self.kind).unwrap_or(1) as usize
    }

    /// The numbers one by one.
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        self.bytes.chunks_exact(self.width()).filter_map(|bytes| {
            let mut cursor = Cursor::new(bytes, bytes.len() as u64);
            number(&mut cursor, self.kind).ok()
        })
    }
}

impl Value {
    /// The value as an integer, if it is one.
    pub fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            _ => return None,
        })
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Strings(_) => "an array of strings",
            Self::Numbers(_) => "an array of numbers",
            Self::Bool(_) => "a boolean",
            Self::F32(_) | Self::F64(_) => "a float",
            _ => "an integer",
        }
    }
}

/// For people: long values are shortened.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let list = |f: &mut fmt::Formatter<'_>, len: usize, shown: Vec<String>| {
            let more = if len > SHOWN { ", …" } else { "" };
            write!(f, "[{}{more}] ({len})", shown.join(", "))
        };
        match self {
            Self::U8(v) => write!(f, "{v}"),
            Self::I8(v) => write!(f, "{v}"),
            Self::U16(v) => write!(f, "{v}"),
            Self::I16(v) => write!(f, "{v}"),
            Self::U32(v) => write!(f, "{v}"),
            Self::I32(v) => write!(f, "{v}"),
            Self::U64(v) => write!(f, "{v}"),
            Self::I64(v) => write!(f, "{v}"),
            Self::F32(v) => write!(f, "{v}"),
            Self::F64(v) => write!(f, "{v}"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::String(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let more = if text.chars().count() > 100 { "…" } else { "" };
                write!(f, "{:?}{more}", text.chars().take(100).collect::<String>())
            }
            Self::Strings(strings) => {
                let shown = strings.iter().take(SHOWN);
                let shown = shown.map(|s| format!("{:?}", String::from_utf8_lossy(s)));
                list(f, strings.len(), shown.collect())
            }
            Self::Numbers(numbers) => {
                let shown = numbers.iter().take(SHOWN).map(|n| n.to_string());
                list(f, numbers.len(), shown.collect())
            }
        }
    }
}

/// Getters give `None` if the key is absent, and an error that names the key if its value has
/// another type.
impl Metadata {
    /// The value of `key`, of any type.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(k, _)| k == key).map(|(_, value)| value)
    }

    /// All keys and values in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of `key`, which is a whole number of any integer type.
    pub fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", |value| u64::try_from(value.integer()?).ok())
    }

    /// The value of `key`, which is a float.
    pub fn float(&self, key: &str) -> Result<Option<f32>> {
        self.typed(key, "a float", |value| match *value {
            Value::F32(v) => Some(v),
            Value::F64(v) => Some(v as f32),
            _ => None,
        })
    }

    /// The value of `key`, which is a boolean.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a boolean", |value| match *value {
            Value::Bool(v) => Some(v),
            _ => None,
        })
    }

    /// The value of `key`, which is a string.
    pub fn text(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a UTF-8 string", |value| match value {
            Value::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        })
    }

    /// The value of `key`, which is an array of strings.
    pub fn strings(&self, key: &str) -> Result<Option<&Strings>> {
        self.typed(key, "an array of strings", |value| match value {
            Value::Strings(strings) => Some(strings),
            _ => None,
        })
    }

    /// The value of `key`, which is an array of numbers.
    pub fn numbers(&self, key: &str) -> Result<Option<&Numbers>> {
        self.typed(key, "an array of numbers", |value| match value {
            Value::Numbers(numbers) => Some(numbers),
            _ => None,
        })
    }

    /// The value of a `key` that must be there, read by one of the getters:
    /// `metadata.require(key, Metadata::text)`.
    pub fn require<'a, T>(
        &'a self,
        key: &str,
        get: impl FnOnce(&'a Self, &str) -> Result<Option<T>>,
    ) -> Result<T> {
        get(self, key)?
            .ok_or_else(|| Error::UnsupportedModel(format!("the file's metadata lacks `{key}`")))
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        get: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        get(value).map(Some).ok_or_else(|| {
            let kind = value.kind();
            Error::UnsupportedModel(format!("`{key}` is {kind}, {value}, not {expected}"))
        })
    }

    /// Reads `count` keys and values.
    pub(super) fn parse(cursor: &mut Cursor<'_>, count: u64) -> Result<Self, Stop> {
        let mut entries = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..count {
            let key = cursor.name(65535, "a metadata key")?;
            if !seen.insert(key.clone()) {
                let key = shortened(&key);
                return cursor.bad(format_args!("metadata key `{key}` appears twice"));
            }
            let kind = cursor.u32("a value's type")?;
            let value = value(cursor, kind, shortened(&key))?;
            entries.push((key, value));
        }
        Ok(Self { entries })
    }
}

/// A key that is short enough for a message. In a damaged file a key can be as long as a
/// vocabulary.
pub(crate) fn shortened(key: &str) -> &str {
    key.char_indices().nth(100).map_or(key, |(end, _)| &key[..end])
}

/// The format's numbers for types of values.
pub(super) const U8: u32 = 0;
pub(super) const I8: u32 = 1;
pub(super) const U16: u32 = 2;
pub(super) const I16: u32 = 3;
pub(super) const U32: u32 = 4;
pub(super) const I32: u32 = 5;
pub(super) const F32: u32 = 6;
pub(super) const BOOL: u32 = 7;
pub(super) const STRING: u32 = 8;
pub(super) const ARRAY: u32 = 9;
pub(super) const U64: u32 = 10;
pub(super) const I64: u32 = 11;
pub(super) const F64: u32 = 12;

/// Bytes of a number or boolean of type `kind`.
fn number_width(kind: u32) -> Option<u64> {
    match kind {
        U8 | I8 | BOOL => Some(1),
        U16 | I16 => Some(2),
        U32 | I32 | F32 => Some(4),
        U64 | I64 | F64 => Some(8),
        _ => None,
    }
}

fn value(cursor: &mut Cursor<'_>, kind: u32, key: &str) -> Result<Value, Stop> {
    match kind {
        STRING => Ok(Value::String(cursor.string("a metadata string")?.to_vec())),
        ARRAY => array(cursor, key),
        _ if number_width(kind).is_some() => number(cursor, kind),
        _ => cursor.bad(format_args!("`{key}` has the unknown value type {kind}")),
    }
}

fn number(cursor: &mut Cursor<'_>, kind: u32) -> Result<Value, Stop> {
    let what = "a metadata value";
    Ok(match kind {
        U8 => Value::U8(cursor.u8(what)?),
        I8 => Value::I8(cursor.u8(what)? as i8),
        U16 => Value::U16(cursor.u16(what)?),
        I16 => Value::I16(cursor.u16(what)? as i16),
        U32 => Value::U32(cursor.u32(what)?),
        I32 => Value::I32(cursor.u32(what)? as i32),
        F32 => Value::F32(f32::from_bits(cursor.u32(what)?)),
        BOOL => match cursor.u8(what)? {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            other => return cursor.bad(format_args!("a boolean is {other}, not 0 or 1")),
        },
        U64 => Value::U64(cursor.u64(what)?),
        I64 => Value::I64(cursor.u64(what)? as i64),
        F64 => Value::F64(f64::from_bits(cursor.u64(what)?)),
        _ => return cursor.bad(format_args!("unknown value type {kind}")),
    })
}

fn array(cursor: &mut Cursor<'_>, key: &str) -> Result<Value, Stop> {
    let kind = cursor.u32("an array's type")?;
    if kind == STRING {
        let count = cursor.count(8, "an array's length")?;
        let mut strings = Strings::default();
        for _ in 0..count {
            strings.push(cursor.string("a string in an array")?);
        }
        return Ok(Value::Strings(strings));
    }
    // The specification allows nested arrays (type 9), but no reader accepts them.
    let Some(width) = number_width(kind) else {
        return cursor.bad(format_args!("`{key}` is an array of the unknown type {kind}"));
    };
    let count = cursor.count(width, "an array's length")?;
    let bytes = cursor.take(count * width, "an array")?.to_vec();
    Ok(Value::Numbers(Numbers { kind, bytes }))
}
