//! Perplexity, compared with the logits of other programs and with a direct computation.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "support/setup.rs"]
mod setup;
mod support;

use setup::Setup;
use support::families::{Expected, expectations};
use support::{open, path};
use tritloom::Result;
use tritloom::native::block_on;
use tritloom::perplexity::{Perplexity, Windows, perplexity};
use tritloom::reference::{Reference, ReferenceOptions};
use tritloom::session::{KvType, Session};

/// `-ln p` of a token.
fn loss(logits: &[f32], id: u32) -> f64 {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    sum.ln() - f64::from(logits[id as usize])
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation.
fn spread(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len() as f64).sqrt()
}

/// The expectations that have the logits after every token.
fn whole() -> Vec<Expected> {
    let all: Vec<_> = expectations().into_iter().filter(|expected| expected.first == 0).collect();
    assert!(all.len() > 10);
    all
}

/// The expectations of one model.
fn one() -> Vec<Expected> {
    whole().into_iter().filter(|expected| expected.model == "qwen3-yarn-q2_0").collect()
}

/// The mean loss and its deviation, from stored logits.
fn of_logits(expected: &Expected) -> (f64, f64) {
    let Expected { ids, logits, .. } = expected;
    let rows = logits.chunks_exact(logits.len() / ids.len());
    let losses: Vec<f64> = rows.zip(&ids[1..]).map(|(row, &id)| loss(row, id)).collect();
    let n = losses.len() as f64;
    (mean(&losses), spread(&losses) / (n - 1.0).sqrt())
}

fn on(session: &mut Session, ids: &[u32], windows: Windows) -> Result<Perplexity> {
    let mut score = async |before: &[u32], ids: &[u32]| {
        Ok(session.score(before, &[ids.to_vec()]).await?.concat())
    };
    block_on(perplexity(ids, windows, &mut score, &mut |_, _| {}))
}

fn reference(expected: &Expected) -> Reference {
    let options = ReferenceOptions { context: Some(expected.context), ..Default::default() };
    let path = format!("tests/data/models/{}.gguf", expected.model);
    block_on(Reference::load_as(&mut open(&path), options)).unwrap()
}

