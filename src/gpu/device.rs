//! The device: the features and limits that are asked for, and the reasons.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::Pod;
use futures_channel::oneshot;

use super::fault::Faults;
use super::ordered::{Ordered, Ticket, Work};
use super::pipeline::Pipeline;
use super::{Buffer, GpuOptions, Tuning};
use crate::compute::Loss;
use crate::error::{Error, Result};

/// The smallest binding that is accepted. A row of a tensor, the logits or a layer's KV cache may
/// need a larger one. The code that makes them refuses them then.
const MIN_BINDING: u64 = 64 * 1024;

/// The most threads of a workgroup that are asked for, if the adapter has as many.
const MAX_THREADS: u32 = 512;

/// The bytes of workgroup memory that products with matrix units need. All other kernels need no
/// more than every adapter has.
pub const MATRIX_MEMORY: u32 = 36 << 10;

/// Lanes in a subgroup, on devices whose subgroups all have the same size.
///
/// Some adapters of Intel and Apple have subgroups of different sizes. They run the kernels without
/// subgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subgroups(pub u32);

/// A device and its queue, for code that writes to it while other code has the [`Gpu`]. Clones are
/// of the same device. The device ends with its `Gpu`.
#[derive(Clone)]
pub struct Link {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) faults: Faults,
    /// All work of a model goes to the queue in this order.
    pub(super) ordered: Arc<Ordered>,
    /// Small staging buffers that no readback uses now.
    pub(super) idle_staging: Arc<Mutex<Vec<wgpu::Buffer>>>,
}

/// A device, its queue, and the features and limits that were granted.
pub struct Gpu {
    link: Link,
    /// The adapter's name, as the platform gives it.
    pub adapter: String,
    /// Whether the adapter is a CPU.
    pub software: bool,
    /// The subgroups, if subgroup operations are used.
    pub subgroups: Option<Subgroups>,
    /// Whether products of int8 matrices use the adapter's matrix units. A load tests them, and
    /// clears this if they fail.
    pub matrix_units: bool,
    /// Sentences for people about what loads do without, because the driver compiles it wrong.
    pub notes: Vec<String>,
    /// The same, about what changes no number.
    pub remarks: Vec<String>,
    /// How work is divided on this device.
    pub tuning: Tuning,
    /// The most bytes of one storage binding.
    pub max_binding: u64,
    /// The most bytes of one buffer.
    pub max_buffer: u64,
    /// The most bytes of all buffers, if the caller says it.
    pub max_bytes: Option<u64>,
    pub(super) allocated: AtomicU64,
    /// Buffers that were made and may still have to be freed, because others were refused.
    pub(super) made: Mutex<Option<Vec<wgpu::Buffer>>>,
    /// The pipelines of all plans, in the order in which they were recorded.
    pub(super) pipelines: Arc<Mutex<Vec<Arc<Pipeline>>>>,
    open: Arc<Open>,
}

/// The device, as long as a [`Gpu`] uses it.
struct Open {
    device: wgpu::Device,
    faults: Faults,
}

/// Writes in flight.
pub struct Flushed(oneshot::Receiver<()>, Ticket);

