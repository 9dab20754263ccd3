//! Writes GGUF files.

use std::io::{self, Write};

use super::value::{self, Value};

/// All of a GGUF file that is to be written, except the tensors' bytes.
///
/// Nothing here is compared with the rules of readers, because tests write damaged files with it.
#[derive(Clone, Debug)]
pub struct Header {
    /// The format's version: 3 is the current one.
    pub version: u32,
    /// Every tensor begins at a multiple of this many bytes. Readers assume 32 if the metadata has
    /// no `general.alignment`.
    pub alignment: u64,
    /// Keys and values, in the file's order.
    pub metadata: Vec<(String, Value)>,
    /// The tensors, in the order of their bytes in the file.
    pub tensors: Vec<TensorEntry>,
}

/// A tensor that is to be written.
#[derive(Clone, Debug)]
pub struct TensorEntry {
    /// Its name, such as `blk.0.attn_q.weight`.
    pub name: String,
    /// Elements in each dimension, the fastest first: `[columns, rows]` of a matrix.
    pub ne: Vec<u64>,
    /// The type's number in the file, such as [`super::type_id::I2_S`].
    pub type_id: u32,
    /// Bytes it takes, without the padding after it.
    pub len: u64,
}

impl Header {
    /// Writes the whole file to `out`. `write_tensor(index, out)` is called for each of `tensors`
    /// in turn and writes exactly the bytes that its entry announces.
    ///
    /// Errors: those of `out` and of `write_tensor`, and [`io::ErrorKind::InvalidData`] if a tensor
    /// has another length than announced.
    pub fn write_file<W: Write>(
        &self,
        out: W,
        mut write_tensor: impl FnMut(usize, &mut Counted<W>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = Counted { out, written: 0 };
        out.write_all(&self.to_bytes())?;
        self.pad(&mut out)?;
        for (index, tensor) in self.tensors.iter().enumerate() {
            let start = out.written;
            write_tensor(index, &mut out)?;
            let (name, announced, written) = (&tensor.name, tensor.len, out.written - start);
            if written != announced {
                let why =
                    format!("tensor `{name}` has {written} bytes, {announced} were announced");
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            self.pad(&mut out)?;
        }
        out.flush()
    }

    /// The offset of each tensor from the beginning of the tensors' bytes.
    pub(super) fn offsets(&self) -> impl Iterator<Item = u64> + '_ {
        self.tensors.iter().scan(0, |end, tensor| {
            let offset = u64::next_multiple_of(*end, self.alignment);
            *end = offset + tensor.len;
            Some(offset)
        })
    }

    /// Metadata and tensor table, without the padding that follows.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, value) in &self.metadata {
            string(&mut out, key.as_bytes());
            write_value(&mut out, value);
        }
        for (tensor, offset) in self.tensors.iter().zip(self.offsets()) {
            string(&mut out, tensor.name.as_bytes());
            out.extend((tensor.ne.len() as u32).to_le_bytes());
            tensor.ne.iter().for_each(|n| out.extend(n.to_le_bytes()));
            out.extend(tensor.type_id.to_le_bytes());
            out.extend(offset.to_le_bytes());
        }
        out
    }

    fn pad<W: Write>(&self, out: &mut Counted<W>) -> io::Result<()> {
        let padding = out.written.next_multiple_of(self.alignment) - out.written;
        out.write_all(&vec![0; padding as usize])
    }
}

/// A writer that counts the bytes that went through it.
#[derive(Debug)]
pub struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u64).to_le_bytes());
    out.extend(bytes);
}

/// A value's type and the value.
fn write_value(out: &mut Vec<u8>, value: &Value) {
    let mut scalar = |kind: u32, bytes: &[u8]| {
        out.extend(kind.to_le_bytes());
        out.extend(bytes);
    };
    match value {
        Value::U8(v) => scalar(value::U8, &v.to_le_bytes()),
        Value::I8(v) => scalar(value::I8, &v.to_le_bytes()),
        Value::U16(v) => scalar(value::U16, &v.to_le_bytes()),
        Value::I16(v) => scalar(value::I16, &v.to_le_bytes()),
        Value::U32(v) => scalar(value::U32, &v.to_le_bytes()),
        Value::I32(v) => scalar(value::I32, &v.to_le_bytes()),
        Value::F32(v) => scalar(value::F32, &v.to_le_bytes()),
        Value::Bool(v) => scalar(value::BOOL, &[u8::from(*v)]),
        Value::U64(v) => scalar(value::U64, &v.to_le_bytes()),
        Value::I64(v) => scalar(value::I64, &v.to_le_bytes()),
        Value::F64(v) => scalar(value::F64, &v.to_le_bytes()),
        Value::String(bytes) => {
            scalar(value::STRING, &[]);
            string(out, bytes);
        }
        Value::Strings(strings) => {
            scalar(value::ARRAY, &value::STRING.to_le_bytes());
            out.extend((strings.len() as u64).to_le_bytes());
            strings.iter().for_each(|text| string(out, text));
        }
        Value::Numbers(numbers) => {
            scalar(value::ARRAY, &numbers.kind.to_le_bytes());
            out.extend((numbers.len() as u64).to_le_bytes());
            out.extend(&numbers.bytes);
        }
    }
}
