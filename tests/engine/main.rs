//! Tests whose result may depend on the driver. They run a model on a GPU in every way, and compare
//! it with other programs and with itself. These tests run on each driver; those of `tests/session`
//! run once.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod drafts;
mod goldens;
