//! Bytes in main memory that are uploaded again and again.

use crate::error::{Error, Result};

/// Bytes of main memory. In a page they are outside of the module's memory, which has 4 GB at most, and need no
/// copy on their way to the browser.
pub(super) struct Kept {
    #[cfg(not(target_arch = "wasm32"))]
    bytes: Vec<u8>,
    #[cfg(target_arch = "wasm32")]
    bytes: js_sys::Uint8Array,
}

fn refused(len: u64) -> Error {
    let what = "the weights that do not fit on the GPU, in main memory".into();
    Error::OutOfMemory { what, needed: len, granted: 0 }
}

#[cfg(not(target_arch = "wasm32"))]
impl Kept {
    /// `len` zeros.
    ///
    /// Errors: `out-of-memory`.
    pub(super) fn new(len: u64) -> Result<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len as usize).map_err(|_| refused(len))?;
        bytes.resize(len as usize, 0);
        Ok(Self { bytes })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn read(&self, at: u64, to: &mut [u8]) {
        to.copy_from_slice(&self.bytes[at as usize..][..to.len()]);
    }

    /// Copies `len` bytes from byte `at` on to the beginning of a mapped buffer.
    pub(super) fn copy_to(&self, at: u64, len: u64, to: &wgpu::Buffer) -> Result<(), String> {
        let mut view = to.get_mapped_range_mut(..len).map_err(|error| error.to_string())?;
        view.copy_from_slice(&self.bytes[at as usize..][..len as usize]);
        Ok(())
    }
}

#[cfg(target_arch = "wasm32")]
impl Kept {
    /// `len` zeros.
    ///
    /// Errors: `out-of-memory`.
    pub(super) fn new(len: u64) -> Result<Self> {
        use js_sys::{Array, Function, Reflect, Uint8Array};
        use wasm_bindgen::{JsCast, JsValue};
        // The ordinary constructor would not catch what it throws.
        let class = Reflect::get(&js_sys::global(), &JsValue::from_str("Uint8Array"));
        let class: Function = class.map_err(|_| refused(len))?.unchecked_into();
        let made = Reflect::construct(&class, &Array::of1(&JsValue::from(len as f64)))
            .map_err(|_| refused(len))?;
        Ok(Self { bytes: made.unchecked_into::<Uint8Array>() })
    }

    pub(super) fn len(&self) -> u64 {
        u64::from(self.bytes.length())
    }

    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        self.part(at, bytes.len() as u64).copy_from(bytes);
    }

    pub(super) fn read(&self, at: u64, to: &mut [u8]) {
        self.part(at, to.len() as u64).copy_to(to);
    }

    /// Copies `len` bytes from byte `at` on to the beginning of a mapped buffer.
    pub(super) fn copy_to(&self, at: u64, len: u64, to: &wgpu::Buffer) -> Result<(), String> {
        let to = to.as_webgpu().ok_or("it is no buffer of WebGPU")?;
        let range = to
            .get_mapped_range_with_f64_and_f64(0.0, len as f64)
            .map_err(|error| format!("{error:?}"))?;
        js_sys::Uint8Array::new(&range).set(&self.part(at, len), 0);
        Ok(())
    }

    fn part(&self, at: u64, len: u64) -> js_sys::Uint8Array {
        self.bytes.subarray(at as u32, (at + len) as u32)
    }
}
