//! Bytes that are uploaded again and again.

use crate::error::Error;

#[cfg(target_arch = "wasm32")]
pub(super) use browser::Kept;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use native::Kept;

fn refused(len: u64) -> Error {
    let what = "the weights that do not fit on the GPU".into();
    Error::OutOfMemory { what, needed: len, granted: 0 }
}

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use super::refused;
    use crate::error::Result;

    /// Bytes of main memory.
    pub(in crate::gpu) struct Kept(Vec<u8>);

    impl Kept {
        /// For each length, that many zeros.
        ///
        /// Errors: `out-of-memory`.
        pub(in crate::gpu) async fn zeros(lens: Vec<u64>) -> Result<Vec<Self>> {
            let total = lens.iter().sum();
            let zeros = |len: u64| {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(len as usize).map_err(|_| refused(total))?;
                bytes.resize(len as usize, 0);
                Ok(Self(bytes))
            };
            lens.into_iter().map(zeros).collect()
        }

        pub(in crate::gpu) fn len(&self) -> u64 {
            self.0.len() as u64
        }

        /// Errors: why not, in words.
        pub(in crate::gpu) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
            self.0[at as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }

        /// Errors: why not, in words.
        pub(in crate::gpu) fn read(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
            to.copy_from_slice(&self.0[at as usize..][..to.len()]);
            Ok(())
        }

        /// Copies `len` bytes from byte `at` on to the beginning of a mapped buffer.
        pub(in crate::gpu) fn copy_to(
            &self,
            at: u64,
            len: u64,
            to: &wgpu::Buffer,
        ) -> Result<(), String> {
            let mut view = to.get_mapped_range_mut(..len).map_err(|error| error.to_string())?;
            view.copy_from_slice(&self.0[at as usize..][..len as usize]);
            Ok(())
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod browser {
    use std::rc::Rc;

    use futures_channel::oneshot;
    use js_sys::{Array, Function, Reflect, Uint8Array};
    use wasm_bindgen::prelude::*;
    use wasm_bindgen_futures::spawn_local;

    use super::refused;
    use crate::error::Result;

    #[wasm_bindgen(raw_module = "./threads/scratch.js")]
    extern "C" {
        type Scratch;
        #[wasm_bindgen(static_method_of = Scratch, catch)]
        async fn open(size: f64) -> Result<JsValue, JsValue>;
        #[wasm_bindgen(method, catch)]
        fn read(this: &Scratch, into: &Uint8Array, at: f64) -> Result<(), JsValue>;
        #[wasm_bindgen(method, catch)]
        fn write(this: &Scratch, bytes: &[u8], at: f64) -> Result<(), JsValue>;
        #[wasm_bindgen(method)]
        fn close(this: &Scratch);
    }

    /// Bytes of main memory, or of the browser's storage where that is too short.
    pub(in crate::gpu) enum Kept {
        /// They are outside of the module's memory, which has 4 GB at most, and need no copy on their way to the
        /// browser.
        InMemory(Uint8Array),
        Stored {
            file: Rc<File>,
            at: u64,
            len: u64,
        },
    }

    /// A file that is closed at the end.
    pub(in crate::gpu) struct File(Scratch);

    impl File {
        /// Opens a file of `len` zeros. If the load ends before, the file is closed as soon as it is open.
        async fn open(len: u64) -> Option<Self> {
            let (tell, told) = oneshot::channel();
            spawn_local(async move {
                let opened = Scratch::open(len as f64).await;
                // This fails if the load was dropped.
                let _ = tell.send(opened.ok().map(|file| Self(file.unchecked_into())));
            });
            told.await.ok().flatten()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            self.0.close();
        }
    }

    impl Kept {
        /// For each length, that many zeros.
        ///
        /// Errors: `out-of-memory`.
        pub(in crate::gpu) async fn zeros(lens: Vec<u64>) -> Result<Vec<Self>> {
            if let Some(all) = lens.iter().map(|&len| in_memory(len)).collect() {
                return Ok(all);
            }
            let total = lens.iter().sum();
            let file = Rc::new(File::open(total).await.ok_or_else(|| refused(total))?);
            let mut end = 0;
            let stored = |len| {
                end += len;
                Self::Stored { file: Rc::clone(&file), at: end - len, len }
            };
            Ok(lens.into_iter().map(stored).collect())
        }

        pub(in crate::gpu) fn len(&self) -> u64 {
            match self {
                Self::InMemory(bytes) => u64::from(bytes.length()),
                Self::Stored { len, .. } => *len,
            }
        }

        /// Errors: why not, in words.
        pub(in crate::gpu) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), String> {
            match self {
                Self::InMemory(all) => part(all, at, bytes.len() as u64).copy_from(bytes),
                Self::Stored { file, at: first, .. } => {
                    file.0.write(bytes, (*first + at) as f64).map_err(why)?;
                }
            }
            Ok(())
        }

        /// Errors: why not, in words.
        pub(in crate::gpu) fn read(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
            let bytes = Uint8Array::new_with_length(to.len() as u32);
            self.read_into(at, &bytes)?;
            bytes.copy_to(to);
            Ok(())
        }

        /// Copies `len` bytes from byte `at` on to the beginning of a mapped buffer.
        pub(in crate::gpu) fn copy_to(
            &self,
            at: u64,
            len: u64,
            to: &wgpu::Buffer,
        ) -> Result<(), String> {
            let to = to.as_webgpu().ok_or("it is no buffer of WebGPU")?;
            let range = to.get_mapped_range_with_f64_and_f64(0.0, len as f64).map_err(why)?;
            self.read_into(at, &Uint8Array::new(&range))
        }

        fn read_into(&self, at: u64, to: &Uint8Array) -> Result<(), String> {
            match self {
                Self::InMemory(all) => to.set(&part(all, at, u64::from(to.length())), 0),
                Self::Stored { file, at: first, .. } => {
                    file.0.read(to, (*first + at) as f64).map_err(why)?;
                }
            }
            Ok(())
        }
    }

    /// `len` zeros in main memory; `None` if there is too little.
    fn in_memory(len: u64) -> Option<Kept> {
        // The ordinary constructor would not catch what it throws.
        let class = Reflect::get(&js_sys::global(), &JsValue::from_str("Uint8Array")).ok()?;
        let class: Function = class.unchecked_into();
        let made = Reflect::construct(&class, &Array::of1(&JsValue::from(len as f64))).ok()?;
        Some(Kept::InMemory(made.unchecked_into()))
    }

    fn part(all: &Uint8Array, at: u64, len: u64) -> Uint8Array {
        all.subarray(at as u32, (at + len) as u32)
    }

    fn why(thrown: JsValue) -> String {
        format!("{thrown:?}")
    }
}
