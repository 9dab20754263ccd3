//! What a caller may ask of the adapter.

use serde::Deserialize;

/// What to ask of the adapter. The caps are for tests and bug reports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct GpuOptions {
    /// `"low-power"` or `"high-performance"` (the default).
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
    /// Whether the adapter is a CPU, which is gone about in another way; `None` is what it says itself.
    pub software: Option<bool>,
    /// Products of four int8 values in one operation; `None` is whichever way is faster.
    pub packed_dot: Option<bool>,
}
