//! Both forms of the LM head give the same tokens and the same logits, to the bit.

use std::rc::Rc;

use half::f16;
use tritloom::compute::Choosing;
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, LmHead, Session};

use crate::setup::{Goldens, Setup, engine_of, generate, greedy, small};
use crate::support::{BF16, F32, File, assert_error, path};

/// The LM head's kernels, without their variants.
fn lm_head(session: &Session) -> Vec<&str> {
    lm_head_of(session.info().kernels.iter().map(|name| &**name))
}

fn lm_head_of<'a>(kernels: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let kernels = kernels.into_iter().map(|name| name.split('/').next().unwrap());
    kernels.filter(|name| F16_HEAD.iter().chain(&INT8_HEAD).any(|known| known == name)).collect()
}

const F16_HEAD: [&str; 1] = ["gemv_lm_head"];
const INT8_HEAD: [&str; 6] = [
    "gemv_lm_head_split",
    "gemv_upper",
    "penalize_upper",
    "rescore",
    "rescore_kept",
    "rescore_rest",
];

/// The defaults; without subgroups; with a card's tuning; with a card's tuning in shards.
fn setups() -> [Setup; 4] {
    let mut sharded = Setup::default().like_a_card();
    sharded.gpu.limits.max_storage_buffer_binding_size = Some(64 << 10);
    [
        Setup::default(),
        Setup::default().no_subgroups(),
        Setup::default().no_subgroups().like_a_card(),
        sharded,
    ]
}

#[test]
fn both_lm_heads_give_the_same_tokens_and_logits() {
    let goldens = Goldens::golden();
    let golden = goldens.prompt("once");
    let answers = |session: &mut Session| {
        let best = generate(session, &golden.ids, &greedy(40)).unwrap().ids;
        let hot = Sampling { temperature: 8.0, seed: 3, ..Sampling::default() };
        // The first needs all logits, the others only those of tokens that may be kept.
        let settings = [
            Sampling { top_k: 40, ..hot },
            Sampling { min_p: 0.65, ..hot },
            Sampling { top_p: 0.99, temperature: 1.0, ..hot },
        ];
        let drawn = settings.map(|sampling| {
            let options = GenerateOptions { sampling, ..greedy(20) };
            let drawn = generate(session, &golden.ids, &options).unwrap().ids;
            assert_ne!(drawn, best[..drawn.len()], "the best tokens were drawn");
            drawn
        });
        let adjusted = [0.0, 8.0].map(|temperature| {
            let sampling =
                Sampling { temperature, repeat_penalty: 1.2, frequency_penalty: 0.5, ..hot };
            let logit_bias = Rc::new([(best[0], -2.0), (best[1], 0.5)].into_iter().collect());
            let options = GenerateOptions { sampling, logit_bias, ..greedy(30) };
            let adjusted = generate(session, &golden.ids, &options).unwrap().ids;
            assert_ne!(adjusted, best[..adjusted.len()], "biases and penalties matter");
            adjusted
        });
        let logits = block_on(session.logits(&golden.ids)).unwrap();
        let bits: Vec<u32> = logits.iter().map(|v| v.to_bits()).collect();
        (best, drawn, adjusted, bits)
    };
    for setup in setups() {
        let mut setup = setup.lm_head(LmHead::F16);
        let mut session = setup.golden();
        assert_eq!(lm_head(&session), F16_HEAD);
        let expected = answers(&mut session);
        let (bytes, dispatches) = (session.info().gpu_bytes, session.info().dispatches_per_token);
        let embedding = session.info().vocab_size as u64 * 128 * 2;
        drop(session);

        setup.load.engine.lm_head = LmHead::Int8;
        let mut session = setup.golden();
        assert_eq!(lm_head(&session), INT8_HEAD);
        assert!(answers(&mut session) == expected, "{:?}", session.info().kernels);
        // There is no copy of the embedding. Three shards take a dispatch each, and one that finds the
        // best token; or one for their upper bytes, and two that rescore.
        let more = session.info().gpu_bytes - bytes;
        assert!(more < embedding / 8, "{more} bytes more");
        let fewer = dispatches - session.info().dispatches_per_token;
        let sharded = setup.gpu.limits.max_storage_buffer_binding_size.is_some();
        assert_eq!(fewer, usize::from(sharded));
    }
}

