//! Subresource-integrity strings: `sha256-` and the base64 of the file's hash.

use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use super::error::bad_option;
use crate::error::{Error, Result};
use crate::source::Source;

/// Bytes hashed at a time: enough to be quick, little enough to hold.
const PIECE: u64 = 4 << 20;

/// What a file's bytes must hash to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Integrity([u8; 32]);

impl FromStr for Integrity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.strip_prefix("sha256-")
            .and_then(|base64| BASE64_STANDARD.decode(base64).ok())
            .and_then(|hash| hash.try_into().ok())
            .map(Self)
            .ok_or_else(|| {
                bad_option(
                    "integrity",
                    "must be `sha256-` and the base64 of the file's 32-byte hash",
                )
            })
    }
}

impl Integrity {
    /// Hashes all of `source` and compares; for sources that can be read again.
    pub(super) async fn check<S: Source>(&self, source: &mut S) -> Result<()> {
        let mut hasher = Hasher::default();
        let mut start = 0;
        while start < source.len() {
            let end = (start + PIECE).min(source.len());
            hasher.update(&source.read(start..end).await?);
            start = end;
        }
        self.compare(hasher)
    }

    /// Compares with what `hasher` has seen.
    pub(super) fn compare(&self, hasher: Hasher) -> Result<()> {
        let found: [u8; 32] = hasher.0.finalize().into();
        if found == self.0 {
            return Ok(());
        }
        let text = |hash| format!("sha256-{}", BASE64_STANDARD.encode(hash));
        Err(Error::Integrity { expected: text(self.0), found: text(found) })
    }
}

/// A hash of bytes as they pass.
#[derive(Clone, Default)]
pub(super) struct Hasher(Sha256);

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
