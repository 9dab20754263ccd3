//! The record of a stored file: which of its bytes are here, and of which version they are.
//!
//! What is read back from a browser's storage may be of an older release, or damaged, or somebody
//! else's: [`Manifest::read`] takes nothing on trust.

use std::collections::HashSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Version;

/// The layout of the records below. A new one needs a new variant of [`Record`].
const SCHEMA: u32 = 2;

/// The most bytes in a chunk.
pub const MAX_CHUNK: u64 = 16 << 20;

/// Beyond this, no number that a server or a storage gives is taken for a file's length: the list
/// of its parts alone would fill the memory.
pub const MAX_TOTAL: u64 = 1 << 40;

/// The most bytes that are fetched as one: a few of them are in memory at a time, some in several
/// processes, and a load that is broken off loses them. Fewer make storing slower.
const LARGEST_PART: u64 = 3 << 20;
/// The fewest, but for what is left over; also what the first request asks for.
const SMALLEST_PART: u64 = 1 << 20;

/// A file that is stored, whole or in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    schema: u32,
    /// Its name in the storage.
    pub id: String,
    /// Where it was asked for.
    pub url: String,
    /// Where it came from, after redirects.
    #[serde(default)]
    pub final_url: Option<String>,
    /// Bytes in the whole file, if the server said.
    #[serde(default)]
    pub total: Option<u64>,
    /// Which version of the file this is.
    pub version: Version,
    /// SHA-256 of the whole, in base64, if it was ever computed.
    #[serde(default)]
    pub sha256: Option<String>,
    /// What is here, in the file's order, without overlaps.
    pub chunks: Vec<Chunk>,
    /// Whether all of it is here.
    pub complete: bool,
    /// Nothing is here because this many bytes were needed: they did not fit.
    #[serde(default)]
    pub did_not_fit: Option<u64>,
    /// When it was stored and when it was last loaded, milliseconds since 1970.
    pub added: f64,
    /// See `added`.
    pub used: f64,
}

/// Bytes that are stored together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Their name among the file's chunks.
    pub key: u32,
    /// Where they begin in the file.
    pub start: u64,
    /// How many.
    pub length: u64,
    /// SHA-256 in base64; absent in what the first release stored.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// A record as it was written by this release or an earlier one.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Record {
    /// Of this release.
    Current(Manifest),
    /// Of the first one, whose chunks were 16 MiB each, named by their number.
    First(First),
}

/// See [`Record::First`].
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct First {
    id: String,
    url: String,
    complete: bool,
    bytes: u64,
    chunks: u32,
    #[serde(default)]
    etag: Option<String>,
    #[serde(default)]
    last_modified: Option<String>,
    added: f64,
    used: f64,
}

/// A piece of a file, as it is read or fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// It is here.
    Stored(Chunk),
    /// It is not.
    Missing(Range<u64>),
}

impl Manifest {
    /// Nothing yet of the file at `url`.
    pub fn new(id: String, url: &str, now: f64) -> Self {
        Self {
            schema: SCHEMA,
            id,
            url: url.into(),
            final_url: None,
            total: None,
            version: Version::default(),
            sha256: None,
            chunks: Vec::new(),
            complete: false,
            did_not_fit: None,
            added: now,
            used: now,
        }
    }

    /// What a record says, if it can be so; else why not.
    pub fn read(record: Record) -> Result<Self, String> {
        let manifest = match record {
            Record::Current(manifest) => manifest,
            Record::First(first) => first.migrate()?,
        };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema {}, this release knows {SCHEMA}", self.schema));
        }
        if self.id.is_empty() || self.url.is_empty() {
            return Err("no name".into());
        }
        let (mut end, mut keys) = (0, HashSet::new());
        for chunk in &self.chunks {
            let fits = (1..=MAX_CHUNK).contains(&chunk.length) && chunk.start >= end;
            if !fits || chunk.start >= MAX_TOTAL || !keys.insert(chunk.key) {
                return Err(format!("a chunk of {} bytes at {}", chunk.length, chunk.start));
            }
            end = chunk.end();
        }
        match self.total {
            Some(total) if end > total || total > MAX_TOTAL => {
                Err(format!("{end} bytes of {total}"))
            }
            None | Some(0) if self.complete => Err("complete, but of nothing".into()),
            Some(total) if self.complete && self.bytes() != total => {
                Err(format!("complete with {} bytes of {total}", self.bytes()))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that are here.
    pub fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.length).sum()
    }

