//! Pipelines: one for each source. They are compiled before they are needed if there is time, and
//! otherwise on first use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
use futures_channel::oneshot;
use futures_util::FutureExt;

#[cfg(not(target_arch = "wasm32"))]
use super::fault::attempt;
use super::{Access, Const, Dialect, Gpu, Kernel, Plan, Variant};

/// A kernel with its constants.
pub(super) struct Pipeline {
    device: wgpu::Device,
    name: &'static str,
    source: String,
    pub(super) layout: wgpu::BindGroupLayout,
    compiled: OnceLock<wgpu::ComputePipeline>,
    /// Whether another thread has begun to compile it before its use.
    is_begun: AtomicBool,
}

impl Pipeline {
    /// The pipeline. It is compiled now unless it was before.
    pub(super) fn get(&self) -> &wgpu::ComputePipeline {
        self.compiled.get_or_init(|| self.create(&self.module()))
    }

    /// Begins to compile it in another thread, unless that was done or begun before. An error is
    /// dropped here, because the first use compiles the pipeline again and reports the error.
    fn begin(self: &Arc<Self>) -> Option<impl Future<Output = ()> + use<>> {
        if self.compiled.get().is_some() || self.is_begun.swap(true, Ordering::Relaxed) {
            return None;
        }
        let compiled = self.compile_elsewhere();
        let this = Arc::clone(self);
        Some(async move {
            if let Some(compiled) = compiled.await {
                // A call may have needed it meanwhile, and compiled it.
                let _ = this.compiled.set(compiled);
            }
        })
    }

    /// In a browser, which adds its own checks to shaders.
    #[cfg(target_arch = "wasm32")]
    fn module(&self) -> wgpu::ShaderModule {
        self.device.create_shader_module(self.shader())
    }

    /// Natively, without naga's loop counters, because they keep drivers from unrolling loops.
    #[cfg(not(target_arch = "wasm32"))]
    #[allow(unsafe_code, reason = "every loop of the crate's own shaders ends")]
    fn module(&self) -> wgpu::ShaderModule {
        let checks = wgpu::ShaderRuntimeChecks { force_loop_bounding: false, ..Default::default() };
        // SAFETY: all shaders are this crate's own. None is made from the text of a model or a
        // caller, and their loops count up to constants or to checked sizes. Bounds checks stay.
        unsafe { self.device.create_shader_module_trusted(self.shader(), checks) }
    }

    fn shader(&self) -> wgpu::ShaderModuleDescriptor<'_> {
        let source = wgpu::ShaderSource::Wgsl(self.source.as_str().into());
        wgpu::ShaderModuleDescriptor { label: Some(self.name), source }
    }

    fn create(&self, module: &wgpu::ShaderModule) -> wgpu::ComputePipeline {
        let layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(self.name),
            bind_group_layouts: &[Some(&self.layout)],
            immediate_size: 0,
        });
        self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(self.name),
            layout: Some(&layout),
            module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes its workgroup memory before it reads it.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        })
    }

    /// Natively, compiles in a thread of its own.
    #[cfg(not(target_arch = "wasm32"))]
    fn compile_elsewhere(
        self: &Arc<Self>,
    ) -> impl Future<Output = Option<wgpu::ComputePipeline>> + use<> {
        let this = Arc::clone(self);
        let (tell, told) = oneshot::channel();
        let compile = move || {
            let compiled = attempt(&this.device, || this.create(&this.module()));
            // This fails if the load was given up, and with it the receiver.
            let _ = tell.send(pollster::block_on(compiled));
        };
        // If no thread can be started, the first use compiles the pipeline.
        let _ = std::thread::Builder::new().spawn(compile);
        told.map(|compiled| compiled.ok().flatten())
    }
}

/// In a browser, which compiles a pipeline while its thread for the GPU does other work.
#[cfg(target_arch = "wasm32")]
mod browser {
    use std::sync::Arc;

    use js_sys::Promise;
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::JsFuture;

    use super::Pipeline;
    use crate::gpu::fault::attempt;

