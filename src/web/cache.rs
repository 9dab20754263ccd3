//! The models that are stored on this device: `BitNet.cache`.

#![allow(unreachable_pub, reason = "wasm-bindgen exports only what is `pub`")]

use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use super::abort::or_abort;
use super::bytes::ArrayPool;
use super::remote::Address;
use super::store::{Storage, read_part};
use crate::error::{Error, Result};
use crate::transfer::{Manifest, StoredModel, StoredPart, model_urls};

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
    let entry = |model: StoredModel| Entry {
        bytes: model.usable_bytes(),
        total: model.total(),
        complete: model.is_complete(),
        added: model.added(),
        used: model.used(),
        // A model of several files has several ETags.
        etag: match model.files.as_slice() {
            [file] => file.version.etag.clone(),
            _ => None,
        },
        url: model.url,
    };
    let entries: Vec<_> = StoredModel::group(files).into_iter().map(entry).collect();
    Ok(serde_wasm_bindgen::to_value(&entries)?)
}

/// Deletes everything that is stored of `url`.
#[wasm_bindgen(js_name = cacheDelete)]
pub async fn delete(
    #[wasm_bindgen(unchecked_param_type = "string")] url: JsValue,
) -> Result<(), JsValue> {
    let url = stored_name(&url)?;
    Ok(Storage::open().await?.delete(model_urls(&url)).await?)
}

/// Deletes everything stored.
#[wasm_bindgen(js_name = cacheClear)]
pub async fn clear() -> Result<(), JsValue> {
    Ok(Storage::open().await?.clear().await?)
}

/// Parts that are read at the same time.
const AHEAD: usize = 4;

/// The result of `BitNet.cache.verify`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    whole: bool,
    bytes: u64,
    damaged_bytes: u64,
}

/// Reads every stored part of `url` and compares it with the hash that was stored with it. Deletes
/// the parts that differ. If `signal` aborts, fails with its reason.
#[wasm_bindgen(js_name = cacheVerify, unchecked_return_type = "api.Verdict")]
pub async fn verify(
    #[wasm_bindgen(unchecked_param_type = "string")] url: JsValue,
    signal: Option<AbortSignal>,
) -> Result<JsValue, JsValue> {
    let verdict = or_abort(signal.as_ref(), verified(stored_name(&url)?)).await?;
    Ok(serde_wasm_bindgen::to_value(&verdict)?)
}

async fn verified(url: String) -> Result<Verdict> {
    let storage = Storage::open().await?;
    let urls = model_urls(&url);
    let mut verdict = Verdict { whole: true, bytes: 0, damaged_bytes: 0 };
    let mut found = false;
    for url in &urls {
        match storage.find(url, |file| file.did_not_fit.is_none()).await? {
            Some(file) => {
                found = true;
                let id = file.id.clone();
                match verify_file(&storage, &file, &mut verdict).await {
                    // Another call may have deleted it meanwhile.
                    Err(Error::Storage(_))
                        if storage.find(url, move |file| file.id == id).await?.is_none() =>
                    {
                        return Err(Error::NotCached { url: url.clone() });
                    }
                    verified => verified?,
                }
            }
            None => verdict.whole = false,
        }
    }
    if !found {
        return Err(Error::NotCached { url });
    }
    Ok(verdict)
}

/// Verifies one file, and adds what it finds to `verdict`.
async fn verify_file(storage: &Storage, file: &Manifest, verdict: &mut Verdict) -> Result<()> {
    let pool = ArrayPool::default();
    let check = |part: StoredPart| {
        let (storage, id, pool) = (storage.clone(), file.id.clone(), pool.clone());
        async move {
            let found = read_part(&storage, &id, &part, &pool).await?;
            Ok::<_, Error>(found.is_none().then_some(part))
        }
    };
    let damaged: Vec<Option<StoredPart>> =
        stream::iter(file.stored.clone()).map(check).buffer_unordered(AHEAD).try_collect().await?;
    let damaged: Vec<StoredPart> = damaged.into_iter().flatten().collect();
    let damaged_bytes = damaged.iter().map(|part| part.length).sum::<u64>();
    verdict.whole &= file.complete && damaged.is_empty();
    verdict.bytes += file.bytes() - damaged_bytes;
    verdict.damaged_bytes += damaged_bytes;
    if !damaged.is_empty() {
        storage.forget(&file.id, damaged.iter().map(|part| part.start).collect()).await?;
    }
    Ok(())
}

/// The name under which `load` stores the address.
fn stored_name(url: &JsValue) -> Result<String> {
    Ok(Address::parse("url", url)?.url)
}
