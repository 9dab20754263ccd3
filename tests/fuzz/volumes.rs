//! Target: models in several files.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tritloom::gguf::{Gguf, Joined};
use tritloom::native::block_on;
use tritloom::source::{Reader, Source};
use tritloom::transfer::VolumeName;

use crate::gguf::{BASE, damage, spoil};
use crate::metadata::value;
use crate::run::{Input, Limits, assert_named, fuzz, join, split};
use crate::support::{File, Kv};

/// A change to the metadata of one volume.
fn change() -> impl Strategy<Value = (Index, &'static str, Kv)> {
    let key = select(vec![
        "split.no",
        "split.count",
        "split.tensors.count",
        "general.alignment",
        "general.name",
    ]);
    let small = prop_oneof![(0..4u32).prop_map(Kv::U32), (3..32u32).prop_map(|n| Kv::U32(1 << n))];
    (any::<Index>(), key, prop_oneof![2 => small, 1 => value()])
}

fn inputs() -> impl Strategy<Value = Input> {
    let cuts = vec(0..=BASE.tensors.len(), 1..4);
    let damaged = vec((any::<Index>(), damage()), 0..2);
    (cuts, vec(change(), 0..3), damaged).prop_map(|(mut cuts, changes, damaged)| {
        cuts.sort_unstable();
        let mut volumes = BASE.split(&cuts);
        for (at, key, value) in changes {
            let at = at.index(volumes.len());
            volumes[at].set(key, value);
        }
        let mut volumes: Vec<Vec<u8>> = volumes.iter().map(File::build).collect();
        for (at, damage) in damaged {
            let at = at.index(volumes.len());
            spoil(&mut volumes[at], &damage);
        }
        join(volumes)
    })
}

fn target(bytes: &[u8]) {
    let name = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]);
    if let Some(name) = VolumeName::parse(&name) {
        let _ = name.all();
    }
    let volumes = split(bytes);
    if volumes.is_empty() {
        return;
    }
    let joined = match block_on(Joined::open(volumes.clone())) {
        Ok(joined) => joined,
        Err(error) => {
            assert_eq!(error.code(), "bad-gguf", "{error}");
            return assert_named(&error);
        }
    };
    let len = joined.len();
    let mut reader = Reader::new(joined);
    // Volumes that were accepted may have a tensor twice: that is found now.
    match block_on(Gguf::read(&mut reader)) {
        Err(error) => assert_eq!(error.code(), "bad-gguf", "{error}"),
        Ok(gguf) => {
            let mut tensors = gguf.tensors;
            tensors.sort_by_key(|tensor| tensor.offset);
            for tensor in tensors {
                assert!(tensor.offset + tensor.len <= len);
                let bytes = block_on(reader.read(tensor.offset..tensor.offset + tensor.len));
                assert_eq!(bytes.unwrap().len() as u64, tensor.len);
            }
        }
    }
}

#[test]
fn volumes_of_a_model() {
    fuzz("volumes", &Limits { memory: 4 << 20, memory_per_byte: 32 }, inputs(), target);
}
