//! Files, blocking calls and formats of answers, for everything that is not a browser.

mod backend;
mod formats;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::gguf::Joined;
use crate::source::Source;
use crate::transfer::VolumeName;

pub use backend::{Choose, Open, Opened};
pub use formats::{Format, Formats, Formatted};
pub use pollster::block_on;

/// A file on disk.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    name: String,
}

impl FileSource {
    /// Opens the file at `path`. It must be a regular file, because its length must be known and
    /// its beginning is read more than once.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let open = || {
            // The check comes before opening, because opening a pipe waits for its writer.
            let metadata = fs::metadata(path)?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if !metadata.is_file() {
                let why = "it is a pipe or a device; a model is read from a regular file only";
                return Err(io::Error::other(why));
            }
            Ok((File::open(path)?, metadata.len()))
        };
        match open() {
            Ok((file, len)) => Ok(Self { file, len, name }),
            Err(error) => Err(unreadable(name, &error)),
        }
    }
}

/// Opens the model at `path`. Of a model in several files, `path` is the first.
///
/// Errors: `io`; `bad-option` (`model`) if the file is one of several but not the first; `bad-gguf`
/// if the files do not belong to one model.
pub fn open(path: impl AsRef<Path>) -> Result<Joined<FileSource>> {
    let path = path.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(name) = VolumeName::parse(name) else {
        return Ok(Joined::single(FileSource::open(path)?));
    };
    let names = name.all().map_err(|why| Error::BadOption { name: "model".into(), why })?;
    let files: Result<Vec<_>> =
        names.iter().map(|name| FileSource::open(path.with_file_name(name))).collect();
    block_on(Joined::open(files?))
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.file
            .seek(SeekFrom::Start(range.start))
            .and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|error| unreadable(self.name.clone(), &error))?;
        Ok(bytes)
    }
}

fn unreadable(what: String, error: &io::Error) -> Error {
    Error::unreadable(what, error)
}
