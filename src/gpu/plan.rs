//! A forward pass as data: every dispatch with its bind group, made in advance.
//!
//! In a browser each wgpu call crosses from wasm to JavaScript. The bind groups are made once, when
//! the model is loaded. So only three calls are left for each dispatch and token.

use std::cell::OnceCell;
use std::num::NonZero;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::commands::Commands;
use super::pipeline::Pipeline;
use super::{Access, Buffer, Const, Gpu, Kernel, Portion, Tuning, Used};

/// The values that differ from step to step. Kernels read them from a uniform buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Step {
    /// Tokens of the sequence before this step.
    pub pos: u32,
    /// Tokens in this step.
    pub n_tokens: u32,
    /// The most splits of the context in attention.
    pub n_splits: u32,
    /// Positions in one split.
    pub split_len: u32,
    /// Where the sequence's positions begin in the buffers of the KV cache.
    pub first: u32,
    /// The index of the first token's id.
    pub token: u32,
    /// The row of its first token in the buffers with a row for each token. It is 0, but for a step of
    /// spans of a pass, and where a token of a batch is chosen.
    pub row: u32,
    /// In a draft pass: how many tokens right before its own, in the buffer of ids, may still leave
    /// the sequence. They are drafts too, and the pass that checks them is still in flight.
    pub uncertain: u32,
    /// A row for each token of a step of few tokens, or for each span of a step of several. With 14
    /// rows a `Step` has 256 bytes. Every card accepts this as the distance of dynamic offsets.
    pub rows: [Row; MAX_ROWS],
}

/// Rows of a step.
pub const MAX_ROWS: usize = 14;

/// One token of a step of few, or one span of a step of several. A row that is not used has no length
/// of splits.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Row {
    /// Tokens of its sequence before it.
    pub pos: u32,
    /// Where its sequence's positions begin in the buffers of the KV cache.
    pub first: u32,
    /// Positions in one split of its sequence.
    pub split_len: u32,
    /// The index of its id, or of the first of a span's ids.
    pub token: u32,
}

impl Step {
    /// The same step with a row for each token, if they are few. Their rows follow one another in
    /// one sequence.
    pub fn with_rows(mut self) -> Self {
        let Self { pos, first, split_len, token, .. } = self;
        for (n, row) in (0..self.n_tokens).zip(&mut self.rows) {
            *row = Row { pos: pos + n, first, split_len, token: token + n };
        }
        self
    }

    /// The indices of its tokens' ids.
    pub(super) fn tokens(&self) -> Vec<u32> {
        let n = self.n_tokens as usize;
        match self.rows.get(..n) {
            Some(rows) if rows.iter().all(|row| row.split_len > 0) => {
                rows.iter().map(|row| row.token).collect()
            }
            _ => (self.token..self.token + self.n_tokens).collect(),
        }
    }

    /// The tokens of each span of a step of several.
    fn spans(&self) -> impl Iterator<Item = u32> {
        let rows = self.rows.iter().take_while(|row| row.split_len > 0);
        let ends = rows.clone().skip(1).map(|row| row.token).chain([self.token + self.n_tokens]);
        rows.zip(ends).map(|(row, end)| end - row.token)
    }
}

const _: () = assert!(size_of::<Step>() == 256);

/// Workgroups along one dimension. Some numbers are known only when a step is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The same in every step.
    Fixed(u32),
    /// One for each group of this many tokens of the step.
    Tokens(u32),
    /// One for each split of the context.
    Splits,
    /// One for each group of this many tokens of the step's longest span.
    LongestSpan(u32),
    /// One for each split of the context of each span.
    SplitsOfSpans,
}

