//! The bundled model's greedy text, token by token, however it is held and run.

use ternlight::session::{FinishReason, LmHead, Session};

use crate::setup::{Goldens, Setup, generate, greedy, is_slow};

/// A lead below this may be lost: one int8 rounding that f32 arithmetic tips moves a logit by as much.
const SMALL_LEAD: f32 = 0.3;

/// Compares the greedy text of `names` with the goldens; returns how many are equal to the end.
fn compare(session: &mut Session, names: &[&str]) -> usize {
    let goldens = Goldens::read();
    let mut equal = 0;
    for name in names {
        let golden = goldens.prompt(name);
        let found = generate(session, &golden.ids, &greedy(golden.greedy.len())).unwrap();
        let expected = golden.expected();
        let differs = (0..golden.greedy.len()).find(|&i| found.ids.get(i) != expected.get(i));
        if let Some(step) = differs {
            let lead = golden.greedy_margins[step];
            assert!(lead < SMALL_LEAD, "{name} differs at step {step}, where the lead is {lead}");
            continue;
        }
        equal += 1;
        assert_eq!(found.text, golden.greedy_text, "{name}");
        let reason = if golden.greedy_stopped { FinishReason::Stop } else { FinishReason::Length };
        assert_eq!(found.stats.finish_reason, reason, "{name}");
    }
    equal
}

/// Short prompts, of which one stops by itself after a small lead and one has none.
const SHORT: [&str; 3] = ["once", "who", "out_of_scope"];

fn compare_short(session: &mut Session) {
    let names = if is_slow(session) { &SHORT[1..2] } else { &SHORT[..] };
    let equal = compare(session, names);
    assert!(equal >= names.len() - 1, "{equal} of {names:?} are equal to the end");
}

#[test]
fn greedy_texts_are_the_goldens() {
    let mut session = Setup::default().bundled();
    let goldens = Goldens::read();
    let all: Vec<&str> = goldens.prompts.iter().map(|golden| golden.name.as_str()).collect();
    if is_slow(&session) {
        compare_short(&mut session);
        return;
    }
    // f16 keys and values move logits by some 0.05, which decides the closest races.
    let equal = compare(&mut session, &all);
    assert!(equal >= all.len() - 2, "{equal} of {} are equal to the end", all.len());
}

#[test]
fn greedy_texts_are_the_goldens_with_an_f32_cache() {
    let mut session = Setup::default().kv_f32().bundled();
    compare_short(&mut session);
}

#[test]
fn greedy_texts_are_the_goldens_with_each_head() {
    for (head, kernel) in [(LmHead::F16, "gemv_head"), (LmHead::Int8, "rescore")] {
        let mut session = Setup::default().head(head).bundled();
        let kernels = &session.info().kernels;
        assert!(kernels.iter().any(|name| name.split('/').next() == Some(kernel)), "{kernels:?}");
        compare_short(&mut session);
    }
}

#[test]
fn greedy_texts_are_the_goldens_without_subgroups() {
    let mut session = Setup::default().no_subgroups().bundled();
    let kernels = &session.info().kernels;
    assert!(kernels.iter().all(|kernel| !kernel.ends_with("/subgroup")), "{kernels:?}");
    assert!(kernels.iter().any(|kernel| kernel == "gemv_i2s/workgroup"), "{kernels:?}");
    compare_short(&mut session);
}

/// Matrices by tiles, rows shared by lanes, steps in flight.
#[test]
fn greedy_texts_are_the_goldens_as_on_a_card() {
    let mut session = Setup::default().like_a_card().bundled();
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|kernel| kernel == "gemm_i2s"), "{kernels:?}");
    compare_short(&mut session);
}

#[test]
fn greedy_texts_are_the_goldens_with_products_of_floats() {
    let mut session = Setup::default().like_a_card().packed_dot(Some(false)).bundled();
    let kernels = &session.info().kernels;
    assert!(kernels.iter().any(|kernel| kernel == "gemm_i2s/f32-dot"), "{kernels:?}");
    compare_short(&mut session);
}

/// A card is tried out, once for all models.
#[test]
fn the_faster_product_is_found() {
    let is_float = |session: &Session| {
        let kernels = &session.info().kernels;
        kernels.iter().any(|kernel| kernel == "gemm_i2s/f32-dot")
    };
    let setup = Setup::default().like_a_card().packed_dot(None);
    let first = is_float(&setup.small());
    assert_eq!(is_float(&setup.small()), first);
}

/// Bindings so small that the embedding, 4 MiB of it, lies in several buffers. Each of them takes a
/// dispatch more to look tokens up and one for their logits.
#[test]
fn greedy_texts_are_the_goldens_in_shards() {
    let whole = Setup::default().small().info().dispatches_per_token;
    let mut setup = Setup::default();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
    let same = setup.small().info().dispatches_per_token;
    assert_eq!(same, whole, "a small model needs no shards");

    let whole = Setup::default().bundled().info().dispatches_per_token;
    let mut setup = Setup::default();
    setup.gpu.limits.max_storage_buffer_binding_size = Some(1 << 20);
    let mut session = setup.bundled();
    let shards = 1 + (session.info().dispatches_per_token - whole) / 2;
    assert!(shards >= 3, "the embedding is in {shards} shards");
    compare_short(&mut session);
}
