//! The back end of this module of WebAssembly: the GPU, or the CPU. A page fetches the module that it
//! needs. Both files have the same names.

#[cfg(not(any(feature = "webgpu", feature = "cpu")))]
compile_error!("a module of WebAssembly needs one of the features `webgpu` and `cpu`");

#[cfg(not(feature = "webgpu"))]
mod cpu;
#[cfg(feature = "webgpu")]
mod features;
#[cfg(feature = "webgpu")]
mod webgpu;

#[cfg(not(feature = "webgpu"))]
pub(super) use cpu::{Backend, with_events};
#[cfg(feature = "webgpu")]
pub(super) use webgpu::{Backend, with_events};

/// The wishes to a GPU. The CPU's module checks them too, and then leaves them aside.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(feature = "webgpu"), allow(dead_code, reason = "checked, but not used"))]
pub(super) struct GpuWishes {
    /// `low-power` or `high-performance`.
    pub(super) power_preference: Option<&'static str>,
    /// Bounds of the adapter's limits, bytes.
    pub(super) max_storage_buffer_binding_size: Option<u64>,
    pub(super) max_buffer_size: Option<u64>,
    /// Which optional features to use.
    pub(super) subgroups: Option<bool>,
    pub(super) software: Option<bool>,
    pub(super) packed_dot: Option<bool>,
    pub(super) matrix_units: Option<bool>,
    /// Whether to refuse a GPU that is a CPU.
    pub(super) strict: bool,
}
