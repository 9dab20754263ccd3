//! Reads little-endian values from a file of which only the beginning has been read.

use crate::error::{Error, Result};

/// Why parsing stopped.
pub(super) enum Stop {
    /// This many bytes from the beginning of the file are needed.
    More(u64),
    /// The file is damaged.
    Bad(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Bad(error)
    }
}

/// A position in the header of a file.
///
/// A value that ends behind the end of the file is an error at once, so a length of 2⁶⁰ is neither
/// allocated nor waited for. A value that ends behind the bytes read so far is [`Stop::More`].
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    file_len: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], file_len: u64) -> Self {
        Self { bytes, at: 0, file_len }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at as u64
    }

    /// Bytes from here to the end of the file.
    pub(super) fn left(&self) -> u64 {
        self.file_len - self.at()
    }

    /// An error that names the current offset.
    pub(super) fn bad<T>(&self, why: impl std::fmt::Display) -> Result<T, Stop> {
        Err(Stop::Bad(Error::BadGguf(format!("{why} (at byte {})", self.at))))
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8], Stop> {
        if len > self.left() {
            return self.bad(format_args!(
                "{what} takes {len} bytes, but the file ends at {}",
                self.file_len
            ));
        }
        let end = self.at() + len;
        if end > self.bytes.len() as u64 {
            return Err(Stop::More(end));
        }
        let taken = &self.bytes[self.at..end as usize];
        self.at = end as usize;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Stop> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8, Stop> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16, Stop> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// A count of records of at least `smallest` bytes each. It is an error if the rest of the file
    /// could not hold them.
    pub(super) fn count(&mut self, smallest: u64, what: &str) -> Result<u64, Stop> {
        let count = self.u64(what)?;
        if count > self.left() / smallest {
            return self.bad(format_args!(
                "{what} is {count}, more than the file's {} bytes can hold",
                self.file_len
            ));
        }
        Ok(count)
    }

    /// A length, and that many bytes.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8], Stop> {
        let len = self.u64(what)?;
        self.take(len, what)
    }

    /// A string that is a name: UTF-8, not empty, at most `longest` bytes.
    pub(super) fn name(&mut self, longest: usize, what: &str) -> Result<String, Stop> {
        let bytes = self.string(what)?;
        if bytes.is_empty() || bytes.len() > longest {
            let len = bytes.len();
            return self.bad(format_args!("{what} of {len} bytes, expected 1 to {longest}"));
        }
        match std::str::from_utf8(bytes) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => self.bad(format_args!("{what} is not UTF-8")),
        }
    }
}
