//! The cases natively, and what concerns the kernels' descriptors and pipelines.
//!
//! Some tests take over ten seconds: each shape, format and variant is a pipeline of its own, and a
//! software GPU is slow to compile it.
#![allow(clippy::unwrap_used, reason = "this is how tests fail")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/shaders.rs"]
mod shaders;

mod cases;
mod descriptors;
mod pipelines;

/// A test of each case.
macro_rules! tests {
    ($($file:ident: $($name:ident),*;)*) => {
        $(mod $file {
            $(#[test]
            fn $name() {
                tritloom::native::block_on(crate::cases::$file::$name());
            })*
        })*
    };
}
cases::with_cases!(tests);
