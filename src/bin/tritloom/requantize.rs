//! Writes a model again with a smaller embedding. All else stays as it is, byte for byte.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use half::{bf16, f16};

use tritloom::blocks::{Fault, block_type};
use tritloom::gguf::{Gguf, Header, Joined, TensorEntry, TensorInfo, TensorType};
use tritloom::native::{FileSource, block_on, open};
use tritloom::source::Reader;
use tritloom::{Error, Result};

use crate::output::print;
use crate::quantized::Quantized;
use crate::written::{Output, Stop};

#[derive(Args)]
pub(crate) struct Requantize {
    /// The type of the embedding, and of the LM head if it is a tensor of its own
    #[arg(long, value_enum)]
    embedding: Quantized,
    /// Overwrite the output if it exists
    #[arg(long)]
    force: bool,
    /// The model
    input: PathBuf,
    /// The file to write
    output: PathBuf,
}

/// The tensors that get another type.
const TENSORS: [&str; 2] = ["token_embd.weight", "output.weight"];

/// Values that are quantised at a time. It is a multiple of every block's elements.
const SLICE: u64 = 1 << 20;

pub(crate) fn requantize(args: &Requantize) -> Result<()> {
    let mut reader = Reader::new(open(&args.input)?);
    let gguf = block_on(Gguf::read(&mut reader))?;
    let embedding = TENSORS[0];
    gguf.tensor(embedding).ok_or_else(|| Error::MissingTensor { name: embedding.into() })?;
    let mut tensors: Vec<&TensorInfo> = gguf.tensors.iter().collect();
    tensors.sort_by_key(|tensor| tensor.offset);
    let entries: Vec<TensorEntry> =
        tensors.iter().map(|tensor| entry(tensor, args.embedding)).collect::<Result<_>>()?;
    if tensors.iter().zip(&entries).all(|(tensor, entry)| !changes(tensor, entry)) {
        let ty = args.embedding.ty();
        let why = format!("the embedding is not larger than {ty} would be: nothing to do");
        return Err(Error::BadOption { name: "embedding".into(), why });
    }
    let header = Header {
        version: gguf.version,
        alignment: gguf.alignment,
        metadata: gguf.metadata.iter().map(|(key, v)| (key.to_owned(), v.clone())).collect(),
        tensors: entries,
    };

    let output = Output::create(&args.output, &args.input, args.force)?;
    let mut told = String::new();
    // The error of reading, if reading failed. Then `write_file` fails too.
    let mut failure = None;
    let out = BufWriter::with_capacity(1 << 20, &output.file);
    let written = header.write_file(out, |index, out| {
        let (tensor, entry) = (tensors[index], &header.tensors[index]);
        let copied = if changes(tensor, entry) {
            let mut change = Change::new(tensor, args.embedding);
            let done = change.write(&mut reader, out);
            told += &format!("{}\n", change.told(entry.len));
            done
        } else {
            copy(&mut reader, tensor, out)
        };
        copied.map_err(|fault| match fault {
            Stop::Write(error) => error,
            Stop::Read(error) => {
                failure = Some(error);
                io::Error::other("the model could not be read")
            }
        })
    });
    written.map_err(|error| {
        failure.unwrap_or_else(|| Error::unwritable(args.output.display().to_string(), error))
    })?;
    output.keep();
    print(&told)
}

fn changes(tensor: &TensorInfo, entry: &TensorEntry) -> bool {
    entry.type_id != tensor.ty.id()
}

/// The tensor of the output: smaller if that is asked for and possible.
fn entry(tensor: &TensorInfo, embedding: Quantized) -> Result<TensorEntry> {
    let mut entry = tensor.entry();
    if tensor.ty == TensorType::Tl1 || tensor.ty == TensorType::Tl2 {
        let why =
            format!("tensor `{}` is {}, which this crate cannot copy", tensor.name, tensor.ty);
        return Err(Error::UnsupportedModel(why));
    }
    if !TENSORS.contains(&tensor.name.as_str()) {
        return Ok(entry);
    }
    if !is_readable(tensor.ty) {
        return Err(Error::TensorShape {
            name: tensor.name.clone(),
            found: tensor.to_string(),
            expected: "F32, F16, BF16 or a type in blocks".into(),
        });
    }
    let row = embedding.row()?;
    let columns = tensor.ne.first().copied().unwrap_or(1);
    if !columns.is_multiple_of(row.elements as u64) {
        return Err(Error::TensorShape {
            name: tensor.name.clone(),
            found: tensor.to_string(),
            expected: format!("for {}, rows of a multiple of {} elements", row.ty, row.elements),
        });
    }
    let len = tensor.elements() / row.elements as u64 * row.bytes as u64;
    if len < tensor.len {
        (entry.type_id, entry.len) = (row.ty.id(), len);
    }
    Ok(entry)
}

