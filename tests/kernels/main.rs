//! Every kernel against its reference, in every variant the adapter can run.
//!
//! Inputs are hard on purpose: outliers, rows of zeros, sizes one past a workgroup. Sums in the
//! references are f64, so each tolerance is the kernel's own and says where it comes from.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/shaders.rs"]
mod shaders;

mod device;

mod attention;
mod descriptors;
mod embedding;
mod few;
mod head;
mod matrix;
mod norm;
mod normed_rows;
mod probe;
mod rope;
mod sampling;
