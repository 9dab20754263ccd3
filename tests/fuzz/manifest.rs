//! The records of stored files. A browser's storage may give back a damaged one, one of another
//! release, or something else entirely.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use tritloom::transfer::{MAX_PART, MAX_TOTAL, Manifest, Part};

use crate::gguf::{damage, number, spoil};
use crate::run::{Input, Limits, fuzz};

/// The longest file whose parts are listed here. There is one for every few MiB.
const MAX_LISTED: u64 = 1 << 33;

fn record() -> Value {
    let mib = 1u64 << 20;
    json!({
        "schema": 1, "id": "1-2", "url": "https://example.org/model.gguf",
        "finalUrl": "https://cdn.example.org/x", "total": 40 * mib,
        "version": { "etag": "\"abc\"", "lastModified": "Fri, 20 Nov 2026 20:00:00 GMT" },
        "sha256": "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "stored": [
            { "key": 0, "start": 0, "length": 16 * mib, "sha256": "47DEQpj8", "onDisk": true },
            { "key": 2, "start": 16 * mib, "length": mib, "sha256": "QeRkm5NM" },
            { "key": 1, "start": 24 * mib, "length": 16 * mib, "sha256": "W+5JCeuQ" }
        ],
        "complete": false, "didNotFit": null, "added": 1.7e12, "used": 1.8e12
    })
}

fn value() -> impl Strategy<Value = Value> {
    let part = (number(), number(), number()).prop_map(
        |(key, start, length)| json!({ "key": key as u32, "start": start, "length": length, "sha256": "" }),
    );
    prop_oneof![
        4 => number().prop_map(Value::from),
        2 => any::<f64>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => ".{0,30}".prop_map(Value::from),
        2 => vec(part, 0..6).prop_map(Value::from),
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
        "stored",
        "key",
        "start",
        "length",
        "complete",
        "didNotFit",
        "added",
        "used",
    ];
    // A field of the record, or of one of its stored parts.
    let change = (prop::option::of(0..3usize), select(names), prop::option::weighted(0.9, value()));
    (Just(record()), vec(change, 0..4), prop::option::weighted(0.1, damage())).prop_map(
        |(mut record, changes, damaged)| {
            for (part, name, value) in changes {
                let part = part.filter(|part| record["stored"].get(part).is_some());
                let changed = match part {
                    Some(part) => &mut record["stored"][part],
                    None => &mut record,
                };
                let Some(fields) = changed.as_object_mut() else { continue };
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
    let Ok(record) = serde_json::from_slice::<Manifest>(bytes) else { return };
    let manifest = match record.checked() {
        Ok(manifest) => manifest,
        Err(why) => return assert!(!why.is_empty()),
    };
    let mut end = 0;
    for part in &manifest.stored {
        assert!(part.start >= end && (1..=MAX_PART).contains(&part.length), "{part:?}");
        end = part.end();
    }
    assert!(manifest.stored.iter().all(|part| part.key <= manifest.next_key()));
    let Some(total) = manifest.total else { return assert!(!manifest.complete) };
    assert!(end <= total && total <= MAX_TOTAL && manifest.bytes() <= total);
    assert!(!manifest.complete || manifest.bytes() == total);
    if total > MAX_LISTED {
        return;
    }
    // Every byte exactly once, and each stored part as it is stored.
    let mut at = 0;
    for part in manifest.parts(total) {
        if let Part::Stored(part) = &part {
            assert!(manifest.stored.contains(part));
        }
        let range = part.range();
        assert!(range.start == at && range.end > at, "{range:?} after {at}");
        at = range.end;
    }
    assert_eq!(at, total);
}

#[test]
fn manifest() {
    fuzz("manifest", &Limits { memory: 4 << 20, memory_per_byte: 64 }, inputs(), target);
}
