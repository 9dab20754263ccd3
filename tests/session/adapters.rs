//! Adapters in a session: what they change, and what they leave as it was.

use std::sync::Arc;

use tritloom::chat::{Message, Role as Speaker};
use tritloom::model::{Adapter, Role};
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::session::{GenerateOptions, LmHead, Session};
use tritloom::source::Reader;

use crate::setup::{Setup, check_adapted, generate, greedy};
use crate::support::adapters::{Adapted, adapted, on_embedding, on_matrix, random, random_times};
use crate::support::families::{OF_EACH_ARCHITECTURE, distance};
use crate::support::{assert_error, path, read};

/// With float activations nothing but the pairs is rounded, to f16. The inputs of I2_S are int8 in any case: pairs
/// that f16 does not hold move them, so that many round to another integer. That is two thirds of what rounding
/// alone does.
#[test]
fn with_float_activations_every_run_has_its_logits() {
    let allowed = |one: &Adapted| if one.rounds_inputs() { 3e-2 } else { 2e-3 };
    check_adapted(adapted(), Setup::exact, allowed);
    check_adapted(adapted(), || Setup::exact().like_a_card(), allowed);
}

#[test]
fn with_int8_activations_every_run_is_as_near_as_without_adapters() {
    let all = adapted();
    check_adapted(all.clone(), Setup::default, |_| 0.04);
    check_adapted(all, || Setup::default().like_a_card(), |_| 0.04);
}

/// An adapter of the golden model's values in its first block.
fn adapter(session: &mut Session, seed: u64) -> Arc<Adapter> {
    let config = session.compute().config();
    let shape = [config.n_embd as u64, config.n_embd_kv() as u64];
    let pairs = [on_matrix("blk.0.attn_v.weight", shape)];
    let file = random(config.architecture.name, &pairs, seed);
    block_on(session.load_adapter(&mut Reader::new(&file[..]))).unwrap()
}

fn logits(session: &mut Session, prompt: &[u32]) -> Vec<f32> {
    block_on(session.logits(prompt)).unwrap()
}

/// A browser would else keep the memory of each until it collects garbage.
#[test]
fn replaced_adapters_are_freed_on_the_gpu() {
    let mut session = Setup::default().golden();
    let [one, other] = [1, 2].map(|seed| adapter(&mut session, seed));
    let bytes = |session: &Session| session.compute().about().gpu_bytes;
    let alone = bytes(&session);
    block_on(session.set_adapters(&[(Arc::clone(&one), 1.0)])).unwrap();
    let applied = bytes(&session);
    assert!(applied > alone);
    block_on(session.set_adapters(&[(other, 1.0)])).unwrap();
    assert_eq!(bytes(&session), applied);
    assert_eq!(generate(&mut session, &[1, 2, 3], &greedy(4)).unwrap().ids.len(), 4);
    block_on(session.set_adapters(&[])).unwrap();
    // A staging buffer may stay for the next read-back.
    assert!(bytes(&session) < alone + 64 * 1024, "{} of {alone}", bytes(&session));
}

/// An adapter on every matrix: of the blocks, and on the embedding and the LM head if these are two.
fn on_all_matrices(session: &Session, file: &[u8]) -> Vec<u8> {
    let config = session.compute().config();
    let shape = |role: Role| [0, 1].map(|n| role.shape(config)[n]);
    let roles = [
        Role::AttnQ,
        Role::AttnK,
        Role::AttnV,
        Role::AttnOutput,
        Role::FfnGate,
        Role::FfnUp,
        Role::FfnDown,
    ];
    let of_block = |n: usize| {
        roles.map(|role| on_matrix(&format!("blk.{n}.{}.weight", role.name()), shape(role)))
    };
    let mut pairs: Vec<_> = (0..config.n_layer).flat_map(of_block).collect();
    let has_output = read(file).unwrap().tensor("output.weight").is_some();
    if has_output && !config.architecture.always_tied {
        pairs.push(on_embedding(shape(Role::TokenEmbd)));
        pairs.push(on_matrix("output.weight", shape(Role::Output)));
    }
    random(config.architecture.name, &pairs, 3)
}

/// The program that wrote the vectors has not all families, so here the reference says what is right: also
/// for heads whose rows the GPU holds in another order, and for scales of the residual stream and of the
/// embedding.
#[test]
fn every_family_takes_pairs_on_all_its_matrices() {
    for model in OF_EACH_ARCHITECTURE {
        let bytes = std::fs::read(path(&format!("tests/data/models/{model}.gguf"))).unwrap();
        let run = |setup: Setup, scale: f32| {
            let mut session = setup.context(64).load(&bytes).unwrap();
            let file = on_all_matrices(&session, &bytes);
            let adapter = block_on(session.load_adapter(&mut Reader::new(&file[..]))).unwrap();
            block_on(session.set_adapters(&[(adapter, scale)])).unwrap();
            let prompt: Vec<u32> = (40..60).collect();
            [logits(&mut session, &prompt[..19]), logits(&mut session, &prompt)].concat()
        };
        let expected = run(Setup::default().on_reference(), 0.02);
        let without = run(Setup::default().on_reference(), 0.0);
        assert!(distance(&without, &expected) > 0.05, "{model}");
        for setup in [Setup::exact(), Setup::exact().like_a_card(), Setup::exact().on_cpu()] {
            let off = distance(&run(setup, 0.02), &expected);
            let rounds = model.ends_with("i2_s") || model.starts_with("bitnet-b1.58");
            assert!(off < if rounds { 1e-2 } else { 1e-3 }, "{model}: {off}");
        }
    }
}