/// `allowed` away from the stored logits at most, in the unit of logits.
fn check(
    expectations: Vec<Expected>,
    setup: impl Fn() -> Setup,
    allowed: impl Fn(&Expected, f64) -> f64,
) {
    let mut bad = Vec::new();
    for expected in expectations {
        let bytes = std::fs::read(path(&format!("tests/data/models/{}.gguf", expected.model)));
        let mut session = setup().context(expected.context).load(&bytes.unwrap()).unwrap();
        let windows = Windows { context: expected.context, stride: 1 };
        let found = on(&mut session, &expected.ids, windows).unwrap();
        let (mean, deviation) = of_logits(&expected);
        let logits: Vec<f64> = expected.logits.iter().map(|&logit| logit.into()).collect();
        let allowed = allowed(&expected, spread(&logits));
        let off = found.value.ln() - mean;
        let off_deviation = found.deviation.unwrap() / found.value - deviation;
        assert_eq!(found.scored, expected.ids.len() - 1);
        if !(off.abs() <= allowed && off_deviation.abs() <= allowed) {
            bad.push(format!("{}: {off:.1e}, {off_deviation:.1e}", expected.name));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// tests/session/families.rs has the logits of every family on the GPU. So one model is enough there.
#[test]
fn with_float_activations_it_is_that_of_a_float64_program() {
    let exact = || Setup::default().float_activations().kv(KvType::F32);
    let allowed = |expected: &Expected, spread: f64| expected.of_floats() * spread;
    check(whole(), || exact().on_reference(), allowed);
    check(one(), exact, allowed);
}

#[test]
fn with_int8_activations_it_is_as_near_as_that_of_other_programs() {
    check(one(), Setup::default, |expected, spread| expected.of_int8() * spread);
}

/// Windows over a text, on GPU and CPU, and a computation that takes each window from its beginning.
#[test]
fn windows_see_only_their_own_tokens() {
    let expected = one().remove(0);
    let ids = &expected.ids[..20];
    let mut model = reference(&expected);
    let bytes = std::fs::read(path(&format!("tests/data/models/{}.gguf", expected.model)));
    let setup = Setup::default().float_activations().kv(KvType::F32).context(expected.context);
    let mut session = setup.load(&bytes.unwrap()).unwrap();
    for (context, stride, scored) in [(8, 3, 19), (8, 1, 19), (8, 8, 17), (19, 9, 19), (2, 1, 19)] {
        let mut losses = Vec::new();
        for target in 1..ids.len() {
            // The first window that has this token.
            let begin = (0..).map(|i| i * stride).find(|begin| target < begin + context).unwrap();
            if target > begin {
                model.reset();
                let logits = model.forward(&ids[begin..target]).unwrap().pop().unwrap();
                losses.push(loss(&logits, ids[target]));
            }
        }
        assert_eq!(losses.len(), scored);
        let windows = Windows { context, stride };
        model.reset();
        let mut score = async |before: &[u32], ids: &[u32]| {
            model.reset();
            let logits = model.forward(&[before, ids].concat())?;
            let rows = logits[before.len() - 1..].iter();
            Ok(rows.zip(ids).map(|(row, &id)| -loss(row, id) as f32).collect())
        };
        let cpu = block_on(perplexity(ids, windows, &mut score, &mut |_, _| {})).unwrap();
        let gpu = on(&mut session, ids, windows).unwrap();
        for (found, allowed) in [(cpu, 1e-6), (gpu, 1e-4)] {
            assert_eq!(found.scored, scored);
            let off = found.value.ln() - mean(&losses);
            assert!(off.abs() < allowed, "{windows:?}: {off:e}");
        }
    }
}

#[test]
fn the_deviation_is_that_of_the_mean_carried_through_the_exponential() {
    let mut score = async |before: &[u32], ids: &[u32]| {
        Ok((before.len()..).zip(ids).map(|(n, _)| -(n as f32)).collect())
    };
    let mut told = Vec::new();
    let windows = Windows { context: 8, stride: 4 };
    let mut progress = |so_far: Perplexity, total: usize| told.push((so_far.scored, total));
    let found = block_on(perplexity(&[0; 4], windows, &mut score, &mut progress)).unwrap();
    // Losses of 1, 2 and 3: the mean is 2, the deviation 1.
    let e2 = f64::exp(2.0);
    assert!((found.value - e2).abs() < 1e-9, "{found:?}");
    assert!((found.deviation.unwrap() - e2 / 3f64.sqrt()).abs() < 1e-9, "{found:?}");
    assert_eq!(told, [(3, 3)]);
    let one = block_on(perplexity(&[0; 2], windows, &mut score, &mut |_, _| {})).unwrap();
    assert_eq!((one.scored, one.deviation), (1, None));
}

/// A long window is scored some tokens at a time, each after those before it.
#[test]
fn the_progress_is_told_within_a_window() {
    let ids: Vec<u32> = (0..150).collect();
    let mut score = async |before: &[u32], ids: &[u32]| {
        assert_eq!([before, ids].concat(), (0..ids[ids.len() - 1] + 1).collect::<Vec<_>>());
        Ok(vec![-1.0; ids.len()])
    };
    let mut told = Vec::new();
    let windows = Windows { context: 150, stride: 75 };
    let mut progress = |so_far: Perplexity, total: usize| told.push((so_far.scored, total));
    block_on(perplexity(&ids, windows, &mut score, &mut progress)).unwrap();
    assert_eq!(told, [(64, 149), (128, 149), (149, 149)]);
}

/// A token that the model holds for impossible, or of which it has no number, makes no perplexity.
#[test]
fn a_token_without_a_probability_is_an_error() {
    for scores in [vec![f32::NEG_INFINITY; 3], vec![f32::NAN; 3], vec![-1.0; 2]] {
        let mut score = async |_: &[u32], _: &[u32]| Ok(scores.clone());
        let windows = Windows { context: 8, stride: 4 };
        let failed = block_on(perplexity(&[0; 4], windows, &mut score, &mut |_, _| {}));
        assert_eq!(failed.unwrap_err().code(), "internal");
    }
}

#[test]
fn windows_out_of_range_and_short_texts_are_refused() {
    for (context, stride, len, name) in
        [(1, 1, 9, "context"), (8, 0, 9, "stride"), (8, 9, 9, "stride"), (8, 4, 1, "text")]
    {
        let mut score = async |_: &[u32], ids: &[u32]| Ok(vec![0.0; ids.len()]);
        let windows = Windows { context, stride };
        let failed = block_on(perplexity(&vec![0; len], windows, &mut score, &mut |_, _| {}));
        let error = failed.unwrap_err();
        assert_eq!(error.code(), "bad-option");
        assert!(error.to_string().contains(name), "{error}");
    }
}
