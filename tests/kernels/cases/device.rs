//! Opens the adapter under test, runs kernels on it, compares results, and notes how far they differ.

#[cfg(target_arch = "wasm32")]
use std::cell::Cell;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
#[cfg(not(target_arch = "wasm32"))]
use std::sync::LazyLock;

use bytemuck::Pod;
use tritloom::gpu::{Buffer, FeatureCaps, Gpu, GpuOptions, Plan, Recorder, Step};
use tritloom::kernels::ALL;

/// Devices of one adapter. All cases share them: opening a device takes longer than most cases, and a
/// pipeline that one case compiles serves the others.
struct Devices {
    best: Gpu,
    without_subgroups: Gpu,
    as_a_card: Gpu,
    as_a_card_without_subgroups: Gpu,
    without_packed_dot: Gpu,
    of_16_lanes: Gpu,
}

impl Devices {
    async fn open() -> tritloom::Result<Self> {
        let open = async |subgroups, software| {
            let features = FeatureCaps { subgroups, software, ..Default::default() };
            Gpu::open(&GpuOptions { features, ..Default::default() }).await
        };
        let mut without_packed_dot = open(None, Some(false)).await?;
        without_packed_dot.tuning.packed_dot = Some(false);
        let mut of_16_lanes = open(Some(false), Some(false)).await?;
        of_16_lanes.tuning.lanes = 16;
        of_16_lanes.tuning.packed_dot = Some(false);
        Ok(Self {
            best: open(None, None).await?,
            without_subgroups: open(Some(false), None).await?,
            as_a_card: open(None, Some(false)).await?,
            as_a_card_without_subgroups: open(Some(false), Some(false)).await?,
            without_packed_dot,
            of_16_lanes,
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
static DEVICES: LazyLock<Devices> = LazyLock::new(|| {
    tritloom::native::block_on(Devices::open())
        .expect("these tests need a GPU adapter; Mesa's llvmpipe will do")
});

#[cfg(not(target_arch = "wasm32"))]
fn devices() -> &'static Devices {
    &DEVICES
}

#[cfg(target_arch = "wasm32")]
thread_local! {
    static DEVICES: Cell<Option<&'static Devices>> = const { Cell::new(None) };
}

/// Opens the devices, for all cases that this thread runs afterwards: a browser cannot wait for them
/// in the middle of a call.
#[cfg(target_arch = "wasm32")]
pub(crate) async fn open() -> tritloom::Result<()> {
    let devices: &'static Devices = Box::leak(Box::new(Devices::open().await?));
    DEVICES.set(Some(devices));
    Ok(())
}

#[cfg(target_arch = "wasm32")]
fn devices() -> &'static Devices {
    DEVICES.get().expect("`open` comes first")
}

/// Runs `test` on the device, and again without subgroup operations if it has them.
pub(crate) async fn on_each_device(test: impl AsyncFn(&Gpu)) {
    let Devices { best, without_subgroups, .. } = devices();
    test(best).await;
    if best.subgroups.is_some() {
        assert!(without_subgroups.subgroups.is_none());
        test(without_subgroups).await;
    }
}

/// Like [`on_each_device`], but a CPU runs `test` again with the tuning of a graphics card. For
/// kernels that depend on the tuning.
pub(crate) async fn on_each_device_and_as_cards(test: impl AsyncFn(&Gpu)) {
    on_each_device(&test).await;
    if device().software {
        on_each_card(&test).await;
    }
}

/// Runs `test` with the tuning of a graphics card, with and without subgroup operations. For kernels
/// that only cards run.
pub(crate) async fn on_each_card(test: impl AsyncFn(&Gpu)) {
    let Devices { as_a_card, as_a_card_without_subgroups, .. } = devices();
    test(as_a_card).await;
    test(as_a_card_without_subgroups).await;
}

/// A device that does not multiply four int8 values in one operation.
pub(crate) fn without_packed_dot() -> &'static Gpu {
    &devices().without_packed_dot
}

/// A card whose rows have 16 lanes: then a team of the residual stream has two rows. It does not multiply
/// four int8 values in one operation either.
pub(crate) fn of_16_lanes() -> &'static Gpu {
    &devices().of_16_lanes
}

/// The device, for kernels with a single variant.
pub(crate) fn device() -> &'static Gpu {
    &devices().best
}

/// Whether the adapter takes ten times as long as other CPUs. Some cases do less there.
pub(crate) fn is_slow(gpu: &Gpu) -> bool {
    gpu.adapter.to_lowercase().contains("swiftshader")
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

/// Notes of the cases that this thread runs.
#[derive(Default)]
pub(crate) struct Notes {
    /// The kernels that were recorded, with their variants.
    pub(crate) labels: BTreeSet<String>,
    /// By kernel, its largest difference from the reference, divided by the tolerance. Kernels that are
    /// compared to the bit are not here.
    pub(crate) differences: BTreeMap<&'static str, f32>,
}

thread_local! {
    static NOTES: RefCell<Notes> = RefCell::default();
}

/// The notes since the last call.
#[cfg_attr(not(target_arch = "wasm32"), allow(dead_code, reason = "natively, to pass is enough"))]
pub(crate) fn take_notes() -> Notes {
    NOTES.take()
}

/// The recorded plan.
pub(crate) fn finish(recorder: &mut Recorder) -> Plan {
    let plan = recorder.finish();
    NOTES.with_borrow_mut(|notes| notes.labels.extend(plan.labels().map(Into::into)));
    plan
}

/// Records one plan and runs it once.
pub(crate) fn run(gpu: &Gpu, step: &Step, record: impl FnOnce(&mut Recorder)) {
    let buffer = gpu.upload("step", &[*step]);
    let mut recorder = Recorder::new(gpu, &buffer);
    record(&mut recorder);
    gpu.run(&[&finish(&mut recorder)], step);
}

/// The values of a buffer. Fails if the device reported an error.
pub(crate) async fn read<T: Pod>(gpu: &Gpu, buffer: &Buffer<T>) -> Vec<T> {
    gpu.read(buffer).await.expect("the device reports no error")
}

/// The values of two buffers.
pub(crate) async fn read_both<T: Pod>(gpu: &Gpu, [one, other]: [&Buffer<T>; 2]) -> [Vec<T>; 2] {
    [read(gpu, one).await, read(gpu, other).await]
}

/// Notes the largest difference of a comparison with the kernel's reference, as a share of what is
/// allowed.
pub(crate) fn note(kernel: &str, share: f32) {
    let kernel = ALL.iter().find(|known| known.name == kernel).expect(kernel).name;
    NOTES.with_borrow_mut(|notes| {
        let largest = notes.differences.entry(kernel).or_default();
        *largest = largest.max(share);
    });
}

/// Asserts that each value of the kernel is off by at most `relative * scale(i)`. `scale(i)` is the size
/// of the terms of value `i`.
#[track_caller]
pub(crate) fn assert_close(
    (kernel, what): (&str, &str),
    found: &[f32],
    expected: &[f32],
    relative: f32,
    scale: impl Fn(usize) -> f32,
) {
    assert_eq!(found.len(), expected.len(), "{kernel}, {what}");
    let mut largest = 0f32;
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let (off, allowed) = ((f - e).abs(), relative * scale(i));
        assert!(off <= allowed, "{kernel}, {what}, at {i}: {f}, not {e} within {allowed}");
        // None at all may be allowed.
        largest = largest.max(if off == 0.0 { 0.0 } else { off / allowed });
    }
    note(kernel, largest);
}
