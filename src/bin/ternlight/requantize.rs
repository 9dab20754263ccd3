//! Writes a model again with a smaller embedding. All else stays as it is, byte for byte.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;

use clap::{Args, ValueEnum};
use half::{bf16, f16};

use ternlight::blocks::{BlockType, Fault, block_type, quantize};
use ternlight::gguf::{Gguf, Header, Joined, TensorEntry, TensorInfo, TensorType};
use ternlight::native::{FileSource, block_on, open};
use ternlight::source::Reader;
use ternlight::{Error, Result};

use crate::output::print;

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

/// A type that the embedding can get.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Quantized {
    /// 8.5 bits for each value
    #[value(name = "q8_0")]
    Q8_0,
    /// 6.6 bits for each value
    #[value(name = "q6_k")]
    Q6K,
}

/// The tensors that get another type.
const TENSORS: [&str; 2] = ["token_embd.weight", "output.weight"];

/// Values that are quantised at a time. A multiple of every block's elements.
const SLICE: u64 = 1 << 20;

impl Quantized {
    fn ty(self) -> TensorType {
        match self {
            Self::Q8_0 => TensorType::Q8_0,
            Self::Q6K => TensorType::Q6K,
        }
    }

    pub(crate) fn row(self) -> Result<&'static BlockType> {
        block_type(self.ty()).ok_or_else(|| Error::Internal(format!("no row for {}", self.ty())))
    }

    /// Quantises on all cores. An error is the index of a value that does not fit.
    pub(crate) fn quantize(self, values: &[f32], elements: usize) -> Result<Vec<u8>, usize> {
        let quantize = match self {
            Self::Q8_0 => quantize::q8_0,
            Self::Q6K => quantize::q6_k,
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let each = values.len().div_ceil(cores).next_multiple_of(elements);
        let run = |values: &[f32]| {
            let mut blocks = Vec::new();
            quantize(values, &mut blocks).map(|()| blocks)
        };
        thread::scope(|scope| {
            let tasks: Vec<_> =
                values.chunks(each).map(|values| scope.spawn(move || run(values))).collect();
            let mut all = Vec::new();
            for (index, task) in tasks.into_iter().enumerate() {
                let blocks = task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                all.append(&mut blocks.map_err(|bad| index * each + bad)?);
            }
            Ok(all)
        })
    }
}

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
    // What failed, if it was not the writing.
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

/// Why a tensor was not written.
pub(crate) enum Stop {
    Read(Error),
    Write(io::Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

fn changes(tensor: &TensorInfo, entry: &TensorEntry) -> bool {
    entry.type_id != tensor.ty.id()
}

/// The tensor as it will be written: smaller if that is asked for, and possible.
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

/// The file that is written. It is deleted again unless it is kept.
pub(crate) struct Output {
    pub(crate) file: File,
    /// `None` once it is kept, or if it is not a regular file.
    path: Option<PathBuf>,
}

impl Output {
    /// Refuses to write over the `input`.
    pub(crate) fn refuse(path: &Path, input: &Path) -> Result<()> {
        if let (Ok(one), Ok(other)) = (fs::canonicalize(path), fs::canonicalize(input))
            && one == other
        {
            let why = format!("{} is the model itself", path.display());
            return Err(Error::BadOption { name: "output".into(), why });
        }
        Ok(())
    }

    pub(crate) fn create(path: &Path, input: &Path, force: bool) -> Result<Self> {
        Self::refuse(path, input)?;
        let shown = path.display().to_string();
        let bad = |why: String| Error::BadOption { name: "output".into(), why };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).create_new(!force);
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => bad(format!("{shown} exists; --force overwrites it")),
            _ => Error::unwritable(shown, error),
        })?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Ok(Self { file, path: is_file.then(|| path.to_owned()) })
    }

    pub(crate) fn keep(mut self) {
        self.path = None;
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The failure that led here is the one to tell.
            let _ = fs::remove_file(path);
        }
    }
}
