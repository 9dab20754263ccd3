//! Pipelines that are compiled before they are needed, and those that do not compile.

use tritloom::gpu::{
    Access, Const, Extent, Gpu, GpuOptions, Kernel, Plan, Recorder, Step, Variant,
};
use tritloom::native::block_on;

/// Writes the constant `VALUE`. With 0 it does not compile: an array has a length.
const KERNEL: Kernel = Kernel {
    name: "pipelines",
    bindings: &[("y", Access::Write)],
    variants: &[Variant {
        name: "",
        subgroups: false,
        matrix_units: false,
        wgsl: &["
            @group(0) @binding(0) var<storage, read_write> y: array<u32>;
            var<private> values: array<u32, VALUE>;
            @compute @workgroup_size(1) fn main() {
                values[0] = VALUE;
                y[0] = values[0];
            }"],
    }],
    example: Vec::new,
};

/// Runs one after the other; gives what the last of them writes.
fn last(gpu: &Gpu, plans: &[Plan], y: &tritloom::gpu::Buffer<u32>) -> tritloom::Result<Vec<u32>> {
    let plans: Vec<&Plan> = plans.iter().collect();
    block_on(gpu.run_and_read(&plans, &Step::default(), y, 1).take())
}

#[test]
fn pipelines_are_compiled_before_they_are_needed_or_when_they_are() {
    let gpu = block_on(Gpu::open(&GpuOptions::default())).unwrap();
    let y = gpu.buffer("y", 1);
    let mut recorder = Recorder::new(&gpu, &gpu.buffer("step", 1));
    let mut record = |value: u32| {
        recorder.dispatch(&KERNEL, &[Const::U32("VALUE", value)], &[&y], [Extent::Fixed(1); 3]);
        recorder.finish()
    };
    let [one, same, two, three, broken] = [1, 1, 2, 3, 0].map(&mut record);

    // The first is needed at once, the third is asked for, and the others are left.
    assert_eq!(last(&gpu, &[one, same], &y).unwrap(), [1]);
    block_on(gpu.compile(&[three]));
    let rest = std::iter::from_fn(|| gpu.compile_next().map(block_on)).count();
    assert_eq!(rest, 2, "the second, and the one that does not compile");

    // Nothing has needed that one yet.
    assert_eq!(last(&gpu, &[two], &y).unwrap(), [2]);
    let error = last(&gpu, &[broken], &y).unwrap_err();
    assert_eq!(error.code(), "internal");
    assert!(error.to_string().contains("pipelines"), "{error}");
}
