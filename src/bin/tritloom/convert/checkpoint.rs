//! The tensors of a folder: one safetensors file, or several and an index.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use tritloom::{Error, Result};

use super::safetensors::{self, Dtype, Tensor, short};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The longest JSON file of a model that is read. The largest, of vocabularies, have some 30 MB.
const MAX_JSON: u64 = 512 << 20;

/// All tensors of a model, by name.
pub(super) struct Checkpoint {
    shards: Vec<Shard>,
    tensors: BTreeMap<String, (usize, Tensor)>,
}

/// One of the safetensors files.
struct Shard {
    path: PathBuf,
    file: File,
}

impl Checkpoint {
    /// Opens the files of `folder`, and checks their headers.
    ///
    /// Errors: `io`, which names the file that is missing or damaged.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let (names, indexed) = files(folder)?;
        let mut all = Self { shards: Vec::new(), tensors: BTreeMap::new() };
        for name in names {
            let path = folder.join(&name);
            let (shard, tensors) = Shard::open(path)?;
            for tensor in tensors {
                let name = tensor.name.clone();
                let index = all.shards.len();
                if let Some((other, _)) = all.tensors.insert(name.clone(), (index, tensor)) {
                    let other = all.shards[other].path.display();
                    let why = format!("tensor `{}` is also in {other}", short(&name));
                    return Err(unreadable(&shard.path, why));
                }
            }
            all.shards.push(shard);
        }
        for (tensor, file) in indexed {
            let found = all.tensors.get(&tensor).map(|(index, _)| &all.shards[*index].path);
            let path = folder.join(file);
            if found != Some(&path) {
                let why =
                    format!("it has no tensor `{}`, which {INDEX} expects there", short(&tensor));
                return Err(unreadable(&path, why));
            }
        }
        Ok(all)
    }

    /// The paths of the files.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.shards.iter().map(|shard| &*shard.path)
    }

    /// All tensors, in the order of their names.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.tensors.values().map(|(_, tensor)| tensor)
    }

    /// The elements of a tensor of bytes.
    pub(super) fn bytes(&self, tensor: &Tensor, elements: Range<u64>) -> Result<Vec<u8>> {
        let size = tensor.dtype.size();
        let start = tensor.range.start + elements.start * size;
        let mut bytes = vec![0; ((elements.end - elements.start) * size) as usize];
        let Some((index, _)) = self.tensors.get(&tensor.name) else {
            return Err(Error::Internal(format!("no tensor `{}`", tensor.name)));
        };
        let Shard { path, file } = &self.shards[*index];
        let mut file = file;
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|error| unreadable(path, error))?;
        Ok(bytes)
    }

    /// The elements of a tensor of floats.
    ///
    /// Errors: `unsupported-model` if the tensor has another type, or a value that is not finite.
    pub(super) fn floats(&self, tensor: &Tensor, elements: Range<u64>) -> Result<Vec<f32>> {
        let first = elements.start;
        let bytes = self.bytes(tensor, elements)?;
        let (pairs, _) = bytes.as_chunks::<2>();
        let floats: Vec<f32> = match tensor.dtype {
            Dtype::F32 => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::F16 => pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect(),
            Dtype::Bf16 => pairs.iter().map(|b| bf16::from_le_bytes(*b).to_f32()).collect(),
            Dtype::U8 | Dtype::Other(_) => {
                return unsupported(format!("tensor `{}` is {tensor}, not floats", tensor.name));
            }
        };
        match floats.iter().position(|float| !float.is_finite()) {
            None => Ok(floats),
            Some(index) => {
                let (name, index) = (&tensor.name, first + index as u64);
                unsupported(format!("element {index} of tensor `{name}` is not finite"))
            }
        }
    }

    /// The value of a tensor of one element.
    pub(super) fn scalar(&self, tensor: &Tensor) -> Result<f32> {
        if tensor.shape.iter().any(|&n| n != 1) {
            return Err(Error::TensorShape {
                name: tensor.name.clone(),
                found: tensor.to_string(),
                expected: "one float".into(),
            });
        }
        Ok(self.floats(tensor, 0..1)?[0])
    }
}

impl Shard {
    fn open(path: PathBuf) -> Result<(Self, Vec<Tensor>)> {
        let read = || -> io::Result<(File, Vec<Tensor>)> {
            let mut file = open_file(&path)?;
            let len = file.metadata()?.len();
            let mut prefix = [0; safetensors::PREFIX as usize];
            file.read_exact(&mut prefix)?;
            let mut json =
                vec![0; safetensors::json_len(prefix, len).map_err(io::Error::other)? as usize];
            file.read_exact(&mut json)?;
            let tensors = safetensors::parse(&json, len).map_err(io::Error::other)?;
            Ok((file, tensors))
        };
        match read() {
            Ok((file, tensors)) => Ok((Self { path, file }, tensors)),
            Err(error) => Err(unreadable(&path, error)),
        }
    }
}

/// The names of the files, and for each tensor of the index the file that has it.
fn files(folder: &Path) -> Result<(Vec<String>, HashMap<String, String>)> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: HashMap<String, String>,
    }
    if folder.join(SINGLE).exists() {
        return Ok((vec![SINGLE.into()], HashMap::new()));
    }
    if let Some(Index { weight_map }) = json_if_there(folder, INDEX)? {
        let names: BTreeSet<&String> = weight_map.values().collect();
        // An index comes from strangers. It must not make this program read a file elsewhere.
        let is_plain = |name: &str| Path::new(name).file_name().is_some_and(|plain| plain == name);
        if let Some(bad) = names.iter().find(|name| !is_plain(name)) {
            let why = format!("it names the file {:?}, which is not in the folder", short(bad));
            return Err(unreadable(&folder.join(INDEX), why));
        }
        return Ok((names.into_iter().cloned().collect(), weight_map));
    }
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let is_safetensors = |name: &String| name.ends_with(".safetensors");
    let found = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let found: Vec<String> = found.filter(is_safetensors).collect();
    match found.len() {
        1 => Ok((found, HashMap::new())),
        0 => Err(unreadable(folder, format!("it has no {SINGLE} and no {INDEX}"))),
        n => Err(unreadable(folder, format!("it has {n} safetensors files, but no {INDEX}"))),
    }
}

/// A JSON file.
pub(super) fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    json_if_there(folder, name)?
        .ok_or_else(|| unreadable(&folder.join(name), "there is no such file"))
}

/// A JSON file; `None` if there is no such file.
pub(super) fn json_if_there<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    let Some(text) = text_if_there(folder, name)? else { return Ok(None) };
    let bad = |error: serde_json::Error| unreadable(&folder.join(name), short(&error.to_string()));
    serde_json::from_str(&text).map(Some).map_err(bad)
}

/// A text file; `None` if there is no such file.
pub(super) fn text_if_there(folder: &Path, name: &str) -> Result<Option<String>> {
    let path = folder.join(name);
    let read = || -> io::Result<String> {
        let file = open_file(&path)?;
        let len = file.metadata()?.len();
        if len > MAX_JSON {
            return Err(io::Error::other(format!("it has {len} bytes, more than any such file")));
        }
        let mut text = String::new();
        file.take(MAX_JSON).read_to_string(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&path, error)),
    }
}

/// Opens a regular file. Opening a pipe would wait for its writer.
fn open_file(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::unreadable(path.display().to_string(), why)
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
