//! What is stored on this device: `BitNet.cache`.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::bytes::Arrays;
use super::remote::read_chunk;
use super::store::Storage;
use crate::error::Error;
use crate::transfer::Chunk;

/// A stored model, as `BitNet.cache.list` gives it.
#[derive(Serialize)]
struct Entry {
    url: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    added: f64,
    used: f64,
}

/// Every stored model, and every part of one.
#[wasm_bindgen(js_name = cacheList)]
pub async fn list() -> Result<JsValue, JsValue> {
    let mut files = Storage::open().await?.list().await?;
    files.retain(|file| file.did_not_fit.is_none());
    let entries: Vec<_> = files
        .into_iter()
        .map(|file| Entry {
            bytes: file.bytes(),
            url: file.url,
            total: file.total,
            complete: file.complete,
            etag: file.version.etag,
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

/// Chunks read at a time.
const AHEAD: usize = 4;

/// What `BitNet.cache.verify` gives.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    whole: bool,
    bytes: u64,
    damaged_bytes: u64,
}

/// Reads every chunk of `url` and compares it with the hash it was stored with. Those that are
/// not what they were are deleted.
#[wasm_bindgen(js_name = cacheVerify)]
pub async fn verify(url: String) -> Result<JsValue, JsValue> {
    let storage = Storage::open().await?;
    let file = storage.find(&url).await?.filter(|file| file.did_not_fit.is_none());
    let file = file.ok_or(Error::NotCached { url })?;
    let arrays = Arrays::default();
    let check = |chunk: Chunk| {
        let (storage, id, arrays) = (storage.clone(), file.id.clone(), arrays.clone());
        async move {
            let found = read_chunk(&storage, &id, &chunk, &arrays).await?;
            Ok(found.is_none().then_some(chunk))
        }
    };
    let damaged: Vec<Option<Chunk>> = stream::iter(file.chunks.clone())
        .map(check)
        .buffer_unordered(AHEAD)
        .try_collect()
        .await
        .map_err(|error: Error| error)?;
    let damaged: Vec<Chunk> = damaged.into_iter().flatten().collect();
    let damaged_bytes = damaged.iter().map(|chunk| chunk.length).sum::<u64>();
    let whole = file.complete && damaged.is_empty();
    if !damaged.is_empty() {
        storage.forget(&file.id, damaged.iter().map(|chunk| chunk.start).collect()).await?;
    }
    let verdict = Verdict { whole, bytes: file.bytes() - damaged_bytes, damaged_bytes };
    Ok(serde_wasm_bindgen::to_value(&verdict)?)
}
