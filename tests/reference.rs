//! The reference, compared with other programs: bitnet.cpp, and two models in NumPy.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "this is how tests fail and tell")]

mod support;

use serde_json::Value;
use support::{assert_error, chat_tokens, floats, json, open, tiny};
use tritloom::chat::{self, Message};
use tritloom::gguf::Gguf;
use tritloom::model::Activation;
use tritloom::model::{Config, Role, weights};
use tritloom::native::block_on;
use tritloom::reference::{Reference, ReferenceOptions, ops};
use tritloom::source::Reader;
use tritloom::ternary::{Layout, TAIL, unpack};

const GOLDENS: &str = "models/tiny-stories.goldens.json";

fn bundled() -> Reference {
    block_on(Reference::load(&mut open("models/tiny-stories.gguf"))).unwrap()
}

fn list<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap()
}

/// The best token, or the lowest id of several best.
fn argmax(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
    best.unwrap() as u32
}

/// A random model's logits at 16 positions have the same best tokens as those of bitnet.cpp, which
/// rounds the KV cache, queries and probabilities to f16, and those of an independent model in
/// NumPy with the same roundings. Where these change one int8 rounding, a logit moves by 0.2 to
/// 0.7.
#[test]
fn the_random_model_agrees_with_two_programs() {
    let mut model =
        block_on(Reference::load(&mut open("tests/data/tiny/tiny-bitnet-b1.58.gguf"))).unwrap();
    let ids: Vec<u32> = list(&json("tests/data/tiny/tokens.json")["tokens"]);
    let logits = model.forward(&ids).unwrap();
    assert_eq!(logits.len(), 16);
    for program in ["bitnetcpp", "numpy"] {
        let expected = floats(&format!("tests/data/tiny/tiny-bitnet-b1.58.{program}.f32"));
        assert_eq!(expected.len(), 16 * 320);
        let mut largest = 0f32;
        for (pos, (found, expected)) in logits.iter().zip(expected.chunks(320)).enumerate() {
            assert_eq!(argmax(found), argmax(expected), "{program}, position {pos}");
            for (a, b) in found.iter().zip(expected) {
                largest = largest.max((a - b).abs());
            }
        }
        println!("{program}: largest difference {largest}");
        assert!(largest < 1.0, "{program}: {largest}");
    }
}

/// The int8 input of the first projections, and their sums, are the same integers.
#[test]
fn the_first_layers_integers_are_exact() {
    let golden = &json(GOLDENS)["first_layer"];
    let mut reader = open("models/tiny-stories.gguf");
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    let config = Config::from_gguf(&gguf).unwrap();
    let table = weights::weights(&config, &gguf).unwrap();
    let mut find = |role: Role| {
        let weight = table.iter().find(|w| (w.role, w.block) == (role, 0)).unwrap();
        let tensor = &weight.tensor;
        let range = tensor.offset..tensor.offset + tensor.len;
        (weight, block_on(reader.read(range)).unwrap())
    };
    let (embd, bytes) = find(Role::TokenEmbd);
    let token = golden["token"].as_u64().unwrap() as usize;
    let x = &embd.floats(&bytes).unwrap()[token * config.n_embd..][..config.n_embd];
    let (norm, bytes) = find(Role::AttnNorm);
    let h = ops::rms_norm(x, &norm.floats(&bytes).unwrap(), config.eps);
    for (found, expected) in h.iter().zip(list::<f32>(&golden["x_norm_first16"])) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    let (q, s) = ops::quantize(&h);
    assert_eq!(q, list::<i8>(&golden["x_int8"]));

    for role in [Role::AttnQ, Role::AttnK, Role::AttnV] {
        let golden = &golden[role.name()];
        let (weight, bytes) = find(role);
        let (codes, tail) = bytes.split_at(bytes.len() - TAIL);
        weight.check_codes(codes, 0).unwrap();
        let codes = unpack(codes, Layout::X86);
        assert_eq!(codes[..16], list::<i8>(&golden["codes_first16"]));
        for (value, name) in [(-1, "minus"), (0, "zeros"), (1, "plus")] {
            let count = codes.iter().filter(|&&code| code == value).count();
            assert_eq!(count as u64, golden[name].as_u64().unwrap());
        }
        let sums = ops::matvec_ternary(&codes, config.n_embd, &q);
        assert_eq!(sums[..16], list::<i32>(&golden["int32_sums_first16"]));
        let checksum: i64 = sums.iter().map(|&sum| i64::from(sum.abs())).sum();
        assert_eq!(checksum, golden["int32_checksum"].as_i64().unwrap());
        let scale = weight.scale(tail).unwrap();
        assert_eq!(f64::from(scale), golden["scale"].as_f64().unwrap());
        for (&sum, expected) in sums.iter().zip(list::<f32>(&golden["out_first16"])) {
            let found = sum as f32 / s * scale;
            assert!((found - expected).abs() <= 2e-6 * expected.abs(), "{found} {expected}");
        }
    }
}