    // This is JavaScript because it replaces a method of the device for a moment: see compile.ts.
    #[wasm_bindgen(raw_module = "./crate/compile.js")]
    extern "C" {
        #[wasm_bindgen(js_name = createElsewhere)]
        fn create_elsewhere(device: &JsValue, create: &mut dyn FnMut()) -> Promise;
        #[wasm_bindgen(js_name = createdElsewhere)]
        fn created_elsewhere(device: &JsValue, pipeline: &JsValue, create: &mut dyn FnMut());
    }

    struct Elsewhere {
        module: wgpu::ShaderModule,
        compiled: Option<JsFuture>,
    }

    impl Pipeline {
        pub(super) fn compile_elsewhere(
            self: &Arc<Self>,
        ) -> impl Future<Output = Option<wgpu::ComputePipeline>> + use<> {
            let this = Arc::clone(self);
            let begun = attempt(&self.device, move || this.create_elsewhere());
            let this = Arc::clone(self);
            async move { begun.await?.done(&this).await }
        }

        fn create_elsewhere(&self) -> Elsewhere {
            let module = self.module();
            // The promise is awaited from now on. If it failed while it is not awaited, the page
            // would get an error.
            let compiled = self.device.as_webgpu().map(|device| {
                JsFuture::from(create_elsewhere(device, &mut || {
                    self.create(&module);
                }))
            });
            Elsewhere { module, compiled }
        }
    }

    impl Elsewhere {
        async fn done(self, pipeline: &Pipeline) -> Option<wgpu::ComputePipeline> {
            let compiled = self.compiled?.await.ok()?;
            let mut created = None;
            created_elsewhere(pipeline.device.as_webgpu()?, &compiled, &mut || {
                created = Some(pipeline.create(&self.module));
            });
            created
        }
    }
}

impl Gpu {
    /// The pipeline of a kernel. The same source gives the same pipeline.
    pub(super) fn pipeline(&self, kernel: &Kernel, consts: &[Const]) -> Arc<Pipeline> {
        let source = self.variant(kernel).source(Dialect::HERE, self.subgroups, consts);
        let mut pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pipelines.iter().find(|known| known.source == source) {
            return Arc::clone(known);
        }
        let entries: Vec<_> =
            (0..).zip(kernel.bindings).map(|(i, (_, access))| layout_entry(i, *access)).collect();
        let layout = self.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some(kernel.name),
            entries: &entries,
        });
        #[cfg_attr(
            target_arch = "wasm32",
            allow(clippy::arc_with_non_send_sync, reason = "natively it is both")
        )]
        let pipeline = Arc::new(Pipeline {
            device: self.device.clone(),
            name: kernel.name,
            source,
            layout,
            compiled: OnceLock::new(),
            is_begun: AtomicBool::new(false),
        });
        pipelines.push(Arc::clone(&pipeline));
        pipeline
    }

    pub(super) fn variant(&self, kernel: &Kernel) -> &'static Variant {
        kernel.variant(self.subgroups, self.matrix_units)
    }

    /// Compiles the pipelines of `plans`. All have begun when this returns, because several are
    /// compiled at a time, in threads of their own.
    pub fn compile<'a, P: IntoIterator<Item = &'a Plan>>(
        &self,
        plans: P,
    ) -> impl Future<Output = ()> + use<'a, P> {
        let pipelines = plans.into_iter().flat_map(Plan::pipelines);
        let begun: Vec<_> = pipelines.filter_map(Pipeline::begin).collect();
        let all = async move {
            for one in begun {
                one.await;
            }
        };
        self.faults.unless_gone(all).map(drop)
    }

    /// Compiles the next pipeline, in the order in which they were recorded; `None` if all are
    /// compiled or begun, or if the device is lost.
    pub fn compile_next(&self) -> Option<impl Future<Output = ()> + use<>> {
        if self.is_lost() {
            return None;
        }
        let pipelines = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = pipelines.iter().find_map(Pipeline::begin)?;
        Some(self.faults.unless_gone(begun).map(drop))
    }
}

fn layout_entry(index: u32, access: Access) -> wgpu::BindGroupLayoutEntry {
    let ty = match access {
        Access::Uniform | Access::Step => wgpu::BufferBindingType::Uniform,
        Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
        Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
    };
    wgpu::BindGroupLayoutEntry {
        binding: index,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty,
            has_dynamic_offset: access == Access::Step,
            min_binding_size: None,
        },
        count: None,
    }
}
