//! The model on the CPU.
//!
//! Weights stay in memory as they are in the file. [`formats`] has the kernels that multiply them with
//! int8 activations, written once for any instruction set. The instruction sets and the threads are in
//! [`machine`], with all `unsafe` code. `forward.rs` is the model itself.
//!
//! A step is computed when it is submitted, see [`crate::host`]. A row of a product, or a head, is
//! computed by one thread and in one order, so a token's bits do not depend on the number of threads or
//! on the tokens beside it.

mod adapters;
mod attention;
mod bandwidth;
mod cache;
mod candidates;
mod formats;
mod forward;
mod input;
mod machine;
mod open;
mod ops;
mod pool;
mod product;
mod random;
mod split;
mod times;
mod trial;
mod weights;

pub use machine::InstructionSet;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub use machine::{PageThreads, fail, serve};
pub use open::OnCpu;
pub use times::{ProductTime, product_times};
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub use trial::is_right_here;