/// Compares, for every prompt of the goldens, the best token after each of its tokens, the ten best
/// logits after the last, and the greedy continuation.
///
/// The goldens are float64; here activations are f32 between operations. Where that changes an int8
/// rounding, logits move by up to 0.3. So the continuation may differ after a token whose lead is
/// smaller than that.
///
/// Over ten seconds: the reference is written to be read, not to be fast.
#[test]
fn the_bundled_model_agrees_with_its_goldens() {
    let goldens = json(GOLDENS);
    let tolerance = goldens["tolerance_hint"].as_f64().unwrap() as f32;
    let mut model = bundled();
    let mut equal = 0;
    let prompts = goldens["prompts"].as_array().unwrap();
    for prompt in prompts {
        let name = prompt["name"].as_str().unwrap();
        let ids: Vec<u32> = list(&prompt["ids"]);
        model.reset();
        let logits = model.forward(&ids).unwrap();
        let best: Vec<u32> = logits.iter().map(|logits| argmax(logits)).collect();
        assert_eq!(best, list::<u32>(&prompt["argmax_each"]), "{name}");

        let mut last = logits[logits.len() - 1].clone();
        let top = &prompt["last"];
        for (id, logit) in list::<usize>(&top["ids"]).into_iter().zip(list::<f32>(&top["logits"])) {
            assert!((last[id] - logit).abs() < tolerance, "{name} {id}: {} {logit}", last[id]);
        }

        let greedy: Vec<u32> = list(&prompt["greedy"]);
        let margins: Vec<f64> = list(&prompt["greedy_margins"]);
        let mut found = Vec::new();
        while found.len() < greedy.len() {
            let id = argmax(&last);
            found.push(id);
            if model.tokenizer.is_stop(id) {
                break;
            }
            last = model.forward(&[id]).unwrap().remove(0);
        }
        match (0..greedy.len()).find(|&i| found.get(i) != Some(&greedy[i])) {
            None => {
                let text = model.tokenizer.decode(&found).unwrap();
                assert_eq!(text, prompt["greedy_text"].as_str().unwrap());
                let stopped = model.tokenizer.is_stop(found[found.len() - 1]);
                assert_eq!(stopped, prompt["greedy_stopped"].as_bool().unwrap(), "{name}");
                equal += 1;
            }
            Some(step) => {
                println!("{name}: differs at step {step}, lead {}", margins[step]);
                assert!(margins[step] < 0.1, "{name}: step {step}: {found:?}");
            }
        }
    }
    println!("{equal} of {} texts equal to the end", prompts.len());
    assert!(equal >= 13);
}

const TWO_LAYERS: &str = "tests/data/golden/golden.json";

/// The greedy continuation of a prompt, and each token's lead over the second best.
fn greedy(model: &mut Reference, ids: &[u32], n: usize) -> (Vec<u32>, Vec<f32>) {
    model.reset();
    let mut last = model.forward(ids).unwrap().pop().unwrap();
    let (mut found, mut leads) = (Vec::new(), Vec::new());
    while found.len() < n {
        let id = argmax(&last);
        let best = last[id as usize];
        last[id as usize] = f32::NEG_INFINITY;
        leads.push(best - last[argmax(&last) as usize]);
        found.push(id);
        if model.tokenizer.is_stop(id) {
            break;
        }
        last = model.forward(&[id]).unwrap().remove(0);
    }
    (found, leads)
}

