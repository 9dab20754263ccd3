//! A device's report on itself: the time of its kernels, and the reason for its loss.

use serde::Serialize;

/// Where the time of a step goes.
#[derive(Clone, Debug, Serialize)]
pub struct Profile {
    /// The best rate of the memory, in GB/s: that of a kernel that only reads.
    pub bandwidth: f64,
    /// The step's kernels, the slowest first. On the CPU, the layers and the LM head.
    pub kernels: Vec<KernelTime>,
}

impl Profile {
    /// From times and bytes alone.
    pub(crate) fn new(bandwidth: f64, mut kernels: Vec<KernelTime>) -> Self {
        for kernel in &mut kernels {
            // A clock that is too coarse shows no time, so there is no rate.
            if kernel.microseconds > 0.0 {
                kernel.gigabytes_per_second = kernel.bytes as f64 / kernel.microseconds / 1e3;
                kernel.share = kernel.gigabytes_per_second / bandwidth;
            }
        }
        kernels.sort_by(|a, b| b.microseconds.total_cmp(&a.microseconds));
        Self { bandwidth, kernels }
    }
}

/// A kernel's share of a step.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelTime {
    /// The kernel and its variant.
    pub kernel: String,
    /// The number of its dispatches in the step.
    pub calls: usize,
    /// The time of all its dispatches, each from its first instruction to its last.
    pub microseconds: f64,
    /// Bytes that these dispatches have to read and write, each counted once.
    pub bytes: u64,
    /// `bytes` by time, in GB/s.
    pub gigabytes_per_second: f64,
    /// `gigabytes_per_second` as a share of the memory's best rate.
    pub share: f64,
}

/// How a device was lost, in the words of `GPUDeviceLostInfo`.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// `destroyed` if someone has called `destroy()`, else `unknown`.
    pub reason: &'static str,
    /// The platform's explanation, for people.
    pub message: String,
}

impl Loss {
    /// The reason in a few words. Browsers often give no message.
    pub fn why(&self) -> String {
        match (self.message.trim(), self.reason) {
            ("", "destroyed") => "it was destroyed".into(),
            ("", _) => "the system gives no reason".into(),
            (message, _) => message.into(),
        }
    }
}
