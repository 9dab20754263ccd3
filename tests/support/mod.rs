//! Builds small valid GGUF files. Each test damages one in its own way.
#![allow(missing_docs, reason = "names of the format")]
#![allow(dead_code, unreachable_pub, reason = "each test crate uses a part")]

pub mod adapters;
pub mod chi_square;
pub mod families;
pub mod random;

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use half::f16;
pub use random::Random;
use tritloom::blocks::{BlockType, TABLE};
use tritloom::chat::{Message, Template, TemplateChoice, no_template};
use tritloom::gguf::{Gguf, Header, Metadata, TensorEntry, TensorInfo, TensorType, Value};
use tritloom::native::{FileSource, block_on};
use tritloom::source::Reader;
use tritloom::ternary::{self, Layout};
use tritloom::tokenizer::Tokenizer;
use tritloom::{Error, Result};

/// A path in the repository.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A reader of a file in the repository.
pub fn open(name: &str) -> Reader<FileSource> {
    Reader::new(FileSource::open(path(name)).expect(name))
}

/// A JSON file in the repository.
pub fn json(name: &str) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path(name)).expect(name)).expect(name)
}

/// A file of little-endian floats in the repository.
pub fn floats(name: &str) -> Vec<f32> {
    let bytes = fs::read(path(name)).expect(name);
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// The folder that an environment variable names. It has `what`, which may not be copied into this
/// repository. Where the variable is not set, a note says what was not checked.
pub fn outside(variable: &str, what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        // Not `println`, whose text a test that passes does not show.
        let note = format!("NOT CHECKED: {variable} names no folder with {what}\n");
        std::io::stderr().write_all(note.as_bytes()).expect("standard error takes everything");
    }
    folder
}

/// The header of a file in memory.
pub fn read(bytes: &[u8]) -> Result<Gguf> {
    block_on(Gguf::read(&mut Reader::new(bytes)))
}

/// Asserts that `result` failed with `code` and that its message contains all `facts`.
#[track_caller]
pub fn assert_error<T>(result: Result<T>, code: &str, facts: &[&str]) {
    let Err(error) = result else { panic!("no error, expected {code} with {facts:?}") };
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for fact in facts {
        assert!(message.contains(fact), "{message:?} does not name {fact:?}");
    }
    assert!(!matches!(error, Error::Internal(_)), "{message}");
}

/// The tokens of a conversation with the model that `metadata` describes.
pub fn chat_tokens(
    metadata: &Metadata,
    tokenizer: &Tokenizer,
    messages: &[Message],
) -> Result<Vec<u32>> {
    let template = Template::new(metadata, tokenizer, &TemplateChoice::Auto)?;
    template.ok_or_else(no_template)?.tokens(tokenizer, messages)
}

/// A metadata value to write.
#[derive(Clone, Debug)]
pub enum Kv {
    U32(u32),
    I32(i32),
    U64(u64),
    F32(f32),
    Bool(bool),
    Str(String),
    Strs(Vec<Vec<u8>>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    /// As it was in a file.
    Read(Value),
}

/// A tensor to write.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub ne: Vec<u64>,
    pub type_id: u32,
    pub bytes: Vec<u8>,
}

/// A GGUF file to write.
#[derive(Clone, Debug)]
pub struct File {
    pub version: u32,
    pub alignment: u64,
    pub metadata: Vec<(String, Kv)>,
    pub tensors: Vec<Tensor>,
}

pub use tritloom::gguf::type_id::{BF16, F16, F32, I2_S};

/// The blocks of [`tiny`]. There are more than ten, so their names sort in another order than their
/// numbers.
pub const N_LAYER: u32 = 11;

