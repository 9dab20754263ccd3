//! Answers in which something decides, token by token, what may follow: only those tokens are chosen,
//! others are put in, and answers without a constraint go on as before.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::Duration;

use tritloom::chat::{Message, Role};
use tritloom::native::block_on;
use tritloom::sampling::{Logprobs, Mask, Sampling};
use tritloom::session::{
    Calls, Constraint, Constraints, FinishReason, Follow, GenerateOptions, Prompt, Token,
};
use tritloom::{Error, Result};

use crate::batch::{asked, check_as_alone, serve};
use crate::setup::{Setup, generate, greedy, noise, small};
use crate::support::assert_error;

/// Tokens of the small model.
pub(crate) const N_VOCAB: usize = 264;

/// Says what may follow the tokens of the answer so far.
pub(crate) type Rule = fn(&[u32]) -> Result<Follow>;

#[derive(Clone)]
struct Ruled {
    rule: Rule,
    answer: Vec<u32>,
}

impl Constraint for Ruled {
    fn take(&mut self, id: u32) -> Result<()> {
        self.answer.push(id);
        Ok(())
    }

    fn follow(&mut self) -> Result<Follow> {
        let follow = (self.rule)(&self.answer)?;
        if let Follow::These(ids) = &follow {
            self.answer.extend(ids);
        }
        Ok(follow)
    }

    fn fork(&self) -> Option<Box<dyn Constraint>> {
        Some(Box::new(self.clone()))
    }
}

pub(crate) fn ruled(rule: Rule, options: GenerateOptions) -> GenerateOptions {
    let begin =
        move |_: &str| Ok(Box::new(Ruled { rule, answer: Vec::new() }) as Box<dyn Constraint>);
    GenerateOptions { constraints: Some(Constraints::new(begin)), ..options }
}

/// One token of seven, by how many there are.
pub(crate) fn one_of_seven(answer: &[u32]) -> Result<Follow> {
    let fits = |id: &u32| *id as usize % 7 == answer.len() % 7;
    Ok(Follow::OneOf(Mask::of(N_VOCAB, (0..250).filter(fits))))
}

/// Puts tokens in at the beginning and after the fifth.
fn with_inserted(answer: &[u32]) -> Result<Follow> {
    Ok(match answer.len() {
        0 => Follow::These(vec![5, 6]),
        2 => Follow::These(vec![7]),
        5 => Follow::These(vec![9]),
        _ => Follow::Any,
    })
}

fn settings() -> [Sampling; 4] {
    let drawn = Sampling { temperature: 1.2, seed: 5, ..Sampling::default() };
    [
        Sampling::default(),
        drawn,
        Sampling { top_k: 9, top_p: 0.95, ..drawn },
        Sampling { repeat_penalty: 1.3, frequency_penalty: 0.4, ..Sampling::default() },
    ]
}

/// Each is the one that plain Rust chooses from the model's logits among those that may follow.
#[test]
fn only_tokens_that_may_follow_are_chosen() {
    let prompt = noise(12);
    for setup in [Setup::exact().on_reference(), Setup::exact().on_cpu(), Setup::default()] {
        let mut session = setup.small();
        for sampling in settings() {
            let options = GenerateOptions { sampling, logprobs: Some(2), ..greedy(10) };
            let found = generate(&mut session, &prompt, &ruled(one_of_seven, options)).unwrap();
            assert_eq!(found.ids.len(), 10);
            for (n, &id) in found.ids.iter().enumerate() {
                let ids = [&prompt[..], &found.ids[..n]].concat();
                let mut logits = block_on(session.logits(&ids)).unwrap();
                // Log-probabilities are by the model alone.
                let (by, own) =
                    (Logprobs::new(&logits, id, 2), found.logprobs[n].1.clone().unwrap());
                assert!((own.logprob - by.logprob).abs() < 1e-3, "{own:?}, not {by:?}");
                assert_eq!(own.top[0].0, by.top[0].0);
                sampling.penalize(&mut logits, &prompt, &found.ids[..n]);
                let Follow::OneOf(mask) = one_of_seven(&found.ids[..n]).unwrap() else { panic!() };
                mask.apply_to(&mut logits);
                let expected = sampling.choose(&logits, ids.len() as u32);
                assert_eq!(Some(id), expected, "token {n}, {sampling:?}");
            }
        }
    }
}

