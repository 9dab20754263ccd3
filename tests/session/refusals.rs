//! Impossible requests are refused with a code and the facts, and change nothing.

use std::rc::Rc;

use tritloom::gpu::{Gpu, GpuOptions};
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, KvType, Session};

use crate::setup::{Setup, generate, greedy, small};
use crate::support::{Kv, assert_error};

#[test]
fn bad_prompts_are_refused_before_any_work() {
    let mut session = Setup::default().on_reference().context(32).small();
    let n_vocab = session.info().vocab_size as u32;
    let expected = generate(&mut session, &[1, 2, 3], &greedy(5)).unwrap();
    let too_long = vec![1; 33];
    for (ids, code, facts) in [
        (&[][..], "bad-option", &["prompt", "empty"][..]),
        (&[1, n_vocab, 2], "bad-option", &["prompt", "264", "263"]),
        (&[u32::MAX], "bad-option", &["prompt", "4294967295"]),
        (&too_long, "context-full", &["33", "32"]),
    ] {
        assert_error(generate(&mut session, ids, &greedy(5)).map(|_| ()), code, facts);
        assert_error(block_on(session.logits(ids)), code, facts);
    }
    let found = generate(&mut session, &[1, 2, 3], &greedy(5)).unwrap();
    assert_eq!((found.ids, found.stats.reused_tokens), (expected.ids, 2));
}

#[test]
fn bad_sampling_is_refused() {
    let mut session = Setup::default().on_reference().small();
    let fine = Sampling { temperature: 1.0, ..Sampling::default() };
    for (sampling, name) in [
        (Sampling { temperature: f32::NAN, ..fine }, "temperature"),
        (Sampling { temperature: -0.5, ..fine }, "temperature"),
        (Sampling { temperature: f32::INFINITY, ..fine }, "temperature"),
        (Sampling { top_p: 0.0, ..fine }, "topP"),
        (Sampling { top_p: 1.5, ..fine }, "topP"),
        (Sampling { top_p: f32::NAN, ..fine }, "topP"),
        (Sampling { min_p: -0.1, ..fine }, "minP"),
        (Sampling { min_p: 2.0, ..fine }, "minP"),
        (Sampling { min_p: f32::NAN, ..fine }, "minP"),
        (Sampling { repeat_penalty: 0.0, ..fine }, "repeatPenalty"),
        (Sampling { repeat_penalty: f32::INFINITY, ..fine }, "repeatPenalty"),
        (Sampling { repeat_penalty: f32::NAN, ..fine }, "repeatPenalty"),
        (Sampling { presence_penalty: -2.5, ..fine }, "presencePenalty"),
        (Sampling { presence_penalty: f32::NAN, ..fine }, "presencePenalty"),
        (Sampling { frequency_penalty: 2.5, ..fine }, "frequencyPenalty"),
        (Sampling { frequency_penalty: f32::NAN, ..fine }, "frequencyPenalty"),
    ] {
        let options = GenerateOptions { sampling, ..greedy(3) };
        assert_error(generate(&mut session, &[1], &options).map(|_| ()), "bad-option", &[name]);
    }
    let bias = |id: u32, bias: f32| GenerateOptions {
        logit_bias: Rc::new([(5, 1.0), (id, bias)].into_iter().collect()),
        ..greedy(3)
    };
    for (options, facts) in [
        (bias(264, 1.0), &["logitBias", "264", "263"][..]),
        (bias(7, 100.5), &["logitBias", "100", "token 7"]),
        (bias(7, f32::NAN), &["logitBias", "token 7"]),
        (GenerateOptions { logprobs: Some(21), ..greedy(3) }, &["logprobs", "20"]),
        (GenerateOptions { max_thinking_tokens: Some(0), ..greedy(3) }, &["maxThinkingTokens"]),
    ] {
        assert_error(generate(&mut session, &[1], &options).map(|_| ()), "bad-option", facts);
    }
    assert_eq!(generate(&mut session, &[1], &greedy(3)).unwrap().ids.len(), 3);
}

#[test]
fn bad_load_options_are_refused() {
    let bytes = small().build();
    let load = |setup: Setup| setup.load(&bytes).map(|_: Session| ());
    assert_error(load(Setup::default().context(0)), "bad-option", &["context"]);
    assert_error(load(Setup::default().context(1025)), "bad-option", &["context", "1025", "1024"]);

    // 1024 positions of one KV head of 64 values in f32 are 256 KiB.
    let mut capped = Setup::default().kv(KvType::F32).context(1024);
    capped.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    assert_error(load(capped), "out-of-memory", &["262144", "131072"]);
    let mut fitting = Setup::default().kv(KvType::F32);
    fitting.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    let mut session = fitting.load(&bytes).unwrap();
    assert_eq!(session.info().context_length, 512);
    assert_eq!(generate(&mut session, &[1], &greedy(3)).unwrap().ids.len(), 3);

    // The same matrices, in heads of 8.
    let mut short = small();
    short.set("bitnet-b1.58.attention.head_count", Kv::U32(16));
    short.set("bitnet-b1.58.attention.head_count_kv", Kv::U32(8));
    short.set("bitnet-b1.58.rope.dimension_count", Kv::U32(8));
    let load = |kv| Setup::default().kv(kv).load(&short.build()).map(|_: Session| ());
    load(KvType::F16).unwrap();
    assert_error(load(KvType::Int8), "bad-option", &["kv", "int8", "16", "not of 8"]);
}

#[test]
fn bad_gpu_options_are_refused() {
    let open = |options: GpuOptions| block_on(Gpu::open(&options)).map(|_| ());
    let power = GpuOptions { power_preference: Some("most".into()), ..GpuOptions::default() };
    assert_error(open(power), "bad-option", &["gpu.powerPreference", "most"]);
    for limit in [0, 4096, 65_535] {
        let mut options = GpuOptions::default();
        options.limits.max_storage_buffer_binding_size = Some(limit);
        assert_error(open(options), "missing-feature", &["65536"]);
        let mut options = GpuOptions::default();
        options.limits.max_buffer_size = Some(limit);
        assert_error(open(options), "missing-feature", &["65536"]);
    }
    for preference in ["low-power", "high-performance"] {
        let power =
            GpuOptions { power_preference: Some(preference.into()), ..GpuOptions::default() };
        open(power).unwrap();
    }
}
