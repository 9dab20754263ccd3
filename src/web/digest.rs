//! SHA-256: the browser's for a piece, which is quick and runs beside this thread, and our own for
//! a whole file, which the browser's cannot take piece by piece.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use js_sys::{Promise, Uint8Array};
use sha2::{Digest, Sha256};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::error::text;
use crate::error::{Error, Result};

mod browser {
    use super::*;

    #[wasm_bindgen]
    extern "C" {
        #[wasm_bindgen(js_namespace = ["crypto", "subtle"], catch)]
        pub(super) fn digest(algorithm: &str, data: &Uint8Array) -> Result<Promise, JsValue>;
    }
}

/// The hash of bytes that are all there, in base64. They are copied before this returns.
pub(super) fn digest(bytes: &Uint8Array) -> Result<impl Future<Output = Result<String>> + use<>> {
    let failed = |why: JsValue| Error::Internal(format!("SHA-256: {}", text(&why)));
    let promise = browser::digest("SHA-256", bytes).map_err(failed)?;
    Ok(async move {
        let hash = JsFuture::from(promise).await.map_err(failed)?;
        Ok(BASE64_STANDARD.encode(Uint8Array::new(&hash).to_vec()))
    })
}

/// A hash of bytes as they pass.
#[derive(Clone, Default)]
pub(super) struct Hasher(Sha256);

impl Hasher {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The hash, in base64.
    pub(super) fn finish(self) -> String {
        BASE64_STANDARD.encode(self.0.finalize())
    }
}
