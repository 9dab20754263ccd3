//! Models in several files, joined as they are read.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use std::fs;
use std::path::PathBuf;

use support::{F16, File, Kv, Random, assert_error, path, read, tiny};
use tritloom::Result;
use tritloom::gguf::{Gguf, Joined};
use tritloom::native::{block_on, open};
use tritloom::source::{Reader, Source};
use tritloom::transfer::VolumeName;

fn join(volumes: &[File]) -> Result<Vec<u8>> {
    let bytes: Vec<Vec<u8>> = volumes.iter().map(File::build).collect();
    let mut joined = block_on(Joined::open(bytes.iter().map(Vec::as_slice).collect()))?;
    let len = joined.len();
    block_on(joined.read(0..len))
}

#[test]
fn joined_volumes_are_the_file_that_was_cut() {
    let whole = tiny();
    let expected = read(&whole.build()).unwrap();
    for at in [&[1][..], &[40], &[0, 40], &[3, 4, 100]] {
        let bytes = join(&whole.split(at)).unwrap();
        let gguf = read(&bytes).unwrap();
        let pairs = |gguf: &Gguf| -> Vec<_> {
            gguf.metadata.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect()
        };
        assert_eq!(pairs(&gguf), pairs(&expected));
        assert_eq!(gguf.tensors.len(), whole.tensors.len());
        for (found, written) in gguf.tensors.iter().zip(&whole.tensors) {
            assert_eq!((&found.name, &found.ne), (&written.name, &written.ne));
            let range = found.offset as usize..(found.offset + found.len) as usize;
            assert_eq!(bytes[range], written.bytes, "{}", found.name);
        }
    }
}

/// Every range of the joined file can be read, also one over two volumes or only of padding.
#[test]
fn any_ranges_of_a_joined_file_are_read() {
    let volumes: Vec<Vec<u8>> = tiny().split(&[2, 3]).iter().map(File::build).collect();
    let open = || block_on(Joined::open(volumes.iter().map(Vec::as_slice).collect())).unwrap();
    let mut joined = open();
    let len = joined.len();
    let whole = block_on(joined.read(0..len)).unwrap();
    let mut random = Random(3);
    for _ in 0..20 {
        let mut reader = Reader::new(open());
        let mut at = 0;
        while at < len {
            let start = at + random.below(300) as u64;
            let end = (start + random.below(60_000) as u64).min(len);
            if start >= end {
                break;
            }
            let bytes = block_on(reader.read(start..end)).unwrap();
            assert_eq!(bytes, whole[start as usize..end as usize], "{start}..{end}");
            at = end;
        }
    }
}

/// The files of another program, and the names it gives them.
#[test]
fn the_volumes_of_the_gguf_package_are_read() {
    let folder = path("tests/data/volumes");
    let mut reader = Reader::new(open(folder.join("small-00001-of-00003.gguf")).unwrap());
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    let names: Vec<_> = gguf.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let expected = [
        "token_embd.weight",
        "blk.0.attn_norm.weight",
        "blk.0.attn_q.weight",
        "blk.0.attn_k.weight",
        "output_norm.weight",
    ];
    assert_eq!(names, expected);
    assert_eq!(gguf.metadata.text("general.name").unwrap(), Some("small"));
    assert!(gguf.metadata.iter().all(|(key, _)| !key.starts_with("split.")));
    let volumes: Vec<_> = (1..=3)
        .map(|n| fs::read(folder.join(format!("small-0000{n}-of-00003.gguf"))).unwrap())
        .collect();
    for tensor in &gguf.tensors {
        let bytes = block_on(reader.read(tensor.offset..tensor.offset + tensor.len)).unwrap();
        let volume =
            volumes.iter().find(|bytes| read(bytes).unwrap().tensor(&tensor.name).is_some());
        let own = read(volume.unwrap()).unwrap().tensor(&tensor.name).unwrap().clone();
        assert_eq!(bytes, volume.unwrap()[own.offset as usize..][..own.len as usize]);
    }
}

#[test]
fn a_model_of_one_file_is_read_as_it_is() {
    let file = path("models/tiny-stories.gguf");
    let mut whole = open(&file).unwrap();
    let len = whole.len();
    assert!(block_on(whole.read(0..len)).unwrap() == fs::read(file).unwrap());
}

#[test]
fn a_name_says_which_volume_it_is() {
    let name = VolumeName::parse("https://a/b-00001-of-00003/c-00001-of-00012.gguf").unwrap();
    assert_eq!((name.number, name.count), (1, 12));
    assert_eq!(name.of(12), "https://a/b-00001-of-00003/c-00012-of-00012.gguf");
    assert_eq!(name.all().unwrap().len(), 12);
    for single in [
        "a.gguf",
        "a-00001-of-00001.gguf",
        "a-00000-of-00003.gguf",
        "a-00004-of-00003.gguf",
        "a-1-of-3.gguf",
        "a-00001-of-00003.bin",
        "a-00001of-00003.gguf",
        "a-+0001-of-00003.gguf",
        "-of-.gguf",
        "",
    ] {
        assert_eq!(VolumeName::parse(single), None, "{single}");
    }
    let second = VolumeName::parse("a-00002-of-00003.gguf").unwrap().all().unwrap_err();
    assert!(second.contains("file 2 of 3") && second.contains("a-00001-of-00003.gguf"), "{second}");
    let many = VolumeName::parse("a-00001-of-99999.gguf").unwrap().all().unwrap_err();
    assert!(many.contains("99999"), "{many}");
}

