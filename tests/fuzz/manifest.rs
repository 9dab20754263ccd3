//! The records of stored files, which a browser's storage gives back: perhaps damaged, perhaps another
//! release's, perhaps somebody else's.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use ternlight::transfer::{MAX_CHUNK, MAX_TOTAL, Manifest, Part, Record};

use crate::gguf::{damage, number, spoil};
use crate::run::{Input, Limits, fuzz};

/// The most of a file whose parts are listed here: there is one for every few MiB.
const LISTED: u64 = 1 << 33;

fn of_this_release() -> Value {
    let mib = 1u64 << 20;
    json!({
        "schema": 2, "id": "1-2", "url": "https://example.org/model.gguf", "finalUrl": "https://cdn.example.org/x",
        "total": 40 * mib, "version": { "etag": "\"abc\"", "lastModified": "Fri, 20 Nov 2026 20:00:00 GMT" },
        "sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "chunks": [
            { "key": 0, "start": 0, "length": 16 * mib, "sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=" },
            { "key": 2, "start": 16 * mib, "length": mib },
            { "key": 1, "start": 24 * mib, "length": 16 * mib }
        ],
        "complete": false, "didNotFit": null, "added": 1.7e12, "used": 1.8e12
    })
}

fn of_the_first() -> Value {
    json!({
        "id": "1-2", "url": "https://example.org/model.gguf", "complete": true, "bytes": 40_000_000, "chunks": 3,
        "etag": "\"abc\"", "lastModified": "Fri, 20 Nov 2026 20:00:00 GMT", "added": 1.7e12, "used": 1.8e12
    })
}

fn value() -> impl Strategy<Value = Value> {
    let chunk = (number(), number(), number()).prop_map(
        |(key, start, length)| json!({ "key": key as u32, "start": start, "length": length }),
    );
    prop_oneof![
        4 => number().prop_map(Value::from),
        2 => any::<f64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => ".{0,30}".prop_map(Value::from),
        2 => vec(chunk, 0..6).prop_map(Value::from),
        1 => Just(json!({})),
    ]
}

fn inputs() -> impl Strategy<Value = Input> {
    let names = vec![
        "schema",
        "id",
        "url",
        "finalUrl",
        "total",
        "version",
        "etag",
        "lastModified",
        "sha256",
        "chunks",
        "key",
        "start",
        "length",
        "complete",
        "didNotFit",
        "added",
        "used",
        "bytes",
    ];
    let record = prop_oneof![3 => Just(of_this_release()), 1 => Just(of_the_first())];
    // A field of the record, or of one of its chunks.
    let change = (prop::option::of(0..3usize), select(names), prop::option::weighted(0.9, value()));
    (record, vec(change, 0..4), prop::option::weighted(0.1, damage())).prop_map(
        |(mut record, changes, damaged)| {
            for (chunk, name, value) in changes {
                let inner = chunk.and_then(|chunk| record.get("chunks")?.get(chunk).map(|_| chunk));
                let place = match inner {
                    Some(chunk) => &mut record["chunks"][chunk],
                    None => &mut record,
                };
                let Some(fields) = place.as_object_mut() else { continue };
                set(fields, name, value);
            }
            let mut bytes = serde_json::to_vec(&record).unwrap();
            damaged.iter().for_each(|damage| spoil(&mut bytes, damage));
            Input(bytes)
        },
    )
}

fn set(fields: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(fields.insert(name.into(), value)),
        None => drop(fields.remove(name)),
    }
}

fn target(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else { return };
    let manifest = match Manifest::read(record) {
        Ok(manifest) => manifest,
        Err(why) => return assert!(!why.is_empty()),
    };
    let mut end = 0;
    for chunk in &manifest.chunks {
        assert!(chunk.start >= end && (1..=MAX_CHUNK).contains(&chunk.length), "{chunk:?}");
        end = chunk.start + chunk.length;
    }
    assert!(manifest.chunks.iter().all(|chunk| chunk.key <= manifest.next_key()));
    let Some(total) = manifest.total else { return assert!(!manifest.complete) };
    assert!(end <= total && total <= MAX_TOTAL && manifest.bytes() <= total);
    assert!(!manifest.complete || manifest.bytes() == total);
    if total > LISTED {
        return;
    }
    // Each byte once, and what is here as it is here.
    let mut at = 0;
    for part in manifest.parts(total) {
        let (start, end) = match part {
            Part::Stored(chunk) => {
                assert!(manifest.chunks.contains(&chunk));
                (chunk.start, chunk.start + chunk.length)
            }
            Part::Missing(range) => (range.start, range.end),
        };
        assert!(start == at && end > start, "a part from {start} to {end} after {at}");
        at = end;
    }
    assert_eq!(at, total);
}

#[test]
fn manifest() {
    fuzz("manifest", &Limits { memory: 4 << 20, memory_per_byte: 64 }, inputs(), target);
}
