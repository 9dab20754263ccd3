//! Reads and writes the header of GGUF files: the metadata and the table of tensors.
//!
//! Files come from strangers. Every length is compared with the file before anything is allocated,
//! and every fault is an [`Error::BadGguf`] that names its offset. `model` decides whether this
//! crate runs the model.

mod cursor;
mod tensor;
mod value;
mod volumes;
mod write;

pub use tensor::{TensorInfo, TensorType, type_id};
pub(crate) use value::shortened;
pub use value::{Metadata, Numbers, Strings, Value};
pub use volumes::Joined;
pub use write::{Header, TensorEntry};

use crate::error::{Error, Result};
use crate::source::{Reader, Source};
use cursor::{Cursor, Stop};

/// Bytes to read first. The header of a small model fits in them.
const FIRST_READ: u64 = 256 << 10;

/// The largest header that is read. With a vocabulary of 128 256 tokens a header has 8.4 MB.
const MAX_HEADER: u64 = 256 << 20;

/// The most metadata entries, and the most tensors. Each takes more memory than it has bytes in the
/// file, so without this limit a header of the largest size would not fit into a page's memory.
/// Models have some fifty entries and a few hundred tensors.
const MAX_ENTRIES: u64 = 1 << 16;

/// The smallest metadata entry: a key of one byte and its length (9), a type (4), a value (1).
const MIN_ENTRY: u64 = 14;

/// The smallest row of the tensor table: the name's length (8), dimensions (4), type (4), offset
/// (8).
const MIN_TENSOR: u64 = 24;

/// The header of a GGUF file.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// The format's version, 2 or 3.
    pub version: u32,
    /// Keys and values, in the file's order.
    pub metadata: Metadata,
    /// The tensors, in the table's order.
    pub tensors: Vec<TensorInfo>,
    /// Every tensor begins at a multiple of this many bytes.
    pub alignment: u64,
    /// The offset in the file at which the tensors' bytes begin.
    pub data_start: u64,
}

impl Gguf {
    /// Reads the header of a file. A header does not say how long it is, so more and more bytes are
    /// read until it is whole.
    ///
    /// Errors: `bad-gguf`, and those of the source.
    pub async fn read<S: Source>(reader: &mut Reader<S>) -> Result<Self> {
        let file_len = reader.len();
        let mut wanted = FIRST_READ;
        loop {
            let bytes = reader.front(wanted).await?;
            match parse(bytes, file_len) {
                Ok(gguf) => return Ok(gguf),
                Err(Stop::Bad(error)) => return Err(error),
                Err(Stop::More(needed)) if needed > MAX_HEADER => {
                    return Err(Error::BadGguf(format!(
                        "the metadata and the tensor table take more than {MAX_HEADER} bytes"
                    )));
                }
                Err(Stop::More(needed)) => wanted = needed.max(2 * wanted).min(MAX_HEADER),
            }
        }
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

fn parse(bytes: &[u8], file_len: u64) -> Result<Gguf, Stop> {
    let cursor = &mut Cursor::new(bytes, file_len);
    let magic = cursor.take(4, "the magic number")?;
    if magic != b"GGUF" {
        let found = String::from_utf8_lossy(magic);
        return cursor.bad(format_args!("it begins with {found:?}, not with \"GGUF\""));
    }
    let version = cursor.u32("the version")?;
    match version {
        2 | 3 => {}
        _ if version & 0xffff == 0 => return cursor.bad("it is a big-endian file"),
        _ => return cursor.bad(format_args!("it has version {version}, expected 2 or 3")),
    }
    let n_tensors = entries(cursor, MIN_TENSOR, "the number of tensors")?;
    let n_kv = entries(cursor, MIN_ENTRY, "the number of metadata entries")?;
    let metadata = Metadata::parse(cursor, n_kv)?;
    let table = tensor::parse(cursor, n_tensors)?;

    let alignment = match metadata.get("general.alignment") {
        None => 32,
        Some(&Value::U32(alignment)) if alignment.is_power_of_two() => u64::from(alignment),
        Some(other) => {
            return cursor
                .bad(format_args!("`general.alignment` is {other}, not a u32 power of two"));
        }
    };
    let data_start = cursor.at().next_multiple_of(alignment);
    let tensors = tensor::place(table, data_start, alignment, file_len)?;
    Ok(Gguf { version, metadata, tensors, alignment, data_start })
}

/// A number of entries of at least `smallest` bytes each.
fn entries(cursor: &mut Cursor<'_>, smallest: u64, what: &str) -> Result<u64, Stop> {
    match cursor.count(smallest, what)? {
        n if n > MAX_ENTRIES => cursor.bad(format_args!("{what} is {n}, more than {MAX_ENTRIES}")),
        n => Ok(n),
    }
}
