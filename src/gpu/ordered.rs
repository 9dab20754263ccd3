//! The order of all work for a device's queue.
//!
//! Work is done at once, unless it comes after a portion of the weights that is still to be uploaded: then it
//! waits. Whoever waits for a result moves the order on, so nothing else has to run.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Poll;

use futures_channel::oneshot;

use super::fault::Faults;
use super::kept::Kept;
use super::mapped::{Mapping, Waiting};
use super::portions::{Portion, Portions, Rows};
use super::staging;

/// The order of a device's work.
pub(super) struct Ordered {
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Faults,
    state: Mutex<State>,
    waiting: Arc<Waiting>,
}

#[derive(Default)]
struct State {
    works: VecDeque<Work>,
    /// Works that were given, and those of them that are done.
    given: u64,
    done: u64,
    portions: Portions,
    ring: staging::Ring,
}

/// When a readback's copy was submitted.
pub(super) type Submission = Arc<OnceLock<wgpu::SubmissionIndex>>;

/// Work for the queue.
pub(super) enum Work {
    Write {
        to: wgpu::Buffer,
        at: u64,
        bytes: Vec<u8>,
    },
    Submit(wgpu::CommandBuffer),
    /// Commands that copy to `staging`, whose first `size` bytes are mapped after them.
    Read {
        commands: wgpu::CommandBuffer,
        staging: wgpu::Buffer,
        size: u64,
        tell: oneshot::Sender<Mapping>,
        submission: Submission,
    },
    /// Tells when all that was submitted is done.
    Flush(oneshot::Sender<()>),
    Free(wgpu::Buffer),
    /// Uploads the portion with this number to its bay. The second number counts the bytes that are submitted.
    Portion(usize, u64),
    /// Fetches the embeddings of a step's tokens. The step's `tokens` has their ids at these indices.
    Rows(Vec<u32>, Option<Rows>),
}

/// A number that counts the works of an order.
#[derive(Clone, Copy)]
pub(super) struct Ticket(u64);

impl Ordered {
    pub(super) fn new(device: &wgpu::Device, queue: &wgpu::Queue, faults: &Faults) -> Self {
        Self {
            device: device.clone(),
            queue: queue.clone(),
            faults: faults.clone(),
            state: Mutex::default(),
            waiting: Arc::default(),
        }
    }

    /// Does `work` after all that was given before.
    pub(super) fn give(&self, work: Work) -> Ticket {
        let mut state = self.state();
        state.works.push_back(work);
        state.given += 1;
        self.go_on(&mut state, 0);
        Ticket(state.given)
    }

    /// Writes `bytes` to `to` from byte `at` on.
    pub(super) fn write(&self, to: &wgpu::Buffer, at: u64, bytes: &[u8]) {
        if self.state().works.is_empty() {
            return self.queue.write_buffer(to, at, bytes);
        }
        self.give(Work::Write { to: to.clone(), at, bytes: bytes.to_vec() });
    }

    /// Waits until the work of `ticket` is done.
    pub(super) async fn reach(&self, ticket: Ticket) {
        poll_fn(|cx| {
            let mut state = self.state();
            if state.done < ticket.0 {
                self.waiting.add(cx.waker());
                self.go_on(&mut state, ticket.0);
            }
            if state.done < ticket.0 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Adds the bays and the portions of a model.
    pub(super) fn add_portions(
        &self,
        bays: Vec<wgpu::Buffer>,
        portions: impl Iterator<Item = (Option<usize>, Kept)>,
    ) {
        let mut state = self.state();
        if let Some(bay) = bays.first() {
            state.ring = staging::Ring::of(bay.size());
        }
        state.portions.add(bays, portions);
    }

    /// Bytes of the buffers through which portions are uploaded.
    pub(super) fn staged(&self) -> u64 {
        self.state().ring.bytes()
    }

    /// The portions, to change them.
    pub(super) fn portions<T>(&self, change: impl FnOnce(&mut Portions) -> T) -> T {
        change(&mut self.state().portions)
    }

    /// Brings `portion` to the GPU, unless it will be there already after all work that was given. Before
    /// that, `submit` has to submit what was encoded.
    pub(super) fn bring(
        &self,
        portion: Portion,
        submit: impl FnOnce(),
        tokens: impl Fn() -> Vec<u32>,
    ) {
        let work = match portion {
            Portion::InBay(n) if self.state().portions.takes_bay(n) => Work::Portion(n, 0),
            Portion::Rows if self.state().portions.are_ready() => Work::Rows(tokens(), None),
            _ => return,
        };
        submit();
        self.give(work);
    }

    /// Does the works that can be done now. A native call waits for the device until `awaited` works are done.
    fn go_on(&self, state: &mut State, awaited: u64) {
        let State { works, done, portions, ring, .. } = state;
        while let Some(work) = works.pop_front() {
            if let Some(unfinished) = self.work(work, portions, ring, *done < awaited) {
                works.push_front(unfinished);
                return;
            }
            *done += 1;
        }
    }

    /// Does `work`, or as much of it as can be done now; gives it back if some is left.
    fn work(
        &self,
        work: Work,
        portions: &mut Portions,
        ring: &mut staging::Ring,
        waits: bool,
    ) -> Option<Work> {
        let Self { device, queue, waiting, faults, .. } = self;
        match work {
            Work::Write { to, at, bytes } => queue.write_buffer(&to, at, &bytes),
            Work::Submit(commands) => drop(queue.submit([commands])),
            Work::Read { commands, staging, size, tell, submission } => {
                // Only this sets it, once.
                let _ = submission.set(queue.submit([commands]));
                staging.slice(..size).map_async(wgpu::MapMode::Read, move |outcome| {
                    // This fails if the generation was dropped, and with it the receiver.
                    let _ = tell.send(outcome);
                });
            }
            Work::Flush(tell) => {
                queue.submit([]);
                queue.on_submitted_work_done(move || {
                    // This fails if the caller does not wait for the last writes.
                    let _ = tell.send(());
                });
            }
            Work::Free(buffer) => buffer.destroy(),
            // A device that is gone takes no weights, and need not have them.
            Work::Portion(..) | Work::Rows(..) if faults.is_gone() => {}
            Work::Portion(n, mut at) => {
                let (to, bytes) = portions.in_bay(n)?;
                while at < bytes.len() {
                    let Some(staging) = ring.free(device, waits) else {
                        return Some(Work::Portion(n, at));
                    };
                    let len = ring.size().min(bytes.len() - at);
                    if let Err(why) = bytes.copy_to(at, len, staging.buffer()) {
                        faults.failed(&format!("weights could not be uploaded ({why})"));
                        return None;
                    }
                    ring.submit(device, queue, staging, (to, at, len), waiting);
                    at += len;
                }
            }
            Work::Rows(tokens, rows) => {
                let rows = rows.or_else(|| portions.read_tokens(device, queue, waiting))?;
                if !rows.have_come(device, waits) {
                    return Some(Work::Rows(tokens, Some(rows)));
                }
                if let Err(why) = portions.write_rows(queue, rows, &tokens) {
                    faults.failed(&format!("embeddings could not be uploaded ({why})"));
                }
            }
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
