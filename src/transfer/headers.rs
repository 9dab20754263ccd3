//! Headers of a response, which say which bytes follow and which version they have.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The longest file. If a server or a storage claims more, that is not believed: the list of the
/// file's parts alone would fill the memory.
pub const MAX_TOTAL: u64 = 1 << 40;

/// `Content-Range` of a response with status 206.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes that follow.
    pub range: Range<u64>,
    /// Bytes in the whole file.
    pub total: u64,
}

impl ContentRange {
    /// Parses `bytes FIRST-LAST/TOTAL`; `None` for anything else, also for a total of `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, total) = rest.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, total) = (number(first)?, number(last)?, number(total)?);
        (unit.eq_ignore_ascii_case("bytes") && first <= last && last < total)
            .then_some(Self { range: first..last + 1, total })
    }
}

/// Parses digits only. `str::parse` would accept a sign too.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= MAX_TOTAL)
}

/// The headers that tell one version of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    /// `ETag`.
    #[serde(default)]
    pub etag: Option<String>,
    /// `Last-Modified`.
    #[serde(default)]
    pub last_modified: Option<String>,
}

impl Version {
    /// The value to send as `If-Range`; `None` if nothing guarantees the same bytes. A weak ETag
    /// does not: it means "as good as", not "the same bytes".
    pub fn validator(&self) -> Option<&str> {
        self.strong_etag().or(self.last_modified.as_deref())
    }

    fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.len() > 2 && etag.starts_with('"'))
    }

    /// Whether both are certainly the same bytes.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.strong_etag(), other.strong_etag()) {
            (Some(one), Some(two)) => one == two,
            _ => self.last_modified.is_some() && self.last_modified == other.last_modified,
        }
    }

    /// Whether the headers show that these are two versions. Without headers that could, `false`.
    pub fn differs(&self, other: &Self) -> bool {
        self.validator().is_some() && other.validator().is_some() && !self.is_same(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        let good = ContentRange { range: 5..10, total: 20 };
        assert_eq!(ContentRange::parse("bytes 5-9/20"), Some(good.clone()));
        assert_eq!(ContentRange::parse(" Bytes 5 - 9 / 20 "), Some(good));
        let bad = [
            "",
            "bytes",
            "bytes */20",
            "bytes 5-9/*",
            "bytes 9-5/20",
            "bytes 5-20/20",
            "bytes +5-9/20",
            "bytes -5-9/20",
            "items 5-9/20",
            "bytes 0-18446744073709551615/18446744073709551616",
            "bytes 0-9/9007199254740993",
        ];
        for text in bad {
            assert_eq!(ContentRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn versions() {
        let version = |etag: &str, date: &str| Version {
            etag: (!etag.is_empty()).then(|| etag.into()),
            last_modified: (!date.is_empty()).then(|| date.into()),
        };
        assert_eq!(version("\"a\"", "Mon").validator(), Some("\"a\""));
        assert_eq!(version("W/\"a\"", "Mon").validator(), Some("Mon"));
        assert_eq!(version("W/\"a\"", "").validator(), None);
        assert_eq!(version("\"\"", "").validator(), None);
        assert!(version("\"a\"", "Mon").is_same(&version("\"a\"", "Tue")));
        assert!(!version("\"a\"", "Mon").is_same(&version("\"b\"", "Mon")));
        assert!(version("\"a\"", "Mon").is_same(&version("", "Mon")));
        assert!(!version("\"a\"", "").is_same(&version("", "")));
        assert!(!version("W/\"a\"", "").is_same(&version("W/\"a\"", "")));
        assert!(version("\"a\"", "Mon").differs(&version("\"b\"", "Mon")));
        assert!(!version("\"a\"", "Mon").differs(&version("\"a\"", "Tue")));
        assert!(!version("\"a\"", "Mon").differs(&version("W/\"b\"", "")));
    }
}
