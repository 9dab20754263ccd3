//! Headers of GGUF files: valid, hostile and truncated.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::ops::Range;

use support::{F32, File, I2_S, Kv, Random, Tensor, assert_error, read, tiny};
use tritloom::gguf::type_id::Q2_0;
use tritloom::gguf::{Gguf, Header, TensorEntry, TensorType, Value};
use tritloom::model::{Config, weights};
use tritloom::native::{FileSource, block_on};
use tritloom::source::{Reader, Source};
use tritloom::tokenizer::Tokenizer;
use tritloom::{Result, model};

/// The reader accepts and refuses the files that `manifest.json` says it should.
#[test]
fn hostile_fixtures_get_their_verdict() {
    let manifest = support::json("tests/data/hostile/manifest.json");
    let manifest = manifest.as_object().unwrap();
    assert!(manifest.len() >= 24);
    for (name, verdict) in manifest {
        let bytes = fs::read(support::path(&format!("tests/data/hostile/{name}.gguf"))).unwrap();
        let result = read(&bytes);
        match verdict["expect"].as_str().unwrap() {
            "ok" => assert!(result.is_ok(), "{name}: {result:?}"),
            "reject" => {
                let error = result.err().unwrap_or_else(|| panic!("{name} was accepted"));
                assert_eq!(error.code(), "bad-gguf", "{name}: {error}");
                println!("{name}: {error}");
            }
            other => panic!("{name}: {other}"),
        }
    }
}

/// A page has no memory for what a header of tiny entries would become.
#[test]
fn millions_of_tiny_entries_are_refused() {
    let mut metadata = tiny();
    metadata.metadata = (0..70_000).map(|n| (n.to_string(), Kv::U32(0))).collect();
    let mut tensors = tiny();
    tensors.tensors = (0..70_000)
        .map(|n| Tensor { name: n.to_string(), ne: vec![1], type_id: 0, bytes: vec![0; 4] })
        .collect();
    for file in [metadata, tensors] {
        let error = read(&file.build()).unwrap_err();
        assert_eq!(error.code(), "bad-gguf");
        assert!(error.to_string().contains("70000"), "{error}");
    }
}

#[test]
fn a_valid_header_is_read_whole() {
    for version in [2, 3] {
        let file = File { version, ..tiny() };
        let gguf = read(&file.build()).unwrap();
        assert_eq!((gguf.version, gguf.alignment), (version, 32));
        assert_eq!(gguf.metadata.iter().count(), file.metadata.len());
        assert_eq!(gguf.tensors.len(), file.tensors.len());
        for (found, written) in gguf.tensors.iter().zip(&file.tensors) {
            assert_eq!((&found.name, &found.ne), (&written.name, &written.ne));
            assert_eq!(found.len, written.bytes.len() as u64);
        }
        let bytes = file.build();
        let norm = gguf.tensor("output_norm.weight").unwrap();
        let range = norm.offset as usize..(norm.offset + norm.len) as usize;
        assert_eq!(bytes[range], file.tensors.last().unwrap().bytes);
    }
}