/// A valid file of random weights: 11 blocks, width 128, 2 heads with 1 KV head. Its first 256
/// tokens are the bytes in order; a few merges and Llama 3's special tokens follow.
pub fn tiny() -> File {
    let arch = "bitnet-b1.58";
    let mut file = File { version: 3, alignment: 32, metadata: vec![], tensors: vec![] };
    file.set("general.architecture", Kv::Str(arch.into()));
    file.set("general.name", Kv::Str("tiny".into()));
    for (name, value) in [
        ("context_length", 64),
        ("embedding_length", 128),
        ("block_count", N_LAYER),
        ("feed_forward_length", 256),
        ("rope.dimension_count", 64),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
    ] {
        file.set(&format!("{arch}.{name}"), Kv::U32(value));
    }
    file.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), Kv::F32(1e-5));
    file.set(&format!("{arch}.rope.freq_base"), Kv::F32(10000.0));

    let merges = ["h e", "l l", "he ll", "hell o", "Ġ w"];
    let special = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let n_normal = tokens.len();
    tokens.extend(special.iter().map(|text| (*text).to_owned()));
    let kinds = (0..tokens.len()).map(|id| if id < n_normal { 1 } else { 3 }).collect();
    let n_vocab = tokens.len() as u64;
    file.set("tokenizer.ggml.model", Kv::Str("gpt2".into()));
    file.set("tokenizer.ggml.pre", Kv::Str("llama-bpe".into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(tokens.into_iter().map(Into::into).collect()));
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("tokenizer.ggml.merges", Kv::Strs(merges.iter().map(|&m| m.into()).collect()));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(n_normal as u32));
    file.set("tokenizer.ggml.eos_token_id", Kv::U32(n_normal as u32 + 1));

    let mut random = Random(1);
    file.add("token_embd.weight", &[128, n_vocab], F16, &mut random);
    for block in 0..N_LAYER {
        for (name, ne, type_id) in [
            ("attn_norm", &[128][..], F32),
            ("attn_q", &[128, 128], I2_S),
            ("attn_k", &[128, 64], I2_S),
            ("attn_v", &[128, 64], I2_S),
            ("attn_sub_norm", &[128], F32),
            ("attn_output", &[128, 128], I2_S),
            ("ffn_norm", &[128], F32),
            ("ffn_gate", &[128, 256], I2_S),
            ("ffn_up", &[128, 256], I2_S),
            ("ffn_sub_norm", &[256], F32),
            ("ffn_down", &[256, 128], I2_S),
        ] {
            file.add(&format!("blk.{block}.{name}.weight"), ne, type_id, &mut random);
        }
    }
    file.add("output_norm.weight", &[128], F32, &mut random);
    file
}

/// Sizes of a [`llama`]. Every head has 64 values, and keys and values of its own.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub n_vocab: usize,
    pub n_embd: usize,
    pub n_layer: usize,
    pub n_head: usize,
    pub n_ff: usize,
}

/// A random model of the architecture `llama`, with the tokenizer of [`tiny`] and a context of 64. `ty`
/// gives the type of a matrix by its name, such as `token_embd` or `blk.0.attn_q`.
pub fn llama(sizes: Sizes, ty: impl Fn(&str) -> u32) -> File {
    let Sizes { n_vocab, n_embd, n_layer, n_head, n_ff } = sizes;
    let mut file = tiny();
    file.rename("llama");
    file.tensors.clear();
    file.widen_vocabulary(n_vocab);
    for (name, value) in [
        ("embedding_length", n_embd),
        ("block_count", n_layer),
        ("feed_forward_length", n_ff),
        ("attention.key_length", 64),
        ("attention.head_count", n_head),
        ("attention.head_count_kv", n_head),
    ] {
        file.set(&format!("llama.{name}"), Kv::U32(value as u32));
    }
    let n_q = 64 * n_head;
    let mut random = Random(2);
    let mut add = |name: &str, ne: &[usize]| {
        let ne: Vec<u64> = ne.iter().map(|&n| n as u64).collect();
        let type_id = if ne.len() == 1 { F32 } else { ty(name) };
        file.add(&format!("{name}.weight"), &ne, type_id, &mut random);
    };
    add("token_embd", &[n_embd, n_vocab]);
    for block in 0..n_layer {
        for (name, ne) in [
            ("attn_norm", &[n_embd][..]),
            ("attn_q", &[n_embd, n_q]),
            ("attn_k", &[n_embd, n_q]),
            ("attn_v", &[n_embd, n_q]),
            ("attn_output", &[n_q, n_embd]),
            ("ffn_norm", &[n_embd]),
            ("ffn_gate", &[n_embd, n_ff]),
            ("ffn_up", &[n_embd, n_ff]),
            ("ffn_down", &[n_ff, n_embd]),
        ] {
            add(&format!("blk.{block}.{name}"), ne);
        }
    }
    add("output_norm", &[n_embd]);
    file
}

