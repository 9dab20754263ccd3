//! Logits are compared with those of other programs.

use tritloom::native::block_on;
use tritloom::reference::Reference;
use tritloom::session::{KvType, Session};
use tritloom::source::Reader;

use crate::setup::{Golden, Goldens, Setup, Top, argmax, cosine, largest_difference, small};
use crate::support::{floats, json, open, path};

/// int8 roundings may overturn a lead of this size. The figure is from the notes of the bundled
/// model's goldens.
const TOLERANCE: f32 = 0.801;

/// The cache is f32 because the goldens are computed in f64.
#[test]
fn the_bundled_models_logits_match_the_goldens() {
    let goldens = Goldens::bundled();
    let mut session = Setup::default().kv(KvType::F32).bundled();
    the_ten_best(&mut session, &goldens);
    short_prompts(&mut session, &goldens, 1e-3);

    // Compare all logits with this crate's own reference.
    let mut reference = block_on(Reference::load(&mut open("models/tiny-stories.gguf"))).unwrap();
    for name in ["once", "who"] {
        let ids = &goldens.prompt(name).ids;
        reference.reset();
        let expected = reference.forward(ids).unwrap().pop().unwrap();
        let found = block_on(session.logits(ids)).unwrap();
        let cosine = cosine(&found, &expected);
        assert!(cosine > 0.9999, "{name}: {cosine}");
    }
}

/// Compares the ten best logits after a prompt's first token and after its last, as the goldens'
/// notes say: by cosine, and by the best token where its lead is clear.
fn the_ten_best(session: &mut Session, goldens: &Goldens) {
    for Golden { name, ids, first, last, .. } in &goldens.prompts {
        for (ids, Top { ids: best, logits: expected }) in [(&ids[..1], first), (&ids[..], last)] {
            let logits = block_on(session.logits(ids)).unwrap();
            let found: Vec<f32> = best.iter().map(|&id| logits[id]).collect();
            let what = format!("{name}, {} tokens: {found:?}, not {expected:?}", ids.len());
            assert!(cosine(&found, expected) > 0.999, "{what}");
            assert!(largest_difference(&found, expected) < TOLERANCE, "{what}");
            if expected[0] - expected[1] > TOLERANCE {
                assert_eq!(argmax(&logits), best[0], "{what}");
            }
        }
    }
}

/// In prompts of a few tokens, no int8 rounding goes the other way. So the logits agree up to the
/// roundings of f32, or of the cache.
pub(crate) fn short_prompts(session: &mut Session, goldens: &Goldens, tolerance: f32) {
    for name in ["bos_only", "once"] {
        let golden = goldens.prompt(name);
        let logits = block_on(session.logits(&golden.ids)).unwrap();
        let found: Vec<f32> = golden.last.ids.iter().map(|&id| logits[id]).collect();
        let difference = largest_difference(&found, &golden.last.logits);
        assert!(difference < tolerance, "{name}: {difference}");
        assert_eq!(argmax(&logits), golden.last.ids[0]);
    }
}

/// At 16 positions of a random model, the best token equals that of bitnet.cpp and of an
/// independent model in NumPy. f16 may tip an int8 rounding, which moves a logit by 0.2 to 0.7.
#[test]
fn the_random_model_agrees_with_two_programs() {
    let bytes = std::fs::read(path("tests/data/tiny/tiny-bitnet-b1.58.gguf")).unwrap();
    let ids: Vec<u32> =
        serde_json::from_value(json("tests/data/tiny/tokens.json")["tokens"].clone()).unwrap();
    for setup in [Setup::default(), Setup::default().kv(KvType::F32).like_a_card()] {
        let mut session = setup.load(&bytes).unwrap();
        let found: Vec<Vec<f32>> =
            (1..=16).map(|n| block_on(session.logits(&ids[..n])).unwrap()).collect();
        for program in ["bitnetcpp", "numpy"] {
            let expected = floats(&format!("tests/data/tiny/tiny-bitnet-b1.58.{program}.f32"));
            assert_eq!(expected.len(), 16 * 320);
            for (position, (found, expected)) in found.iter().zip(expected.chunks(320)).enumerate()
            {
                let what = format!("{program}, position {position}");
                assert_eq!(argmax(found), argmax(expected), "{what}");
                let difference = largest_difference(found, expected);
                assert!(difference < 1.0, "{what}: {difference}");
            }
        }
    }
}

/// Compares all logits of the small model with this crate's own reference.
#[test]
fn logits_match_the_reference() {
    let bytes = small().build();
    let mut reference = block_on(Reference::load(&mut Reader::new(bytes.as_slice()))).unwrap();
    let ids: Vec<u32> = (0..100).map(|i| i * 37 % 264).collect();
    let expected = reference.forward(&ids).unwrap();
    let mut session = Setup::default().kv(KvType::F32).small();
    for n in [1, 2, 63, 64, 65, 100] {
        let found = block_on(session.logits(&ids[..n])).unwrap();
        let cosine = cosine(&found, &expected[n - 1]);
        assert!(cosine > 0.999, "after {n} tokens: {cosine}");
    }
}
