//! Standard output.

use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;

use tritloom::{Error, Result};

/// Writes to standard output at once. The first failure ends it.
#[derive(Default)]
pub(crate) struct Output {
    failure: Option<io::Error>,
}

impl Output {
    /// Writes `text`. Breaks when nothing more can be written.
    pub(crate) fn print(&mut self, text: &str) -> ControlFlow<()> {
        if self.failure.is_none() {
            let mut out = io::stdout().lock();
            self.failure = out.write_all(text.as_bytes()).and_then(|()| out.flush()).err();
        }
        match self.failure {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }

    /// Whether all was written. A reader that has seen enough, as in `tritloom … | head`, is no
    /// error.
    pub(crate) fn finish(self) -> Result<()> {
        match self.failure {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Error::unwritable("standard output", error))
            }
            _ => Ok(()),
        }
    }
}

/// Writes all of `text`.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = Output::default();
    let _ = output.print(text);
    output.finish()
}
