//! The quantised types that an embedding can get.

use std::thread;

use clap::ValueEnum;

use tritloom::blocks::{BlockType, block_type, quantize};
use tritloom::gguf::TensorType;
use tritloom::{Error, Result};

/// A type that the embedding can get.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Quantized {
    /// 8.5 bits for each value
    #[value(name = "q8_0")]
    Q8_0,
    /// 6.6 bits for each value
    #[value(name = "q6_k")]
    Q6K,
}

impl Quantized {
    pub(crate) fn ty(self) -> TensorType {
        match self {
            Self::Q8_0 => TensorType::Q8_0,
            Self::Q6K => TensorType::Q6K,
        }
    }

    pub(crate) fn row(self) -> Result<&'static BlockType> {
        block_type(self.ty()).ok_or_else(|| Error::Internal(format!("no row for {}", self.ty())))
    }

    /// Quantises on all cores. The error is the index of a value that does not fit.
    pub(crate) fn quantize(self, values: &[f32], elements: usize) -> Result<Vec<u8>, usize> {
        let quantize = match self {
            Self::Q8_0 => quantize::q8_0,
            Self::Q6K => quantize::q6_k,
        };
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let each = values.len().div_ceil(cores).next_multiple_of(elements);
        let run = |values: &[f32]| {
            let mut blocks = Vec::new();
            quantize(values, &mut blocks).map(|()| blocks)
        };
        thread::scope(|scope| {
            let tasks: Vec<_> =
                values.chunks(each).map(|values| scope.spawn(move || run(values))).collect();
            let mut all = Vec::new();
            for (index, task) in tasks.into_iter().enumerate() {
                let blocks = task.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                all.append(&mut blocks.map_err(|bad| index * each + bad)?);
            }
            Ok(all)
        })
    }
}
