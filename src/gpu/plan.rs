//! A forward pass as data: every dispatch with its bind group made up front.
//!
//! In a browser each wgpu call crosses from wasm to JavaScript. The bind groups are made once, at
//! load, so that three calls are left for each dispatch and token.

use std::num::NonZero;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::pipeline::Pipeline;
use super::{Access, Buffer, Const, Gpu, Kernel, Tuning, Used};

/// What varies from step to step; kernels read it from a uniform buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Step {
    /// Tokens of the sequence before this step.
    pub pos: u32,
    /// Tokens in this step.
    pub n_tokens: u32,
    /// Splits of the context in attention, at most.
    pub n_splits: u32,
    /// Positions in one split.
    pub split_len: u32,
    /// Where the text's positions begin in the buffers of the KV cache.
    pub first: u32,
    /// The index of the first token's id.
    pub token: u32,
    /// Of a batch: the row from which a token is chosen.
    pub row: u32,
    /// Of a draft pass: tokens right before its own, in the buffer of ids, that are not certain to stay
    /// in the text, because the pass that drafted them is still in flight.
    pub uncertain: u32,
    /// A row for each token of a step of few tokens. With 14 rows a `Step` has 256 bytes, which every
    /// card accepts as the distance of dynamic offsets.
    pub rows: [Row; 14],
}

/// One token of a step of few.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Row {
    /// Tokens of its text before it.
    pub pos: u32,
    /// Where its text's positions begin in the buffers of the KV cache.
    pub first: u32,
    /// Positions in one split of its text.
    pub split_len: u32,
    /// The index of its id.
    pub token: u32,
}

impl Step {
    /// The same step with a row for each token, if they are few: they follow each other in one text.
    pub fn with_rows(mut self) -> Self {
        let Self { pos, first, split_len, token, .. } = self;
        for (n, row) in (0..self.n_tokens).zip(&mut self.rows) {
            *row = Row { pos: pos + n, first, split_len, token: token + n };
        }
        self
    }
}

const _: () = assert!(size_of::<Step>() == 256);

/// Workgroups along one dimension, some known only when a step is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The same in every step.
    Fixed(u32),
    /// One for each group of this many tokens of the step.
    Tokens(u32),
    /// One for each split of the context.
    Splits,
}

impl Extent {
    fn at(self, step: &Step) -> u32 {
        match self {
            Self::Fixed(n) => n,
            Self::Tokens(per) => step.n_tokens.div_ceil(per),
            Self::Splits => step.n_splits,
        }
    }
}

impl Used {
    fn at(self, access: Access, step: &Step) -> u64 {
        let tokens = u64::from(step.n_tokens);
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Tokens(bytes) => bytes * tokens,
            Self::Splits(bytes) => bytes * tokens * u64::from(step.n_splits),
            Self::Positions(bytes) if access == Access::Write => bytes * tokens,
            Self::Positions(bytes) | Self::Filled(bytes) => bytes * (u64::from(step.pos) + tokens),
        }
    }
}

pub(super) struct Dispatch {
    way: Way,
    /// The first of these that is taken is done instead.
    instead: Vec<Instead>,
    bind_group: wgpu::BindGroup,
    /// Whether the bind group has the step.
    stepped: bool,
    used: Vec<(Access, Used)>,
    pub(super) label: String,
}

/// How a dispatch is done.
struct Way {
    pipeline: Arc<Pipeline>,
    workgroups: [Extent; 3],
}

/// Another way, and the steps that take it.
struct Instead {
    is_taken: fn(&Step) -> bool,
    way: Way,
}

impl Dispatch {
    /// Encodes it for `step`, which is number `index` in the buffer of steps.
    pub(super) fn encode(&self, pass: &mut wgpu::ComputePass<'_>, step: &Step, index: usize) {
        let instead = self.instead.iter().find(|instead| (instead.is_taken)(step));
        let Way { pipeline, workgroups } = instead.map_or(&self.way, |instead| &instead.way);
        let [x, y, z] = workgroups.map(|extent| extent.at(step));
        let offset = [(index * size_of::<Step>()) as u32];
        pass.set_pipeline(pipeline.get());
        pass.set_bind_group(0, &self.bind_group, if self.stepped { &offset[..] } else { &[] });
        pass.dispatch_workgroups(x, y, z);
    }

    /// The bytes that a step has to move: what it uses of each binding, once. Whatever is read
    /// again should come from a cache, and a sum that is added to counts as written.
    pub(super) fn bytes(&self, step: &Step) -> u64 {
        let bytes = self.used.iter().map(|&(access, used)| used.at(access, step));
        bytes.sum()
    }
}

/// Dispatches in the order they were recorded, ready to be run many times. They are in segments, such
/// as a block of the model each. All segments run in one pass, so they cost nothing.
#[derive(Default)]
pub struct Plan {
    segments: Vec<Rc<[Dispatch]>>,
}

/// Records dispatches into a plan. The kernels are its methods.
///
/// All plans of a device share pipelines. Each distinct one is compiled once: ahead, by
/// [`Gpu::compile`], or on first use.
pub struct Recorder<'gpu> {
    gpu: &'gpu Gpu,
    step: Buffer<Step>,
    plan: Plan,
    /// The segment that is being recorded.
    open: Vec<Dispatch>,
}

