//! The file that a command makes of another file. It never replaces its input, and is never left
//! half written.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tritloom::{Error, Result};

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
            // If this fails, only the error that led here is reported.
            let _ = fs::remove_file(path);
        }
    }
}

/// The reason why a tensor was not written.
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