impl Gpu {
    /// Opens the best adapter.
    ///
    /// Errors: `no-adapter`, also for one that has less than WebGPU's 256 threads in a workgroup, and for a CPU with
    /// [`GpuOptions::strict`]; `missing-feature` if the caps leave bindings too small; `bad-option`
    /// (`gpu.powerPreference`).
    pub async fn open(options: &GpuOptions) -> Result<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        // OpenGL lacks too many compute features for these kernels.
        descriptor.backends = wgpu::Backends::PRIMARY;
        let instance = wgpu::Instance::new(descriptor);
        let power_preference = match options.power_preference.as_deref() {
            None | Some("high-performance") => wgpu::PowerPreference::HighPerformance,
            Some("low-power") => wgpu::PowerPreference::LowPower,
            Some(other) => {
                return Err(Error::BadOption {
                    name: "gpu.powerPreference".into(),
                    why: format!("`{other}` is neither `low-power` nor `high-performance`"),
                });
            }
        };
        let adapter = instance
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference,
                ..Default::default()
            })
            .await
            .map_err(|e| Error::NoAdapter(e.to_string()))?;
        Self::request(&adapter, options).await
    }

    async fn request(adapter: &wgpu::Adapter, options: &GpuOptions) -> Result<Self> {
        let lowest = wgpu::Limits::default();
        let (offered, features) = match options.minimal {
            true => (lowest.clone(), wgpu::Features::empty()),
            false => (adapter.limits(), adapter.features()),
        };
        let cap = |offered: u64, cap: Option<u64>| cap.map_or(offered, |cap| offered.min(cap));
        // Large bindings lead to few shards and few dispatches. For more threads see
        // `Tuning::stream_threads`, for workgroup memory MATRIX_MEMORY. All other limits are
        // WebGPU's defaults, or less in compatibility mode: kernels need few of them.
        let max_buffer = cap(offered.max_buffer_size, options.limits.max_buffer_size);
        let max_binding = cap(
            offered.max_storage_buffer_binding_size,
            options.limits.max_storage_buffer_binding_size,
        )
        .min(max_buffer)
            & !255; // shards end where bindings end, at aligned offsets
        if max_binding < MIN_BINDING {
            return Err(Error::MissingFeature(format!(
                "the GPU adapter has no storage bindings of {MIN_BINDING} bytes; {max_binding} are allowed"
            )));
        }
        let max_threads = if offered.max_compute_invocations_per_workgroup >= MAX_THREADS
            && offered.max_compute_workgroup_size_x >= MAX_THREADS
        {
            MAX_THREADS
        } else {
            lowest.max_compute_invocations_per_workgroup
        };
        let required_limits = wgpu::Limits {
            max_buffer_size: offered.max_buffer_size.min(max_buffer.max(256 << 20)),
            max_storage_buffer_binding_size: offered
                .max_storage_buffer_binding_size
                .min(max_binding.max(128 << 20)),
            max_compute_invocations_per_workgroup: max_threads,
            max_compute_workgroup_size_x: max_threads,
            max_compute_workgroup_storage_size: offered
                .max_compute_workgroup_storage_size
                .min(MATRIX_MEMORY),
            max_storage_buffers_per_shader_stage: lowest.max_storage_buffers_per_shader_stage,
            ..lowest.or_worse_values_from(&offered)
        };
        let wanted = if options.features.subgroups == Some(false) {
            wgpu::Features::TIMESTAMP_QUERY
        } else {
            wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::SUBGROUP
        };
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("tritloom"),
                required_features: features & wanted,
                required_limits,
                ..Default::default()
            })
            .await
            .map_err(|e| Error::NoAdapter(e.to_string()))?;

        let info = adapter.get_info();
        let even = info.subgroup_min_size == info.subgroup_max_size
            && info.subgroup_min_size.is_power_of_two()
            && (4..=128).contains(&info.subgroup_min_size);
        let subgroups =
            (wanted.contains(wgpu::Features::SUBGROUP) && has_subgroups(&device) && even)
                .then_some(Subgroups(info.subgroup_min_size));

        let matrix_units = options.features.matrix_units != Some(false)
            && subgroups == Some(Subgroups(32))
            && has_matrix_units(&device)
            && device.limits().max_compute_workgroup_storage_size >= MATRIX_MEMORY;

        let faults = Faults::default();
        let noting = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            noting.note(Error::Internal(format!("WebGPU: {error}")));
        }));
        let noting = faults.clone();
        device.set_device_lost_callback(move |reason, message| {
            let reason = match reason {
                wgpu::DeviceLostReason::Destroyed => "destroyed",
                _ => "unknown",
            };
            noting.lose(&Loss { reason, message });
        });
        let adapter = name(&info, &device);
        let asked = options.features.software;
        let is_cpu = info.device_type == wgpu::DeviceType::Cpu || is_software(&adapter);
        if options.strict && is_cpu && asked != Some(true) {
            return Err(Error::NoAdapter(format!(
                "only a CPU, `{adapter}`, which `strict` takes only with `gpu.features.software: true`"
            )));
        }
        let software = asked.unwrap_or(is_cpu);
        let tuning = if software { Tuning::cpu() } else { Tuning::card(subgroups, max_threads) };
        let packed_dot = options.features.packed_dot.or(tuning.packed_dot);
        let link = Link::new(device, queue, faults);
        #[cfg_attr(
            target_arch = "wasm32",
            allow(clippy::arc_with_non_send_sync, reason = "natively it is both")
        )]
        let open = Arc::new(Open { device: link.device.clone(), faults: link.faults.clone() });
        Ok(Self {
            open,
            link,
            software,
            adapter,
            subgroups,
            matrix_units,
            notes: Vec::new(),
            remarks: Vec::new(),
            tuning: Tuning { packed_dot, ..tuning },
            max_binding,
            max_buffer,
            max_bytes: options.max_bytes,
            allocated: AtomicU64::new(0),
            made: Mutex::default(),
            pipelines: Arc::default(),
        })
    }

    /// The same device for another model, with what it has compiled. The other model may take as many bytes as
    /// this one. The device ends with the last of them. If it is lost, or reports an error, all of them are.
    pub fn share(&self) -> Self {
        let Link { device, queue, faults, .. } = self.link.clone();
        Self {
            link: Link::new(device, queue, faults),
            adapter: self.adapter.clone(),
            software: self.software,
            subgroups: self.subgroups,
            matrix_units: self.matrix_units,
            notes: self.notes.clone(),
            remarks: self.remarks.clone(),
            tuning: self.tuning.clone(),
            max_binding: self.max_binding,
            max_buffer: self.max_buffer,
            max_bytes: self.max_bytes,
            allocated: AtomicU64::new(0),
            made: Mutex::default(),
            pipelines: Arc::clone(&self.pipelines),
            open: Arc::clone(&self.open),
        }
    }

    /// Makes later plans do without subgroup operations.
    pub fn leave_out_subgroups(&mut self) {
        self.subgroups = None;
        // Their kernels have subgroups too.
        self.matrix_units = false;
        self.tuning = self.tuning.clone().without_subgroups();
    }

    /// Whether the device is lost for good, so that another has to be opened.
    pub fn is_lost(&self) -> bool {
        self.faults.is_lost()
    }

    /// Resolves when the device is lost. Fails when the device ends.
    pub fn lost(&self) -> oneshot::Receiver<Loss> {
        self.faults.wait()
    }

    /// A buffer holding `data`.
    pub fn upload<T: Pod>(&self, label: &str, data: &[T]) -> Buffer<T> {
        let buffer = self.buffer(label, data.len());
        self.write(&buffer, 0, data);
        buffer
    }

    /// The bytes of all buffers, including those kept for readbacks and for uploads during steps.
    pub fn allocated(&self) -> u64 {
        let idle = self.idle_staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging: u64 = idle.iter().map(wgpu::Buffer::size).sum();
        self.allocated.load(Ordering::Relaxed) + staging + self.ordered.staged()
    }

    /// Frees at once a buffer that has an allocation of its own. Otherwise a browser would keep its
    /// memory until it collects garbage.
    pub fn free<T>(&self, buffer: &Buffer<T>) {
        debug_assert_eq!(buffer.offset, 0, "packed with others");
        self.ordered.give(Work::Free(buffer.raw.clone()));
        self.allocated.fetch_sub(buffer.bytes(), Ordering::Relaxed);
    }
}