impl Plan {
    /// The dispatches' kernels and variants, in order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.dispatches().map(|d| d.label.as_str())
    }

    /// Dispatches in one run.
    pub fn len(&self) -> usize {
        self.dispatches().count()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that its kernels read and write in a step, each at least once.
    pub fn bytes(&self, step: &Step) -> u64 {
        self.dispatches().map(|dispatch| dispatch.bytes(step)).sum()
    }

    /// Its segments of that range, or as many of them as there are. They share the dispatches.
    pub fn segments(&self, range: Range<usize>) -> Self {
        let segments = self.segments.iter().skip(range.start).take(range.len());
        Self { segments: segments.cloned().collect() }
    }

    /// The pipelines of its dispatches, some more than once.
    pub(super) fn pipelines(&self) -> impl Iterator<Item = &Arc<Pipeline>> {
        let ways = self.dispatches().flat_map(|dispatch| {
            let instead = dispatch.instead.iter().map(|instead| &instead.way);
            [&dispatch.way].into_iter().chain(instead)
        });
        ways.map(|way| &way.pipeline)
    }

    pub(super) fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.segments.iter().flat_map(|segment| segment.iter())
    }
}

/// A buffer whose element type no longer matters.
pub trait Bound {
    /// Its bytes, as a kernel sees them.
    fn binding(&self) -> wgpu::BindingResource<'_>;
    /// What a step uses of it.
    fn used(&self) -> Used;
}

impl<T> Bound for Buffer<T> {
    fn binding(&self) -> wgpu::BindingResource<'_> {
        self.binding()
    }

    fn used(&self) -> Used {
        self.used()
    }
}

impl<'gpu> Recorder<'gpu> {
    /// A recorder of kernels that read their step from `step`.
    pub fn new(gpu: &'gpu Gpu, step: &Buffer<Step>) -> Self {
        Self { gpu, step: step.clone(), plan: Plan::default(), open: Vec::new() }
    }

    /// Everything recorded since the last call, as a plan.
    pub fn finish(&mut self) -> Plan {
        self.end_segment();
        std::mem::take(&mut self.plan)
    }

    /// Ends a segment of the plan, unless nothing was recorded since the last one.
    pub fn end_segment(&mut self) {
        if !self.open.is_empty() {
            self.plan.segments.push(std::mem::take(&mut self.open).into());
        }
    }

    /// The device the plans are for.
    pub fn gpu(&self) -> &'gpu Gpu {
        self.gpu
    }

    /// How work is divided on the device.
    pub fn tuning(&self) -> &'gpu Tuning {
        &self.gpu.tuning
    }

    /// Appends one dispatch. `buffers` are in the order of the kernel's bindings, without the
    /// step's.
    pub fn dispatch(
        &mut self,
        kernel: &Kernel,
        consts: &[Const],
        buffers: &[&dyn Bound],
        workgroups: [Extent; 3],
    ) {
        let variant = self.gpu.variant(kernel);
        let pipeline = self.gpu.pipeline(kernel, consts);
        let mut buffers = buffers.iter().copied();
        let bound: Vec<(Access, &dyn Bound)> = kernel
            .bindings
            .iter()
            .filter_map(|&(_, access)| match access {
                Access::Step => Some((access, &self.step as &dyn Bound)),
                _ => Some((access, buffers.next()?)),
            })
            .collect();
        debug_assert_eq!(bound.len(), kernel.bindings.len(), "{}", kernel.name);
        debug_assert!(buffers.next().is_none(), "{} has fewer bindings", kernel.name);
        let entries: Vec<_> = (0..)
            .zip(&bound)
            .map(|(binding, (access, buffer))| wgpu::BindGroupEntry {
                binding,
                resource: match (access, buffer.binding()) {
                    (Access::Step, wgpu::BindingResource::Buffer(all)) => {
                        let size = NonZero::new(size_of::<Step>() as u64);
                        wgpu::BindingResource::Buffer(wgpu::BufferBinding { size, ..all })
                    }
                    (_, all) => all,
                },
            })
            .collect();
        let bind_group = self.gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(kernel.name),
            layout: &pipeline.layout,
            entries: &entries,
        });
        let mut label = kernel.name.to_owned();
        if !variant.name.is_empty() {
            label += &format!("/{}", variant.name);
        }
        if consts.contains(&Const::Bool("PACKED_DOT", false)) {
            label += "/no-packed-dot";
        }
        let used = bound.iter().map(|(access, buffer)| (*access, buffer.used())).collect();
        let stepped = bound.iter().any(|(access, _)| *access == Access::Step);
        let way = Way { pipeline, workgroups };
        self.open.push(Dispatch { way, instead: Vec::new(), bind_group, stepped, used, label });
    }

    /// Gives the last dispatch, which is of `kernel`, other `consts` and `workgroups` in the steps that
    /// `is_taken` chooses, unless an earlier call chose the step.
    pub fn instead(
        &mut self,
        is_taken: fn(&Step) -> bool,
        kernel: &Kernel,
        consts: &[Const],
        workgroups: [Extent; 3],
    ) {
        let pipeline = self.gpu.pipeline(kernel, consts);
        if let Some(last) = self.open.last_mut() {
            last.instead.push(Instead { is_taken, way: Way { pipeline, workgroups } });
        }
    }
}

impl Gpu {
    /// Encodes `plans` one after the other in one compute pass and submits them.
    pub fn run(&self, plans: &[&Plan], step: &Step) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        self.encode(&mut encoder, [(plans.iter().copied(), *step)]);
        self.queue.submit([encoder.finish()]);
    }

    /// Encodes the plans of each step in turn, in one compute pass: a copy between two steps costs a
    /// fast card as much as ten kernels.
    pub(super) fn encode<'a, P: IntoIterator<Item = &'a Plan>>(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        steps: impl IntoIterator<Item = (P, Step)>,
    ) {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        for (index, (plans, step)) in steps.into_iter().enumerate() {
            for dispatch in plans.into_iter().flat_map(Plan::dispatches) {
                dispatch.encode(&mut pass, &step, index);
            }
        }
    }
}
