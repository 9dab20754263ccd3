//! Prompt lookup gives the same greedy text in fewer steps.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use tritloom::Result;
use tritloom::native::{Format, Formats, block_on};
use tritloom::sampling::Mask;
use tritloom::session::{FinishReason, Follow, GenerateOptions, LmHead, Session, Stats};

use crate::constraint::{N_VOCAB, Rule, ruled};
use crate::setup::{Setup, argmax, generate, greedy};
use crate::support::{F16, File, I2_S, Kv, Sizes, Tensor, llama};

/// That a draft pass of a GPU equals its steps is tested in `tests/engine/drafts.rs`.
fn setups() -> [Setup; 3] {
    [
        Setup::default().on_reference(),
        Setup::default().on_reference().like_a_fast_card(),
        Setup::default().on_cpu(),
    ]
}

fn with_lookup(lookup: bool, options: GenerateOptions) -> GenerateOptions {
    GenerateOptions { prompt_lookup: Some(lookup), ..options }
}

/// A random model whose text is the same few tokens again and again, in their order.
pub(crate) fn cycling() -> File {
    let sizes = Sizes { n_vocab: 264, n_embd: 128, n_layer: 1, n_head: 2, n_ff: 256 };
    let mut file = llama(sizes, |name| if name == "token_embd" { F16 } else { I2_S });
    file.set("llama.context_length", Kv::U32(1024));
    // Without an LM head of its own, such a model repeats a token. With this one, a token of five is followed
    // by the next of them.
    let embedding = file.tensor("token_embd.weight").clone();
    let rows: Vec<&[u8]> = embedding.bytes.chunks_exact(2 * sizes.n_embd).collect();
    let before = |n: usize| if n >= 260 { n } else { n / 5 * 5 + (n + 4) % 5 };
    let bytes = (0..rows.len()).flat_map(|n| rows[before(n)]).copied().collect();
    file.tensors.push(Tensor { name: "output.weight".into(), bytes, ..embedding });
    file
}

/// Its five tokens, several times.
pub(crate) fn cycle() -> Vec<u32> {
    (0..20).map(|n| 40 + n % 5).collect()
}

/// Asserts that a generation with prompt lookup equals one without. Gives its statistics.
fn check_same(session: &mut Session, prompt: &[u32], options: &GenerateOptions) -> Stats {
    let plain = generate(session, prompt, &with_lookup(false, options.clone())).unwrap();
    let found = generate(session, prompt, &with_lookup(true, options.clone())).unwrap();
    assert_eq!(found.ids, plain.ids);
    assert_eq!(found.text, plain.text);
    assert_eq!(found.stats.finish_reason, plain.stats.finish_reason);
    assert_eq!(plain.stats.draft_passes, 0);
    let stats = found.stats;
    assert!(stats.accepted_tokens <= stats.drafted_tokens);
    assert!(stats.drafted_tokens <= 7 * stats.draft_passes);
    stats
}

#[test]
fn a_repeated_text_takes_fewer_steps_and_stays_the_same() {
    for setup in setups() {
        let mut session = setup.load(&cycling().build()).unwrap();
        let prompt = cycle();
        let options = with_lookup(true, greedy(40));
        let found = generate(&mut session, &prompt, &options).unwrap();
        let stats = &found.stats;
        assert!(stats.draft_passes <= 6 && stats.accepted_tokens >= 24, "{stats:?}");
        check_same(&mut session, &prompt, &greedy(40));
    }
}

/// With penalties, each drafted token changes the logits after it. With weak penalties the text goes on
/// repeating itself. With strong ones it stops, in the middle of drafts.
#[test]
fn penalties_biases_and_logprobs_are_the_same_in_drafts() {
    let half = Setup::default().like_a_card().lm_head(LmHead::Int8);
    let whole = Setup::default().like_a_fast_card().no_subgroups();
    for setup in setups().into_iter().chain([half, whole]) {
        let mut session = setup.load(&cycling().build()).unwrap();
        // On a busy machine steps are slow, and fewer tokens are drafted.
        session.suppose_steps_of(Duration::from_millis(1));
        let prompt = cycle();
        // So that the cycle's next token is hardly better than the best of the other tokens.
        let logits = block_on(session.logits(&prompt)).unwrap();
        let others = (0..logits.len()).filter(|&id| !prompt.contains(&(id as u32)));
        let rival = others.map(|id| logits[id]).fold(f32::NEG_INFINITY, f32::max);
        let repeat = logits[argmax(&logits)] / (rival + 4.0);
        for (repeat, presence, frequency, weak) in
            [(1.0001, 0.0, 0.0001, true), (repeat, 0.3, 1.0, false), (repeat, 0.0, 0.7, false)]
        {
            let mut options = greedy(40);
            options.sampling.repeat_penalty = repeat;
            options.sampling.presence_penalty = presence;
            options.sampling.frequency_penalty = frequency;
            options.logit_bias = Rc::new([(3, 0.01), (100, -0.5)].into_iter().collect());
            options.logprobs = weak.then_some(2);
            let stats = check_same(&mut session, &prompt, &options);
            assert!(stats.accepted_tokens >= if weak { 24 } else { 1 }, "{stats:?}");
            assert!(weak || stats.accepted_tokens < stats.drafted_tokens, "{stats:?}");
        }
    }
}

