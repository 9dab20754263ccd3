//! The models stored on this device: `BitNet.cache`.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::bytes::ArrayPool;
use super::remote::Address;
use super::store::{Storage, read_part};
use crate::error::{Error, Result};
use crate::transfer::StoredPart;

/// A stored model, as `BitNet.cache.list` returns it.
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

/// Every stored model, complete or not.
#[wasm_bindgen(js_name = cacheList, unchecked_return_type = "api.StoredModel[]")]
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
pub async fn delete(
    #[wasm_bindgen(unchecked_param_type = "string")] url: JsValue,
) -> Result<(), JsValue> {
    let url = stored_name(&url)?;
    Ok(Storage::open().await?.delete(&url).await?)
}

/// Deletes everything stored.
#[wasm_bindgen(js_name = cacheClear)]
pub async fn clear() -> Result<(), JsValue> {
    Ok(Storage::open().await?.clear().await?)
}

/// Parts read at the same time.
const AHEAD: usize = 4;

/// What `BitNet.cache.verify` returns.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    whole: bool,
    bytes: u64,
    damaged_bytes: u64,
}

/// Reads every stored part of `url` and compares it with the hash it was stored with. Deletes those
/// that differ.
#[wasm_bindgen(js_name = cacheVerify, unchecked_return_type = "api.Verdict")]
pub async fn verify(
    #[wasm_bindgen(unchecked_param_type = "string")] url: JsValue,
) -> Result<JsValue, JsValue> {
    let url = stored_name(&url)?;
    let storage = Storage::open().await?;
    let file = storage.find(&url).await?.filter(|file| file.did_not_fit.is_none());
    let file = file.ok_or(Error::NotCached { url })?;
    let pool = ArrayPool::default();
    let check = |part: StoredPart| {
        let (storage, id, pool) = (storage.clone(), file.id.clone(), pool.clone());
        async move {
            let found = read_part(&storage, &id, &part, &pool).await?;
            Ok(found.is_none().then_some(part))
        }
    };
    let damaged: Vec<Option<StoredPart>> = stream::iter(file.stored.clone())
        .map(check)
        .buffer_unordered(AHEAD)
        .try_collect()
        .await
        .map_err(|error: Error| error)?;
    let damaged: Vec<StoredPart> = damaged.into_iter().flatten().collect();
    let damaged_bytes = damaged.iter().map(|part| part.length).sum::<u64>();
    let whole = file.complete && damaged.is_empty();
    if !damaged.is_empty() {
        storage.forget(&file.id, damaged.iter().map(|part| part.start).collect()).await?;
    }
    let verdict = Verdict { whole, bytes: file.bytes() - damaged_bytes, damaged_bytes };
    Ok(serde_wasm_bindgen::to_value(&verdict)?)
}

/// The name under which `load` stores the address.
fn stored_name(url: &JsValue) -> Result<String> {
    Ok(Address::parse("url", url)?.url)
}
