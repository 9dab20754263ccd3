//! What is stored on this device: `BitNet.cache`.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::storage::Storage;

/// A stored model, as `BitNet.cache.list` gives it.
#[derive(Serialize)]
struct Entry {
    url: String,
    bytes: u64,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    added: f64,
    used: f64,
}

/// Every stored model, and every part of one.
#[wasm_bindgen(js_name = cacheList)]
pub async fn list() -> Result<JsValue, JsValue> {
    let files = Storage::open().await?.list().await?;
    let entries: Vec<_> = files
        .into_iter()
        .map(|file| Entry {
            url: file.url,
            bytes: file.bytes,
            complete: file.complete,
            etag: file.etag,
            added: file.added,
            used: file.used,
        })
        .collect();
    Ok(serde_wasm_bindgen::to_value(&entries)?)
}

/// Deletes what is stored of `url`.
#[wasm_bindgen(js_name = cacheDelete)]
pub async fn delete(url: String) -> Result<(), JsValue> {
    Ok(Storage::open().await?.delete(&url).await?)
}

/// Deletes everything stored.
#[wasm_bindgen(js_name = cacheClear)]
pub async fn clear() -> Result<(), JsValue> {
    Ok(Storage::open().await?.clear().await?)
}