/// On a card a token takes one dispatch more for each input of a block that has pairs, and one for the rotation
/// of heads, which the product of q, k and v leaves to a kernel of its own then.
#[test]
fn pairs_on_all_matrices_take_five_dispatches_more_in_a_block() {
    let bytes = std::fs::read(path("tests/data/models/bitnet-i2_s.gguf")).unwrap();
    let mut session = Setup::default().like_a_card().load(&bytes).unwrap();
    let dispatches = |session: &Session| session.compute().about().dispatches_per_token;
    let alone = dispatches(&session);
    let file = on_all_matrices(&session, &bytes);
    let adapter = block_on(session.load_adapter(&mut Reader::new(&file[..]))).unwrap();
    block_on(session.set_adapters(&[(adapter, 1.0)])).unwrap();
    assert_eq!(dispatches(&session), alone + 5 * session.compute().config().n_layer);
}

/// The scales decide, not the order of calls: the same scales give the same bits, and scale 0 those of
/// the model alone. No key or value of other scales is used again.
#[test]
fn scales_give_the_same_bits_whatever_was_applied_before() {
    for setup in [Setup::default(), Setup::default().on_reference(), Setup::default().on_cpu()] {
        let mut session = setup.golden();
        let prompt =
            session.tokenizer().encode_text("Who are you, and where is the boat?").unwrap();
        let alone = logits(&mut session, &prompt);
        let dispatches = session.compute().about().dispatches_per_token;
        let one = adapter(&mut session, 1);
        let mut with = |scales: &[f32]| {
            let all: Vec<_> = scales.iter().map(|&scale| (Arc::clone(&one), scale)).collect();
            block_on(session.set_adapters(&all)).unwrap();
            logits(&mut session, &prompt)
        };
        let full = with(&[1.0]);
        assert_ne!(full, alone);
        let negative = with(&[-0.5]);
        assert!(negative != alone && negative != full);
        assert_eq!(with(&[0.0]), alone);
        assert_eq!(with(&[0.5, 0.5]), full);
        assert_eq!(with(&[]), alone);
        assert_eq!(session.compute().about().dispatches_per_token, dispatches);
    }
}

/// A prompt that was computed with other adapters is computed again, and a chat keeps its tokens.
#[test]
fn chats_go_on_after_a_change_of_adapters_with_nothing_computed_before() {
    let mut session = Setup::default().on_reference().golden();
    let one = adapter(&mut session, 1);
    let mut messages = vec![Message::new(Speaker::User, "Who are you?")];
    let prompt = session.chat_prompt(&messages, None).unwrap();
    let answer = generate(&mut session, &prompt, &greedy(9)).unwrap();
    messages.push(Message::new(Speaker::Assistant, &answer.text));
    messages.push(Message::new(Speaker::User, "And how small are you?"));
    let next = session.chat_prompt(&messages, None).unwrap();
    block_on(session.set_adapters(&[(Arc::clone(&one), 0.1)])).unwrap();
    assert_eq!(session.chat_prompt(&messages, None).unwrap(), next);
    let after = generate(&mut session, &next, &greedy(3)).unwrap();
    assert_eq!(after.stats.reused_tokens, 0);
    // The same adapters again change nothing.
    block_on(session.set_adapters(&[(one, 0.1)])).unwrap();
    let again = generate(&mut session, &next, &greedy(3)).unwrap();
    assert!(again.stats.reused_tokens > 0);
    assert_eq!(again.ids, after.ids);
}

#[test]
fn a_saved_chat_belongs_to_its_adapters() {
    let mut session = Setup::default().on_reference().golden();
    let [one, other] = [1, 2].map(|seed| adapter(&mut session, seed));
    let messages = [
        Message::new(Speaker::User, "Who are you?"),
        Message::new(Speaker::Assistant, "I am small."),
    ];
    let mut saved = Vec::new();
    let mut write = |bytes: &[u8]| {
        saved.extend_from_slice(bytes);
        Ok(())
    };
    block_on(session.set_adapters(&[(Arc::clone(&one), 0.5)])).unwrap();
    block_on(session.save(&messages, "a note", &mut write)).unwrap();
    let mut restore = |adapters: &[(Arc<Adapter>, f32)]| {
        block_on(session.set_adapters(adapters)).unwrap();
        block_on(session.restore(&mut &saved[..]))
    };
    assert_error(restore(&[]), "bad-option", &["adapters"]);
    assert_error(restore(&[(Arc::clone(&one), 0.25)]), "bad-option", &["adapters"]);
    assert_error(restore(&[(other, 0.5)]), "bad-option", &["adapters"]);
    assert_eq!(restore(&[(one, 0.5)]).unwrap(), "a note");
}