    /// A name for the next chunk.
    pub fn next_key(&self) -> u32 {
        self.chunks.iter().map(|chunk| chunk.key).max().map_or(0, |key| key.saturating_add(1))
    }

    /// Adds a chunk; `false` if its bytes, or some of them, are here already.
    pub fn insert(&mut self, chunk: Chunk) -> bool {
        let index = self.chunks.partition_point(|other| other.start < chunk.start);
        let before = index.checked_sub(1).and_then(|index| self.chunks.get(index));
        let overlaps = before.is_some_and(|before| before.end() > chunk.start)
            || self.chunks.get(index).is_some_and(|after| after.start < chunk.end());
        if !overlaps {
            self.chunks.insert(index, chunk);
        }
        !overlaps
    }

    /// Forgets the chunk that begins at `start`: the file is whole no longer.
    pub fn remove(&mut self, start: u64) -> Option<Chunk> {
        let index = self.chunks.iter().position(|chunk| chunk.start == start)?;
        self.complete = false;
        Some(self.chunks.remove(index))
    }

    /// The whole file of `total` bytes in order: what is here, and what is to be fetched.
    pub fn parts(&self, total: u64) -> Vec<Part> {
        let size = part_size(total);
        let mut parts = Vec::new();
        let mut at = 0;
        let missing = |mut from: u64, to: u64, parts: &mut Vec<Part>| {
            if from == 0 && to > SMALLEST_PART {
                // What the first request has brought.
                parts.push(Part::Missing(0..SMALLEST_PART));
                from = SMALLEST_PART;
            }
            let cut = |start| Part::Missing(start..to.min(start + size));
            parts.extend((from..to).step_by(size as usize).map(cut));
        };
        for chunk in &self.chunks {
            missing(at, chunk.start, &mut parts);
            at = chunk.end();
            parts.push(Part::Stored(chunk.clone()));
        }
        missing(at, total, &mut parts);
        parts
    }

    /// The first bytes to ask for, before anything else is known.
    pub fn first_missing(&self) -> Range<u64> {
        let total = self.total.unwrap_or(SMALLEST_PART);
        let found = self.parts(total).into_iter().find_map(|part| match part {
            Part::Missing(range) => Some(range),
            Part::Stored(_) => None,
        });
        found.unwrap_or(0..SMALLEST_PART)
    }
}

/// Small files come in many parts as well: they are fetched in parallel, and resumed, like others.
fn part_size(total: u64) -> u64 {
    (total / 16).clamp(SMALLEST_PART, LARGEST_PART).next_multiple_of(SMALLEST_PART)
}

