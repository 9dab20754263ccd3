//! The same weights in another format give the same logits.

use half::{bf16, f16};
use tritloom::engine::UPLOAD;
use tritloom::gguf::TensorType;
use tritloom::gguf::type_id::{Q1_0, Q2_0, Q4_0, Q4_K, Q6_K, Q8_0};
use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, KvType, LmHead, Session};
use tritloom::source::Reader;
use tritloom::ternary::{Layout, TAIL, pack, unpack};

use crate::setup::{Setup, cosine, generate, greedy, small};
use crate::support::families::distance;
use crate::support::{BF16, F16, F32, I2_S, Random, Sizes, block_type_of, llama, path};

const IDS: [u32; 6] = [3, 1, 4, 1, 5, 259];

fn logits(session: &mut Session) -> Vec<f32> {
    block_on(session.logits(&IDS)).unwrap()
}

#[test]
fn the_arm_layout_is_read() {
    let mut file = small();
    let expected = logits(&mut Setup::default().load(&file.build()).unwrap());
    for tensor in file.tensors.iter_mut().filter(|tensor| tensor.type_id == I2_S) {
        let n = tensor.bytes.len() - TAIL;
        let values = unpack(&tensor.bytes[..n], Layout::X86);
        tensor.bytes[..n].copy_from_slice(&pack(&values, Layout::Arm));
    }
    let mut setup = Setup::default();
    assert_ne!(logits(&mut setup.load(&file.build()).unwrap()), expected);
    setup.load.engine.i2s_arm = true;
    assert_eq!(logits(&mut setup.load(&file.build()).unwrap()), expected);
}

#[test]
fn embeddings_may_be_f32_and_bf16() {
    let mut file = small();
    let expected = logits(&mut Setup::default().load(&file.build()).unwrap());
    let halves = file.tensor("token_embd.weight").bytes.clone();
    let values: Vec<f32> =
        halves.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect();

    let tensor = file.tensor("token_embd.weight");
    tensor.type_id = F32;
    tensor.bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let found = logits(&mut Setup::default().load(&file.build()).unwrap());
    assert!(cosine(&found, &expected) > 0.99999);

    // BF16 keeps eight of the eleven bits.
    let tensor = file.tensor("token_embd.weight");
    tensor.type_id = BF16;
    tensor.bytes = values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
    let found = logits(&mut Setup::default().load(&file.build()).unwrap());
    assert!(cosine(&found, &expected) > 0.99, "{}", cosine(&found, &expected));
}

const EMBEDDING: &str = "token_embd.weight";

/// Rounds nothing but sums.
fn exact(setup: Setup) -> Setup {
    setup.float_activations().kv(KvType::F32)
}

/// With shards of at most `bytes` bytes.
fn in_shards(mut setup: Setup, bytes: u64) -> Setup {
    setup.gpu.limits.max_storage_buffer_binding_size = Some(bytes);
    setup
}

/// The reference's logits after the last of `ids`.
fn expected(file: &[u8], ids: &[u32]) -> Vec<f32> {
    let mut reference = block_on(Reference::load(&mut Reader::new(file))).unwrap();
    reference.forward(ids).unwrap().pop().unwrap()
}

/// Loads `file` and compares its logits with the reference's, which has the values of `ty` as f32.
fn check(ty: TensorType, file: &[u8], setup: Setup, ids: &[u32]) {
    let found = block_on(setup.load(file).unwrap().logits(ids)).unwrap();
    let off = distance(&found, &expected(file, ids));
    assert!(off < 1e-5, "{ty}: {off:.2e}");
}

/// A type of each number of bits and of each kind of scales. A slice ends within a shard, and a shard
/// within a slice.
#[test]
fn packed_embeddings_longer_than_a_slice_are_read() {
    let n_embd = 512;
    for type_id in [Q1_0, Q2_0, Q4_0, Q4_K, Q6_K, Q8_0] {
        let row = block_type_of(type_id);
        let n_vocab = UPLOAD / (n_embd / row.elements * row.bytes) * 5 / 4;
        let sizes = Sizes { n_vocab, n_embd, n_layer: 1, n_head: 1, n_ff: 64 };
        let file = llama(sizes, |name| if name == "token_embd" { type_id } else { Q2_0 }).build();
        // Rows of both shards and of both slices, the first and the last one too.
        let ids = [0, 1, 3, 5, 4].map(|fifths| (n_vocab * fifths / 5).min(n_vocab - 1) as u32);
        check(row.ty, &file, in_shards(exact(Setup::default()), 700 << 10), &ids);
    }
}

/// A row of 256 has an f16 and 16 factors in Q6_K, and eight f16 in Q8_0. The codes of both have 8 bits.
#[test]
fn scales_of_q6_k_take_as_much_as_in_the_file() {
    let [q6_k, q8_0] = ["q6_k", "q8_0"].map(|ty| {
        let file = format!("tests/data/models/bitnet-b1.58-embd-{ty}.gguf");
        let session = Setup::default().load(&std::fs::read(path(&file)).unwrap()).unwrap();
        session.info().bytes_per_token
    });
    // A token reads every row, and one a second time. A row has an even number of f16.
    assert_eq!(q6_k - q8_0, (288 + 1) * (2 * 2 + 16 - 8 * 2));
}