/// After the loss of its device a session applies the same adapters.
#[test]
fn adapters_are_applied_again_on_another_device() {
    let mut session = Setup::default().on_reference().golden();
    let one = adapter(&mut session, 1);
    block_on(session.set_adapters(&[(Arc::clone(&one), 1.0)])).unwrap();
    let prompt = session.tokenizer().encode_text("Who are you?").unwrap();
    let expected = logits(&mut session, &prompt);
    let memory = session.into_memory();
    let mut session = Setup::default().on_reference().golden();
    block_on(session.recall(&memory)).unwrap();
    assert_eq!(logits(&mut session, &prompt), expected);
    block_on(session.set_adapters(&[(one, 1.0)])).unwrap();
}

/// As where the new device has no memory for the old adapters.
#[test]
fn other_adapters_may_be_chosen_before_a_session_is_restored() {
    let mut session = Setup::default().on_reference().golden();
    let [one, other] = [1, 2].map(|seed| adapter(&mut session, seed));
    let prompt = session.tokenizer().encode_text("Who are you?").unwrap();
    block_on(session.set_adapters(&[(Arc::clone(&other), 0.5)])).unwrap();
    let expected = logits(&mut session, &prompt);
    block_on(session.set_adapters(&[(one, 1.0)])).unwrap();
    let mut memory = session.into_memory();
    let mut session = Setup::default().on_reference().golden();
    let foreign = adapter(&mut session, 1);
    assert_error(memory.set_adapters(&[(foreign, 1.0)]), "bad-option", &["another model"]);
    memory.set_adapters(&[(other, 0.5)]).unwrap();
    block_on(session.recall(&memory)).unwrap();
    assert_eq!(logits(&mut session, &prompt), expected);
}

/// The values of a hostile file may be far from 1, as long as their products are not.
#[test]
fn values_far_from_1_give_the_bits_of_those_near_1() {
    let far = 2_f32.powi(110);
    for setup in [|| Setup::exact(), || Setup::exact().on_cpu()] {
        let mut session = setup().golden();
        let config = session.compute().config();
        let pairs =
            [on_matrix("blk.0.attn_v.weight", [config.n_embd as u64, config.n_embd_kv() as u64])];
        let architecture = config.architecture.name;
        let mut with = |times: [f32; 2], scale: f32| {
            let file = random_times(architecture, &pairs, 4, times);
            let adapter = block_on(session.load_adapter(&mut Reader::new(&file[..]))).unwrap();
            block_on(session.set_adapters(&[(adapter, scale)]))?;
            Ok(logits(&mut session, &[1, 2, 3]))
        };
        let expected = with([1.0, 1.0], 0.5).unwrap();
        assert_eq!(with([far, 1.0 / far], 0.5).unwrap(), expected);
        assert_eq!(with([1.0 / far, far], 0.5).unwrap(), expected);
        assert_eq!(with([1.0 / far, 1.0], 0.5 * far).unwrap(), expected);
        assert_error(with([far, 1.0], 1.0), "bad-option", &["scale", "too large"]);
    }
}

#[test]
fn an_adapter_of_another_session_is_refused() {
    let mut session = Setup::default().on_reference().golden();
    let mut other = Setup::default().on_reference().golden();
    let one = adapter(&mut other, 1);
    let result = block_on(session.set_adapters(&[(one, 1.0)]));
    assert_error(result, "bad-option", &["adapters", "another model"]);
    let own = adapter(&mut session, 1);
    for scale in [f32::NAN, f32::INFINITY] {
        let result = block_on(session.set_adapters(&[(Arc::clone(&own), scale)]));
        assert_error(result, "bad-option", &["scale"]);
    }
}

/// The upper bytes of an LM head with a pair would not say which tokens may be the best. So a split one is read
/// whole, and gives the answers of one that is not split.
#[test]
fn a_split_lm_head_takes_pairs() {
    let bytes = std::fs::read(path("tests/data/models/llama-i2_s.gguf")).unwrap();
    let answers = |setup: Setup, lm_head: LmHead, scale: f32| {
        let mut session = setup.lm_head(lm_head).load(&bytes).unwrap();
        let shape = [0, 1].map(|n| Role::Output.shape(session.compute().config())[n]);
        let file = random("llama", &[on_matrix("output.weight", shape)], 5);
        let adapter = block_on(session.load_adapter(&mut Reader::new(&file[..]))).unwrap();
        block_on(session.set_adapters(&[(adapter, scale)])).unwrap();
        let sampling = Sampling { temperature: 0.7, top_k: 5, seed: 3, ..Sampling::default() };
        let drawn = GenerateOptions { sampling, ..greedy(6) };
        [greedy(6), drawn].map(|options| generate(&mut session, &[5, 6, 7], &options).unwrap().ids)
    };
    for setup in [|| Setup::exact().like_a_card(), || Setup::exact().on_cpu()] {
        let expected = answers(setup(), LmHead::F16, 1.0);
        assert_eq!(answers(setup(), LmHead::Int8, 1.0), expected);
        assert_ne!(answers(setup(), LmHead::Int8, 0.0), expected);
    }
}
