//! `penalize` changes the logits of tokens that have a bias, that the text has already or that a mask
//! forbids.

use tritloom::gpu::Recorder;
use tritloom::kernels::{Adjustments, Penalties};
use tritloom::sampling::{LogitBias, Mask, Sampling};

use super::device::{assert_close, device, finish, read, step};
use super::random::Random;

/// Over several steps. The caller has counted the tokens of the first ones.
pub(crate) async fn penalize_counts_every_token_once() {
    let gpu = device();
    let mut random = Random(21);
    let settings = [[1.3, 0.0, 0.0], [1.0, 0.5, 0.0], [1.0, 0.0, -0.25], [0.8, -2.0, 2.0]];
    for n_vocab in [1, 1025, 5000] {
        for [repeat_penalty, presence_penalty, frequency_penalty] in settings {
            let sampling = Sampling {
                repeat_penalty,
                presence_penalty,
                frequency_penalty,
                ..Sampling::default()
            };
            let mut id = || ((random.float() * n_vocab as f32) as u32).min(n_vocab as u32 - 1);
            // Some tokens are in both, and some several times. The last is the vocabulary's.
            let prompt: Vec<u32> = (0..40).map(|_| id()).collect();
            let mut output: Vec<u32> = (0..30).map(|_| id()).chain(prompt[..9].to_vec()).collect();
            output.push(n_vocab as u32 - 1);
            let n_counted = prompt.len() + output.len();

            // The last settings have a mask. Without one, the mask's words are not read.
            let masked = presence_penalty == -2.0;
            let mask = match masked {
                true => Mask::of(n_vocab, (0..n_vocab as u32).filter(|id| id % 5 != 1)),
                false => Mask::of_none(n_vocab),
            };
            let words = (0..Mask::n_words(n_vocab) as u32).map(|at| {
                (0..32).filter(|bit| mask.allows(32 * at + bit)).map(|bit| 1 << bit).sum()
            });
            let masks = gpu.upload("masks", &words.collect::<Vec<u32>>());
            let penalties = Penalties::new(&sampling, n_counted).masked(masked);
            let penalties = gpu.upload("penalties", &[penalties]);
            let counts = gpu.upload("counts", &Penalties::counts(n_vocab, &prompt, &output));
            // Of some tokens of the text, and of others.
            let bias: LogitBias = (0..9)
                .map(|_| id())
                .chain(output[..9].to_vec())
                .zip(-7..)
                .map(|(id, b)| (id, b as f32))
                .collect();
            let mut biases = vec![0.0; n_vocab];
            bias.add_to(&mut biases);
            let biases = gpu.upload("biases", &biases);
            let (tokens, logits) = (gpu.buffer("tokens", 4), gpu.buffer("logits", n_vocab));
            let adjusted = gpu.buffer("adjusted", n_vocab);
            let steps = gpu.buffer("step", 1);
            let mut p = Recorder::new(gpu, &steps);
            let by = Adjustments {
                penalties: &penalties,
                counts: &counts,
                biases: &biases,
                masks: &masks,
            };
            p.penalize(by, &tokens, &logits, &adjusted);
            let plan = finish(&mut p);

            // The last chunk of the text, a single token of it, then tokens that the GPU chose.
            let last = *output.last().unwrap();
            let chosen = [id(), prompt[0], output[0], output[0], 0];
            let chunks = [(n_counted - 3, 3, last), (n_counted - 1, 1, last)];
            let steps_after = (n_counted..).zip(chosen).map(|(pos, id)| (pos, 1, id));
            for (pos, n_tokens, input) in chunks.into_iter().chain(steps_after) {
                if pos >= n_counted {
                    output.push(input);
                }
                let plain: Vec<f32> = (0..n_vocab).map(|_| 20.0 * random.float() - 10.0).collect();
                gpu.write(&logits, 0, &plain);
                gpu.write(&tokens, 0, &[input]);
                gpu.write(&steps, 0, &[step(pos, n_tokens)]);
                gpu.run(&[&plan], &step(pos, n_tokens));
                let mut expected = plain.clone();
                bias.add_to(&mut expected);
                sampling.penalize(&mut expected, &prompt, &output);
                if masked {
                    mask.apply_to(&mut expected);
                }
                assert_eq!(read(gpu, &logits).await, plain, "the model's own logits stay");
                let found = read(gpu, &adjusted).await;
                let what = format!("{sampling:?}, {n_vocab} tokens, at {pos}");
                let forbidden = |values: &[f32]| -> Vec<bool> {
                    values.iter().map(|v| *v == f32::NEG_INFINITY).collect()
                };
                assert_eq!(forbidden(&found), forbidden(&expected), "{what}");
                let [found, expected] = [found, expected].map(|mut values| {
                    values.retain(|v| v.is_finite());
                    values
                });
                let plain: Vec<f32> = plain
                    .into_iter()
                    .zip(0..)
                    .filter(|(_, id)| !masked || mask.allows(*id))
                    .map(|(v, _)| v)
                    .collect();
                // Of sums of three terms, each rounded.
                assert_close(("penalize", &what), &found, &expected, 2e-7, |i| {
                    plain[i].abs() + 20.0
                });
                // Tokens without a bias that are not in the text stay as they are.
                let differ =
                    |a: &[f32]| a.iter().zip(&plain).map(|(a, b)| a == b).collect::<Vec<_>>();
                assert_eq!(differ(&found), differ(&expected), "{what}");
            }
        }
    }
}
