//! Everything that uses wgpu. No module above this one names a bind group or an encoder.

mod allocation;
mod buffer;
mod device;
mod fault;
mod kernel;
mod options;
mod pipeline;
mod plan;
mod profile;
mod readback;
mod tuning;
mod uploader;

pub use allocation::Allocation;
pub use buffer::{Buffer, Used};
pub use device::{Flushed, Gpu, Link, MATRIX_MEMORY, Subgroups};
pub use kernel::{Access, Binding, Const, Dialect, Kernel, Variant, strip};
pub use options::{FeatureCaps, GpuOptions, LimitCaps};
pub use plan::{Bound, Extent, MAX_ROWS, Plan, Recorder, Row, Step};
pub use readback::Readback;
pub use tuning::{MAX_BATCH_STEPS, Tuning};
pub use uploader::Uploader;