impl Link {
    fn new(device: wgpu::Device, queue: wgpu::Queue, faults: Faults) -> Self {
        #[cfg_attr(
            target_arch = "wasm32",
            allow(clippy::arc_with_non_send_sync, reason = "natively it is both")
        )]
        let ordered = Arc::new(Ordered::new(&device, &queue, &faults));
        Self { device, queue, faults, ordered, idle_staging: Arc::default() }
    }

    /// Fails with the first error that the device reported by itself, because WebGPU's errors do
    /// not throw.
    pub fn check(&self) -> Result<()> {
        self.faults.check()
    }

    /// Writes `data` from element `at` on. Both ends must be multiples of 4 bytes.
    pub fn write<T: Pod>(&self, buffer: &Buffer<T>, at: usize, data: &[T]) {
        if !data.is_empty() {
            let offset = buffer.offset + (at * size_of::<T>()) as u64;
            self.ordered.write(&buffer.raw, offset, bytemuck::cast_slice(data));
        }
    }

    /// Submits what was written. [`Link::arrived`] waits for it.
    pub fn flush(&self) -> Flushed {
        let (tell, told) = oneshot::channel();
        Flushed(told, self.ordered.give(Work::Flush(tell)))
    }

    /// Waits until what was flushed is on the GPU, or the device is lost.
    ///
    /// Data that is written faster than it arrives piles up in this process, and in a browser in
    /// the GPU process too.
    pub async fn arrived(&self, flushed: Flushed) {
        let Flushed(told, ticket) = flushed;
        let _ = self.faults.unless_gone(self.ordered.reach(ticket)).await;
        #[cfg(not(target_arch = "wasm32"))]
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
        let _ = self.faults.unless_gone(told).await;
    }
}

