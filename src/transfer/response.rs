//! Finds out which bytes of a file the body of a response holds.

use std::ops::Range;

use super::headers::{ContentRange, MAX_TOTAL};
use super::restart::{Cause, Fault};
use crate::error::Error;

/// The length of the file, according to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// So many bytes.
    Known(u64),
    /// So many bytes on the wire. If the response was compressed, the file is longer or shorter. A
    /// response from another origin hides whether it was compressed.
    Claimed(u64),
    /// The response does not say it.
    Unknown,
}

/// The bytes of a file that the body of a response holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A part of the file.
    Part(ContentRange),
    /// The whole file.
    Whole(Length),
}

impl Content {
    /// The length of the whole file.
    pub fn length(&self) -> Length {
        match self {
            Self::Part(part) => Length::Known(part.total),
            Self::Whole(length) => *length,
        }
    }

    /// Bytes in the whole file, if the response says so.
    pub fn total(&self) -> Option<u64> {
        match self.length() {
            Length::Known(total) | Length::Claimed(total) => Some(total),
            Length::Unknown => None,
        }
    }
}

/// The facts about a response that decide which bytes it holds.
#[derive(Clone, Debug, Default)]
pub struct ResponseFacts {
    /// The status code.
    pub status: u16,
    /// `Content-Range`; another origin may hide it.
    pub content_range: Option<String>,
    /// `Content-Length`.
    pub content_length: Option<String>,
    /// `Content-Encoding`; another origin may hide it.
    pub content_encoding: Option<String>,
    /// Milliseconds that the server asks to wait (`Retry-After`).
    pub retry_after: Option<f64>,
    /// Whether the response is from another origin.
    pub is_cors: bool,
}

impl ResponseFacts {
    /// The bytes that the body holds, for a request of the bytes `asked` of `url`, or of the whole
    /// file.
    ///
    /// Faults: [`Cause::NoRanges`] for a range that was not asked for; transient for a status that
    /// may pass; permanent `http` for any other, and `network` for a length that no file has.
    pub fn content(&self, asked: Option<&Range<u64>>, url: &str) -> Result<Content, Fault> {
        match (self.status, asked) {
            (206, Some(asked)) => {
                // Without this header it is unknown which bytes these are.
                let part = self.content_range.as_deref().and_then(ContentRange::parse);
                let is_asked = |part: &ContentRange| {
                    part.range.start == asked.start && part.range.end <= asked.end
                };
                part.filter(|part| is_asked(part) && !self.is_compressed())
                    .map(Content::Part)
                    .ok_or(Fault::Restart(Cause::NoRanges))
            }
            (416, Some(_)) => Err(Fault::Restart(Cause::NoRanges)),
            (200, _) => Ok(Content::Whole(self.length(url)?)),
            (status, _) => {
                let error = Error::Http { status, url: url.into() };
                Err(match status {
                    408 | 429 | 500.. => Fault::Transient { error, retry_after: self.retry_after },
                    _ => Fault::Permanent(error),
                })
            }
        }
    }

    fn is_compressed(&self) -> bool {
        self.content_encoding.as_ref().is_some_and(|coding| coding != "identity")
    }

    fn length(&self, url: &str) -> Result<Length, Fault> {
        let length = self.content_length.as_ref().and_then(|text| text.parse().ok());
        match length {
            Some(bytes) if bytes > MAX_TOTAL => {
                // The rest of such a file would never come.
                let why = format!("the server says that it has {bytes} bytes");
                Err(Error::Network { what: url.into(), why }.into())
            }
            // A file of length 0 is read to its end, as one of unknown length is.
            None | Some(0) => Ok(Length::Unknown),
            Some(_) if self.is_compressed() => Ok(Length::Unknown),
            Some(bytes) if self.is_cors => Ok(Length::Claimed(bytes)),
            Some(bytes) => Ok(Length::Known(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(
        status: u16,
        length: &str,
        encoding: &str,
        range: &str,
        is_cors: bool,
    ) -> ResponseFacts {
        let header = |text: &str| (!text.is_empty()).then(|| text.into());
        ResponseFacts {
            status,
            content_range: header(range),
            content_length: header(length),
            content_encoding: header(encoding),
            retry_after: Some(2000.0),
            is_cors,
        }
    }

    #[test]
    fn what_a_whole_file_says_about_its_length() {
        for (length, encoding, is_cors, expected) in [
            ("30", "", false, Length::Known(30)),
            ("30", "identity", false, Length::Known(30)),
            ("30", "", true, Length::Claimed(30)),
            ("30", "gzip", false, Length::Unknown),
            ("30", "gzip", true, Length::Unknown),
            ("0", "", false, Length::Unknown),
            ("", "", false, Length::Unknown),
            ("many", "", false, Length::Unknown),
            ("-1", "", false, Length::Unknown),
        ] {
            let found = facts(200, length, encoding, "", is_cors).content(Some(&(0..10)), "u");
            let found = found.expect("a file");
            assert_eq!(found, Content::Whole(expected), "{length} {encoding} {is_cors}");
        }
        let endless = facts(200, "1125899906842624", "", "", false).content(None, "u");
        let Err(Fault::Permanent(error)) = endless else { panic!("{endless:?}") };
        assert_eq!(error.code(), "network");
        assert!(error.to_string().contains("1125899906842624"), "{error}");
    }

    #[test]
    fn only_the_range_that_was_asked_for_is_accepted() {
        let asked = 5..10;
        let part = |range: &str, encoding: &str| {
            facts(206, "5", encoding, range, false).content(Some(&asked), "u")
        };
        let good = ContentRange { range: 5..10, total: 20 };
        assert_eq!(good.total, part("bytes 5-9/20", "").expect("a part").total().expect("a total"));
        assert!(matches!(part("bytes 5-9/20", ""), Ok(Content::Part(part)) if part == good));
        // A server may send less than it was asked for.
        assert!(
            matches!(part("bytes 5-7/20", ""), Ok(Content::Part(part)) if part.range == (5..8))
        );
        for (range, encoding) in [
            ("", ""),
            ("bytes 4-9/20", ""),
            ("bytes 6-9/20", ""),
            ("bytes 5-10/20", ""),
            ("bytes 5-9/*", ""),
            ("bytes 5-9/20", "gzip"),
        ] {
            let found = part(range, encoding);
            assert!(matches!(found, Err(Fault::Restart(Cause::NoRanges))), "{range} {encoding}");
        }
        let beyond = facts(416, "", "", "", false).content(Some(&asked), "u");
        assert!(matches!(beyond, Err(Fault::Restart(Cause::NoRanges))));
    }

    #[test]
    fn some_statuses_may_pass() {
        for status in [408, 429, 500, 502, 503, 504] {
            let found = facts(status, "", "", "", false).content(None, "u");
            let Err(Fault::Transient { error, retry_after }) = found else { panic!("{status}") };
            assert_eq!((error.code(), retry_after), ("http", Some(2000.0)));
        }
        // 206 and 416 answer a request for a range. Without such a request they are mistakes.
        for status in [204, 206, 304, 400, 401, 403, 404, 410, 416] {
            let found = facts(status, "", "", "", false).content(None, "u");
            let Err(Fault::Permanent(error)) = found else { panic!("{status}") };
            assert_eq!(error.code(), "http");
            assert!(error.to_string().contains(&status.to_string()), "{error}");
        }
    }
}