fn is_readable(ty: TensorType) -> bool {
    let float = matches!(ty, TensorType::F32 | TensorType::F16 | TensorType::Bf16);
    float || block_type(ty).is_some()
}

fn copy(
    reader: &mut Reader<Joined<FileSource>>,
    tensor: &TensorInfo,
    out: &mut impl Write,
) -> Result<(), Stop> {
    let end = tensor.offset + tensor.len;
    for start in (tensor.offset..end).step_by(SLICE as usize) {
        out.write_all(&block_on(reader.read(start..end.min(start + SLICE)))?)?;
    }
    Ok(())
}

/// A tensor that gets another type, and how far its values have moved.
struct Change<'a> {
    tensor: &'a TensorInfo,
    to: Quantized,
    /// Sums of squares of all values, and of their errors.
    squares: f64,
    errors: f64,
}

impl<'a> Change<'a> {
    fn new(tensor: &'a TensorInfo, to: Quantized) -> Self {
        Self { tensor, to, squares: 0.0, errors: 0.0 }
    }

    fn write(
        &mut self,
        reader: &mut Reader<Joined<FileSource>>,
        out: &mut impl Write,
    ) -> Result<(), Stop> {
        let tensor = self.tensor;
        let row = self.to.row()?;
        let elements = tensor.elements();
        // A slice begins with a block.
        let at = |element: u64| {
            let bytes = u128::from(tensor.len) * u128::from(element) / u128::from(elements);
            tensor.offset + bytes as u64
        };
        for first in (0..elements).step_by(SLICE as usize) {
            let last = elements.min(first + SLICE);
            let bytes = block_on(reader.read(at(first)..at(last)))?;
            let values = values(tensor, &bytes, at(first))?;
            let blocks = self.to.quantize(&values, row.elements).map_err(|index| {
                let index = first + index as u64;
                let why = format!("element {index} of tensor `{}` does not fit", tensor.name);
                Error::BadGguf(format!("{why} into {}", row.ty))
            })?;
            out.write_all(&blocks)?;
            let found = row
                .values(&blocks)
                .map_err(|fault| Error::Internal(format!("{fault:?} in a block of {}", row.ty)))?;
            for (found, value) in found.into_iter().zip(values) {
                self.squares += f64::from(value).powi(2);
                self.errors += (f64::from(found) - f64::from(value)).powi(2);
            }
        }
        Ok(())
    }

    fn told(&self, len: u64) -> String {
        let Self { tensor, to, squares, errors } = self;
        let error = (errors / squares.max(f64::MIN_POSITIVE)).sqrt() * 100.0;
        format!(
            "{}: {} to {}, {} to {len} bytes, error {error:.2} % (rms of the values' own)",
            tensor.name,
            tensor.ty,
            to.ty(),
            tensor.len
        )
    }
}

/// The values of a slice that begins `at` this offset.
fn values(tensor: &TensorInfo, bytes: &[u8], at: u64) -> Result<Vec<f32>> {
    let (pairs, _) = bytes.as_chunks::<2>();
    Ok(match tensor.ty {
        TensorType::F32 => {
            bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        }
        TensorType::F16 => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
        TensorType::Bf16 => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
        ty => {
            let row = block_type(ty).ok_or_else(|| Error::Internal(format!("{ty} read")))?;
            row.values(bytes).map_err(|fault| {
                let what = match fault {
                    Fault::Code(_) => "the unused code 3",
                    Fault::Scale(_) => "a scale that is not a number",
                };
                let offset = at + row.offset_of(fault) as u64;
                let name = &tensor.name;
                Error::BadGguf(format!("tensor `{name}` has {what} (at byte {offset})"))
            })?
        }
    })
}
