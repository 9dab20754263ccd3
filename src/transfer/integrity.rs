//! Checks that a file is the one that was asked for, by SHA-256 as in subresource integrity.

use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::source::Source;

/// Bytes hashed at a time by [`Integrity::check`].
const STEP: u64 = 4 << 20;

/// The SHA-256 of bytes that arrive bit by bit.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes to the hash.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash of all bytes, in base64.
    pub fn finish(self) -> String {
        BASE64_STANDARD.encode(self.0.finalize())
    }
}

/// The hash that a file must have, in base64. Parsed from `sha256-` and the base64 of 32 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integrity(String);

impl FromStr for Integrity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        text.strip_prefix("sha256-")
            .and_then(|base64| BASE64_STANDARD.decode(base64).ok())
            .filter(|hash| hash.len() == 32)
            // Encoded again, because several base64 texts can mean the same hash.
            .map(|hash| Self(BASE64_STANDARD.encode(hash)))
            .ok_or_else(|| Error::BadOption {
                name: "integrity".into(),
                why: "must be `sha256-` and the base64 of the file's 32-byte hash".into(),
            })
    }
}

impl Integrity {
    /// Reads all of `source`, hashes it and compares. For sources that can be read again.
    ///
    /// Errors: `integrity`, and those of reading.
    pub async fn check<S: Source>(&self, source: &mut S) -> Result<()> {
        let mut hasher = Hasher::default();
        let mut start = 0;
        while start < source.len() {
            let end = (start + STEP).min(source.len());
            hasher.update(&source.read(start..end).await?);
            start = end;
        }
        self.compare(&hasher.finish())
    }

    /// Compares with a hash in base64.
    ///
    /// Errors: `integrity`.
    pub fn compare(&self, found: &str) -> Result<()> {
        if self.0 == found {
            return Ok(());
        }
        let text = |hash| format!("sha256-{hash}");
        Err(Error::Integrity { expected: text(self.0.as_str()), found: text(found) })
    }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::*;

    /// `printf abc | openssl dgst -sha256 -binary | base64`
    const ABC: &str = "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";

    #[test]
    fn only_a_sha256_of_32_bytes_is_accepted() {
        assert!(ABC.parse::<Integrity>().is_ok());
        let bad = [
            "",
            "sha256-",
            "sha256-AAAA",
            "sha256-!",
            "sha512-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
            "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
            " sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
            "sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0= sha256-AAAA",
        ];
        for text in bad {
            let error = text.parse::<Integrity>().expect_err(text);
            assert_eq!(error.code(), "bad-option");
            assert!(error.to_string().contains("integrity"), "{error}");
        }
    }

    #[test]
    fn a_file_is_compared_as_a_whole() {
        let wanted: Integrity = ABC.parse().expect("a hash");
        assert!(block_on(wanted.check(&mut b"abc".as_slice())).is_ok());
        for bytes in [b"".as_slice(), b"ab", b"abd", b"abcd"] {
            let error = block_on(wanted.check(&mut { bytes })).expect_err("another file");
            assert_eq!(error.code(), "integrity");
            assert!(error.to_string().contains(ABC), "{error}");
        }
        // The bytes are read in more than two steps, and the last step is not whole.
        let long = vec![7_u8; STEP as usize * 2 + 5];
        let mut hasher = Hasher::default();
        hasher.update(&long);
        let wanted: Integrity = format!("sha256-{}", hasher.finish()).parse().expect("a hash");
        assert!(block_on(wanted.check(&mut long.as_slice())).is_ok());
        assert!(block_on(wanted.check(&mut &long[1..])).is_err());
    }
}