/// The model of two layers gives its goldens to the end, with their leads, which no rounding
/// overturns. Its tokenizer gives their tokens.
#[test]
fn the_model_of_two_layers_is_sure_of_every_token() {
    let goldens = json(TWO_LAYERS);
    let mut reader = open("tests/data/golden/golden.gguf");
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    let mut model = block_on(Reference::load(&mut reader)).unwrap();
    for prompt in goldens["prompts"].as_array().unwrap() {
        let name = prompt["name"].as_str().unwrap();
        let ids: Vec<u32> = list(&prompt["ids"]);
        if prompt["kind"] == "raw" {
            let text = prompt["text"].as_str().unwrap();
            assert_eq!(model.tokenizer.encode_with_special(text).unwrap(), ids, "{name}");
        } else {
            let turns: Vec<(chat::Role, String)> = list(&prompt["turns"]);
            let messages: Vec<Message> =
                turns.into_iter().map(|(role, content)| Message::new(role, content)).collect();
            let found = chat_tokens(&gguf.metadata, &model.tokenizer, &messages).unwrap();
            assert_eq!(found, ids, "{name}");
        }
        let expected: Vec<u32> = list(&prompt["greedy"]);
        let (found, leads) = greedy(&mut model, &ids, expected.len());
        assert_eq!(found, expected, "{name}");
        let expected: Vec<f32> = list(&prompt["greedy_margins"]);
        assert_eq!(leads.len(), expected.len(), "{name}");
        for (lead, expected) in leads.iter().zip(expected) {
            assert!(expected > 2.0, "{name}: a lead of {expected}");
            assert!((lead - expected).abs() < 1e-3, "{name}: a lead of {lead}, not {expected}");
        }
    }
}

