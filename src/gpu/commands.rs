//! Commands on their way to the queue.

use super::ordered::Work;
use super::{Link, Plan, Portion, Step};

/// Commands that are encoded together. Where they need a portion of the weights that is not on the GPU, those before
/// it are submitted.
pub(super) struct Commands<'a> {
    link: &'a Link,
    encoder: wgpu::CommandEncoder,
    /// The compute pass that is open. It belongs to `encoder`.
    pass: Option<wgpu::ComputePass<'static>>,
}

impl<'a> Commands<'a> {
    pub(super) fn new(link: &'a Link) -> Self {
        Self { link, encoder: encoder(link), pass: None }
    }

    /// Encodes the plans of each step in turn, in one compute pass. A copy between two steps would
    /// cost a fast card as much as ten kernels.
    pub(super) fn run<'p, P: IntoIterator<Item = &'p Plan>>(
        &mut self,
        steps: impl IntoIterator<Item = (P, Step)>,
    ) {
        for (index, (plans, step)) in steps.into_iter().enumerate() {
            for (portions, dispatch) in plans.into_iter().flat_map(Plan::parts) {
                self.bring(portions, &step);
                dispatch.encode(self.pass(), &step, index);
            }
        }
    }

    /// The compute pass.
    pub(super) fn pass(&mut self) -> &mut wgpu::ComputePass<'static> {
        let Self { encoder, pass, .. } = self;
        pass.get_or_insert_with(|| {
            encoder.begin_compute_pass(&Default::default()).forget_lifetime()
        })
    }

    /// Brings `portions` for the commands that come next, which are of `step`.
    pub(super) fn bring(&mut self, portions: &[Portion], step: &Step) {
        let link = self.link;
        for portion in portions {
            link.ordered.bring(*portion, || self.submit(), || step.tokens());
        }
    }

    /// Submits the commands up to here.
    pub(super) fn submit(&mut self) {
        self.pass = None;
        let commands = std::mem::replace(&mut self.encoder, encoder(self.link)).finish();
        self.link.ordered.give(Work::Submit(commands));
    }

    /// The encoder, without an open pass.
    pub(super) fn encoder(&mut self) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        &mut self.encoder
    }

    /// Submits all of them.
    pub(super) fn finish(self) {
        let link = self.link;
        link.ordered.give(Work::Submit(self.end().finish()));
    }

    /// The commands that were not submitted.
    pub(super) fn end(self) -> wgpu::CommandEncoder {
        drop(self.pass);
        self.encoder
    }
}

fn encoder(link: &Link) -> wgpu::CommandEncoder {
    link.device.create_command_encoder(&Default::default())
}