#[test]
fn a_written_file_is_read_back() {
    let metadata = [
        ("u8", Value::U8(200)),
        ("i8", Value::I8(-100)),
        ("u16", Value::U16(60_000)),
        ("i16", Value::I16(-30_000)),
        ("u32", Value::U32(u32::MAX)),
        ("i32", Value::I32(i32::MIN)),
        ("f32", Value::F32(-0.1)),
        ("bool", Value::Bool(true)),
        ("string", Value::String("é".into())),
        ("strings", Value::Strings(["", "a", "bc"].iter().collect())),
        ("numbers", Value::Numbers([1, -2, 3].into_iter().collect())),
        ("u64", Value::U64(u64::MAX)),
        ("i64", Value::I64(i64::MIN)),
        ("f64", Value::F64(0.1)),
        ("general.alignment", Value::U32(64)),
    ];
    let entry = |name: &str, bytes: &[u8]| TensorEntry {
        name: name.into(),
        ne: vec![bytes.len() as u64 / 4],
        type_id: F32,
        len: bytes.len() as u64,
    };
    let data = [[1; 12].as_slice(), &[2; 64], &[3; 4]];
    let header = Header {
        version: 3,
        alignment: 64,
        metadata: metadata.iter().map(|(key, value)| ((*key).into(), value.clone())).collect(),
        tensors: ["a", "b", "c"].iter().zip(data).map(|(name, data)| entry(name, data)).collect(),
    };
    let mut bytes = Vec::new();
    header.write_file(&mut bytes, |i, out| out.write_all(data[i])).unwrap();
    let gguf = read(&bytes).unwrap();
    let found: Vec<_> = gguf.metadata.iter().map(|(key, value)| (key, value.clone())).collect();
    assert_eq!(found, metadata);
    assert_eq!(gguf.alignment, 64);
    for (tensor, data) in gguf.tensors.iter().zip(data) {
        let range = tensor.offset as usize..(tensor.offset + tensor.len) as usize;
        assert_eq!(&bytes[range], data, "{}", tensor.name);
    }

    // A tensor must be as long as the table says.
    for wrong in [[9; 63].as_slice(), &[9; 65]] {
        let failed = header
            .write_file(Vec::new(), |i, out| out.write_all(if i == 1 { wrong } else { data[i] }));
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("`b`") && message.contains("64"), "{message}");
    }
}

/// A file that ends before its last tensor does is refused, without a panic.
#[test]
fn truncation_at_any_byte_is_refused() {
    let bytes = tiny().build();
    let gguf = read(&bytes).unwrap();
    let data: Vec<usize> = (gguf.data_start as usize..bytes.len()).step_by(997).collect();
    for len in (0..gguf.data_start as usize).chain(data).chain([bytes.len() - 1]) {
        assert_error(read(&bytes[..len]), "bad-gguf", &[]);
    }
    // The same for a file that another program wrote.
    let bytes = fs::read(support::path("tests/data/tiny/tiny-bitnet-b1.58.gguf")).unwrap();
    for len in (0..bytes.len()).step_by(211) {
        assert_error(read(&bytes[..len]), "bad-gguf", &[]);
    }
}

#[test]
fn the_padding_after_the_last_tensor_may_be_missing() {
    let mut file = File { alignment: 64, ..File::empty() };
    file.set("general.alignment", Kv::U32(64));
    file.add("a", &[3], F32, &mut Random(1)).add("b", &[3], F32, &mut Random(2));
    let mut bytes = file.build();
    bytes.truncate(bytes.len() - 52);
    let gguf = read(&bytes).unwrap();
    assert_eq!(gguf.tensors[1].offset + gguf.tensors[1].len, bytes.len() as u64);
    bytes.pop();
    assert_error(read(&bytes), "bad-gguf", &["`b`", "cut off"]);
}

/// A header with random damage is refused or read as another valid one. Nothing panics, whatever is
/// then done with it.
#[test]
fn damage_never_panics() {
    let good = tiny().build();
    let header_len = read(&good).unwrap().data_start as usize;
    let mut random = Random(7);
    let mut accepted = 0;
    for _ in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(header_len);
            bytes[at] = match random.below(3) {
                0 => random.next() as u8,
                1 => bytes[at] ^ (1 << random.below(8)),
                _ => [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            };
        }
        let Ok(gguf) = read(&bytes) else { continue };
        gguf.metadata.iter().for_each(|(_, value)| assert!(!value.to_string().is_empty()));
        let Ok(config) = Config::from_gguf(&gguf) else { continue };
        let table = weights::weights(&config, &gguf);
        let Ok(tokenizer) = Tokenizer::from_gguf(&gguf, &config) else { continue };
        let ids = tokenizer.encode_with_special("hello world<|eot_id|> 12").unwrap();
        tokenizer.decode(&ids).unwrap();
        accepted += usize::from(table.is_ok());
    }
    // Damage to floats and to some tokens is not noticed: both outcomes must occur.
    assert!((40..3900).contains(&accepted), "{accepted}");
}

/// A source that checks the ranges it is asked for: ascending, and within the file.
struct Stream<'a> {
    bytes: &'a [u8],
    reads: &'a RefCell<Vec<Range<u64>>>,
}

