//! The back end of this module of WebAssembly: the GPU, the CPU, or the CPU with threads. A page fetches the
//! module that it needs. Their files have the same names.

#[cfg(not(any(feature = "webgpu", feature = "cpu")))]
compile_error!("a module of WebAssembly needs one of the features `webgpu` and `cpu`");

#[cfg(not(any(feature = "webgpu", feature = "threads")))]
mod cpu;
#[cfg(not(feature = "webgpu"))]
mod events;
#[cfg(feature = "webgpu")]
mod features;
#[cfg(all(feature = "threads", not(feature = "webgpu")))]
mod threads;
#[cfg(feature = "webgpu")]
mod webgpu;

#[cfg(not(any(feature = "webgpu", feature = "threads")))]
pub(super) use cpu::Backend;
#[cfg(not(feature = "webgpu"))]
pub(super) use events::with_events;
#[cfg(all(feature = "threads", not(feature = "webgpu")))]
pub(super) use threads::Backend;
#[cfg(feature = "webgpu")]
pub(super) use webgpu::{Backend, with_events};

/// The wishes to a back end. Each module checks those to the others too, and then leaves them aside.
#[derive(Clone, Copy, Debug, Default)]
#[allow(dead_code, reason = "no module uses all")]
pub(super) struct Wishes {
    /// `low-power` or `high-performance`.
    pub(super) power_preference: Option<&'static str>,
    /// Bounds of the adapter's limits, bytes.
    pub(super) max_storage_buffer_binding_size: Option<u64>,
    pub(super) max_buffer_size: Option<u64>,
    /// The most bytes of GPU memory.
    pub(super) max_bytes: Option<u64>,
    /// Which optional features to use.
    pub(super) subgroups: Option<bool>,
    pub(super) software: Option<bool>,
    pub(super) packed_dot: Option<bool>,
    pub(super) matrix_units: Option<bool>,
    /// How many threads of the CPU compute.
    pub(super) threads: Option<usize>,
    /// Whether to refuse a GPU that is a CPU, and fewer threads.
    pub(super) strict: bool,
}
