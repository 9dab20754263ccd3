//! Where a file's bytes come from: memory, a local file, the network, a browser's storage.

use std::ops::Range;

use crate::error::{Error, Result};

/// A file of known length, read front to back.
///
/// Ranges ascend and never overlap, so that a network stream can serve them. Bytes between two
/// ranges, which are padding between tensors, are skipped. Futures are not `Send`: in a browser,
/// wgpu runs on one thread.
#[allow(async_fn_in_trait, reason = "no caller needs `Send`")]
pub trait Source {
    /// Bytes in the whole file.
    fn len(&self) -> u64;

    /// Whether the file is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Exactly the bytes of `range`, which lies within the file.
    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>>;
}

impl Source for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        self.get(range.start as usize..range.end as usize)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| Error::Internal(format!("read of {range:?} outside the file")))
    }
}

/// A [`Source`] whose beginning can be read several times. The header of a GGUF file does not say
/// how long it is, so it is read in growing steps. Bytes that were read beyond it are kept for
/// later reads.
pub struct Reader<S> {
    source: S,
    /// The first bytes of the file, while they may still be needed.
    front: Vec<u8>,
}

impl<S: Source> Reader<S> {
    /// A reader at the beginning of `source`.
    pub fn new(source: S) -> Self {
        Self { source, front: Vec::new() }
    }

    /// Bytes in the whole file.
    #[allow(clippy::len_without_is_empty, reason = "a reader is not a collection")]
    pub fn len(&self) -> u64 {
        self.source.len()
    }

    /// The first `len` bytes, or all if there are fewer.
    pub async fn front(&mut self, len: u64) -> Result<&[u8]> {
        let len = len.min(self.source.len());
        let have = self.front.len() as u64;
        if have < len {
            let mut more = self.source.read(have..len).await?;
            self.front.append(&mut more);
        }
        Ok(&self.front)
    }

    /// Exactly the bytes of `range`. Ranges ascend, as in [`Source`].
    pub async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let have = self.front.len() as u64;
        if range.start >= have {
            self.front = Vec::new();
            return self.source.read(range).await;
        }
        let mut bytes = self.front[range.start as usize..range.end.min(have) as usize].to_vec();
        if range.end > have {
            bytes.append(&mut self.source.read(have..range.end).await?);
        }
        Ok(bytes)
    }

    /// Gives the source back.
    pub fn into_inner(self) -> S {
        self.source
    }
}
