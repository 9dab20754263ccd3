//! The class behind `tritloom/weights`: a file whose weights are looked at without a model.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use js_sys::{Float32Array, Function, Promise, Uint8Array};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::error::{bad_option, text};
use crate::contents::{Contents, Spread, contents, rows};
use crate::error::{Error, Result};
use crate::gguf::{Gguf, TensorInfo};
use crate::source::{Reader, Source};
use crate::ternary::Layout;

/// The table of a file, and a way to read its tensors. All other metadata, such as the vocabulary, is gone.
#[wasm_bindgen]
pub struct WasmFile {
    names: Vec<String>,
    tensors: Vec<TensorInfo>,
    len: u64,
    read: Function,
}

/// A tensor, as `tensors()` of the package has it.
#[derive(Serialize)]
struct Tensor<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: String,
    shape: &'a [u64],
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<usize>,
}

/// The contents of a tensor in figures.
#[derive(Serialize)]
struct Statistics {
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<[u64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entropy: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scales: Option<Spread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<Spread>,
}

#[wasm_bindgen]
impl WasmFile {
    /// Reads the header of a file of `length` bytes. `read(begin, end)` reads a part of it. Fails with what that throws.
    pub async fn open(
        length: f64,
        #[wasm_bindgen(
            unchecked_param_type = "(begin: number, end: number) => Promise<Uint8Array>"
        )]
        read: Function,
    ) -> Result<WasmFile, JsValue> {
        let len = length as u64;
        let given = Given::new(len, read.clone());
        let Gguf { metadata, tensors, .. } =
            given.thrown(Gguf::read(&mut Reader::new(given.clone())).await)?;
        let text = |key| Ok::<_, Error>(metadata.text(key)?.unwrap_or_default().to_owned());
        let names = vec![text("general.name")?, text("general.architecture")?];
        Ok(Self { names, tensors, len, read })
    }

    /// The model's name and architecture, as the file has them; empty if it has none.
    pub fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The tensors, in the order of the file.
    #[wasm_bindgen(unchecked_return_type = "api.FileTensor[]")]
    pub fn tensors(&self) -> Result<JsValue, JsValue> {
        let tensor = |tensor: &'_ TensorInfo| {
            serde_wasm_bindgen::to_value(&Tensor {
                name: &tensor.name,
                ty: tensor.ty.to_string(),
                shape: &tensor.ne,
                bytes: tensor.len,
                layer: layer(&tensor.name),
            })
        };
        let all = self.tensors.iter().map(tensor);
        Ok(all.collect::<Result<js_sys::Array, _>>()?.into())
    }

    /// The contents of the tensor of this name.
    #[wasm_bindgen(unchecked_return_type = "api.TensorStatistics")]
    pub async fn statistics(&self, name: String) -> Result<JsValue, JsValue> {
        let given = Given::new(self.len, self.read.clone());
        let found = contents(&mut Reader::new(given.clone()), self.tensor(&name)?).await;
        let found = given.thrown(found)?.unwrap_or_default();
        let entropy = found.entropy();
        let Contents { counts, scales, offsets } = found;
        let counts = entropy.map(|_| counts);
        Ok(serde_wasm_bindgen::to_value(&Statistics { counts, entropy, scales, offsets })?)
    }

    /// The values of the rows from `begin` to before `end`. `arm` says that I2_S codes are in the order of ARM builds.
    pub async fn rows(
        &self,
        name: String,
        begin: u32,
        end: u32,
        arm: bool,
    ) -> Result<Float32Array, JsValue> {
        let given = Given::new(self.len, self.read.clone());
        let layout = if arm { Layout::Arm } else { Layout::X86 };
        let range = u64::from(begin)..u64::from(end);
        let found = rows(&mut Reader::new(given.clone()), self.tensor(&name)?, range, layout).await;
        Ok(Float32Array::from(given.thrown(found)?.as_slice()))
    }
}

impl WasmFile {
    fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        let missing = || bad_option("name", format!("there is no tensor `{name}`"));
        self.tensors.iter().find(|tensor| tensor.name == name).ok_or_else(missing)
    }
}

/// The block of a tensor such as `blk.3.attn_q.weight`.
fn layer(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// A file that a function of JavaScript reads.
#[derive(Clone)]
struct Given {
    len: u64,
    read: Function,
    /// The value that the function has thrown.
    thrown: Rc<RefCell<Option<JsValue>>>,
}

impl Given {
    fn new(len: u64, read: Function) -> Self {
        Self { len, read, thrown: Rc::default() }
    }

    /// The result of reading, or else what the function has thrown.
    fn thrown<T>(&self, result: Result<T>) -> Result<T, JsValue> {
        result.map_err(|error| self.thrown.take().unwrap_or_else(|| error.into()))
    }

    async fn call(&self, range: &Range<u64>) -> Result<Vec<u8>, JsValue> {
        let (begin, end) = (range.start as f64, range.end as f64);
        let promise: Promise =
            self.read.call2(&JsValue::NULL, &begin.into(), &end.into())?.dyn_into()?;
        Ok(JsFuture::from(promise).await?.dyn_into::<Uint8Array>()?.to_vec())
    }
}

impl Source for Given {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.call(&range).await.map_err(|thrown| {
            let error = Error::unreadable("the file", text(&thrown));
            *self.thrown.borrow_mut() = Some(thrown);
            error
        })?;
        let (found, expected) = (bytes.len() as u64, range.end - range.start);
        if found != expected {
            let why = format!("{found} bytes at {}, {expected} expected", range.start);
            return Err(Error::unreadable("the file", why));
        }
        Ok(bytes)
    }
}
