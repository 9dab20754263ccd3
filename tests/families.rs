//! The plain reference on a small model of every family, compared with a float64 program.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use support::families::{Expected, distance, expectations};
use support::{json, open};
use tritloom::model::{Angles, Rope, RopeScaling};

use tritloom::native::block_on;
use tritloom::reference::{Reference, ReferenceOptions};

fn logits(expected: &Expected) -> Vec<f32> {
    let options = ReferenceOptions { context: Some(expected.context), ..Default::default() };
    let path = format!("tests/data/models/{}.gguf", expected.model);
    let mut model = block_on(Reference::load_as(&mut open(&path), options)).unwrap();
    let logits = model.forward(&expected.ids).unwrap();
    logits[expected.first..].concat()
}

/// The reference keeps activations in f32, the program in float64. Models of I2_S round them to
/// int8, so that one value can fall to the other side.
#[test]
fn every_family_has_the_logits_of_a_float64_program() {
    for expected in expectations() {
        let off = distance(&logits(&expected), &expected.logits);
        println!("{}: {off:.2e}", expected.name);
        let allowed = if expected.rounds_inputs { expected.others } else { 1e-5 };
        assert!(off <= allowed, "{}: {off} of the logits' deviation", expected.name);
    }
}

/// The angles of RoPE and its factor, for real models' settings too. A wrong ramp or a wrong choice
/// of factors hides below the noise of int8.
#[test]
fn rope_has_the_angles_of_another_program() {
    let settings = json("tests/data/models/rope.json");
    for setting in settings.as_array().unwrap() {
        let name = setting["name"].as_str().unwrap();
        let float = |key: &str| setting[key].as_f64();
        let factor = float("rope.scaling.factor").unwrap_or(1.0);
        let original = float("rope.scaling.original_context_length").unwrap_or(f64::INFINITY);
        let scaling = match setting["rope.scaling.type"].as_str().unwrap_or("linear") {
            "linear" => RopeScaling::Linear { factor },
            "yarn" => RopeScaling::Yarn { factor, original },
            "longrope" => RopeScaling::LongRope { factor, original: original as u64 },
            other => panic!("{other}"),
        };
        let rope = Rope {
            base: float("freq_base").unwrap(),
            scaling,
            attn_factor: float("rope.scaling.attn_factor").unwrap_or(1.0),
        };
        let context = setting["running_context"].as_u64().unwrap() as usize;
        let factors = match rope.takes_long_factors(context) {
            true => &setting["factors"]["rope_factors_long.weight"],
            false => &setting["factors"]["rope_factors_short.weight"],
        };
        let factors: Option<Vec<f32>> = serde_json::from_value(factors.clone()).unwrap();
        let found = Angles::new(&rope, float("n_rot").unwrap() as usize, factors.as_deref());
        assert!((found.magnitude - float("mscale").unwrap()).abs() < 1e-9, "{name}");
        let expected: Vec<f64> =
            serde_json::from_value(setting["angle_per_position"].clone()).unwrap();
        assert_eq!(found.per_position.len(), expected.len(), "{name}");
        for (i, (found, expected)) in found.per_position.iter().zip(&expected).enumerate() {
            assert!((found / expected - 1.0).abs() < 1e-6, "{name}, {i}: {found} {expected}");
        }
    }
}
