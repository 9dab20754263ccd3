//! All wgpu boilerplate. Nothing above this module names a bind group or an encoder.

use serde::Deserialize;

use crate::error::{Error, Result};

/// What to ask of the adapter. The caps are for tests and bug reports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GpuOptions {
    /// `"low-power"` or `"high-performance"`.
    pub power_preference: Option<String>,
    /// Upper bounds on what the adapter grants.
    pub limits: LimitCaps,
    /// Features to do without.
    pub features: FeatureCaps,
}

/// Upper bounds on limits, bytes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LimitCaps {
    /// Cap on one storage binding.
    pub max_storage_buffer_binding_size: Option<u64>,
    /// Cap on one buffer.
    pub max_buffer_size: Option<u64>,
}

/// Optional features; `false` means: do without, even where the adapter has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureCaps {
    /// Subgroup operations.
    pub subgroups: Option<bool>,
    /// Timestamps for the profiler.
    pub timestamp_query: Option<bool>,
}

/// A device with its queue and what was granted.
pub struct Gpu {}

impl Gpu {
    /// Opens the best adapter there is.
    pub async fn open(_options: &GpuOptions) -> Result<Self> {
        Err(Error::Internal("not written yet".into()))
    }
}
