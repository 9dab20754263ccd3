//! Files and blocking, for everything that is not a browser.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::error::{Error, Result};
use crate::source::Source;

pub use pollster::block_on;

/// A file on a disk.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    name: String,
}

impl FileSource {
    /// Opens the file at `path`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let name = path.as_ref().display().to_string();
        let open = || {
            let file = File::open(path.as_ref())?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(std::io::ErrorKind::IsADirectory.into());
            }
            Ok((file, metadata.len()))
        };
        match open() {
            Ok((file, len)) => Ok(Self { file, len, name }),
            Err(error) => Err(unreadable(name, &error)),
        }
    }
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

fn unreadable(what: String, error: &std::io::Error) -> Error {
    Error::unreadable(what, error)
}
