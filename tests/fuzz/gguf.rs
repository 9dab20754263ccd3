//! Target: the reader of GGUF files, and the checks of a model's sizes and tensors.

use std::fs;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tritloom::gguf::type_id::PQ2_0;
use tritloom::model::{Config, weights};
use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::source::Reader;

use crate::metadata::setting;
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{File, Kv, path, read, tiny};

/// A valid model of one block.
pub(crate) static BASE: LazyLock<File> = LazyLock::new(|| first_block(tiny(), "bitnet-b1.58"));

/// Valid models of one block: BASE, one of each other architecture, and one of each kind of blocks. Two
/// kinds have the same number, and the tensors' spacing tells them apart.
pub(crate) static BASES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let families = [
        ("bitnet", "bitnet-i2_s"),
        ("bitnet-b1.58", "bitnet-b1.58-embd-q6_k"),
        ("llama", "llama-tq1_0"),
        ("llama", "llama-tq2_0"),
        ("minicpm", "minicpm-tq2_0"),
        ("qwen3", "qwen3-tq2_0"),
        ("qwen3", "qwen3-yarn-q2_0"),
        ("qwen3", "qwen3-yarn-q2_0-legacy-g128"),
        ("qwen3", "qwen3-yarn-q1_0"),
    ];
    let families = families.map(|(arch, model)| first_block(File::family(model), arch));
    [BASE.clone()].into_iter().chain(families).collect()
});

fn first_block(mut file: File, architecture: &str) -> File {
    file.set(&format!("{architecture}.block_count"), Kv::U32(1));
    file.tensors
        .retain(|tensor| !tensor.name.starts_with("blk.") || tensor.name.starts_with("blk.0."));
    file
}

/// Tensors that some models have and others do not.
const TENSORS: &[&str] = &[
    "output.weight",
    "rope_freqs.weight",
    "rope_factors_short.weight",
    "rope_factors_long.weight",
    "blk.0.attn_q_norm.weight",
    "blk.0.attn_k_norm.weight",
    "blk.0.attn_sub_norm.weight",
    "blk.0.ffn_sub_norm.weight",
    "blk.0.attn_q.bias",
    "blk.0.attn_q.scale",
];

/// Valid and invalid files that other programs wrote.
static OTHERS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let hostile = fs::read_dir(path("tests/data/hostile")).unwrap();
    hostile
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "gguf"))
        .map(|file| fs::read(file).unwrap())
        .collect()
});

/// Roughly the end of every header here; weights come after it.
const HEAD: usize = 12 << 10;

/// Numbers at which arithmetic goes wrong.
pub(crate) fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => select(vec![
            0, 1, 2, 3, 31, 32, 33, 127, 128, 255, 256, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff,
            1 << 32, 1 << 40, 1 << 60, i64::MAX as u64, 1 << 63, u64::MAX - 31, u64::MAX
        ]),
        1 => any::<u64>(),
        1 => 0..100_000u64,
    ]
}

/// Floats at which arithmetic goes wrong.
pub(crate) fn float() -> impl Strategy<Value = f32> {
    let edges = vec![0.0, -0.0, 1.0, 0.5, -1.0, 1e-38, 3e38, f32::NAN, f32::INFINITY];
    prop_oneof![select(edges), any::<f32>()]
}

/// A change to a tensor.
#[derive(Clone, Debug)]
enum Change {
    Type(u32),
    Shape(Vec<u64>),
    Name(String),
    /// More or fewer bytes than its shape says.
    Bytes(usize),
    Remove,
    Twice,
    /// Adds a copy with this name.
    As(&'static str),
    /// Sets one of its floats.
    Float(Index, f32),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        prop_oneof![6 => 0..48u32, 1 => Just(PQ2_0)].prop_map(Change::Type),
        number().prop_map(|n| Change::Type(n as u32)),
        vec(number(), 0..6).prop_map(Change::Shape),
        "(blk\\.[0-9]{1,20}\\.)?[a-z_]{0,70}(\\.weight)?".prop_map(Change::Name),
        (0..5000usize).prop_map(Change::Bytes),
        Just(Change::Remove),
        Just(Change::Twice),
        select(TENSORS).prop_map(Change::As),
        (any::<Index>(), float()).prop_map(|(at, value)| Change::Float(at, value)),
    ]
}

