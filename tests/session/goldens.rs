//! Every way to run a model of two layers gives the golden greedy texts, token by token to the end.
//!
//! Every lead in `tests/data/golden` is above 2, and a rounding changes far less. So any difference
//! is an error. `tests/reference.rs` shows that every tensor of the model affects the tokens.
//! `tests/web/goldens.spec.ts` has the texts from SwiftShader, which takes minutes for these tests.

use std::time::Duration;

use tritloom::session::{FinishReason, GenerateOptions, KvType, LmHead, Session, Stats};

use crate::setup::{Golden, Goldens, Setup, generate, greedy};

/// Loads the model and generates all texts, with prompt lookup and without.
#[track_caller]
fn check(setup: &Setup, kernels: &[&str]) -> Session {
    let mut session = setup.golden();
    let found = &session.info().kernels;
    for kernel in kernels {
        assert!(found.iter().any(|name| name == kernel), "no {kernel} in {found:?}");
    }
    check_texts(&mut session);
    session
}

#[track_caller]
fn check_texts(session: &mut Session) {
    let context = session.info().context_length;
    let (mut drafted, mut accepted) = (0, 0);
    for golden in &Goldens::golden().prompts {
        // With small bindings the cache is small: the long prompt does not fit.
        if golden.ids.len() + golden.greedy.len() > context {
            assert_eq!(golden.name, "long", "the context is {context}");
            continue;
        }
        for prompt_lookup in [false, true] {
            let options = GenerateOptions {
                prompt_lookup: Some(prompt_lookup),
                ..greedy(golden.greedy.len())
            };
            let stats = check_text(session, golden, &options);
            drafted += stats.drafted_tokens;
            accepted += stats.accepted_tokens;
        }
    }
    assert!(accepted > 0, "no drafted token was right");
    assert!(drafted > accepted, "no drafted token was wrong");
}

#[track_caller]
fn check_text(session: &mut Session, golden: &Golden, options: &GenerateOptions) -> Stats {
    let found = generate(session, &golden.ids, options).unwrap();
    let what = format!("{}, prompt lookup {:?}", golden.name, options.prompt_lookup);
    assert_eq!(found.ids, golden.expected(), "{what}");
    assert_eq!(found.text, golden.greedy_text, "{what}");
    let reason = if golden.greedy_stopped { FinishReason::Stop } else { FinishReason::Length };
    assert_eq!(found.stats.finish_reason, reason, "{what}");
    found.stats
}

#[test]
fn defaults_give_the_goldens() {
    let session = check(&Setup::default(), &["attention"]);
    let longest = Goldens::golden().prompts.iter().map(|golden| golden.ids.len()).max();
    assert!(longest > Some(512), "no prompt is longer than a card's chunk");
    if Setup::default().open().subgroups.is_some() {
        let kernels = &session.info().kernels;
        assert!(kernels.iter().any(|name| name == "gemv_i2s/subgroup"), "{kernels:?}");
    }
}

#[test]
fn no_subgroups_give_the_goldens() {
    let session = check(&Setup::default().no_subgroups(), &["gemv_i2s/workgroup"]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().all(|kernel| !kernel.ends_with("/subgroup")), "{kernels:?}");
}

#[test]
fn an_f32_cache_gives_the_goldens() {
    check(&Setup::default().kv(KvType::F32), &[]);
}

/// The rounding of keys and values to int8 changes no logit by half of the least lead.
#[test]
fn an_int8_cache_gives_the_goldens() {
    check(&Setup::default().kv(KvType::Int8), &["attention"]);
    let setup = Setup::default().like_a_card().kv(KvType::Int8);
    check(&setup, &["attention_prefill"]);
}

/// Runs steps one after another, then several in flight.
#[test]
fn card_tuning_gives_the_goldens() {
    let kernels = ["gemm_i2s", "attention_prefill"];
    let mut session = check(&Setup::default().like_a_card(), &kernels);
    session.suppose_steps_of(Duration::from_millis(1));
    check_texts(&mut session);
}

#[test]
fn card_tuning_without_subgroups_with_an_f32_cache_gives_the_goldens() {
    check(&Setup::default().like_a_card().no_subgroups().kv(KvType::F32), &["gemm_i2s"]);
}

#[test]
fn card_tuning_without_packed_dot_gives_the_goldens() {
    check(&Setup::default().like_a_card().packed_dot(Some(false)), &["gemm_i2s/no-packed-dot"]);
}

#[test]
fn an_int8_lm_head_gives_the_goldens() {
    let session = check(&Setup::default().lm_head(LmHead::Int8), &[]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|name| name.starts_with("rescore")), "{kernels:?}");
}

/// The bindings are so small that the embedding is in three buffers. Each further buffer takes one
/// dispatch more to compute logits.
#[test]
fn shards_give_the_goldens() {
    let whole = Setup::default().golden().info().dispatches_per_token;
    let mut setup = Setup::default();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(64 << 10);
    let session = check(&setup, &[]);
    // One dispatch looks tokens up in all three shards.
    assert_eq!(session.info().dispatches_per_token, whole + 2);

    let mut setup = Setup::default().like_a_card().lm_head(LmHead::Int8);
    setup.gpu.limits.max_storage_buffer_binding_size = Some(96 << 10);
    let session = check(&setup, &["gemm_i2s"]);
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|name| name.starts_with("rescore")), "{kernels:?}");
}
