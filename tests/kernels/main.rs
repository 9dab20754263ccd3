//! Every kernel against its reference, in every variant that the adapter can run.
//!
//! A kernel's tests are in the file with its name or its family's name. `descriptors.rs` lists the
//! families. Inputs are hard on purpose: outliers, rows of zeros, sizes one past a workgroup. The
//! references sum in f64, so each tolerance covers the kernel's error alone. A comment says where
//! it comes from.
//!
//! Some tests take over ten seconds: each shape, format and variant is a pipeline of its own, and a
//! software GPU is slow to compile it.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/shaders.rs"]
mod shaders;

mod device;

mod adapters;
mod attention;
mod best_of_each;
mod descriptors;
mod embed;
mod fused_products;
mod gate_rows;
mod gemm_lm_head;
mod gemv_lm_head;
mod greedy_lm_head;
mod logprobs;
mod packed_products;
mod pipelines;
mod penalize;
mod probe_read;
mod rescore_kept;
mod rms_norm;
mod rope_kv;
mod sampler;
mod take_logits;
mod ternary_products;
