//! `logprob_blocks` and `logprob_record` find the likeliest tokens and all log-probabilities.

use tritloom::gpu::{Extent, Gpu, Recorder};
use tritloom::kernels::{Likeliest, N_RECORDS, Record, SamplingParams};
use tritloom::sampling::{Logprobs, MAX_LOGPROBS, Sampling};

use super::device::{assert_close, device, finish, read, step};
use super::random::Random;

/// The records of all positions after a step whose rows of logits follow its last tokens.
async fn records(
    gpu: &Gpu,
    rows: &[Vec<f32>],
    tokens: &[u32],
    n_top: usize,
    (pos, n_tokens): (usize, usize),
) -> Vec<Record> {
    let n_vocab = rows[0].len();
    let params = SamplingParams::from(&Sampling::default()).with_logprobs(n_top);
    let sampling = gpu.upload("sampling", &[params]);
    let steps = gpu.upload("step", &[step(pos, n_tokens)]);
    let (logits, tokens) = (gpu.upload("logits", &rows.concat()), gpu.upload("tokens", tokens));
    let likeliest = gpu.allocating("a test", |a| Likeliest::allocate(a, rows.len(), n_vocab));
    let likeliest = likeliest.await.unwrap();
    let records = gpu.buffer::<Record>("records", N_RECORDS);
    let n_rows = Extent::Fixed(rows.len() as u32);
    let mut p = Recorder::new(gpu, &steps);
    p.logprob_blocks(n_vocab, &sampling, &logits, n_rows, &likeliest);
    p.logprob_record(n_vocab, &sampling, &tokens, (&logits, n_rows), &likeliest, &records);
    gpu.run(&[&finish(&mut p)], &step(pos, n_tokens));
    read(gpu, &records).await
}

#[track_caller]
fn assert_same(what: &str, found: &Logprobs, expected: &Logprobs) {
    let ids = |logprobs: &Logprobs| logprobs.top.iter().map(|(id, _)| *id).collect::<Vec<_>>();
    assert_eq!(ids(found), ids(expected), "{what}");
    let all =
        |of: &Logprobs| of.top.iter().map(|top| top.1).chain([of.logprob]).collect::<Vec<_>>();
    let (found, expected) = (all(found), all(expected));
    let allowed = |i: usize| 2e-5 + 1e-6 * expected[i].abs();
    assert_close(("logprob_record", what), &found, &expected, 1.0, allowed);
}

/// Rows of equal, of extreme and of missing logits among random ones, in vocabularies of less than
/// a block, of some blocks, and of more blocks than a workgroup has lanes.
pub(crate) async fn the_records_are_those_of_the_plain_sampler() {
    let gpu = device();
    let mut random = Random(5);
    for n_vocab in [1, 300, 1024, 5000, 300_000] {
        let mut row = |scale: f32| -> Vec<f32> {
            (0..n_vocab).map(|_| scale * (random.float() - 0.5)).collect()
        };
        let mut hostile = row(30.0);
        for i in (0..n_vocab).step_by(3) {
            hostile[i] = f32::NAN;
            hostile[n_vocab - 1 - i / 2] = f32::NEG_INFINITY;
        }
        let mut sure = row(1.0);
        sure[n_vocab / 2] = 80.0;
        let rows = [row(20.0), row(0.0), hostile, sure, row(1e38), vec![-2.0; n_vocab]];
        let tokens: Vec<u32> = (0..rows.len()).map(|i| (i * n_vocab / 7) as u32).collect();
        let expected: Vec<_> = rows
            .iter()
            .zip(&tokens)
            .map(|(row, &id)| Logprobs::new(row, id, MAX_LOGPROBS))
            .collect();
        for n_top in [0, 1, 5, MAX_LOGPROBS] {
            let found = records(gpu, &rows, &tokens, n_top, (13, rows.len())).await;
            for (i, row) in rows.iter().enumerate() {
                let what = format!("{n_vocab} tokens, row {i}, {n_top} of them");
                let record = &found[(13 + i) % N_RECORDS];
                assert_eq!(record.id, tokens[i], "{what}");
                if !row[record.id as usize].is_nan() {
                    let mut expected = expected[i].clone();
                    expected.top.truncate(n_top);
                    assert_same(&what, &record.logprobs(n_top), &expected);
                }
            }
        }
    }
}

/// A chunk of a prompt has one row of logits: that of its last token.
pub(crate) async fn a_chunk_has_the_record_of_its_last_position() {
    let rows = [vec![1.0, 3.0, 2.0]];
    let found = records(device(), &rows, &[2, 0, 0, 1], 2, (5, 4)).await[8 % N_RECORDS];
    assert_eq!(found.id, 2);
    assert_same("the last token", &found.logprobs(2), &Logprobs::new(&rows[0], 2, 2));
}

/// Where no logit is a number, there is no alternative.
pub(crate) async fn no_number_has_no_record() {
    let found = records(device(), &[vec![f32::NAN; 5]], &[u32::MAX], 3, (0, 1)).await[0];
    assert_eq!((found.id, found.logprobs(3).top), (u32::MAX, Vec::new()));
}
