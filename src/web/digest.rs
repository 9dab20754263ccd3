//! SHA-256 by the browser, which is fast and runs beside this thread. It needs all bytes at once.
//! [`crate::transfer::Hasher`] takes them bit by bit.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::error::text;
use crate::error::{Error, Result};

mod browser {
    use super::*;

    #[wasm_bindgen]
    extern "C" {
        /// Pages without https do not have it.
        #[wasm_bindgen(thread_local_v2, js_namespace = crypto, js_name = subtle)]
        pub(super) static SUBTLE: JsValue;

        #[wasm_bindgen(js_namespace = ["crypto", "subtle"], catch)]
        pub(super) fn digest(algorithm: &str, data: &Uint8Array) -> Result<Promise, JsValue>;
    }
}

/// The hash of `bytes` in base64. The bytes are copied before this returns.
pub(super) fn digest(bytes: &Uint8Array) -> Result<impl Future<Output = Result<String>> + use<>> {
    let failed = |why: JsValue| Error::Internal(format!("SHA-256: {}", text(&why)));
    if browser::SUBTLE.with(JsValue::is_undefined) {
        return Err(Error::Storage("a page without https cannot hash what it would store".into()));
    }
    let promise = browser::digest("SHA-256", bytes).map_err(failed)?;
    Ok(async move {
        let hash = JsFuture::from(promise).await.map_err(failed)?;
        Ok(BASE64_STANDARD.encode(Uint8Array::new(&hash).to_vec()))
    })
}