impl Chunk {
    /// One past its last byte in the file.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

impl Part {
    /// Its bytes in the file.
    pub fn range(&self) -> Range<u64> {
        match self {
            Self::Stored(chunk) => chunk.start..chunk.end(),
            Self::Missing(range) => range.clone(),
        }
    }
}

impl First {
    /// The same file in this release's terms; the chunks stay where they are. Half a file is none:
    /// its record does not say of which whole.
    fn migrate(self) -> Result<Manifest, String> {
        let chunks = self.bytes.div_ceil(MAX_CHUNK);
        if !self.complete || self.bytes > MAX_TOTAL || u64::from(self.chunks) != chunks {
            return Err("a part of an earlier release's file".into());
        }
        let chunk = |key: u32| {
            let start = u64::from(key) * MAX_CHUNK;
            Chunk { key, start, length: MAX_CHUNK.min(self.bytes - start), sha256: None }
        };
        Ok(Manifest {
            total: Some(self.bytes),
            version: Version { etag: self.etag, last_modified: self.last_modified },
            chunks: (0..self.chunks).map(chunk).collect(),
            complete: true,
            used: self.used,
            ..Manifest::new(self.id, &self.url, self.added)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MIB: u64 = 1 << 20;

    fn chunk(key: u32, start: u64, length: u64) -> Chunk {
        Chunk { key, start, length, sha256: None }
    }

    fn manifest(total: u64, chunks: &[Chunk]) -> Manifest {
        let mut manifest = Manifest::new("id".into(), "http://a/b", 1.0);
        manifest.total = Some(total);
        for chunk in chunks {
            assert!(manifest.insert(chunk.clone()));
        }
        manifest
    }

    fn read(value: serde_json::Value) -> Result<Manifest, String> {
        Manifest::read(serde_json::from_value(value).map_err(|error| error.to_string())?)
    }

    #[test]
    fn parts_are_the_file_in_order() {
        for total in [0, 1, MIB, 10 * MIB + 17, 300 * MIB + 1, 1200 * MIB] {
            for chunks in [&[][..], &[chunk(0, 0, MIB)], &[chunk(3, 5 * MIB + 7, 3)]] {
                if chunks.iter().any(|chunk| chunk.end() > total) {
                    continue;
                }
                let mut at = 0;
                for part in manifest(total, chunks).parts(total) {
                    let range = part.range();
                    assert_eq!(range.start, at);
                    assert!(!range.is_empty() && range.end - range.start <= LARGEST_PART);
                    at = range.end;
                }
                assert_eq!(at, total);
            }
        }
    }

    #[test]
    fn what_is_missing_comes_first() {
        assert_eq!(Manifest::new("id".into(), "u", 0.0).first_missing(), 0..MIB);
        let begun = manifest(10 * MIB, &[chunk(0, 0, MIB), chunk(1, MIB, 2 * MIB)]);
        assert_eq!(begun.first_missing(), 3 * MIB..4 * MIB);
    }

    #[test]
    fn chunks_do_not_overlap() {
        let mut manifest = manifest(100, &[chunk(0, 10, 10), chunk(1, 40, 10)]);
        for (start, length) in [(10, 10), (5, 6), (19, 1), (15, 100), (0, 100), (49, 2)] {
            assert!(!manifest.insert(chunk(9, start, length)), "{length} at {start}");
        }
        assert!(manifest.insert(chunk(manifest.next_key(), 20, 20)));
        let starts: Vec<_> = manifest.chunks.iter().map(|chunk| chunk.start).collect();
        assert_eq!(starts, [10, 20, 40]);
        assert_eq!(manifest.remove(20).map(|chunk| chunk.key), Some(2));
        assert_eq!(manifest.remove(20), None);
    }

    #[test]
    fn records_are_read_back() {
        let mut whole = manifest(30, &[chunk(0, 0, 10), chunk(1, 10, 20)]);
        whole.complete = true;
        whole.version.etag = Some("\"x\"".into());
        let value = serde_json::to_value(&whole).expect("a record");
        assert_eq!(read(value), Ok(whole));
    }

    #[test]
    fn hostile_records_are_refused() {
        let mut whole = manifest(30, &[chunk(0, 0, 10), chunk(1, 10, 20)]);
        whole.complete = true;
        let good = serde_json::to_value(&whole).expect("a record");
        let hostile = [
            ("/schema", json!(1)),
            ("/schema", json!(3)),
            ("/id", json!("")),
            ("/id", json!(null)),
            ("/total", json!(null)),
            ("/total", json!(29)),
            ("/total", json!(31)),
            ("/total", json!(-1)),
            ("/total", json!(1_u64 << 50)),
            ("/chunks", json!(2)),
            ("/chunks", json!([])),
            ("/chunks/0/length", json!(0)),
            ("/chunks/0/length", json!(11)),
            ("/chunks/1/length", json!(1_u64 << 60)),
            ("/chunks/1/start", json!(11)),
            ("/chunks/1/start", json!(u64::MAX)),
            ("/chunks/1/start", json!(-5)),
            ("/chunks/1/key", json!(0)),
        ];
        for (path, value) in hostile {
            let mut record = good.clone();
            *record.pointer_mut(path).expect("a field") = value.clone();
            assert!(read(record).is_err(), "{path} = {value}");
        }
        let mut nothing = manifest(0, &[]);
        nothing.complete = true;
        assert!(read(serde_json::to_value(&nothing).expect("a record")).is_err());
        assert!(read(json!(null)).is_err());
        assert!(read(json!({ "id": "a" })).is_err());
    }

    #[test]
    fn the_first_releases_files_are_taken_over() {
        let record = |bytes: u64, chunks: u32, complete: bool| {
            json!({
                "id": "1-2", "url": "http://a/b", "complete": complete, "bytes": bytes,
                "chunks": chunks, "etag": "\"e\"", "lastModified": null, "added": 5.5, "used": 6
            })
        };
        let whole = read(record(40 * MIB, 3, true)).expect("a whole file");
        assert_eq!(whole.bytes(), 40 * MIB);
        assert_eq!(whole.chunks[2], chunk(2, 32 * MIB, 8 * MIB));
        assert!(whole.complete && whole.used == 6.0 && whole.added == 5.5);
        assert_eq!(whole.version.validator(), Some("\"e\""));
        assert!(read(record(40 * MIB, 2, false)).is_err());
        assert!(read(record(40 * MIB, 2, true)).is_err());
        assert!(read(record(u64::MAX, u32::MAX, true)).is_err());
    }
}
