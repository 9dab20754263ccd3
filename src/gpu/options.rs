//! The caller's wishes to the adapter.

use serde::Deserialize;

/// The caller's wishes to the adapter. The caps are for tests and bug reports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GpuOptions {
    /// `"low-power"` or `"high-performance"` (the default).
    pub power_preference: Option<String>,
    /// Upper bounds on what the adapter grants.
    pub limits: LimitCaps,
    /// Which optional features to use.
    pub features: FeatureCaps,
    /// The most bytes of GPU memory; `None`: as many as the device grants. Weights that do not fit stay in main
    /// memory and are uploaded whenever they are needed.
    pub max_bytes: Option<u64>,
    /// Whether to refuse an adapter that is a CPU. If `features.software` asks for a CPU, it is not
    /// refused.
    pub strict: bool,
    /// Whether to ask for no more than every adapter has: WebGPU's default limits, and no features.
    pub minimal: bool,
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

/// Optional features. `false` means that a feature is not used even if the adapter has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureCaps {
    /// Subgroup operations.
    pub subgroups: Option<bool>,
    /// Whether to use the kernels that are tuned for CPUs; `None`: if the adapter is a CPU.
    pub software: Option<bool>,
    /// Whether to multiply four int8 values in one operation; `None`: the faster way.
    pub packed_dot: Option<bool>,
    /// Whether to use matrix units, which a browser may offer.
    pub matrix_units: Option<bool>,
}