impl Source for Stream<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut reads = self.reads.borrow_mut();
        assert!(reads.last().is_none_or(|last| last.end <= range.start), "{reads:?} {range:?}");
        assert!(range.end <= self.len());
        reads.push(range.clone());
        Ok(self.bytes[range.start as usize..range.end as usize].to_vec())
    }
}

#[test]
fn a_long_header_is_read_in_growing_parts() {
    let mut file = tiny();
    file.set("padding", Kv::Str("x".repeat(3 << 20)));
    let bytes = file.build();
    let reads = RefCell::new(Vec::new());
    let mut reader = Reader::new(Stream { bytes: &bytes, reads: &reads });
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    assert_eq!(gguf.tensors.len(), file.tensors.len());
    assert!((2..8).contains(&reads.borrow().len()), "{reads:?}");

    // Bytes behind the header that were read already are given again.
    for (found, written) in gguf.tensors.iter().zip(&file.tensors) {
        let range = found.offset..found.offset + found.len;
        assert_eq!(block_on(reader.read(range)).unwrap(), written.bytes, "{}", found.name);
    }
}

#[test]
fn integers_of_any_type_are_accepted() {
    let mut file = tiny();
    file.set("bitnet-b1.58.block_count", Kv::I32(11));
    file.set("bitnet-b1.58.context_length", Kv::U64(64));
    let config = Config::from_gguf(&read(&file.build()).unwrap()).unwrap();
    assert_eq!((config.n_layer, config.n_ctx), (11, 64));
}

#[test]
fn metadata_of_the_wrong_type_names_the_key() {
    let gguf = read(tiny().set("x.size", Kv::I32(-5)).build().as_slice()).unwrap();
    let metadata = &gguf.metadata;
    assert_error(metadata.integer("x.size"), "unsupported-model", &["`x.size`", "-5"]);
    assert_error(metadata.float("general.name"), "unsupported-model", &["`general.name`", "tiny"]);
    assert_eq!(metadata.integer("absent").unwrap(), None);
    assert_error(
        metadata.require("absent", |m, key| m.integer(key)),
        "unsupported-model",
        &["`absent`"],
    );
}

#[test]
fn each_rule_of_the_container_holds() {
    let with = |spoil: &dyn Fn(&mut File)| {
        let mut file = tiny();
        spoil(&mut file);
        read(&file.build())
    };
    let twice = |file: &mut File| file.metadata.push(file.metadata[0].clone());
    assert_error(with(&twice), "bad-gguf", &["`general.architecture`", "twice"]);
    let twice = |file: &mut File| file.tensors.push(file.tensors[1].clone());
    assert_error(with(&twice), "bad-gguf", &["`blk.0.attn_norm.weight`", "twice"]);
    let long = |file: &mut File| file.tensors[0].name = "x".repeat(65);
    assert_error(with(&long), "bad-gguf", &["65 bytes"]);
    let longest = |file: &mut File| file.tensors[0].name = "x".repeat(64);
    assert!(with(&longest).is_ok());
    let empty = |file: &mut File| file.metadata[0].0 = String::new();
    assert_error(with(&empty), "bad-gguf", &["0 bytes"]);
    for alignment in [0, 3, 48] {
        let odd = |file: &mut File| {
            file.set("general.alignment", Kv::U32(alignment));
        };
        assert_error(with(&odd), "bad-gguf", &["`general.alignment`", &alignment.to_string()]);
    }
    let five = |file: &mut File| file.tensors[0].ne = vec![1; 5];
    assert_error(with(&five), "bad-gguf", &["5 dimensions"]);
    // A dimension that JavaScript's numbers do not hold, of a tensor that takes no bytes.
    let shaped = |ne: [u64; 2]| {
        let mut file = File::empty();
        file.add("a", &[64], F32, &mut Random(1)).add("none", &[0], F32, &mut Random(2));
        file.tensors[1].ne = ne.to_vec();
        read(&file.build())
    };
    assert!(shaped([0, 1 << 53]).is_ok());
    assert_error(shaped([0, (1 << 53) + 1]), "bad-gguf", &["`none`", "impossible shape"]);
}