/// Whichever tensor of a layer is spoiled, other tokens come out: an error in one layer shows.
#[test]
fn every_tensor_of_the_two_layers_decides() {
    let bytes = std::fs::read(support::path("tests/data/golden/golden.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&mut Reader::new(&bytes[..]))).unwrap();
    let goldens = json(TWO_LAYERS);
    let prompts = goldens["prompts"].as_array().unwrap();
    let differ = |bytes: &[u8]| {
        let mut model = block_on(Reference::load(&mut Reader::new(bytes))).unwrap();
        let mut others = prompts.iter().filter(|prompt| prompt["name"] != "long");
        others.any(|prompt| {
            let expected: Vec<u32> = list(&prompt["greedy"]);
            greedy(&mut model, &list::<u32>(&prompt["ids"]), expected.len()).0 != expected
        })
    };
    assert!(!differ(&bytes));
    for tensor in gguf.tensors.iter().filter(|tensor| tensor.name != "token_embd.weight") {
        let mut spoiled = bytes.clone();
        let range = tensor.offset as usize..(tensor.offset + tensor.len) as usize;
        let values = &mut spoiled[range];
        if tensor.name.contains("norm") {
            values.rotate_left(values.len() / 4);
        } else {
            // Rows in reverse order.
            let codes = values.len() - TAIL;
            let rows = values[..codes].rchunks(tensor.ne[0] as usize / 4);
            let reversed: Vec<u8> = rows.flatten().copied().collect();
            values[..codes].copy_from_slice(&reversed);
        }
        assert!(differ(&spoiled), "{} decides nothing", tensor.name);
    }
}

/// Tokens one by one give the same logits as all at once, also after a reset.
#[test]
fn the_cache_holds_the_past() {
    let ids = [3, 1, 4, 1, 5, 9, 2, 6];
    let bytes = tiny().build();
    let mut model = block_on(Reference::load(&mut Reader::new(bytes.as_slice()))).unwrap();
    let at_once = model.forward(&ids).unwrap();
    assert_eq!(model.n_past(), 8);
    model.reset();
    let mut one_by_one = Vec::new();
    for id in ids {
        one_by_one.extend(model.forward(&[id]).unwrap());
    }
    assert_eq!(at_once, one_by_one);
    // The same token after another context has other logits.
    assert_ne!(at_once[1], at_once[3]);
}

#[test]
fn bad_tokens_and_full_contexts_are_refused_before_any_work() {
    let bytes = tiny().build();
    let mut model = block_on(Reference::load(&mut Reader::new(bytes.as_slice()))).unwrap();
    assert_error(model.forward(&[]), "bad-option", &["no tokens"]);
    assert_error(model.forward(&[1, 264]), "bad-option", &["264"]);
    assert_error(model.forward(&[1; 65]), "context-full", &["65", "64"]);
    assert_eq!(model.n_past(), 0);
    model.forward(&[1; 64]).unwrap();
    assert_error(model.forward(&[1]), "context-full", &["65", "64"]);
}

/// The same weights in the ARM layout are the same model.
#[test]
fn the_arm_layout_is_read() {
    let mut file = tiny();
    let expected = block_on(Reference::load(&mut Reader::new(file.build().as_slice())))
        .unwrap()
        .forward(&[1, 2])
        .unwrap();
    for tensor in file.tensors.iter_mut().filter(|tensor| tensor.type_id == support::I2_S) {
        let n = tensor.bytes.len() - TAIL;
        let values = unpack(&tensor.bytes[..n], Layout::X86);
        tensor.bytes[..n].copy_from_slice(&tritloom::ternary::pack(&values, Layout::Arm));
    }
    let bytes = file.build();
    let load = |layout| {
        let options = ReferenceOptions { layout, ..Default::default() };
        let mut model =
            block_on(Reference::load_as(&mut Reader::new(bytes.as_slice()), options)).unwrap();
        model.forward(&[1, 2]).unwrap()
    };
    assert_eq!(load(Layout::Arm), expected);
    assert_ne!(load(Layout::X86), expected);
}

/// The operations, on examples computed by hand.
#[test]
fn operations_do_what_they_say() {
    let norm = ops::rms_norm(&[3.0, 4.0, 0.0, 2.0], &[1.0, 2.0], 0.0);
    let expected = [3.0 / 12.5f64.sqrt(), 8.0 / 12.5f64.sqrt(), 0.0, 4.0 / 2f64.sqrt()];
    for (a, b) in norm.iter().zip(expected) {
        assert!((f64::from(*a) - b).abs() < 1e-6, "{norm:?} {expected:?}");
    }

    // Two heads of four: elements 0 and 2 are rotated by the position, 1 and 3 by less.
    let mut x = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0];
    let (fast, slow) = (2f32, 0.2f32);
    let rope = [fast, slow].map(|angle| [f64::from(angle).cos(), f64::from(angle).sin()]);
    ops::rope_halves(&mut x, &rope);
    let expected = [
        [fast.cos(), slow.cos(), fast.sin(), slow.sin()],
        [-fast.sin(), -slow.sin(), fast.cos(), slow.cos()],
    ];
    for (a, b) in x.iter().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-6, "{x:?} {expected:?}");
    }

    // The same with neighbours as pairs.
    let mut x = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    ops::rope_neighbours(&mut x, &rope);
    let expected = [
        [fast.cos(), fast.sin(), slow.cos(), slow.sin()],
        [-fast.sin(), fast.cos(), -slow.sin(), slow.cos()],
    ];
    for (a, b) in x.iter().zip(expected.iter().flatten()) {
        assert!((a - b).abs() < 1e-6, "{x:?} {expected:?}");
    }

    // Two heads share one KV head of two; the weight of a position is e^score.
    let out = ops::attention(
        &[2f32.sqrt(), 0.0, 0.0, 0.0],
        &[1.0, 0.0, 0.0, 5.0],
        &[1.0, 2.0, 3.0, 4.0],
        2,
        1,
        2,
    );
    let w = 1f32.exp() / (1f32.exp() + 1.0);
    for (a, b) in out.iter().zip([w + 3.0 * (1.0 - w), 2.0 * w + 4.0 * (1.0 - w), 2.0, 3.0]) {
        assert!((a - b).abs() < 1e-6, "{out:?}");
    }

    let gated = |activation| ops::gated(activation, &[-1.0, 2.0, 300.0], &[5.0, -3.0, 1.0]);
    assert_eq!(gated(Activation::Relu2), [0.0, -12.0, 90000.0]);
    // Values of both functions to six digits, as published tables give them.
    for (activation, expected) in [
        (Activation::Silu, [-5.0 * 0.268_941_4, -3.0 * 1.761_594_2, 300.0]),
        (Activation::Gelu, [-5.0 * 0.158_808, -3.0 * 1.954_598, 300.0]),
    ] {
        for (found, expected) in gated(activation).iter().zip(expected) {
            assert!((found - expected).abs() < 1e-5, "{activation:?}: {found} {expected}");
        }
    }
    let w: Vec<f32> = (0..22).map(|i| i as f32).collect();
    let half: Vec<u16> = w.iter().map(|&w| half::f16::from_f32(w).to_bits()).collect();
    let x: Vec<f32> = (0..11).map(|i| (i % 3) as f32).collect();
    assert_eq!(ops::matvec_f32(&w, 11, &x), [52.0, 52.0 + 110.0]);
    assert_eq!(ops::matvec_f16(&half, 11, &x), [52.0, 52.0 + 110.0]);
    assert_eq!(ops::matvec_ternary(&[1, -1, 0, 1, 1, 1], 3, &[7, 2, 100]), [5, 109]);
}