/// The type with this number whose blocks ggml has.
#[track_caller]
pub fn block_type_of(type_id: u32) -> &'static BlockType {
    TABLE.iter().find(|row| row.ty.id() == type_id).expect("a type with blocks")
}

/// Where a block of the type has its f16.
pub fn f16_offsets(ty: TensorType) -> &'static [usize] {
    match ty {
        TensorType::Q4K => &[0, 2],
        TensorType::Q6K => &[208],
        TensorType::Tq1_0 => &[52],
        TensorType::Tq2_0 => &[64],
        _ => &[0],
    }
}

/// `n` random blocks without code 3. `scale` gives the f16 of each.
pub fn random_blocks(
    row: &BlockType,
    n: usize,
    random: &mut Random,
    mut scale: impl FnMut(&mut Random) -> f16,
) -> Vec<u8> {
    let mut blocks: Vec<u8> = (0..row.bytes * n).map(|_| random.next() as u8).collect();
    if row.ty != TensorType::Tq1_0 && row.bits == 2 {
        // Clears the lower bit of each code 3.
        blocks.iter_mut().for_each(|byte| *byte &= !(*byte >> 1 & 0x55));
    }
    for block in blocks.chunks_mut(row.bytes) {
        let scale = scale(random).to_le_bytes();
        f16_offsets(row.ty).iter().for_each(|&at| block[at..at + 2].copy_from_slice(&scale));
    }
    blocks
}

impl File {
    /// A file without metadata and tensors.
    pub fn empty() -> Self {
        Self { version: 3, alignment: 32, metadata: vec![], tensors: vec![] }
    }

    /// A valid file of `tests/data/models`.
    pub fn family(model: &str) -> Self {
        Self::of(&format!("tests/data/models/{model}.gguf"))
    }

    /// A valid file.
    pub fn of(file: &str) -> Self {
        let bytes = fs::read(path(file)).expect(file);
        let gguf = read(&bytes).expect(file);
        let tensor = |tensor: &TensorInfo| Tensor {
            name: tensor.name.clone(),
            ne: tensor.ne.clone(),
            type_id: tensor.ty.id(),
            bytes: bytes[tensor.offset as usize..][..tensor.len as usize].to_vec(),
        };
        Self {
            metadata: gguf.metadata.iter().map(|(k, v)| (k.into(), Kv::Read(v.clone()))).collect(),
            tensors: gguf.tensors.iter().map(tensor).collect(),
            ..Self::empty()
        }
    }