/// In `llama`, the rows of a head of q and k change positions.
#[test]
fn packed_heads_longer_than_a_slice_are_read() {
    for type_id in [Q2_0, Q4_0] {
        let sizes = Sizes { n_vocab: 264, n_embd: 1024, n_layer: 1, n_head: 64, n_ff: 64 };
        let mut file = llama(sizes, |_| type_id);
        assert!(file.tensor("blk.0.attn_q.weight").bytes.len() > UPLOAD);
        let ty = block_type_of(type_id).ty;
        check(ty, &file.build(), in_shards(exact(Setup::default()), 1 << 20), &[3, 1, 4, 1, 5]);
    }
}

/// llama.cpp falls back to Q4_0 where rows do not divide by the blocks of a ternary type. Here the values
/// of such a matrix are ternary, so that the same model can have it in both types.
#[test]
fn a_matrix_of_q4_0_may_be_beside_ternary_ones() {
    let sizes = Sizes { n_vocab: 264, n_embd: 256, n_layer: 2, n_head: 4, n_ff: 320 };
    let mut file = llama(sizes, |_| Q2_0);
    let ternary = file.build();
    let down = file.tensor("blk.1.ffn_down.weight");
    let (mut codes, row) = (Vec::new(), block_type_of(down.type_id));
    row.unpack(&down.bytes, &mut codes, &mut Vec::new(), &mut Vec::new()).unwrap();
    let scales = down.bytes.chunks(row.bytes).flat_map(|block| [&block[..2]; 2]);
    let blocks = codes.chunks(32).zip(scales).flat_map(|(codes, scale)| {
        // In Q4_0, 8 stands for zero.
        let nibbles = (0..16).map(|i| (codes[i] + 7) | (codes[16 + i] + 7) << 4);
        scale.iter().copied().chain(nibbles)
    });
    down.bytes = blocks.collect();
    down.type_id = Q4_0;
    let mixed = file.build();

    let ids: Vec<u32> = (0..40).map(|i| i * 37 % 264).collect();
    let expected = expected(&ternary, &ids);
    assert_eq!(self::expected(&mixed, &ids), expected);
    for setup in [Setup::default as fn() -> Setup, || Setup::default().like_a_card()] {
        // An int8 is off by up to 1/254 of its group's largest value.
        for (setup, allowed) in [(exact(setup()), 1e-5), (setup(), 2e-2)] {
            let mut session = setup.load(&mixed).unwrap();
            // A chunk, then a single token.
            block_on(session.logits(&ids[..39])).unwrap();
            let off = distance(&block_on(session.logits(&ids)).unwrap(), &expected);
            assert!(off < allowed, "{off:.2e}, {:?}", session.info().kernels);
        }
    }
}

/// Such rows pad the vocabulary. Here each would have the largest logit by far, or the smallest, and one
/// slice of the file has no other rows.
#[test]
fn rows_beyond_the_tokens_are_never_chosen() {
    // Enough for two shards of 64 KiB or more.
    let (n_embd, n_vocab) = (128, 600);
    let hot = Sampling { temperature: 2.0, seed: 3, ..Sampling::default() };
    let settings = [Sampling::default(), hot, Sampling { top_k: 40, ..hot }];
    let answers = |session: &mut Session| {
        let texts = settings.map(|sampling| {
            let options = GenerateOptions { sampling, ..greedy(8) };
            generate(session, &IDS, &options).unwrap().ids
        });
        (texts, logits(session))
    };
    let ways: [fn() -> Setup; 2] =
        [Setup::default, || in_shards(Setup::default().like_a_card(), 64 << 10)];
    for (type_id, lm_heads) in [(F16, &[LmHead::F16, LmHead::Int8][..]), (Q8_0, &[LmHead::Auto])] {
        let mut file = small();
        file.widen_vocabulary(n_vocab);
        file.tensors.retain(|tensor| tensor.name != EMBEDDING);
        file.add(EMBEDDING, &[n_embd, n_vocab as u64], type_id, &mut Random(5));
        let plain = file.build();

        let row = |sign: f32| -> Vec<u8> {
            let large = f16::from_f32(sign * 60_000.0).to_le_bytes();
            match type_id {
                F16 => large.repeat(n_embd as usize),
                // The scale and 32 codes.
                _ => [&large[..], &[127; 32]].concat().repeat(n_embd as usize / 32),
            }
        };
        let tensor = file.tensor(EMBEDDING);
        for n in 0..=UPLOAD / row(1.0).len() {
            tensor.bytes.extend(row([1.0, -1.0][n % 2]));
            tensor.ne[1] += 1;
        }
        let padded = file.build();
        for setup in ways {
            for &lm_head in lm_heads {
                let [plain, padded] = [&plain, &padded]
                    .map(|file| answers(&mut setup().lm_head(lm_head).load(file).unwrap()));
                assert!(padded == plain, "{type_id}, {lm_head:?}: {padded:?}");
            }
        }
    }
}
