//! A card that is too small for all weights: layers, slices of the LM head and rows of the embedding come
//! from main memory. Every result has the bits of a card that holds all.

use std::sync::Arc;

use tritloom::Error;
use tritloom::compute::{Choosing, Seat, Site, Span, Tap};
use tritloom::engine::Engine;
use tritloom::gguf::{Gguf, TensorType};
use tritloom::model::{Adapter, Adapters, Config, weights::weights};
use tritloom::native::block_on;
use tritloom::sampling::Sampling;
use tritloom::source::Reader;

use crate::setup::{Setup, generate, greedy, noise};
use crate::support::adapters::{on_embedding, on_matrix, random};
use crate::support::{F16, Random, Sizes, llama, read, tiny};

/// Buffers are so small that a few layers count.
const BUFFER: u64 = 96 << 10;

fn setups() -> [Setup; 2] {
    [Setup::default(), Setup::default().like_a_card().no_subgroups()].map(|mut setup| {
        setup.gpu.limits.max_buffer_size = Some(BUFFER);
        setup.chunk = Some(48);
        // By default it would follow from the memory.
        setup.context(64)
    })
}

/// I2_S with an LM head that is the embedding; and packed weights with an LM head of their own.
fn models() -> [(&'static str, Vec<u8>); 2] {
    let sizes = Sizes { n_vocab: 600, n_embd: 256, n_layer: 9, n_head: 4, n_ff: 256 };
    let packed = |name: &str| match name {
        "token_embd" => TensorType::Q6K.id(),
        _ => TensorType::Tq2_0.id(),
    };
    let mut untied = llama(sizes, packed);
    untied.add("output.weight", &[256, 600], F16, &mut Random(3));
    // Larger than two layers, so that it comes in slices where no layer fits beside it.
    let mut tied = tiny();
    tied.widen_vocabulary(3000);
    tied.tensors.retain(|tensor| tensor.name != "token_embd.weight");
    tied.add("token_embd.weight", &[128, 3000], F16, &mut Random(5));
    [("tied", tied.build()), ("untied", untied.build())]
}

fn load(setup: &Setup, bytes: &[u8], most: Option<u64>) -> Result<Engine, Error> {
    let mut reader = Reader::new(bytes);
    block_on(async {
        let gguf = Gguf::read(&mut reader).await?;
        let config = Config::from_gguf(&gguf)?;
        let table = weights(&config, &gguf)?;
        let mut gpu = setup.open();
        gpu.max_bytes = most;
        let options = &setup.load.engine;
        Engine::load(gpu, config, &table, &mut reader, options, &mut |_| {}).await
    })
}

/// The bytes on a GPU that holds all, and the fewest with which the model loads.
fn bounds(setup: &Setup, bytes: &[u8]) -> (u64, u64) {
    let whole = load(setup, bytes, None).unwrap().gpu().allocated();
    match load(setup, bytes, Some(1)).err() {
        Some(Error::OutOfMemory { needed, granted: 1, .. }) => (whole, needed),
        other => panic!("{other:?}"),
    }
}

/// Pairs on a few blocks, and on an embedding and an LM head that are two matrices.
fn adapters(name: &str, bytes: &[u8]) -> Adapters {
    let on_blocks = |[n_embd, n_ff]: [u64; 2]| {
        let (q, down) = ([n_embd, n_embd], [n_ff, n_embd]);
        vec![
            on_matrix("blk.2.attn_q.weight", q),
            on_matrix("blk.3.ffn_up.weight", [n_embd, n_ff]),
            on_matrix("blk.8.ffn_down.weight", down),
        ]
    };
    let file = match name {
        "untied" => {
            let vocabulary = [on_embedding([256, 600]), on_matrix("output.weight", [256, 600])];
            random("llama", &[&vocabulary[..], &on_blocks([256, 256])].concat(), 4)
        }
        _ => random("bitnet-b1.58", &on_blocks([128, 256]), 4),
    };
    let gguf = read(bytes).unwrap();
    let config = Config::from_gguf(&gguf).unwrap();
    let table = weights(&config, &gguf).unwrap();
    let adapter = block_on(Adapter::read(&mut Reader::new(&file[..]), &config, &table)).unwrap();
    Adapters::new(&[(Arc::new(adapter), 0.5)]).unwrap()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|value| value.to_bits()).collect()
}