/// The others are those of a prompt that has them.
#[test]
fn tokens_are_put_in_without_asking_the_model() {
    let prompt = noise(9);
    for setup in [Setup::exact().on_reference(), Setup::exact().on_cpu(), Setup::default()] {
        let mut session = setup.small();
        let found = generate(&mut session, &prompt, &ruled(with_inserted, greedy(12))).unwrap();
        assert_eq!((&found.ids[..3], found.ids[5]), (&[5, 6, 7][..], 9));
        assert_eq!(found.stats.finish_reason, FinishReason::Length);
        assert_eq!(found.stats.forced_tokens, 4);
        for (from, to) in [(3, 5), (6, 12)] {
            let ids = [&prompt[..], &found.ids[..from]].concat();
            let free = generate(&mut session, &ids, &greedy(to - from)).unwrap();
            assert_eq!(free.ids, found.ids[from..to]);
        }
        // A limit cuts what is put in.
        let found = generate(&mut session, &prompt, &ruled(with_inserted, greedy(2))).unwrap();
        assert_eq!((found.ids, found.stats.finish_reason), (vec![5, 6], FinishReason::Length));
    }
}

#[test]
fn an_answer_that_is_complete_ends() {
    let mut session = Setup::default().on_reference().small();
    let after_three: Rule = |answer| match answer.len() {
        3 => Ok(Follow::Nothing),
        1 => Ok(Follow::These(vec![8])),
        _ => Ok(Follow::Any),
    };
    let found = generate(&mut session, &noise(5), &ruled(after_three, greedy(20))).unwrap();
    assert_eq!((found.ids.len(), found.ids[1]), (3, 8));
    assert_eq!(found.stats.finish_reason, FinishReason::Stop);
    // One that is complete at its limit is not cut off, whether its last token was chosen or put in.
    let after_two: Rule = |answer| match answer.len() {
        2 => Ok(Follow::Nothing),
        1 => Ok(Follow::These(vec![8])),
        _ => Ok(Follow::Any),
    };
    for (rule, limit) in [(after_three, 3), (after_two, 2)] {
        let found = generate(&mut session, &noise(5), &ruled(rule, greedy(limit))).unwrap();
        assert_eq!((found.ids.len(), found.stats.finish_reason), (limit, FinishReason::Stop));
    }
    let nothing: Rule = |_| Ok(Follow::Nothing);
    let found = generate(&mut session, &noise(5), &ruled(nothing, greedy(20))).unwrap();
    assert_eq!((found.ids.len(), found.stats.finish_reason), (0, FinishReason::Stop));
}

#[test]
fn constrained_and_free_answers_run_together_as_each_does_alone() {
    let on_reference = Setup::exact().on_reference().like_a_fast_card();
    for setup in [on_reference, Setup::default().like_a_fast_card()] {
        let mut session = setup.small();
        let calls: Vec<_> = settings()
            .into_iter()
            .chain(settings())
            .enumerate()
            .map(|(n, sampling)| {
                let options = GenerateOptions { sampling, ..greedy(8 + n) };
                let options = match n % 3 {
                    0 => ruled(one_of_seven, options),
                    1 => ruled(with_inserted, options),
                    _ => options,
                };
                asked(n / 3, noise(4 + n), options)
            })
            .collect();
        check_as_alone(&mut session, &calls);
    }
}