impl Extent {
    fn at(self, step: &Step) -> u32 {
        match self {
            Self::Fixed(n) => n,
            Self::Tokens(per) => step.n_tokens.div_ceil(per),
            Self::Splits => step.n_splits,
            Self::LongestSpan(per) => step.spans().max().unwrap_or(0).div_ceil(per),
            Self::SplitsOfSpans => step.n_splits * step.spans().count() as u32,
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
    /// Other ways. The first whose `is_taken` accepts the step replaces `way`.
    instead: Vec<Instead>,
    bind_group: wgpu::BindGroup,
    /// Whether the bind group includes the step.
    stepped: bool,
    /// The way for several spans, if the tokens have to be of one sequence otherwise.
    of_spans: Option<OfSpans>,
    used: Vec<(Access, Used)>,
    pub(super) label: String,
}

/// The pipeline and the workgroups of a dispatch.
struct Way {
    pipeline: Arc<Pipeline>,
    workgroups: [Extent; 3],
}

/// The way of a dispatch for several spans. Its pipeline is made on first use, because few pages ever
/// need it.
struct OfSpans {
    kernel: &'static Kernel,
    consts: Vec<Const>,
    workgroups: [Extent; 3],
    way: OnceCell<Way>,
}

/// Another way, and the test of the steps that take it.
struct Instead {
    is_taken: fn(&Step) -> bool,
    way: Way,
}

impl Dispatch {
    /// Encodes the dispatch for `step`, which is number `index` in the buffer of steps.
    pub(super) fn encode(&self, pass: &mut wgpu::ComputePass<'_>, step: &Step, index: usize) {
        let instead = self.instead.iter().find(|instead| (instead.is_taken)(step));
        self.encode_by(instead.map_or(&self.way, |instead| &instead.way), pass, step, index);
    }

    fn encode_by(&self, way: &Way, pass: &mut wgpu::ComputePass<'_>, step: &Step, index: usize) {
        let Way { pipeline, workgroups } = way;
        let [x, y, z] = workgroups.map(|extent| extent.at(step));
        let offset = [(index * size_of::<Step>()) as u32];
        pass.set_pipeline(pipeline.get());
        pass.set_bind_group(0, &self.bind_group, if self.stepped { &offset[..] } else { &[] });
        pass.dispatch_workgroups(x, y, z);
    }

    /// The bytes that a step has to move: the used bytes of each binding, counted once. Bytes that
    /// are read again should come from a cache. A buffer that the step adds to counts once, as
    /// written.
    pub(super) fn bytes(&self, step: &Step) -> u64 {
        let bytes = self.used.iter().map(|&(access, used)| used.at(access, step));
        bytes.sum()
    }
}

/// Dispatches in the order in which they were recorded, ready to be run many times. They form
/// segments, such as one for each block of the model. All segments run in one pass, so they cost
/// nothing.
#[derive(Default)]
pub struct Plan {
    segments: Vec<Rc<Segment>>,
}

/// Dispatches that follow each other, and the portions of the weights that they read. At most one of them
/// has a bay, so that the next one can be uploaded meanwhile.
#[derive(Default)]
struct Segment {
    portions: Vec<Portion>,
    dispatches: Vec<Dispatch>,
}

/// Records dispatches into a plan. The kernels are its methods.
///
/// All plans of a device share pipelines. Each distinct pipeline is compiled once: by
/// [`Gpu::compile`] before its use, or on first use.
pub struct Recorder<'gpu> {
    gpu: &'gpu Gpu,
    step: Buffer<Step>,
    plan: Plan,
    /// The segment that is being recorded.
    open: Segment,
}

impl Plan {
    /// The kernels of the dispatches with their variants, in order.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.dispatches().map(|d| d.label.as_str())
    }

    /// The number of dispatches in one run.
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

    /// The segments of `range`, or as many of them as there are. Both plans share the dispatches.
    pub fn segments(&self, range: Range<usize>) -> Self {
        let segments = self.segments.iter().skip(range.start).take(range.len());
        Self { segments: segments.cloned().collect() }
    }

    /// The pipelines of its dispatches. Some come more than once.
    pub(super) fn pipelines(&self) -> impl Iterator<Item = &Arc<Pipeline>> {
        let ways = self.dispatches().flat_map(|dispatch| {
            let instead = dispatch.instead.iter().map(|instead| &instead.way);
            [&dispatch.way].into_iter().chain(instead)
        });
        ways.map(|way| &way.pipeline)
    }

    pub(super) fn dispatches(&self) -> impl Iterator<Item = &Dispatch> {
        self.segments.iter().flat_map(|segment| segment.dispatches.iter())
    }

    /// Its dispatches, each with the portions that it needs and the dispatch before it did not.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&[Portion], &Dispatch)> {
        self.segments.iter().flat_map(|segment| {
            let portions = [&segment.portions[..]].into_iter().chain(std::iter::repeat(&[][..]));
            portions.zip(&segment.dispatches)
        })
    }
}

/// A buffer of any element type.
pub trait Bound {
    /// Its bytes, as a kernel binds them.
    fn binding(&self) -> wgpu::BindingResource<'_>;
    /// How much of it a step uses.
    fn used(&self) -> Used;
    /// The portion of the weights that it is in.
    fn portion(&self) -> Option<Portion>;
}