fn apply(file: &mut File, at: &Index, change: &Change) {
    if file.tensors.is_empty() {
        return;
    }
    let at = at.index(file.tensors.len());
    let tensor = &mut file.tensors[at];
    match change {
        Change::Type(id) => tensor.type_id = *id,
        Change::Shape(ne) => tensor.ne.clone_from(ne),
        Change::Name(name) => tensor.name.clone_from(name),
        Change::Bytes(len) => tensor.bytes.resize(*len, 0x55),
        Change::Remove => drop(file.tensors.remove(at)),
        Change::Twice | Change::As(_) => {
            let mut again = tensor.clone();
            if let Change::As(name) = change {
                again.name = (*name).into();
            }
            file.tensors.push(again);
        }
        Change::Float(at, value) => {
            let (floats, _) = tensor.bytes.as_chunks_mut();
            if !floats.is_empty() {
                *at.get_mut(floats) = value.to_le_bytes();
            }
        }
    }
}

/// Damage to a file's bytes.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    Flip(Index, u8),
    Number(Index, u64, bool),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Copy(Index, Index, usize),
    Cut(Index),
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        4 => (any::<Index>(), number(), any::<bool>())
            .prop_map(|(at, n, long)| Damage::Number(at, n, long)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        2 => (any::<Index>(), 1..40usize).prop_map(|(at, n)| Damage::Remove(at, n)),
        2 => (any::<Index>(), any::<Index>(), 1..200usize)
            .prop_map(|(from, to, n)| Damage::Copy(from, to, n)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ]
}

pub(crate) fn spoil(bytes: &mut Vec<u8>, damage: &Damage) {
    let head = bytes.len().min(HEAD);
    if head == 0 {
        return;
    }
    match damage {
        Damage::Flip(at, bit) => bytes[at.index(head)] ^= 1 << bit,
        Damage::Number(at, number, long) => {
            let number = number.to_le_bytes();
            let number = if *long { &number[..] } else { &number[..4] };
            let at = at.index(head);
            let end = (at + number.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        Damage::Insert(at, more) => {
            let at = at.index(head);
            bytes.splice(at..at, more.iter().copied());
        }
        Damage::Remove(at, n) => {
            let at = at.index(head);
            let end = (at + n).min(bytes.len());
            bytes.drain(at..end);
        }
        Damage::Copy(from, to, n) => {
            let (from, to) = (from.index(head), to.index(head));
            let n = (*n).min(bytes.len() - from.max(to));
            bytes.copy_within(from..from + n, to);
        }
        Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
    }
}

fn inputs() -> impl Strategy<Value = Input> {
    let changes = (vec((any::<Index>(), change()), 0..4), vec(setting(), 0..3));
    let changed = (any::<Index>(), changes).prop_map(|(base, (changes, settings))| {
        let mut file = base.get(&BASES).clone();
        changes.iter().for_each(|(at, change)| apply(&mut file, at, change));
        settings.into_iter().for_each(|setting| setting.apply(&mut file));
        file.build()
    });
    let other = any::<Index>().prop_map(|which| OTHERS[which.index(OTHERS.len())].clone());
    (prop_oneof![3 => changed, 1 => other], vec(damage(), 0..3)).prop_map(|(mut bytes, damages)| {
        damages.iter().for_each(|damage| spoil(&mut bytes, damage));
        Input(bytes)
    })
}

fn target(bytes: &[u8]) {
    let gguf = match read(bytes) {
        Ok(gguf) => gguf,
        Err(error) => {
            assert_eq!(error.code(), "bad-gguf", "{error}");
            return assert_named(&error);
        }
    };
    for tensor in &gguf.tensors {
        assert!(tensor.offset + tensor.len <= bytes.len() as u64, "{tensor} is not in the file");
    }
    let config = match Config::from_gguf(&gguf) {
        Ok(config) => config,
        Err(error) => return assert_named(&error),
    };
    match weights::weights(&config, &gguf) {
        Err(error) => assert_named(&error),
        // The table was compared with the file, so loading is safe whatever the sizes claim.
        Ok(_) => {
            if let Err(error) = block_on(Reference::load(&mut Reader::new(bytes))) {
                assert_named(&error);
            }
        }
    }
}

#[test]
fn gguf() {
    // The reference keeps each weight of two bits as a byte.
    let limits = Limits { memory: 16 << 20, memory_per_byte: 64 };
    fuzz("gguf", &limits, inputs(), target);
}
