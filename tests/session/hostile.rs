//! Damaged and hostile files are refused with an error, or load and do no harm.

use std::future::ready;
use std::ops::Range;

use tritloom::engine::UPLOAD;
use tritloom::gguf::type_id::{Q2_0, Q4_0};
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, LoadOptions, Session};
use tritloom::source::{Reader, Source};
use tritloom::{Error, Result};

use crate::setup::{Setup, generate, greedy};
use crate::support::{File, I2_S, Random, Sizes, assert_error, llama, read, tiny};

fn load(bytes: &[u8]) -> Result<()> {
    Setup::default().load(bytes).map(|_: Session| ())
}

fn load_file(file: &File) -> Result<()> {
    load(&file.build())
}

/// The cuts are between the first byte and the last one that matters.
#[test]
fn a_file_cut_anywhere_is_refused() {
    let bytes = tiny().build();
    load(&bytes).unwrap();
    let mut random = Random(14);
    let mut cuts = vec![0, 1, 2, 3, 4, 8, 16, 24, bytes.len() - 33];
    // Cut the header as often as the tensors, though these are far longer.
    for below in [9000, bytes.len() - 32] {
        cuts.extend((0..15).map(|_| random.below(below)));
    }
    for cut in cuts {
        assert_error(load(&bytes[..cut]), "bad-gguf", &[]);
    }
}

#[test]
fn code_3_is_refused_anywhere() {
    for name in ["blk.0.attn_q.weight", "blk.10.ffn_down.weight", "blk.3.ffn_up.weight"] {
        let n = tiny().tensor(name).bytes.len() - 32;
        for at in [0, n / 2 + 1, n - 1] {
            let mut file = tiny();
            file.tensor(name).bytes[at] |= 0x0c;
            assert_error(load_file(&file), "bad-gguf", &[name]);
        }
    }
    // The scale and padding follow the codes. The padding may have any value.
    let mut file = tiny();
    let tensor = file.tensor("blk.0.attn_q.weight");
    let end = tensor.bytes.len();
    tensor.bytes[end - 28..].fill(0xff);
    load_file(&file).unwrap();
}

#[test]
fn nan_and_infinite_values_are_refused() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for name in ["blk.0.attn_norm.weight", "blk.7.ffn_sub_norm.weight", "output_norm.weight"] {
            let mut file = tiny();
            file.tensor(name).bytes[40..44].copy_from_slice(&value.to_le_bytes());
            assert_error(load_file(&file), "bad-gguf", &[name, "finite"]);
        }
        let mut file = tiny();
        let tensor = file.tensor("blk.1.attn_output.weight");
        let scale = tensor.bytes.len() - 32;
        tensor.bytes[scale..scale + 4].copy_from_slice(&value.to_le_bytes());
        assert_error(load_file(&file), "bad-gguf", &["blk.1.attn_output.weight"]);

        let mut file = tiny();
        let half = half::f16::from_f32(value).to_le_bytes();
        file.tensor("token_embd.weight").bytes[300..302].copy_from_slice(&half);
        assert_error(load_file(&file), "bad-gguf", &["token_embd.weight"]);
    }
}

/// The bad block is beyond the first slice. The error names the tensor and the block's offset.
#[test]
fn bad_blocks_are_refused_with_their_offset() {
    let sizes = Sizes { n_vocab: 264, n_embd: 256, n_layer: 1, n_head: 1, n_ff: 16_384 };
    let name = "blk.0.ffn_up.weight";
    // In blocks of 18 bytes, the scale comes first.
    for (type_id, byte, value, what) in
        [(Q2_0, 7, 0x0c, "code 3"), (Q2_0, 1, 0x7c, "scale"), (Q4_0, 1, 0xfc, "scale")]
    {
        let mut file = llama(sizes, |_| type_id);
        let n_blocks = file.tensor(name).bytes.len() / 18;
        for block in [UPLOAD / 18 + 100, n_blocks - 1] {
            let mut file = file.clone();
            file.tensor(name).bytes[18 * block + byte] |= value;
            let bytes = file.build();
            let tensor = read(&bytes).unwrap().tensor(name).unwrap().clone();
            let offset = format!("byte {})", tensor.offset + 18 * block as u64);
            assert_error(load(&bytes), "bad-gguf", &[&format!("`{name}`"), what, &offset]);
        }
    }
}

/// The scales are so large that f32 overflows. Such a model loads, and its generations end.
#[test]
fn a_model_that_overflows_harms_nothing() {
    for scale in [1e30f32, 1e38, f32::MAX, f32::MIN_POSITIVE, 0.0, -1.0] {
        let mut file = tiny();
        for tensor in file.tensors.iter_mut().filter(|tensor| tensor.type_id == I2_S) {
            let at = tensor.bytes.len() - 32;
            tensor.bytes[at..at + 4].copy_from_slice(&scale.to_le_bytes());
        }
        let mut session = Setup::default().load(&file.build()).unwrap();
        let n_vocab = session.info().vocab_size as u32;
        for sampling in [Sampling::default(), Sampling { temperature: 1.0, ..Sampling::default() }]
        {
            let options = GenerateOptions { sampling, ..greedy(4) };
            match generate(&mut session, &[1, 2, 3], &options) {
                Ok(found) => assert!(found.ids.iter().all(|&id| id < n_vocab), "{:?}", found.ids),
                Err(error) => assert!(error.to_string().contains("no number"), "{error}"),
            }
        }
    }
}

/// A source that fails in the middle.
struct Broken<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Source for Broken<'_> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.end > self.at {
            return Err(Error::Network { what: "the model".into(), why: "unplugged".into() });
        }
        Ok(self.bytes[range.start as usize..range.end as usize].to_vec())
    }
}

#[test]
fn the_error_of_a_failing_source_is_passed_on() {
    let bytes = tiny().build();
    let len = bytes.len() as u64;
    for at in [0, 100, len / 2, len - 100] {
        let mut reader = Reader::new(Broken { bytes: &bytes, at });
        let setup = Setup::default();
        let options = LoadOptions::default();
        let outcome =
            block_on(Session::load(ready(Ok(setup.open())), &mut reader, &options, &mut |_| {}));
        assert_error(outcome.map(|_| ()), "network", &["the model", "unplugged"]);
    }
}