impl<T> Bound for Buffer<T> {
    fn binding(&self) -> wgpu::BindingResource<'_> {
        self.binding()
    }

    fn used(&self) -> Used {
        self.used()
    }

    fn portion(&self) -> Option<Portion> {
        self.portion()
    }
}

impl<'gpu> Recorder<'gpu> {
    /// A recorder of kernels that read the step from `step`.
    pub fn new(gpu: &'gpu Gpu, step: &Buffer<Step>) -> Self {
        Self { gpu, step: step.clone(), plan: Plan::default(), open: Segment::default() }
    }

    /// Gives everything that was recorded since the last call, as a plan.
    pub fn finish(&mut self) -> Plan {
        self.end_segment();
        std::mem::take(&mut self.plan)
    }

    /// Ends a segment of the plan, unless nothing was recorded since the last one.
    pub fn end_segment(&mut self) {
        if !self.open.dispatches.is_empty() {
            self.plan.segments.push(Rc::new(std::mem::take(&mut self.open)));
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

    /// Appends one dispatch. `buffers` are in the order of the kernel's bindings. The step's
    /// binding is left out.
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
        let portions: Vec<Portion> =
            bound.iter().filter_map(|(_, buffer)| buffer.portion()).collect();
        let stepped = bound.iter().any(|(access, _)| *access == Access::Step);
        let way = Way { pipeline, workgroups };
        portions.into_iter().for_each(|portion| self.needs(portion));
        self.open.dispatches.push(Dispatch {
            way,
            instead: Vec::new(),
            bind_group,
            stepped,
            of_spans: None,
            used,
            label,
        });
    }

    /// Makes the open segment wait for a portion. If it has another one already, it ends.
    fn needs(&mut self, portion: Portion) {
        if self.open.portions.contains(&portion) {
            return;
        }
        if portion != Portion::Rows
            && self.open.portions.iter().any(|other| *other != Portion::Rows)
        {
            self.end_segment();
        }
        self.open.portions.push(portion);
    }

    /// Gives the last dispatch, which is of `kernel` and takes tokens of one sequence, another way for a
    /// pass of several spans.
    pub fn of_spans(
        &mut self,
        kernel: &'static Kernel,
        consts: Vec<Const>,
        workgroups: [Extent; 3],
    ) {
        if let Some(last) = self.open.dispatches.last_mut() {
            let way = OnceCell::new();
            last.of_spans = Some(OfSpans { kernel, consts, workgroups, way });
        }
    }

    /// Gives the last dispatch, which is of `kernel`, another way for the steps that `is_taken`
    /// accepts: other `consts` and `workgroups`. If several ways accept a step, it takes the first.
    pub fn instead(
        &mut self,
        is_taken: fn(&Step) -> bool,
        kernel: &Kernel,
        consts: &[Const],
        workgroups: [Extent; 3],
    ) {
        let pipeline = self.gpu.pipeline(kernel, consts);
        if let Some(last) = self.open.dispatches.last_mut() {
            last.instead.push(Instead { is_taken, way: Way { pipeline, workgroups } });
        }
    }
}

impl Gpu {
    /// Encodes `plans` one after the other in one compute pass and submits them.
    pub fn run(&self, plans: &[&Plan], step: &Step) {
        let mut commands = Commands::new(self);
        commands.run([(plans.iter().copied(), *step)]);
        commands.finish();
    }

    /// Runs plans of tokens of several sequences. The first step is that of all tokens. After it come
    /// steps whose rows are spans, as many of them as it takes. They have been written to the buffer of
    /// steps, in this order.
    pub fn run_spans(&self, plans: &[Plan], steps: &[Step]) {
        let Some((all, spans)) = steps.split_first() else { return };
        let mut commands = Commands::new(self);
        for (portions, dispatch) in plans.iter().flat_map(Plan::parts) {
            commands.bring(portions, all);
            match &dispatch.of_spans {
                None => dispatch.encode(commands.pass(), all, 0),
                Some(OfSpans { kernel, consts, workgroups, way }) => {
                    let way = way.get_or_init(|| Way {
                        pipeline: self.pipeline(kernel, consts),
                        workgroups: *workgroups,
                    });
                    for (index, step) in (1..).zip(spans) {
                        dispatch.encode_by(way, commands.pass(), step, index);
                    }
                }
            }
        }
        commands.finish();
    }
}