/// A token reads half of a split LM head, unless its choice takes all logits.
#[test]
fn tokens_read_half_of_a_split_lm_head() {
    let file = std::fs::read(path("tests/data/golden/golden.gguf")).unwrap();
    let [split, whole] = [LmHead::Int8, LmHead::F16].map(|lm_head| {
        engine_of(&Setup::default().no_subgroups().like_a_card().lm_head(lm_head), &file)
    });
    let drawn = Sampling { temperature: 1.0, ..Sampling::default() };
    let best = ["gemv_upper", "rescore"];
    let adjusted = ["gemv_upper", "penalize_upper", "rescore"];
    let kept = ["gemv_upper", "rescore_kept"];
    let by_share = ["gemv_upper", "rescore_kept", "rescore_rest"];
    let all = ["gemv_lm_head_split"];
    let bias = Rc::new([(7, 2.0)].into_iter().collect());
    let penalized = Sampling { repeat_penalty: 1.1, ..Sampling::default() };
    let cases: [(Choosing, &[&str]); 15] = [
        (Sampling::default().into(), &best),
        (drawn.into(), &best),
        (Choosing { bias, ..drawn.into() }, &adjusted),
        (penalized.into(), &adjusted),
        (Sampling { repeat_penalty: 17.0, ..penalized }.into(), &all),
        (Sampling { repeat_penalty: 1.1, top_k: 1, ..drawn }.into(), &all),
        (Sampling { top_k: 1, ..drawn }.into(), &kept),
        (Sampling { min_p: 0.1, ..drawn }.into(), &kept),
        // A vocabulary of 606 tokens is too small for more of them.
        (Sampling { top_k: 2, ..drawn }.into(), &all),
        (Sampling { top_k: 2, top_p: 0.9, ..drawn }.into(), &all),
        (Sampling { top_p: 0.9, ..drawn }.into(), &by_share),
        (Sampling { top_p: 0.9, min_p: 0.1, ..drawn }.into(), &by_share),
        // Many tokens share the weight.
        (Sampling { top_p: 0.995, ..drawn }.into(), &all),
        (Sampling { top_p: 0.9, temperature: 1.5, ..drawn }.into(), &all),
        (Choosing { logprobs: Some(0), ..Choosing::default() }, &all),
    ];
    for (choosing, kernels) in cases {
        for (engine, kernels) in [(&split, kernels), (&whole, &["gemv_lm_head"])] {
            engine.set_choosing(&choosing);
            assert_eq!(lm_head_of(engine.kernels_of_token()), kernels, "{choosing:?}");
        }
    }
}

/// Replaces the embedding of `file`: `value(i)` gives the values, in rows of 128.
fn with_embedding(file: &mut File, value: impl Fn(usize) -> f32) {
    let tensor = file.tensor("token_embd.weight");
    let n = tensor.bytes.len() / 2;
    tensor.bytes = (0..n).flat_map(|i| f16::from_f32(value(i)).to_le_bytes()).collect();
}

/// The upper bytes approximate these embeddings badly. More rows are read in full, but the tokens
/// are the same.
#[test]
fn hard_embeddings_give_the_same_tokens() {
    let noise = |i: usize| ((i * 7919 + i / 128 * 31) % 1009) as f32 / 1009.0 - 0.5;
    type Value<'a> = &'a dyn Fn(usize) -> f32;
    let cases: [(&str, Value); 4] = [
        ("large", &|i| 40.0 * noise(i)),
        ("equal rows", &|i| noise(i % 128)),
        ("tiny", &|i| 1e-6 * noise(i)),
        ("zeros", &|_| 0.0),
    ];
    for (name, value) in cases {
        let mut file = small();
        with_embedding(&mut file, value);
        let bytes = file.build();
        let [f16, int8] = [LmHead::F16, LmHead::Int8].map(|lm_head| {
            let mut session = Setup::default().like_a_card().lm_head(lm_head).load(&bytes).unwrap();
            generate(&mut session, &[3, 1, 4], &greedy(8)).unwrap().ids
        });
        assert_eq!(int8, f16, "{name}");
    }
}

/// `auto` splits the embedding if that is faster: on a card, if it is large, whatever its values.
#[test]
fn auto_splits_the_embedding_if_that_is_faster() {
    let mut file = small();
    let find = |file: &File, card: bool| {
        let setup = if card { Setup::default().like_a_card() } else { Setup::default() };
        let session = setup.load(&file.build()).unwrap();
        lm_head(&session) == INT8_HEAD
    };
    assert!(!find(&file, true), "66 KB are too few to split");
    widen(&mut file);
    assert!(find(&file, true));
    if !Setup::default().open().tuning.tiles {
        assert!(!find(&file, false), "a CPU takes longer with half the bytes");
    }
    with_embedding(&mut file, |i| if i % 1_000 == 0 { 200.0 } else { 0.1 });
    assert!(find(&file, true), "large values are no obstacle");
}

/// Adds tokens to the file until its embedding has 32 MiB.
fn widen(file: &mut File) {
    let n_vocab: usize = (32 << 20) / 256;
    file.widen_vocabulary(n_vocab);
    let tensor = file.tensor("token_embd.weight");
    tensor.ne[1] = n_vocab as u64;
    tensor.bytes.resize(n_vocab * 256, 0x11);
}

#[test]
fn an_embedding_that_cannot_be_int8_is_refused() {
    for (ty, bytes) in [(F32, 4), (BF16, 2)] {
        let mut file = small();
        let tensor = file.tensor("token_embd.weight");
        tensor.type_id = ty;
        tensor.bytes = vec![0; tensor.bytes.len() / 2 * bytes];
        let bytes = file.build();
        for fine in [LmHead::Auto, LmHead::F16] {
            let session = Setup::default().like_a_card().lm_head(fine).load(&bytes).unwrap();
            assert_eq!(lm_head(&session), F16_HEAD);
        }
        let refused = Setup::default().lm_head(LmHead::Int8).load(&bytes).map(|_| ());
        assert_error(refused, "bad-option", &["lmHead", "int8", "F16"]);
    }
}