fn write(folder: &str, volumes: &[File]) -> PathBuf {
    let folder = path("target/tmp").join(folder);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (i, volume) in volumes.iter().enumerate() {
        let name = format!("m-{:05}-of-{:05}.gguf", i + 1, volumes.len());
        fs::write(folder.join(name), volume.build()).unwrap();
    }
    folder
}

#[test]
fn volumes_are_found_by_the_name_of_the_first() {
    let folder = write("volumes", &tiny().split(&[10, 20]));
    assert!(open(folder.join("m-00001-of-00003.gguf")).is_ok());
    let second = open(folder.join("m-00002-of-00003.gguf"));
    assert_error(second, "bad-option", &["`model`", "file 2 of 3", "m-00001-of-00003.gguf"]);
    fs::remove_file(folder.join("m-00003-of-00003.gguf")).unwrap();
    let missing = open(folder.join("m-00001-of-00003.gguf"));
    assert_error(missing, "io", &["m-00003-of-00003.gguf"]);
    // The name alone does not make several files of one.
    fs::write(folder.join("m-00003-of-00003.gguf"), tiny().build()).unwrap();
    let whole = open(folder.join("m-00001-of-00003.gguf"));
    assert_error(whole, "bad-gguf", &["file 3 of 3", "that there are others"]);
}

#[test]
fn files_that_are_not_the_volumes_of_one_model_are_refused() {
    let volumes = tiny().split(&[10, 20]);
    assert!(join(&volumes).is_ok());
    let with = |change: &dyn Fn(&mut Vec<File>)| {
        let mut volumes = volumes.clone();
        change(&mut volumes);
        join(&volumes)
    };
    let refused = |change: &dyn Fn(&mut Vec<File>), facts: &[&str]| {
        assert_error(with(change), "bad-gguf", facts);
    };
    refused(&|v| v.swap(1, 2), &["file 2 of 3", "number 3"]);
    refused(&|v| v.swap(0, 1), &["file 1 of 3", "number 2"]);
    refused(&|v| drop(v.pop()), &["file 1 of 2", "there are 3"]);
    refused(&|v| v[2] = v[1].clone(), &["file 3 of 3", "number 2"]);
    refused(
        &|v| {
            v[1].set("split.count", Kv::U32(4));
        },
        &["file 2 of 3", "there are 4"],
    );
    refused(
        &|v| {
            v[1].set("split.count", Kv::I32(-1));
        },
        &["file 2 of 3", "there are -1"],
    );
    refused(
        &|v| {
            v[1].set("split.count", Kv::Bool(true));
        },
        &["file 2 of 3", "others"],
    );
    refused(
        &|v| {
            v[0].remove("split.count");
        },
        &["file 1 of 3", "others"],
    );
    refused(
        &|v| {
            v[2].remove("split.no");
        },
        &["file 3 of 3", "which it is"],
    );
    // Of another model, as far as one can tell.
    let name = "general.name";
    refused(
        &|v| {
            v[1].set(name, Kv::Str("x".into()));
        },
        &["another model", "`general.name`"],
    );
    let tensors = "split.tensors.count";
    refused(
        &|v| {
            v[1].set(tensors, Kv::I32(7));
        },
        &["another model", "`split.tensors.count`"],
    );
    refused(&|v| drop(v[2].tensors.pop()), &["3 files have 122 tensors", "123"]);
    let added = |v: &mut Vec<File>| {
        v[2].tensors.pop();
        v[2].add("blk.0.attn_norm.weight", &[64], F16, &mut Random(1));
    };
    let twice = with(&added).and_then(|bytes| read(&bytes));
    assert_error(twice, "bad-gguf", &["`blk.0.attn_norm.weight`", "twice"]);
    // A volume that is cut off, and one that is no GGUF file.
    let mut bytes: Vec<Vec<u8>> = volumes.iter().map(File::build).collect();
    let cut = bytes[1].len() - 200;
    bytes[1].truncate(cut);
    let joined = block_on(Joined::open(bytes.iter().map(Vec::as_slice).collect()));
    assert_error(joined.map(|_| ()), "bad-gguf", &["file 2 of 3", "cut off"]);
    bytes[1] = b"<!DOCTYPE html>".to_vec();
    let joined = block_on(Joined::open(bytes.iter().map(Vec::as_slice).collect()));
    assert_error(joined.map(|_| ()), "bad-gguf", &["file 2 of 3", "<!DO"]);
}
