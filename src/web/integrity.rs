//! Subresource-integrity strings: `sha256-` and the base64 of the file's hash.

use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::digest::Hasher;
use super::error::bad_option;
use crate::error::{Error, Result};
use crate::source::Source;

/// Bytes hashed at a time: enough to be quick, little enough to hold.
const PIECE: u64 = 4 << 20;

/// What a file's bytes must hash to, in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Integrity(String);

impl FromStr for Integrity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.strip_prefix("sha256-")
            .and_then(|base64| BASE64_STANDARD.decode(base64).ok())
            .filter(|hash| hash.len() == 32)
            // Encoded again: the same hash in the same letters.
            .map(|hash| Self(BASE64_STANDARD.encode(hash)))
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
        self.compare(&hasher.finish())
    }

    /// Compares with a hash in base64.
    pub(super) fn compare(&self, found: &str) -> Result<()> {
        if self.0 == found {
            return Ok(());
        }
        let text = |hash| format!("sha256-{hash}");
        Err(Error::Integrity { expected: text(self.0.as_str()), found: text(found) })
    }
}
