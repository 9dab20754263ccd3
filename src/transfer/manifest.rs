//! The record of a stored file: which parts of it are stored, and of which version they are.
//!
//! A browser's storage may give back records that are damaged, or of another release, or written by
//! other code. [`Manifest::checked`] refuses those that cannot be true.

use std::collections::HashSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::headers::{MAX_TOTAL, Version};

/// The layout of the records below. A record of another layout is refused.
const SCHEMA: u32 = 1;

/// The most bytes in a stored part.
pub const MAX_PART: u64 = 16 << 20;

/// The most bytes in a part that is fetched. A few such parts are in memory at a time, some of them
/// in several processes. A load that is broken off loses them. Smaller parts take longer to store.
const MAX_FETCH: u64 = 4 << 20;
/// The fewest bytes in a part that is fetched, unless fewer are left. The first request asks for so
/// many.
const MIN_FETCH: u64 = 1 << 20;

/// A file that is stored, whole or in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    schema: u32,
    /// Its name in the storage.
    pub id: String,
    /// The address that was asked for.
    pub url: String,
    /// The address that it came from, after redirects.
    #[serde(default)]
    pub final_url: Option<String>,
    /// Bytes in the whole file, if the server said so.
    #[serde(default)]
    pub total: Option<u64>,
    /// Which version of the file this is.
    pub version: Version,
    /// SHA-256 of the whole file in base64, if it was ever computed.
    #[serde(default)]
    pub sha256: Option<String>,
    /// The parts that are stored, in the file's order, without overlaps.
    pub stored: Vec<StoredPart>,
    /// Whether all of the file is stored.
    pub complete: bool,
    /// If nothing is stored because the file did not fit: the bytes that did not fit.
    #[serde(default)]
    pub did_not_fit: Option<u64>,
    /// When the file was first stored, in milliseconds since 1970.
    pub added: f64,
    /// When the file was last loaded, in milliseconds since 1970.
    pub used: f64,
}

/// A range of a file that is stored as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredPart {
    /// The part's name within its file.
    pub key: u32,
    /// Offset in the file.
    pub start: u64,
    /// The number of bytes.
    pub length: u64,
    /// The SHA-256 of the bytes, in base64.
    pub sha256: String,
    /// Whether they are in a file of their own, at the same offset, and not in a blob.
    #[serde(default)]
    pub on_disk: bool,
}

/// A range of a file that is read or fetched as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A part that is stored.
    Stored(StoredPart),
    /// A part that has to be fetched.
    Missing(Range<u64>),
}

/// The version of a file from which a model was loaded. After its device was lost, the model is
/// loaded again from this version or not at all.
#[derive(Clone, Debug)]
pub struct LoadedVersion {
    /// The record of the file. One that was not stored has an id too.
    id: String,
    version: Version,
}

impl LoadedVersion {
    /// Whether `file` is a record of this version.
    pub fn is_of(&self, file: &Manifest) -> bool {
        file.id == self.id || file.version.is_same(&self.version)
    }

    /// Whether a server that says that it has `version` has another one.
    pub fn differs(&self, version: &Version) -> bool {
        self.version.differs(version)
    }
}

impl Manifest {
    /// A file at `url` of which nothing is stored yet. `now`: milliseconds since 1970.
    pub fn new(id: String, url: &str, now: f64) -> Self {
        Self {
            schema: SCHEMA,
            id,
            url: url.into(),
            final_url: None,
            total: None,
            version: Version::default(),
            sha256: None,
            stored: Vec::new(),
            complete: false,
            did_not_fit: None,
            added: now,
            used: now,
        }
    }

    /// The version of the file, for a model that is loaded from it.
    pub fn loaded_version(&self) -> LoadedVersion {
        LoadedVersion { id: self.id.clone(), version: self.version.clone() }
    }