/// Prompts, tokens one by one and in batches, drafts, several sequences and passes, one after another.
fn results(engine: &Engine) -> impl PartialEq + std::fmt::Debug + use<> {
    let ids = noise(60);
    let (n, few) = (engine.chunk().min(40), engine.few_at(42).min(5));
    // All is submitted before anything is awaited.
    let prompt = engine.prefill(&ids[..n], 0, 0..n);
    let logits = engine.prefill_and_read(&ids[n..n + 2], n, n);
    let chosen = engine.prefill_and_sample(&ids[n..n + 2], n, n);
    let more = engine.decode_and_sample(n + 2, 4);
    let draft = engine.decode_and_choose(&ids[..few], 42, &[]);
    let hot = Sampling { temperature: 2.0, top_k: 40, seed: 7, ..Sampling::default() };
    engine.set_choosing(&Choosing { logprobs: Some(2), ..hot.into() });
    let drawn = engine.prefill_and_sample(&ids[n..n + 2], n, n);
    engine.set_choosing(&Choosing::default());
    engine.put_token(0, ids[3]);
    engine.put_token(1, ids[4]);
    let seats = [(0, 0), (1, 20)].map(|(slot, first)| Seat { slot, first, pos: 8 });
    let batch = engine.decode_batch(&seats, 2);
    let spans = [(0, &ids[..3]), (30, &ids[5..9])];
    let spans = spans.map(|(first, ids)| Span { first, pos: 0, ids, next: Some(ids[0]) });
    let scored = engine.score(&spans).unwrap();
    let taps = [Tap::Product(4, Site::GateUp), Tap::Queries(5), Tap::Hidden];
    let taps = taps.map(|tap| engine.pass_and_tap(&spans, &[1, 5], tap).unwrap());
    let long = [Span { first: 0, pos: 0, ids: &ids[..n], next: None }];
    let of_long = engine.pass_and_tap(&long, &[n - 1], Tap::Hidden).unwrap();
    let keys = engine.read_cache(10, 0, n);
    let last = engine.prefill_and_read(&ids[7..8], n, n);
    block_on(async {
        // In another order than they were submitted in.
        let last = bits(&last.take().await.unwrap());
        prompt.take().await.unwrap();
        let logits = bits(&logits.take().await.unwrap());
        assert!(logits.iter().any(|bits| f32::from_bits(*bits) != 0.0));
        let mut tapped = vec![bits(&of_long.take().await.unwrap())];
        for tap in taps {
            tapped.push(bits(&tap.take().await.unwrap()));
        }
        (
            [last, logits],
            [chosen.take().await.unwrap(), more.take().await.unwrap(), draft.take().await.unwrap()],
            (drawn.take().await.unwrap(), batch.take().await.unwrap()),
            scored.take().await.unwrap(),
            (tapped, keys.take().await.unwrap()),
        )
    })
}

/// The results of a model alone and with adapters, and its logits after these were taken away.
fn all_results(
    engine: &mut Engine,
    adapters: &Adapters,
) -> impl PartialEq + std::fmt::Debug + use<> {
    let alone = results(engine);
    block_on(engine.set_adapters(adapters)).unwrap();
    let adapted = results(engine);
    assert!(adapted != alone);
    // The adapters are freed only after this.
    drop(engine.decode_and_sample(40, 2));
    block_on(engine.set_adapters(&Adapters::default())).unwrap();
    let logits = engine.prefill_and_read(&noise(12), 0, 0);
    (alone, adapted, bits(&block_on(logits.take()).unwrap()))
}

#[test]
fn a_model_that_does_not_fit_gives_the_same_bits() {
    for setup in setups() {
        for (name, bytes) in models() {
            let (most, least) = bounds(&setup, &bytes);
            let adapters = adapters(name, &bytes);
            let mut whole = load(&setup, &bytes, Some(most)).unwrap();
            assert_eq!(whole.streamed_layers(), 0, "{name}: it fits");
            let expected = all_results(&mut whole, &adapters);
            let n_layer = whole.config().n_layer;
            drop(whole);
            let mut streamed = Vec::new();
            for allowed in [least, least.midpoint(most)] {
                let mut engine = load(&setup, &bytes, Some(allowed)).unwrap();
                let found = all_results(&mut engine, &adapters);
                assert!(found == expected, "{name} in {allowed} of {most} bytes");
                // Readbacks keep a few buffers.
                let taken = engine.gpu().allocated();
                assert!(taken <= allowed + (64 << 10), "{name}: {taken} bytes of {allowed}");
                streamed.push(engine.streamed_layers());
            }
            let some = 1..=streamed[0].min(n_layer);
            assert!(some.contains(&streamed[1]), "{name}: {streamed:?}");
        }
    }
}

#[test]
fn a_session_says_how_many_layers_do_not_fit() {
    let [mut setup, _] = setups();
    let [(_, bytes), _] = models();
    let (_, least) = bounds(&setup, &bytes);
    let answer = |setup: &Setup| {
        let mut session = setup.load(&bytes).unwrap();
        let ids = generate(&mut session, &noise(30), &greedy(12)).unwrap().ids;
        (session.info().streamed_layers, ids)
    };
    let (none, expected) = answer(&setup);
    setup.gpu.max_bytes = Some(least);
    let (streamed, ids) = answer(&setup);
    assert!(none == 0 && streamed > 0, "{streamed}");
    assert_eq!(ids, expected);
}

/// Steps that are not awaited are done all the same, and a device may end in the middle of one.
#[test]
fn passes_may_be_dropped_and_devices_lost() {
    let [setup, _] = setups();
    let setup = setup.on_own_device();
    let [(_, bytes), _] = models();
    let (most, least) = bounds(&setup, &bytes);
    let ids = noise(40);
    let logits =
        |engine: &Engine| bits(&block_on(engine.prefill_and_read(&ids, 0, 0).take()).unwrap());
    let expected = logits(&load(&setup, &bytes, Some(most)).unwrap());
    let engine = load(&setup, &bytes, Some(least)).unwrap();
    drop(engine.prefill(&ids[..30], 0, 0..30));
    drop(engine.decode_and_sample(30, 3));
    assert_eq!(logits(&engine), expected);
    // A device that goes away in the middle of a pass.
    let pending = engine.decode_and_sample(40, 2);
    drop(engine);
    assert!(block_on(pending.take()).is_err());
}

#[test]
fn a_card_that_holds_no_layer_is_refused() {
    let [setup, _] = setups();
    let [(_, bytes), _] = models();
    let (_, least) = bounds(&setup, &bytes);
    assert!(matches!(
        load(&setup, &bytes, Some(least - 1)).err(),
        Some(Error::OutOfMemory { needed, .. }) if needed == least
    ));
}
