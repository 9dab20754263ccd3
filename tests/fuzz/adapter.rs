//! Target: the reader of adapters, for a small model; and what is made of those that it accepts.

use std::fs;
use std::sync::{Arc, LazyLock};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tritloom::model::Adapters;
use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::source::Reader;

use crate::gguf::{damage, float, spoil};
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{adapters::good_and_bad, open, path};

/// Good and bad adapters for [`BASE`].
static ADAPTERS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let names = good_and_bad().into_iter().map(|name| format!("bad/{name}"));
    let names = names.chain(["bitnet-r4".into(), "bitnet-r8-subset".into()]);
    names.map(|name| fs::read(path(&format!("tests/data/lora/{name}.gguf"))).unwrap()).collect()
});

const BASE: &str = "tests/data/models/bitnet-b1.58-embd-q6_k.gguf";

/// A scale, and the file of an adapter after it.
fn inputs() -> impl Strategy<Value = Input> {
    (float(), any::<Index>(), vec(damage(), 0..4)).prop_map(|(scale, which, damages)| {
        let mut file = which.get(&ADAPTERS).clone();
        damages.iter().for_each(|damage| spoil(&mut file, damage));
        Input([&scale.to_le_bytes()[..], &file].concat())
    })
}

fn target(model: &Reference, bytes: &[u8]) {
    let Some((scale, file)) = bytes.split_first_chunk() else { return };
    let adapter = match block_on(model.load_adapter(&mut Reader::new(file))) {
        Ok(adapter) => Arc::new(adapter),
        Err(error) => return assert_named(&error),
    };
    let [least, most] = adapter.ranks();
    assert!(1 <= least && least <= most && most <= tritloom::model::adapter::MAX_RANK);
    assert!(!adapter.targets().is_empty());
    match Adapters::new(&[(Arc::clone(&adapter), f32::from_le_bytes(*scale))]) {
        Err(error) => assert_eq!(error.code(), "bad-option", "{error}"),
        Ok(applied) => {
            let pairs = applied.all().iter().flat_map(|(one, _)| &one.pairs);
            for (pair, factor) in pairs.flat_map(|pair| applied.on(pair.role, pair.block)) {
                let pair = pair.near_one(factor);
                assert!(pair.factor.is_finite());
                assert!(pair.b(0).all(|value| value.abs() < 2.0));
            }
        }
    }
}

#[test]
fn adapter() {
    let model = block_on(Reference::load(&mut open(BASE))).unwrap();
    let limits = Limits { memory: 4 << 20, memory_per_byte: 32 };
    fuzz("adapter", &limits, inputs(), |bytes| target(&model, bytes));
}