    /// The record, if it can be true. The error says why it cannot.
    pub fn checked(self) -> Result<Self, String> {
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema {}, this release knows {SCHEMA}", self.schema));
        }
        if self.id.is_empty() || self.url.is_empty() {
            return Err("no name".into());
        }
        let (mut end, mut keys) = (0, HashSet::new());
        for part in &self.stored {
            let fits = (1..=MAX_PART).contains(&part.length) && part.start >= end;
            if !fits || part.start >= MAX_TOTAL || !keys.insert(part.key) {
                return Err(format!("a part of {} bytes at {}", part.length, part.start));
            }
            end = part.end();
        }
        match self.total {
            Some(total) if end > total || total > MAX_TOTAL => {
                Err(format!("{end} bytes of {total}"))
            }
            None | Some(0) if self.complete => Err("complete, but without a length".into()),
            Some(total) if self.complete && self.bytes() != total => {
                Err(format!("complete with {} bytes of {total}", self.bytes()))
            }
            _ => Ok(()),
        }
    }

    /// Bytes that are stored.
    pub fn bytes(&self) -> u64 {
        self.stored.iter().map(|part| part.length).sum()
    }

    /// A load takes the record of an address with the highest rank: the complete one, else that
    /// with the most bytes.
    pub fn rank(&self) -> (bool, u64) {
        (self.complete, self.bytes())
    }

    /// Whether a later load can fetch only the missing bytes. It must be able to tell whether the
    /// server still has the same file.
    pub fn is_resumable(&self) -> bool {
        self.total.is_some() && self.version.validator().is_some()
    }

    /// A name for the next part.
    pub fn next_key(&self) -> u32 {
        self.stored.iter().map(|part| part.key).max().map_or(0, |key| key.saturating_add(1))
    }

    /// Adds a part; `false` if some of its bytes are stored already.
    pub fn insert(&mut self, part: StoredPart) -> bool {
        let index = self.stored.partition_point(|other| other.start < part.start);
        let before = index.checked_sub(1).and_then(|index| self.stored.get(index));
        let overlaps = before.is_some_and(|before| before.end() > part.start)
            || self.stored.get(index).is_some_and(|after| after.start < part.end());
        if !overlaps {
            self.stored.insert(index, part);
        }
        !overlaps
    }

    /// Removes the part that begins at `start`. The file is no longer complete then.
    pub fn remove(&mut self, start: u64) -> Option<StoredPart> {
        let index = self.stored.iter().position(|part| part.start == start)?;
        self.complete = false;
        Some(self.stored.remove(index))
    }

    /// The whole file of `total` bytes in order, as stored parts and missing ones.
    pub fn parts(&self, total: u64) -> Vec<Part> {
        let size = fetch_size(total);
        let mut parts = Vec::new();
        let mut at = 0;
        let missing = |mut from: u64, to: u64, parts: &mut Vec<Part>| {
            if from == 0 && to > MIN_FETCH {
                // The first request brings these bytes.
                parts.push(Part::Missing(0..MIN_FETCH));
                from = MIN_FETCH;
            }
            let cut = |start| Part::Missing(start..to.min(start + size));
            parts.extend((from..to).step_by(size as usize).map(cut));
        };
        for part in &self.stored {
            missing(at, part.start, &mut parts);
            at = part.end();
            parts.push(Part::Stored(part.clone()));
        }
        missing(at, total, &mut parts);
        parts
    }

    /// The bytes that the first request asks for, before anything else is known.
    pub fn first_missing(&self) -> Range<u64> {
        let total = self.total.unwrap_or(MIN_FETCH);
        let found = self.parts(total).into_iter().find_map(|part| match part {
            Part::Missing(range) => Some(range),
            Part::Stored(_) => None,
        });
        found.unwrap_or(0..MIN_FETCH)
    }
}

/// Bytes of each part that is fetched. Small files are fetched in several parts too, so that they
/// come in parallel and can be resumed.
fn fetch_size(total: u64) -> u64 {
    (total / 16).clamp(MIN_FETCH, MAX_FETCH).next_multiple_of(MIN_FETCH)
}

impl StoredPart {
    /// The offset after its last byte.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

impl Part {
    /// The range of its bytes in the file.
    pub fn range(&self) -> Range<u64> {
        match self {
            Self::Stored(part) => part.start..part.end(),
            Self::Missing(range) => range.clone(),
        }
    }

