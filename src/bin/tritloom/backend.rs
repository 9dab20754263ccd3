//! The options that say what computes.

use clap::{Args, ValueEnum};

use tritloom::cpu::{InstructionSet, OnCpu};
use tritloom::gpu::GpuOptions;
use tritloom::native::{Choose, Open};

use crate::options::one_or_more;

#[derive(Args)]
pub(crate) struct BackendArgs {
    /// The machine that computes: `auto` is the GPU if there is one, else the CPU
    #[arg(long, value_name = "BACKEND", value_enum, default_value_t = BackendArg::Auto)]
    backend: BackendArg,
    /// Threads of the CPU [default: as many as it runs at once]
    #[arg(long, value_name = "N", value_parser = one_or_more, allow_negative_numbers = true)]
    pub(crate) threads: Option<usize>,
    /// The instruction set of the CPU, to compare them [default: the fastest]
    #[arg(long, value_name = "SET", value_parser = instructions)]
    instructions: Option<InstructionSet>,
}

/// [`Choose`] on the command line.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub(crate) enum BackendArg {
    Auto,
    Webgpu,
    Cpu,
}

impl BackendArgs {
    pub(crate) fn open(&self, gpu: GpuOptions) -> Open {
        let choose = match self.backend {
            BackendArg::Auto => Choose::Auto,
            BackendArg::Webgpu => Choose::Webgpu,
            BackendArg::Cpu => Choose::Cpu,
        };
        let Self { threads, instructions, .. } = *self;
        Open { choose, gpu, cpu: OnCpu { threads, instructions, ..OnCpu::default() } }
    }
}

/// The parser of an instruction set of this machine.
fn instructions(name: &str) -> Result<InstructionSet, String> {
    let available = InstructionSet::available();
    let names: Vec<&str> = available.iter().map(|set| set.name()).collect();
    let found = available.iter().find(|set| set.name() == name);
    found.copied().ok_or_else(|| format!("this machine has {}", names.join(", ")))
}
