//! The head of a GGUF file: metadata and the table of tensors, not the tensors themselves.
//!
//! Files come from strangers: every length is checked against the file before anything is
//! allocated, and whatever is wrong is [`Error::BadGguf`] with the place. What the file means is
//! for the model to judge.

mod cursor;
mod tensor;
mod value;
mod write;

pub use tensor::{TensorInfo, TensorType, type_id};
pub use value::{Metadata, Numbers, Strings, Value};
pub use write::{Header, TensorEntry};

use crate::error::{Error, Result};
use crate::source::{Reader, Source};
use cursor::{Cursor, Stop};

/// The first look at a file; small models end their head in it.
const FIRST_LOOK: u64 = 256 << 10;

/// More than this is not read in search of a head's end. A vocabulary of 128 256 tokens takes
/// 8.4 MB.
const MAX_HEAD: u64 = 256 << 20;

/// The smallest metadata entry: an empty key is refused, so 8 + 1, type 4, value 1.
const SMALLEST_ENTRY: u64 = 14;

/// The smallest row of the tensor table: name 8, dimensions 4, type 4, offset 8.
const SMALLEST_TENSOR: u64 = 24;

/// What a GGUF file says of itself.
#[derive(Clone, Debug)]
pub struct Gguf {
    /// The format's version, 2 or 3.
    pub version: u32,
    /// Keys and values, in the file's order.
    pub metadata: Metadata,
    /// The tensors, in the table's order.
    pub tensors: Vec<TensorInfo>,
    /// Tensors begin at multiples of this many bytes.
    pub alignment: u64,
    /// Where the tensors' bytes begin.
    pub data_start: u64,
}

impl Gguf {
    /// Reads the head of a file, in growing steps, since it does not say how long it is.
    pub async fn read<S: Source>(reader: &mut Reader<S>) -> Result<Self> {
        let file_len = reader.len();
        let mut wanted = FIRST_LOOK;
        loop {
            let head = reader.front(wanted).await?;
            match parse(head, file_len) {
                Ok(gguf) => return Ok(gguf),
                Err(Stop::Bad(error)) => return Err(error),
                Err(Stop::More(needed)) if needed > MAX_HEAD => {
                    return Err(Error::BadGguf(format!(
                        "the metadata and the tensor table take more than {MAX_HEAD} bytes"
                    )));
                }
                Err(Stop::More(needed)) => wanted = needed.max(2 * wanted).min(MAX_HEAD),
            }
        }
    }

    /// The tensor of that name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|tensor| tensor.name == name)
    }
}

fn parse(head: &[u8], file_len: u64) -> Result<Gguf, Stop> {
    let cursor = &mut Cursor::new(head, file_len);
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
    // The fixed part must be there before the counts can be judged against what follows.
    let n_tensors = cursor.count(SMALLEST_TENSOR, "the number of tensors")?;
    let n_kv = cursor.count(SMALLEST_ENTRY, "the number of metadata entries")?;
    let metadata = Metadata::parse(cursor, n_kv)?;
    let entries = tensor::parse(cursor, n_tensors)?;

    let alignment = match metadata.get("general.alignment") {
        None => 32,
        Some(&Value::U32(alignment)) if alignment.is_power_of_two() => u64::from(alignment),
        Some(other) => {
            return cursor
                .bad(format_args!("`general.alignment` is {other}, not a u32 power of two"));
        }
    };
    let data_start = cursor.at().next_multiple_of(alignment);
    let tensors = tensor::place(entries, data_start, alignment, file_len)?;
    Ok(Gguf { version, metadata, tensors, alignment, data_start })
}