    /// The number of its bytes.
    pub fn length(&self) -> u64 {
        let range = self.range();
        range.end - range.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MIB: u64 = 1 << 20;

    fn part(key: u32, start: u64, length: u64) -> StoredPart {
        StoredPart { key, start, length, sha256: "aa".into(), on_disk: false }
    }

    fn manifest(total: u64, stored: &[StoredPart]) -> Manifest {
        let mut manifest = Manifest::new("id".into(), "http://a/b", 1.0);
        manifest.total = Some(total);
        for part in stored {
            assert!(manifest.insert(part.clone()));
        }
        manifest
    }

    fn read(value: serde_json::Value) -> Result<Manifest, String> {
        let record: Manifest = serde_json::from_value(value).map_err(|error| error.to_string())?;
        record.checked()
    }

    #[test]
    fn parts_cover_the_file_in_order() {
        for total in [0, 1, MIB, 10 * MIB + 17, 300 * MIB + 1, 1200 * MIB] {
            for stored in [&[][..], &[part(0, 0, MIB)], &[part(3, 5 * MIB + 7, 3)]] {
                if stored.iter().any(|part| part.end() > total) {
                    continue;
                }
                let parts = manifest(total, stored).parts(total);
                let ranges = || parts.iter().map(Part::range);
                let starts = [0].into_iter().chain(ranges().map(|range| range.end));
                assert!(starts.eq(ranges().map(|range| range.start).chain([total])));
                let longest = ranges().map(|range| range.end - range.start).max().unwrap_or(0);
                assert!(longest <= MAX_FETCH && !ranges().any(|range| range.is_empty()));
                assert_eq!(longest == MAX_FETCH, total >= 300 * MIB);
            }
        }
    }

    #[test]
    fn the_first_request_asks_for_what_is_missing() {
        assert_eq!(Manifest::new("id".into(), "u", 0.0).first_missing(), 0..MIB);
        let begun = manifest(10 * MIB, &[part(0, 0, MIB), part(1, MIB, 2 * MIB)]);
        assert_eq!(begun.first_missing(), 3 * MIB..4 * MIB);
    }

    #[test]
    fn stored_parts_do_not_overlap() {
        let mut manifest = manifest(100, &[part(0, 10, 10), part(1, 40, 10)]);
        for (start, length) in [(10, 10), (5, 6), (19, 1), (15, 100), (0, 100), (49, 2)] {
            assert!(!manifest.insert(part(9, start, length)), "{length} at {start}");
        }
        assert!(manifest.insert(part(manifest.next_key(), 20, 20)));
        let starts: Vec<_> = manifest.stored.iter().map(|part| part.start).collect();
        assert_eq!(starts, [10, 20, 40]);
        assert_eq!(manifest.remove(20).map(|part| part.key), Some(2));
        assert_eq!(manifest.remove(20), None);
    }

    #[test]
    fn a_model_is_loaded_again_from_the_version_that_it_had() {
        let of = |id: &str, etag: Option<&str>| {
            let mut file = Manifest::new(id.into(), "http://a/b", 1.0);
            file.version.etag = etag.map(Into::into);
            file
        };
        let loaded = of("1", Some("\"a\"")).loaded_version();
        assert!(loaded.is_of(&of("1", Some("\"a\""))) && loaded.is_of(&of("2", Some("\"a\""))));
        assert!(!loaded.is_of(&of("2", Some("\"b\""))) && !loaded.is_of(&of("2", None)));
        assert!(loaded.differs(&of("", Some("\"b\"")).version));
        assert!(!loaded.differs(&of("", Some("\"a\"")).version));
        assert!(!loaded.differs(&Version::default()));
        // Without a version, only the record itself is certainly the same file.
        let unnamed = of("1", None).loaded_version();
        assert!(unnamed.is_of(&of("1", None)) && !unnamed.is_of(&of("2", None)));
        assert!(!unnamed.differs(&of("", Some("\"b\"")).version));
    }

    #[test]
    fn records_are_read_back() {
        let mut whole = manifest(30, &[part(0, 0, 10), part(1, 10, 20)]);
        whole.complete = true;
        whole.version.etag = Some("\"x\"".into());
        let value = serde_json::to_value(&whole).expect("a record");
        assert_eq!(read(value), Ok(whole));
    }

    #[test]
    fn records_have_these_names() {
        let record = json!({
            "schema": 1, "id": "1-2", "url": "http://a/b", "finalUrl": "http://c/d", "total": 30,
            "version": { "etag": "\"x\"", "lastModified": "Mon" }, "sha256": "aa",
            "stored": [
                { "key": 0, "start": 0, "length": 10, "sha256": "bb", "onDisk": true },
                { "key": 4, "start": 10, "length": 20, "sha256": "aa", "onDisk": false }
            ],
            "complete": true, "didNotFit": null, "added": 1.5, "used": 2.5
        });
        let file = read(record.clone()).expect("a record");
        assert_eq!(
            file.stored,
            [StoredPart { sha256: "bb".into(), on_disk: true, ..part(0, 0, 10) }, part(4, 10, 20),]
        );
        assert_eq!(serde_json::to_value(&file).expect("a record"), record);
    }

    #[test]
    fn hostile_records_are_refused() {
        let mut whole = manifest(30, &[part(0, 0, 10), part(1, 10, 20)]);
        whole.complete = true;
        let good = serde_json::to_value(&whole).expect("a record");
        let hostile = [
            ("/schema", json!(0)),
            ("/schema", json!(2)),
            ("/id", json!("")),
            ("/id", json!(null)),
            ("/total", json!(null)),
            ("/total", json!(29)),
            ("/total", json!(31)),
            ("/total", json!(-1)),
            ("/total", json!(1_u64 << 50)),
            ("/stored", json!(2)),
            ("/stored", json!([])),
            ("/stored/0/length", json!(0)),
            ("/stored/0/length", json!(11)),
            ("/stored/1/length", json!(1_u64 << 60)),
            ("/stored/1/start", json!(11)),
            ("/stored/1/start", json!(u64::MAX)),
            ("/stored/1/start", json!(-5)),
            ("/stored/1/key", json!(0)),
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
}
