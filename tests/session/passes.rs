//! Passes that hold tokens of several sequences, and the log-probabilities of texts.

use tritloom::compute::{Compute, Span};
use tritloom::native::block_on;
use tritloom::sampling::Logprobs;

use crate::setup::{Setup, noise};

/// Scores tokens of two sequences whose beginnings are in the KV cache, at other positions of it.
fn scores(compute: &dyn Compute, spans: &[Span<'_>]) -> Vec<Vec<f32>> {
    block_on(compute.score(spans).take()).unwrap()
}

#[test]
fn each_sequence_of_a_pass_gets_what_it_gets_alone() {
    let ids = noise(40);
    let mut all = Vec::new();
    for setup in [Setup::exact().on_reference(), Setup::exact(), Setup::exact().like_a_card()] {
        let session = setup.small();
        let compute = session.compute();
        // Their beginnings share passes too.
        let (short, long) = (|n: usize| &ids[30..30 + n], &ids[..20]);
        for pos in (0..20).step_by(5) {
            let long = Span { first: 0, pos, ids: &long[pos..pos + 5] };
            let short = Span { first: 300, pos: 0, ids: short(2) };
            block_on(compute.pass(&[long, short]).take()).unwrap();
        }
        let long = Span { first: 0, pos: 20, ids: &ids[20..24] };
        let short = Span { first: 300, pos: 2, ids: &ids[32..36] };
        let together = scores(compute, &[long, short]);
        let alone = [scores(compute, &[short]), scores(compute, &[long])];
        assert_eq!(together, [&alone[1][0][..], &alone[0][0][..]]);
        assert_eq!(together.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        // The first token of the second sequence to be scored, by all logits after those before it.
        compute.use_cache(300);
        let logits = block_on(compute.prefill_and_read(&ids[32..33], 2).take()).unwrap();
        let expected = Logprobs::new(&logits, ids[33], 0).logprob;
        assert!((together[1][0] - expected).abs() < 1e-4, "{} {expected}", together[1][0]);
        all.push(together.concat());
    }
    // Other sums may tip a rounding of an input to int8, and that moves a logit by 0.2.
    for found in &all[1..] {
        let off = found.iter().zip(&all[0]).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 0.6, "{off}: {found:?}, not {:?}", all[0]);
    }
}