#[test]
fn tensors_must_be_aligned_apart_and_inside() {
    let mut file = File::empty();
    file.add("a", &[64], F32, &mut Random(1)).add("b", &[64], F32, &mut Random(2));
    let bytes = file.build();
    let place = |offset: u64| {
        let mut bytes = bytes.clone();
        // The offset of `b` ends the header, which has no padding here.
        let end = 24 + 2 * (8 + 1 + 4 + 8 + 4 + 8);
        bytes[end - 8..end].copy_from_slice(&offset.to_le_bytes());
        read(&bytes)
    };
    assert!(place(256).is_ok());
    assert_error(place(255), "bad-gguf", &["`b`", "255", "32"]);
    assert_error(place(0), "bad-gguf", &["`a` and `b` overlap"]);
    assert_error(place(224), "bad-gguf", &["`a` and `b` overlap"]);
    assert_error(place(288), "bad-gguf", &["`b`", "cut off"]);
    assert_error(place(1024), "bad-gguf", &["`b`", "cut off"]);
    assert_error(place(u64::MAX - 31), "bad-gguf", &["`b`"]);
    // Gaps are allowed, and any order.
    let mut file = File::empty();
    file.add("a", &[64], F32, &mut Random(1)).add("unused", &[64], F32, &mut Random(2));
    file.add("c", &[64], F32, &mut Random(3));
    let gguf = read(&file.build()).unwrap();
    assert_eq!(gguf.tensors[2].offset - gguf.tensors[0].offset, 512);
}

/// Two forks gave the numbers 39 and 42 to other types: the length of the tensor decides.
#[test]
fn ambiguous_types_are_told_apart_by_their_length() {
    let resolve = |type_id: u32, len: usize| {
        let mut file = File::empty();
        let ne = vec![768, 384];
        file.tensors.push(Tensor { name: "t".into(), ne, type_id, bytes: vec![0; len] });
        file.add("after", &[128, 1], I2_S, &mut Random(1));
        let gguf = read(&file.build())?;
        Ok((gguf.tensors[0].ty, gguf.tensors[0].len))
    };
    let n = 768 * 384;
    let tl2 = (512 * 384 / 3 * 5 / 8 + 256 * 384 / 2 / 2) + 32;
    assert_eq!(tl2 % 32, 0);
    assert_eq!(resolve(39, n / 32 * 17).unwrap(), (TensorType::Other("MXFP4"), n as u64 / 32 * 17));
    assert_eq!(resolve(39, tl2).unwrap(), (TensorType::Tl2, tl2 as u64));
    assert_eq!(resolve(42, tl2 + 32).unwrap(), (TensorType::Tl2, tl2 as u64));
    assert_eq!(resolve(42, n / 64 * 18).unwrap(), (TensorType::Q2_0, n as u64 / 64 * 18));
    assert_eq!(resolve(42, n / 128 * 34).unwrap().0, TensorType::Q2_0Of128);
    assert_error(resolve(42, 1024), "bad-gguf", &["`t`", "1024 bytes", "42"]);
    assert_error(resolve(4, 1024), "bad-gguf", &["`t`", "type 4"]);
}

/// Q2_0 in blocks of 64 and of 128 has the same number. Small tensors fit both.
#[test]
fn all_tensors_of_q2_0_have_blocks_of_one_size() {
    let resolve = |tensors: &[(u64, usize)]| {
        let mut file = File::empty();
        for (i, &(elements, len)) in tensors.iter().enumerate() {
            let (name, bytes) = (format!("t{i}"), vec![0; len]);
            file.tensors.push(Tensor { name, ne: vec![elements], type_id: Q2_0, bytes });
        }
        file.add("after", &[8], F32, &mut Random(1));
        let gguf = read(&file.build())?;
        Ok(gguf.tensors[..tensors.len()].iter().map(|t| (t.ty, t.len as usize)).collect::<Vec<_>>())
    };
    let small = [(256, 72), (256, 68)];
    let large = [(4096, 1152), (4096, 1088)];
    let types = [TensorType::Q2_0, TensorType::Q2_0Of128];
    for i in 0..2 {
        for order in [[small[i], large[i]], [large[i], small[i]]] {
            let expected: Vec<_> = order.iter().map(|&(_, len)| (types[i], len)).collect();
            assert_eq!(resolve(&order).unwrap(), expected);
        }
        // 2048 elements are the fewest that decide: both types leave the same padding below that.
        assert_eq!(resolve(&[small[i]]).unwrap(), [(TensorType::Q2_0, 72)]);
        let deciding = [(2048, 576), (2048, 544)];
        assert_eq!(resolve(&[deciding[i]]).unwrap(), [(types[i], deciding[i].1)]);
        assert_error(resolve(&[large[i], large[1 - i]]), "bad-gguf", &["`t1`", "another way"]);
    }
    // 192 elements cannot be blocks of 128, so all have blocks of 64.
    let expected = [(TensorType::Q2_0, 54), (TensorType::Q2_0, 72)];
    assert_eq!(resolve(&[(192, 54), (256, 72)]).unwrap(), expected);
    assert_error(resolve(&[(192, 54), large[1]]), "bad-gguf", &["`t1`", "another way"]);
    assert_error(resolve(&[(4096, 1000)]), "bad-gguf", &["`t0`", "fits no type"]);
}

