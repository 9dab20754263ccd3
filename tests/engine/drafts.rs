//! Several tokens in one step give the same bits as one token after another. On SwiftShader these tests
//! take over ten seconds, because they run hundreds of steps.

use std::rc::Rc;
use tritloom::compute::{Choice, Choosing};
use tritloom::engine::{Engine, MAX_BATCH_STEPS};

use tritloom::kernels::SHORT;
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::KvType;

use crate::setup::{Setup, engine, engine_of, noise};
use crate::support::path;

/// A greedy choice with log-probabilities and a few biases.
fn with_logprobs() -> Choosing {
    let bias = [(3, 1.5), (100, 0.25), (260, -2.0)].into_iter().collect();
    Choosing { bias: Rc::new(bias), logprobs: Some(3), ..Choosing::default() }
}

/// Runs `ids` in draft passes of up to `n` tokens. Returns the choice after each, and the logits
/// after one more token.
fn choices(engine: &Engine, ids: &[u32], mut pos: usize, n: usize) -> (Vec<Choice>, Vec<f32>) {
    let mut chosen = Vec::new();
    while chosen.len() < ids.len() {
        let rest = &ids[chosen.len()..];
        let draft = &rest[..rest.len().min(n).min(engine.few_at(pos))];
        let found = match draft {
            [_] => block_on(engine.prefill_and_sample(draft, pos, pos).take()),
            _ => block_on(engine.decode_and_choose(draft, pos, &[]).take()),
        };
        pos += draft.len();
        chosen.extend(found.unwrap());
    }
    let logits = block_on(engine.prefill_and_read(&[5], pos, pos).take()).unwrap();
    (chosen, logits)
}

/// The positions include the first, those around [`SHORT`], from where on a card takes another kernel of
/// attention and longer splits, and those around 1537, from where on splits are longer again. Far into the context,
/// only the first and the last positions of the cache are filled. The rest of the cache is the same
/// for all runs.
#[test]
fn a_draft_pass_equals_steps_of_one_token() {
    let card = || Setup::default().like_a_card();
    for setup in [Setup::default(), card().no_subgroups(), card().kv(KvType::Int8)] {
        let engine = engine(&setup);
        let ids = noise(1600);
        for (cached, n) in [(0, 11), (SHORT - 8, 16), (1525, 20)] {
            engine.set_choosing(&if cached == SHORT - 8 {
                with_logprobs()
            } else {
                Choosing::default()
            });
            engine.count(&[], &[]);
            let filled = cached.min(engine.chunk()).min(64);
            for pos in [0, cached - filled].into_iter().filter(|_| filled > 0) {
                let chunk = pos..pos + filled;
                block_on(engine.prefill(&ids[chunk.clone()], pos, chunk).take()).unwrap();
            }
            let ids = &ids[cached..cached + n];
            let one_by_one = choices(&engine, ids, cached, 1);
            for n in [8, 5, 2] {
                assert_eq!(choices(&engine, ids, cached, n), one_by_one, "{n} at {cached}");
            }
        }
    }
}

/// Each step of a batch finds its own token and position, even when other batches are submitted
/// behind it.
#[test]
fn batches_are_steps_one_by_one() {
    for setup in [Setup::default(), Setup::default().like_a_card().no_subgroups()] {
        check_batches(&engine(&setup));
    }
}

fn check_batches(engine: &Engine) {
    /// From here, the batches go beyond a short text.
    const START: usize = SHORT - 8;
    let prompt = noise(START);
    let drawn = Sampling { temperature: 2.0, seed: 3, ..Sampling::default() };
    let filtered = Sampling { top_k: 50, top_p: 0.9, ..drawn };
    let settings = [drawn.into(), filtered.into(), Choosing::default(), with_logprobs()];
    for choosing in settings.into_iter().chain([Choosing { sampling: filtered, ..with_logprobs() }])
    {
        engine.set_choosing(&choosing);
        engine.count(&[], &[]);
        // Only the last positions are filled. Those before are the same for both runs.
        let start = || {
            let last = START - 8;
            block_on(engine.prefill_and_sample(&prompt[last..], last, last).take()).unwrap()
        };
        let batches = [1, MAX_BATCH_STEPS, 2, MAX_BATCH_STEPS, MAX_BATCH_STEPS, 3];
        let n = batches.iter().sum::<usize>();
        assert!(START + n > SHORT);
        let first = start();
        let one_by_one: Vec<Choice> = (START..START + n)
            .flat_map(|pos| block_on(engine.decode_and_sample(pos, 1).take()).unwrap())
            .collect();
        assert_eq!(start(), first);
        let mut pos = START;
        let submitted: Vec<_> = batches
            .into_iter()
            .map(|n| {
                pos += n;
                engine.decode_and_sample(pos - n, n)
            })
            .collect();
        let together: Vec<Choice> =
            submitted.into_iter().flat_map(|batch| block_on(batch.take()).unwrap()).collect();
        assert_eq!(together, one_by_one, "{choosing:?}");
    }
}

/// The same with packed matrices, whose sums are floats, and without sub-norms: one token and several
/// take other kernels.
#[test]
fn a_draft_pass_of_other_families_equals_steps_of_one_token() {
    use KvType::{F16, Int8};
    for (model, kv) in [
        ("qwen3-yarn-q2_0", F16),
        ("qwen3-yarn-q2_0", Int8),
        ("llama-tq1_0", F16),
        ("llama-i2_s", F16),
    ] {
        let bytes = std::fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap();
        let engine = engine_of(&Setup::default().like_a_card().kv(kv), &bytes);
        engine.set_choosing(&Choosing::default());
        let ids: Vec<u32> = noise(40).into_iter().map(|id| id % 256).collect();
        block_on(engine.prefill(&ids[..24], 0, 0..24).take()).unwrap();
        let one_by_one = choices(&engine, &ids[24..], 24, 1);
        for n in [8, 3] {
            assert_eq!(choices(&engine, &ids[24..], 24, n), one_by_one, "{model}, {kv:?}, {n}");
        }
    }
}
