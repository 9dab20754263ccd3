//! The choice between the GPU and the CPU.

use crate::compute::{Compute, EngineOptions, Opening, Progress};
use crate::cpu::OnCpu;
use crate::engine;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuOptions};
use crate::model::{Config, Weight};
use crate::source::{Reader, Source};

/// The wish for a machine that computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choose {
    /// The GPU, or the CPU if there is no adapter, or only one that is a CPU itself. A note then says so.
    #[default]
    Auto,
    /// The GPU, or what the system offers as one.
    Webgpu,
    /// The CPU.
    Cpu,
}

/// Opens the GPU or the CPU for a session.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Which of them.
    pub choose: Choose,
    /// The wishes to the GPU. With `strict`, a GPU that is missing is an error also for
    /// [`Choose::Auto`].
    pub gpu: GpuOptions,
    /// How the CPU computes.
    pub cpu: OnCpu,
}

/// A GPU, or the CPU.
pub enum Opened {
    /// A GPU.
    Gpu(Box<Gpu>),
    /// The CPU.
    Cpu(OnCpu),
}

impl Opening for Open {
    type Opened = Opened;

    async fn open(self) -> Result<Opened> {
        let Self { choose, mut gpu, cpu } = self;
        let strict = gpu.strict;
        // Shaders on a CPU are far slower than the CPU's own code.
        gpu.strict |= choose == Choose::Auto;
        if choose != Choose::Cpu {
            let opened = async { engine::tested(Gpu::open(&gpu).await?).await };
            match opened.await {
                Ok(gpu) => return Ok(Opened::Gpu(Box::new(gpu))),
                Err(Error::NoAdapter(why)) if choose == Choose::Auto && !strict => {
                    let note = format!("the CPU computes: no GPU adapter ({why})");
                    let cpu = OnCpu { note: Some(note), ..cpu };
                    return Ok(Opened::Cpu(cpu.open().await?));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Opened::Cpu(cpu.open().await?))
    }

    async fn load<S: Source>(
        opened: Opened,
        config: Config,
        table: &[Weight],
        reader: &mut Reader<S>,
        options: &EngineOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Box<dyn Compute>> {
        match opened {
            Opened::Gpu(gpu) => OnGpu::load(*gpu, config, table, reader, options, progress).await,
            Opened::Cpu(cpu) => OnCpu::load(cpu, config, table, reader, options, progress).await,
        }
    }
}

/// A GPU that is open already. Only its type is used.
type OnGpu = std::future::Ready<Result<Gpu>>;