    /// Sets a metadata value. An existing key keeps its position.
    pub fn set(&mut self, key: &str, value: Kv) -> &mut Self {
        match self.metadata.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((key.into(), value)),
        }
        self
    }

    /// Removes a metadata value, which must be there.
    #[track_caller]
    pub fn remove(&mut self, key: &str) -> &mut Self {
        let before = self.metadata.len();
        self.metadata.retain(|(k, _)| k != key);
        assert!(self.metadata.len() < before, "no {key}");
        self
    }

    /// Renames the architecture and its keys.
    pub fn rename(&mut self, arch: &str) -> &mut Self {
        for (key, value) in &mut self.metadata {
            if key == "general.architecture" {
                *value = Kv::Str(arch.into());
            } else if let Some(rest) = key.strip_prefix("bitnet-b1.58.") {
                *key = format!("{arch}.{rest}");
            }
        }
        self
    }

    /// The tensor with this name.
    #[track_caller]
    pub fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect(name)
    }

    /// Adds a tensor of random values; of a type with blocks, one of zeros.
    pub fn add(&mut self, name: &str, ne: &[u64], type_id: u32, random: &mut Random) -> &mut Self {
        let n = ne.iter().product::<u64>() as usize;
        let mut bytes = Vec::new();
        match type_id {
            F32 => (0..n).for_each(|_| bytes.extend((0.5 + random.float()).to_le_bytes())),
            F16 => (0..n).for_each(|_| {
                bytes.extend(f16::from_f32(random.float() - 0.5).to_le_bytes());
            }),
            BF16 => (0..n).for_each(|_| {
                bytes.extend(half::bf16::from_f32(random.float() - 0.5).to_le_bytes());
            }),
            I2_S => {
                let values: Vec<i8> = (0..n).map(|_| (random.next() % 3) as i8 - 1).collect();
                bytes = ternary::pack(&values, Layout::X86);
                bytes.extend((0.02 + 0.1 * random.float()).to_le_bytes());
                // Padding must not matter: some writers do not clear it.
                bytes.extend((0..28).map(|_| random.next() as u8));
            }
            other => {
                let row = block_type_of(other);
                // The values of types with more codes are about as large.
                let most = row.zero.max(1) as f32;
                let scale =
                    |random: &mut Random| f16::from_f32((0.02 + 0.1 * random.float()) / most);
                bytes = random_blocks(row, n / row.elements, random, scale);
            }
        }
        self.tensors.push(Tensor { name: name.into(), ne: ne.to_vec(), type_id, bytes });
        self
    }

    /// Adds tokens until there are `n_vocab`.
    pub fn widen_vocabulary(&mut self, n_vocab: usize) -> &mut Self {
        for (key, value) in &mut self.metadata {
            match (key.as_str(), value) {
                ("tokenizer.ggml.tokens", Kv::Strs(tokens)) => {
                    tokens.extend((tokens.len()..n_vocab).map(|i| format!("more{i}").into_bytes()));
                }
                ("tokenizer.ggml.token_type", Kv::I32s(types)) => types.resize(n_vocab, 1),
                _ => {}
            }
        }
        self
    }

    /// The file in several volumes, cut before the tensors `at`. Only the first has the metadata.
    pub fn split(&self, at: &[usize]) -> Vec<Self> {
        let ends = at.iter().copied().chain([self.tensors.len()]);
        let starts = [0].into_iter().chain(at.iter().copied());
        let mut volumes: Vec<Self> = starts
            .zip(ends)
            .map(|(start, end)| {
                let tensors = self.tensors[start..end].to_vec();
                Self { metadata: vec![], tensors, ..*self }
            })
            .collect();
        volumes[0].metadata = self.metadata.clone();
        let count = volumes.len() as u32;
        for (number, volume) in (0..).zip(&mut volumes) {
            volume.set("split.no", Kv::U32(number));
            volume.set("split.count", Kv::U32(count));
            volume.set("split.tensors.count", Kv::I32(self.tensors.len() as i32));
        }
        volumes
    }

    /// The bytes of the file, with each tensor padded to the alignment.
    pub fn build(&self) -> Vec<u8> {
        let entry = |tensor: &Tensor| TensorEntry {
            name: tensor.name.clone(),
            ne: tensor.ne.clone(),
            type_id: tensor.type_id,
            len: tensor.bytes.len() as u64,
        };
        let header = Header {
            version: self.version,
            alignment: self.alignment,
            metadata: self.metadata.iter().map(|(key, kv)| (key.clone(), kv.into())).collect(),
            tensors: self.tensors.iter().map(entry).collect(),
        };
        let mut bytes = Vec::new();
        let written = header.write_file(&mut bytes, |i, out| out.write_all(&self.tensors[i].bytes));
        written.expect("memory takes everything");
        bytes
    }
}

impl From<&Kv> for Value {
    fn from(kv: &Kv) -> Self {
        match kv {
            Kv::U32(v) => Self::U32(*v),
            Kv::I32(v) => Self::I32(*v),
            Kv::U64(v) => Self::U64(*v),
            Kv::F32(v) => Self::F32(*v),
            Kv::Bool(v) => Self::Bool(*v),
            Kv::Str(v) => Self::String(v.clone().into()),
            Kv::Strs(v) => Self::Strings(v.iter().collect()),
            Kv::I32s(v) => Self::Numbers(v.iter().copied().collect()),
            Kv::F32s(v) => Self::Numbers(v.iter().copied().collect()),
            Kv::Read(v) => v.clone(),
        }
    }
}

/// The character that stands for a byte in GPT-2's alphabet. Printable Latin-1 characters stand for
/// themselves; the other bytes get the characters from U+0100 on.
pub fn byte_char(byte: u8) -> char {
    let printable = |b: u8| matches!(b, 33..=126 | 161..=172 | 174..=255);
    if printable(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|&b| !printable(b)).count() as u32;
    char::from_u32(0x100 + rank).unwrap()
}
