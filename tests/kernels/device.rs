//! Opens the adapter under test, runs kernels on it and compares results.

use std::sync::LazyLock;

use bytemuck::Pod;
use tritloom::gpu::{Buffer, FeatureCaps, Gpu, GpuOptions, Recorder, Step};
use tritloom::native::block_on;

// All tests share one device of each kind. Opening a device takes longer than most tests, and a
// pipeline that one test compiles serves the others.
static BEST: LazyLock<Gpu> = LazyLock::new(|| open(None));
static WITHOUT_SUBGROUPS: LazyLock<Gpu> = LazyLock::new(|| open(Some(false)));
static AS_A_CARD: LazyLock<Gpu> = LazyLock::new(|| as_a_card(None));
static AS_A_CARD_WITHOUT_SUBGROUPS: LazyLock<Gpu> = LazyLock::new(|| as_a_card(Some(false)));

static WITHOUT_PACKED_DOT: LazyLock<Gpu> = LazyLock::new(|| {
    let mut gpu = as_a_card(None);
    gpu.tuning.packed_dot = Some(false);
    gpu
});

static AS_A_CARD_OF_16_LANES: LazyLock<Gpu> = LazyLock::new(|| {
    let mut gpu = as_a_card(Some(false));
    gpu.tuning.lanes = 16;
    gpu.tuning.packed_dot = Some(false);
    gpu
});

fn as_a_card(subgroups: Option<bool>) -> Gpu {
    open_with(FeatureCaps { subgroups, software: Some(false), ..Default::default() })
}

fn open(subgroups: Option<bool>) -> Gpu {
    open_with(FeatureCaps { subgroups, ..Default::default() })
}

fn open_with(features: FeatureCaps) -> Gpu {
    let options = GpuOptions { features, ..Default::default() };
    block_on(Gpu::open(&options)).expect("these tests need a GPU adapter; Mesa's llvmpipe will do")
}

/// Runs `test` on the device, and again without subgroup operations if it has them.
pub(crate) fn on_each_device(test: impl Fn(&Gpu)) {
    test(&BEST);
    if BEST.subgroups.is_some() {
        assert!(WITHOUT_SUBGROUPS.subgroups.is_none());
        test(&WITHOUT_SUBGROUPS);
    }
}

/// Like [`on_each_device`], but a CPU runs `test` again with the tuning of a graphics card. For
/// kernels that depend on the tuning.
pub(crate) fn on_each_device_and_as_cards(test: impl Fn(&Gpu)) {
    on_each_device(&test);
    if BEST.software {
        on_each_card(test);
    }
}

/// Runs `test` with the tuning of a graphics card, with and without subgroup operations. For kernels
/// that only cards run.
pub(crate) fn on_each_card(test: impl Fn(&Gpu)) {
    test(&AS_A_CARD);
    test(&AS_A_CARD_WITHOUT_SUBGROUPS);
}

/// A device that does not multiply four int8 values in one operation.
pub(crate) fn without_packed_dot() -> &'static Gpu {
    &WITHOUT_PACKED_DOT
}

/// A card whose rows have 16 lanes: then a team of the residual stream has two rows. It does not multiply
/// four int8 values in one operation either.
pub(crate) fn of_16_lanes() -> &'static Gpu {
    &AS_A_CARD_OF_16_LANES
}

/// The device, for kernels with a single variant.
pub(crate) fn device() -> &'static Gpu {
    &BEST
}

/// A step of `n_tokens` after `pos`, with attention in one split.
pub(crate) fn step(pos: usize, n_tokens: usize) -> Step {
    let len = (pos + n_tokens) as u32;
    Step {
        pos: pos as u32,
        n_tokens: n_tokens as u32,
        n_splits: 1,
        split_len: len,
        ..Step::default()
    }
    .with_rows()
}

/// Records one plan and runs it once.
pub(crate) fn run(gpu: &Gpu, step: &Step, record: impl FnOnce(&mut Recorder)) {
    let buffer = gpu.upload("step", &[*step]);
    let mut recorder = Recorder::new(gpu, &buffer);
    record(&mut recorder);
    gpu.run(&[&recorder.finish()], step);
}

/// The values of a buffer. Fails if the device reported an error.
pub(crate) fn read<T: Pod>(gpu: &Gpu, buffer: &Buffer<T>) -> Vec<T> {
    block_on(gpu.read(buffer)).expect("the device reports no error")
}

/// Asserts that each value is off by at most `relative * scale(i)`. `scale(i)` is the size of the
/// terms of value `i`.
#[track_caller]
pub(crate) fn assert_close(
    what: &str,
    found: &[f32],
    expected: &[f32],
    relative: f32,
    scale: impl Fn(usize) -> f32,
) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let allowed = relative * scale(i);
        assert!((f - e).abs() <= allowed, "{what}, at {i}: {f}, not {e} within {allowed}");
    }
}
