//! Everything that uses wgpu. No module above this one names a bind group or an encoder.

mod allocation;
mod buffer;
mod commands;
mod device;
mod fault;
mod kept;
mod kernel;
mod mapped;
mod options;
mod ordered;
mod pipeline;
mod plan;
mod portions;
mod profile;
mod readback;
mod staging;
mod tuning;
mod uploader;

pub use allocation::{Allocation, Goes};
pub use buffer::{Buffer, Used};
pub use device::{Flushed, Gpu, Link, MATRIX_MEMORY, Subgroups};
pub use kernel::{Access, Binding, Const, Dialect, Kernel, Variant, strip};
pub use options::{FeatureCaps, GpuOptions, LimitCaps};
pub use plan::{Bound, Extent, MAX_ROWS, Plan, Recorder, Row, Step};
pub use portions::{Plane, Portion};
pub use readback::Readback;
pub use staging::staged;
pub use tuning::{MAX_BATCH_STEPS, Tuning};
pub use uploader::Uploader;