impl Deref for Gpu {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Drop for Open {
    /// Frees the device and all its buffers, even those that are still held elsewhere. Otherwise a
    /// browser would keep them until it collects garbage.
    fn drop(&mut self) {
        self.faults.end();
        self.device.destroy();
    }
}

/// Joins `words`, without those that are contained in the words before.
fn joined(words: &[String]) -> String {
    let mut name = String::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        if !name.contains(word.as_str()) {
            name = format!("{name} {word}").trim().into();
        }
    }
    name
}

/// Recognises CPU adapters that do not say so themselves.
fn is_software(name: &str) -> bool {
    let name = name.to_lowercase();
    ["swiftshader", "llvmpipe", "lavapipe", "basic render"].iter().any(|cpu| name.contains(cpu))
}

#[cfg(not(target_arch = "wasm32"))]
fn name(info: &wgpu::AdapterInfo, _device: &wgpu::Device) -> String {
    joined(&[info.name.clone(), info.driver.clone(), info.driver_info.clone()])
}

/// wgpu's web back end passes on only the description, which browsers leave empty.
#[cfg(target_arch = "wasm32")]
fn name(_info: &wgpu::AdapterInfo, device: &wgpu::Device) -> String {
    device.as_webgpu().map_or_else(String::new, |device| {
        let info = device.adapter_info();
        joined(&[info.vendor(), info.architecture(), info.device(), info.description()])
    })
}

#[cfg(not(target_arch = "wasm32"))]
fn has_subgroups(device: &wgpu::Device) -> bool {
    device.features().contains(wgpu::Features::SUBGROUP)
}

/// wgpu's web back end has no name for the feature, so this asks the browser's own device.
#[cfg(target_arch = "wasm32")]
fn has_subgroups(device: &wgpu::Device) -> bool {
    device.as_webgpu().is_some_and(|device| device.features().has("subgroups"))
}

/// wgpu does not know int8 matrices natively.
#[cfg(not(target_arch = "wasm32"))]
fn has_matrix_units(_device: &wgpu::Device) -> bool {
    false
}

/// Asks for the feature if the adapter multiplies matrices of the kernel's size: see features.ts.
#[cfg(target_arch = "wasm32")]
fn has_matrix_units(device: &wgpu::Device) -> bool {
    let feature = "chromium-experimental-subgroup-matrix";
    device.as_webgpu().is_some_and(|device| device.features().has(feature))
}
