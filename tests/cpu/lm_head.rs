//! A split LM head gives the tokens and the logits of one that is as in the file, to the bit. The hard
//! values are in `src/cpu/candidates.rs`.

use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, LmHead, Session};

use crate::setup::{Goldens, Setup, generate, greedy, small};
use crate::support::{BF16, F32, assert_error};

fn is_split(session: &Session) -> bool {
    session.info().kernels.iter().any(|name| name.starts_with("upper bytes/"))
}

#[test]
fn both_lm_heads_give_the_same_tokens_and_logits() {
    let goldens = Goldens::golden();
    let ids = &goldens.prompt("once").ids;
    let of = |lm_head: LmHead| {
        let mut session = Setup::default().on_cpu().threads(2).lm_head(lm_head).golden();
        assert_eq!(is_split(&session), lm_head == LmHead::Int8);
        let mut tokens = Vec::new();
        for prompt_lookup in [false, true] {
            let options = GenerateOptions { prompt_lookup: Some(prompt_lookup), ..greedy(40) };
            tokens.push(generate(&mut session, ids, &options).unwrap().ids);
        }
        let hot = Sampling { temperature: 8.0, seed: 3, ..Sampling::default() };
        let penalized = Sampling { repeat_penalty: 5.0, ..Sampling::default() };
        for sampling in [hot, penalized] {
            let options = GenerateOptions { sampling, ..greedy(20) };
            tokens.push(generate(&mut session, ids, &options).unwrap().ids);
        }
        assert!(tokens[2..].iter().all(|drawn| *drawn != tokens[0][..drawn.len()]));
        let logits = block_on(session.logits(ids)).unwrap();
        let bits: Vec<u32> = logits.into_iter().map(f32::to_bits).collect();
        ((tokens, bits), session.info().bytes_per_token)
    };
    let [(int8, half), (f16, whole)] = [LmHead::Int8, LmHead::F16].map(of);
    assert!(int8 == f16);
    // The lower bytes of all rows of 128 values but one are not read.
    assert_eq!(whole - half, 128 * (f16.1.len() as u64 - 1));
}

#[test]
fn an_embedding_that_cannot_be_int8_is_refused() {
    for (ty, bytes) in [(F32, 4), (BF16, 2)] {
        let mut file = small();
        let tensor = file.tensor("token_embd.weight");
        tensor.type_id = ty;
        tensor.bytes = vec![0; tensor.bytes.len() / 2 * bytes];
        let bytes = file.build();
        let setup = |lm_head| Setup::default().on_cpu().lm_head(lm_head);
        for fine in [LmHead::Auto, LmHead::F16] {
            assert!(!is_split(&setup(fine).load(&bytes).unwrap()));
        }
        let refused = setup(LmHead::Int8).load(&bytes).map(|_| ());
        assert_error(refused, "bad-option", &["lmHead", "int8", "F16"]);
    }
}
