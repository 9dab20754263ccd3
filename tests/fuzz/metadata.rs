//! Target: the getters of metadata, and the model's sizes that are read with them.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use ternlight::Error;
use ternlight::gguf::Metadata;
use ternlight::model::Config;

use crate::gguf::{BASE, Damage, damage, number, spoil};
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{Kv, read};

/// A value of any type, right or wrong.
pub(crate) fn value() -> impl Strategy<Value = Kv> {
    prop_oneof![
        3 => number().prop_map(|n| Kv::U32(n as u32)),
        2 => number().prop_map(|n| Kv::I32(n as i32)),
        3 => number().prop_map(Kv::U64),
        2 => any::<f32>().prop_map(Kv::F32),
        1 => any::<bool>().prop_map(Kv::Bool),
        2 => ".{0,40}".prop_map(Kv::Str),
        1 => vec(vec(any::<u8>(), 0..20), 0..20).prop_map(Kv::Strs),
        1 => vec(any::<i32>(), 0..20).prop_map(Kv::I32s),
    ]
}

fn inputs() -> impl Strategy<Value = Input> {
    let change = prop_oneof![
        5 => any::<Index>().prop_map(|at| BASE.metadata[at.index(BASE.metadata.len())].0.clone()),
        1 => "[a-z._]{1,30}",
    ];
    (
        vec((change, prop::option::weighted(0.9, value())), 0..6),
        prop::option::weighted(0.3, damage()),
    )
        .prop_map(|(changes, damaged): (Vec<(String, Option<Kv>)>, Option<Damage>)| {
            let mut file = BASE.clone();
            for (key, value) in changes {
                match value {
                    Some(value) => drop(file.set(&key, value)),
                    None => file.metadata.retain(|(other, _)| *other != key),
                }
            }
            let mut bytes = file.build();
            damaged.iter().for_each(|damage| spoil(&mut bytes, damage));
            Input(bytes)
        })
}

fn named<T>(key: &str, result: Result<T, Error>) {
    if let Err(error) = result {
        assert_named(&error);
        assert!(error.to_string().contains(key), "{error} does not name {key}");
    }
}

fn target(bytes: &[u8]) {
    let Ok(gguf) = read(bytes) else { return };
    let metadata: &Metadata = &gguf.metadata;
    for (key, value) in metadata.iter() {
        // Long values are shortened.
        assert!(value.to_string().len() < 4096);
        let _ = value.integer();
        named(key, metadata.integer(key));
        named(key, metadata.float(key));
        named(key, metadata.boolean(key));
        named(key, metadata.text(key));
        named(
            key,
            metadata.strings(key).map(|strings| {
                strings.map(|strings| assert_eq!(strings.iter().count(), strings.len()))
            }),
        );
        named(
            key,
            metadata.numbers(key).map(|numbers| {
                numbers.map(|numbers| assert_eq!(numbers.iter().count(), numbers.len()))
            }),
        );
        named(key, metadata.require(key, Metadata::integer));
    }
    named("absent", metadata.require("absent", Metadata::text));
    if let Err(error) = Config::from_gguf(&gguf) {
        assert_named(&error);
    }
}

#[test]
fn metadata() {
    fuzz("metadata", &Limits { memory: 4 << 20, memory_per_byte: 32 }, inputs(), target);
}