/// Steps of the free answer are in flight while the other waits for what may follow its token.
#[test]
fn a_constrained_answer_does_not_hold_up_the_others_of_its_batch() {
    let mut session = Setup::default().on_reference().like_a_card().small();
    session.suppose_steps_of(Duration::from_millis(1));
    let counts = [Cell::new(0), Cell::new(0)];
    // Tokens of the constrained answer when the free one has all of its own.
    let behind = Cell::new(0);
    let calls = Calls::default();
    let ask = |n: usize, options: GenerateOptions| {
        let (counts, behind) = (&counts, &behind);
        let on_token = Box::new(move |token: Token| {
            counts[n].set(counts[n].get() + usize::from(token.id.is_some()));
            if counts[1].get() == 60 && n == 1 {
                behind.set(counts[0].get());
            }
            ControlFlow::Continue(())
        });
        calls.push(Prompt::Ids(noise(6 + n)), options, on_token)
    };
    let _answers = [ask(0, ruled(one_of_seven, greedy(60))), ask(1, greedy(60))];
    block_on(session.serve(&calls)).unwrap();
    assert_eq!(counts.each_ref().map(Cell::get), [60, 60]);
    assert!((1..30).contains(&behind.get()), "{} of 60", behind.get());
}

/// Then all that may be chosen is a token that may not follow.
#[test]
fn without_a_number_among_the_tokens_that_may_follow_the_answer_fails() {
    let mut file = small();
    let norm = &mut file.tensor("output_norm.weight").bytes;
    norm.chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&f32::MAX.to_le_bytes()));
    for setup in [Setup::exact().on_reference(), Setup::exact().on_cpu(), Setup::default()] {
        let mut session = setup.load(&file.build()).unwrap();
        for options in [greedy(4), ruled(one_of_seven, greedy(4))] {
            let error = generate(&mut session, &noise(5), &options).err().unwrap();
            assert_eq!(error.code(), "internal");
        }
    }
}

#[test]
fn what_a_constraint_gets_wrong_is_the_error_of_its_call_alone() {
    let mut session = Setup::default().on_reference().small();
    let wrong: [Rule; 4] = [
        |_| Err(Error::BadOption { name: "rule".into(), why: "is wrong".into() }),
        |_| Ok(Follow::OneOf(Mask::of_none(N_VOCAB))),
        |answer| match answer.len() {
            2 => Ok(Follow::These(vec![9999])),
            _ => Ok(Follow::Any),
        },
        |_| Ok(Follow::These(Vec::new())),
    ];
    let begin = |_: &str| Err(Error::BadOption { name: "rule".into(), why: "is wrong".into() });
    let never = GenerateOptions { constraints: Some(Constraints::new(begin)), ..greedy(4) };
    let mut calls: Vec<_> =
        wrong.into_iter().map(|rule| asked(0, noise(5), ruled(rule, greedy(4)))).collect();
    calls.push(asked(0, noise(5), never));
    calls.push(asked(0, noise(5), greedy(4)));
    let served = serve(&mut session, &calls);
    let codes: Vec<_> = served
        .iter()
        .map(|(_, stats)| stats.as_ref().map_or_else(Error::code, |_| "answered"))
        .collect();
    assert_eq!(codes, ["bad-option", "internal", "internal", "internal", "bad-option", "answered"]);
}

/// It gets the text with which the answer begins, which no token of the generation repeats.
#[test]
fn the_constraint_of_an_answer_that_is_begun_gets_its_beginning() {
    let mut session = Setup::default().on_reference().golden();
    let messages = vec![Message::new(Role::User, "Who are you?")];
    let chat = |begun: &str| Prompt::Chat {
        messages: messages.clone(),
        begun: Some(begun.into()),
        thinking: None,
        tools: None,
    };
    let begin = |begun: &str| match begun {
        "I" => Ok(Box::new(Ruled { rule: |_| Ok(Follow::These(vec![7])), answer: vec![] })
            as Box<dyn Constraint>),
        _ => Err(Error::BadOption { name: "prefix".into(), why: "is no I".into() }),
    };
    let options = GenerateOptions { constraints: Some(Constraints::new(begin)), ..greedy(3) };
    let calls = Calls::default();
    let [right, wrong] = ["I", "You"].map(|begun| {
        calls.push(chat(begun), options.clone(), Box::new(|_| ControlFlow::Continue(())))
    });
    block_on(session.serve(&calls)).unwrap();
    assert_eq!(block_on(right).unwrap().completion_tokens, 3);
    assert_error(block_on(wrong), "bad-option", &["prefix", "is no I"]);
}
