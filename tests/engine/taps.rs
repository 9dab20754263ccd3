//! Values from within the model. The first test may take over ten seconds: its models have pipelines of
//! their own.

use tritloom::compute::Site;
use tritloom::engine::Engine;
use tritloom::native::block_on;
use tritloom::session::KvType;

use crate::setup::{Setup, engine_of, largest_difference};
use crate::support::path;

const IDS: [u32; 5] = [7, 3, 11, 2, 9];

fn engine(setup: &Setup, model: &str) -> Engine {
    engine_of(setup, &std::fs::read(path("tests/data/models").join(model)).unwrap())
}

fn values(engine: &Engine, ids: &[u32], pos: usize, block: usize, site: Site) -> Vec<f32> {
    let values = engine.values_at(ids, pos, block, site).unwrap();
    block_on(values.take()).unwrap()
}

/// A block that is recorded alone neither leaves nor finds an input that another block's product makes.
#[test]
fn a_block_that_runs_alone_gives_the_same_stream() {
    let card = || Setup::default().like_a_card();
    let cases = [
        ("qwen3-tq2_0.gguf", card()),
        ("qwen3-yarn-q1_0.gguf", card().kv(KvType::Int8)),
        ("llama-tq2_0.gguf", card().no_subgroups()),
        ("bitnet-i2_s.gguf", card()),
        ("bitnet-tq2_0.gguf", Setup::default()),
    ];
    for (model, setup) in cases {
        let engine = engine(&setup, model);
        for ids in [&IDS[..1], &IDS] {
            for block in 0..2 {
                let together = engine.hidden_states(ids, 0, block + 1).unwrap();
                let together = block_on(together.take()).unwrap();
                let alone = values(&engine, ids, 0, block, Site::Down);
                assert!(alone.iter().any(|value| *value != 0.0));
                assert_eq!(alone, together, "{model}, {ids:?}, block {block}");
            }
        }
    }
}

#[test]
fn each_site_has_a_row_for_each_token() {
    for model in ["qwen3-tq2_0.gguf", "bitnet-i2_s.gguf"] {
        let engine = engine(&Setup::default(), model);
        for site in [Site::Qkv, Site::Output, Site::GateUp, Site::Down] {
            let all = values(&engine, &IDS, 0, 1, site);
            values(&engine, &IDS[..4], 0, 1, site);
            let last = values(&engine, &IDS[4..], 4, 1, site);
            assert_eq!(all.len(), 5 * last.len());
            // On a card, the kernels of one token and of a prompt may differ in the last bits, and that may
            // tip the rounding of an input to int8.
            let off = largest_difference(&all[4 * last.len()..], &last);
            assert!(off < 5e-3, "{model}, {site:?}: {off}");
        }
    }
}

#[test]
fn taps_that_are_nowhere_are_refused() {
    let engine = engine(&Setup::default(), "qwen3-tq2_0.gguf");
    let code = |ids: &[u32], block| match engine.values_at(ids, 0, block, Site::Down) {
        Ok(_) => "",
        Err(error) => error.code(),
    };
    assert_eq!(code(&IDS, 99), "bad-option");
    assert_eq!(code(&[], 0), "bad-option");
    assert_eq!(code(&vec![0; engine.chunk() + 1], 0), "bad-option");
    assert!(engine.hidden_states(&IDS, 0, 0).is_err());
}