/// A generation may end in the middle of a draft. It yields no token after its end, and the next
/// generation must be right.
#[test]
fn a_generation_may_end_anywhere_in_a_draft() {
    for setup in setups() {
        let mut session = setup.load(&cycling().build()).unwrap();
        let prompt = cycle();
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(24))).unwrap();
        for most in [4, 5, 8, 11, 12, 13, 24] {
            let found = generate(&mut session, &prompt, &with_lookup(true, greedy(most))).unwrap();
            assert_eq!(found.ids, all.ids[..most], "{most} tokens");
        }
        // The next generation continues with tokens that a draft left in the cache.
        let longer = [&prompt[..], &all.ids[..7]].concat();
        let found = generate(&mut session, &longer, &with_lookup(true, greedy(10))).unwrap();
        assert_eq!(found.ids, all.ids[7..17]);
        assert!(found.stats.reused_tokens >= prompt.len());
    }
}

/// A generation may be stopped while drafts are in flight. The next generation must be right.
#[test]
fn a_generation_may_be_stopped_while_drafts_are_in_flight() {
    for setup in setups() {
        let mut session = setup.load(&cycling().build()).unwrap();
        let prompt = cycle();
        let all = generate(&mut session, &prompt, &with_lookup(false, greedy(40))).unwrap().ids;
        for n in (1..28).chain([5, 9, 2]) {
            let mut tokens = 0;
            let stats =
                block_on(session.generate(&prompt, &with_lookup(true, greedy(40)), &mut |token| {
                    // The text of an incomplete character may follow the last token, without an id.
                    tokens += usize::from(token.id.is_some());
                    if tokens == n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }))
                .unwrap();
            assert_eq!((stats.finish_reason, tokens), (FinishReason::Abort, n));
            let longer = [&prompt[..], &all[..n]].concat();
            let options = with_lookup(n % 2 == 0, greedy(12));
            let found = generate(&mut session, &longer, &options).unwrap();
            assert_eq!(found.ids, all[n..n + 12], "after {n} tokens");
        }
    }
}

#[test]
fn a_full_context_ends_a_draft() {
    for setup in setups() {
        let mut session = setup.context(32).load(&cycling().build()).unwrap();
        let prompt = cycle();
        let found = generate(&mut session, &prompt, &with_lookup(true, GenerateOptions::default()))
            .unwrap();
        let plain =
            generate(&mut session, &prompt, &with_lookup(false, GenerateOptions::default()))
                .unwrap();
        assert_eq!(found.ids, plain.ids);
        assert_eq!((found.ids.len(), found.stats.finish_reason), (13, FinishReason::Length));
    }
}

/// Now and then the cycle may not go on, or tokens are put in.
fn held(answer: &[u32]) -> Result<Follow> {
    let all = 0..250;
    Ok(match answer.len() % 31 {
        10 => Follow::These(vec![40, 41]),
        25 => Follow::OneOf(Mask::of(N_VOCAB, all.filter(|id| !cycle().contains(id)))),
        _ => Follow::OneOf(Mask::of(N_VOCAB, all)),
    })
}

fn held_later(answer: &[u32]) -> Result<Follow> {
    if answer.len() < 14 { Ok(Follow::Any) } else { held(answer) }
}

/// A draft ends before a token that may not follow.
#[test]
fn answers_that_are_held_to_something_are_drafted_too() {
    let setups = setups().into_iter().chain([Setup::default().like_a_card()]);
    for (setup, repeat) in setups.zip([1.0, 1.0001, 1.0, 1.0]) {
        let mut session = setup.load(&cycling().build()).unwrap();
        for rule in [held as Rule, held_later] {
            // Where steps are fast, some of them run ahead without a mask.
            for ms in [1, 100] {
                session.suppose_steps_of(Duration::from_millis(ms));
                let mut options = ruled(rule, greedy(60));
                options.sampling.repeat_penalty = repeat;
                let stats = check_same(&mut session, &cycle(), &options);
                assert!(stats.draft_passes > 0 && stats.accepted_tokens > 15, "{ms} ms: {stats:?}");
                assert!(stats.forced_tokens > 0);
            }
        }
    }
}

#[test]
fn answers_in_a_format_are_drafted_too() {
    let mut session = Setup::default().on_reference().load(&cycling().build()).unwrap();
    let formats = Formats::new(session.tokenizer()).unwrap();
    let text = session.tokenizer().decode(&cycle()[..5]).unwrap();
    let chars = text.chars().map(|c| format!("\\u{:04x}", c as u32)).collect::<String>();
    let pattern = Format::Regex(format!("[{chars}]{{30}}<end>"));
    let format = formats.format("regex", &pattern).unwrap();
    let options = GenerateOptions { constraints: Some(format.constraints()), ..greedy(60) };
    for ms in [1, 100] {
        session.suppose_steps_of(Duration::from_millis(ms));
        let stats = check_same(&mut session, &cycle(), &options);
        assert!(stats.draft_passes > 0 && stats.accepted_tokens > 15, "{ms} ms: {stats:?}");
        assert_eq!(stats.finish_reason, FinishReason::Stop);
    }
}

#[test]
fn sampled_tokens_are_not_drafted() {
    let setup = Setup::default().on_reference().like_a_card();
    let mut session = setup.load(&cycling().build()).unwrap();
    let prompt = cycle();
    let mut options = with_lookup(true, greedy(12));
    options.sampling.temperature = 0.01;
    options.sampling.top_k = 1;
    let found = generate(&mut session, &prompt, &options).unwrap();
    assert_eq!(found.stats.draft_passes, 0);
}