/// The same weights, as three writers of GGUF files have packed them.
#[test]
fn the_layout_of_q2_0_is_found_in_whole_files() {
    for (name, ty) in [
        ("qwen3-yarn-q2_0", TensorType::Q2_0),
        ("qwen3-yarn-q2_0-legacy-g128", TensorType::Q2_0Of128),
        ("qwen3-yarn-pq2_0", TensorType::Pq2_0),
    ] {
        let gguf =
            block_on(Gguf::read(&mut support::open(&format!("tests/data/models/{name}.gguf"))));
        let tensors = gguf.unwrap().tensors;
        let matrices: Vec<_> = tensors.iter().filter(|t| t.ty != TensorType::F32).collect();
        assert!(matrices.len() > 10 && matrices.iter().all(|t| t.ty == ty), "{name}: {tensors:?}");
    }
}

#[test]
fn token_texts_stay_bytes() {
    let mut file = File::empty();
    let tokens = vec![b"a".to_vec(), vec![], vec![0xff, 0x00, 0xfe], "é".into()];
    file.set("tokens", Kv::Strs(tokens.clone()));
    let gguf = read(&file.build()).unwrap();
    let found = gguf.metadata.strings("tokens").unwrap().unwrap();
    assert_eq!(found.iter().collect::<Vec<_>>(), tokens);
    assert_eq!(found.get(4), None);
}

#[test]
fn a_file_that_is_not_gguf_is_refused() {
    assert_error(read(b""), "bad-gguf", &["ends at 0"]);
    assert_error(read(b"<!DOCTYPE html>"), "bad-gguf", &["<!DO"]);
    assert_error(read(b"GGUF\0\0\0\x03"), "bad-gguf", &["big-endian"]);
    assert_error(read(b"GGUF\x01\0\0\0"), "bad-gguf", &["version 1"]);
}

#[test]
fn files_that_cannot_be_read_say_why() {
    assert_error(FileSource::open("/no/such/file"), "io", &["could not read /no/such/file"]);
    assert_error(FileSource::open(support::path("src")), "io", &["src"]);
}

#[test]
fn the_bundled_model_is_read() {
    let gguf = block_on(Gguf::read(&mut support::open("models/tiny-stories.gguf"))).unwrap();
    assert_eq!(gguf.metadata.get("general.file_type"), Some(&Value::U32(40)));
    let config = Config::from_gguf(&gguf).unwrap();
    assert_eq!(
        config,
        Config {
            architecture: model::Architecture::named("bitnet-b1.58").unwrap(),
            name: "tiny-stories-bitnet".into(),
            n_vocab: 4096,
            n_ctx: 1024,
            n_embd: 512,
            n_layer: 8,
            n_head: 8,
            n_head_kv: 4,
            head_dim: 64,
            n_ff: 1408,
            eps: 1e-5,
            rope: model::Rope {
                base: 10000.0,
                scaling: model::RopeScaling::Linear { factor: 1.0 },
                attn_factor: 1.0,
            },
            embedding_scale: 1.0,
            residual_scale: 1.0,
            logit_scale: 1.0,
            pooling: None,
        }
    );
}
