//! A value that was measured several times.

use serde::Serialize;

/// A measurement that was repeated `runs` times.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) runs: usize,
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
    /// Bytes read and written for each token. Decode figures only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes_per_token: Option<u64>,
    /// How much of the report's bandwidth the median reaches, from 0 to 1. Decode figures only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share: Option<f64>,
}

impl Figure {
    /// `values` must not be empty.
    pub(super) fn new(what: impl Into<String>, unit: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self {
            what: what.into(),
            unit,
            runs: values.len(),
            median: f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]),
            least: values[0],
            most: values[values.len() - 1],
            bytes_per_token: None,
            share: None,
        }
    }
}
