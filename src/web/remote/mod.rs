//! Loads a model from an address: from this device if it is stored there, else from the network.
//! Then it is stored.
//!
//! ```text
//! request    one request: asks, checks the response, reads its body
//! threads    requests that other threads make
//! fetcher    one version of a file over many requests: retries, continues
//! parts      the parts of a file in order, from storage and network
//! load       what all attempts of a load have in common
//! begin      the first response of a download, and room for the file
//! download   from the network to the GPU and into storage
//! stored     from storage to the GPU
//! volumes    a model in several files, from both
//! ```
//!
//! This file chooses between `download` and `stored`. If the file has changed meanwhile, or if the
//! server does not do what it seemed to do, it starts the load again.

mod request;
mod threads;
mod fetcher;
mod parts;
mod load;
mod begin;
mod download;
mod stored;
mod volumes;

use futures_util::FutureExt;

use super::opening::Opening;
use super::options::CacheMode;
use super::tabs::{Announcement, Lock};
use crate::error::Result;
use crate::session::Session;
use crate::transfer::{Fault, Note, VolumeName};

use load::Load;
pub(super) use request::Address;

/// Loads the model at `address`. If the model is in several files, it is the address of the first.
pub(super) async fn load(opening: &Opening<'_>, address: &Address) -> Result<Session> {
    if let Some(name) = VolumeName::in_url(&address.url) {
        return volumes::load(opening, address, &name).await;
    }
    let mut load = Load::new(opening, address).await;
    loop {
        match attempt(&load).await {
            Ok(session) => return Ok(session),
            Err(Fault::Permanent(error) | Fault::Transient { error, .. }) => return Err(error),
            Err(Fault::Restart(cause)) => {
                load.restarts.add(cause, &address.url)?;
                opening.reporter.note(Note::Restarted { why: cause.why().into() });
            }
        }
    }
}

async fn attempt(load: &Load<'_>) -> Result<Session, Fault> {
    let mut found = load.find().await;
    if let (Some(storage), Some(file)) = (&load.storage, load.complete(&found)) {
        return load.load_stored(storage, file).await;
    }
    if load.cache == CacheMode::Only {
        return Err(load.absent(found.as_ref()).into());
    }
    let lock = match &load.storage {
        Some(_) => Some(match Lock::if_free(&load.address.url).await {
            Some(lock) => lock,
            None => {
                let lock = load.wait().await;
                // The other tab has stored the file, or a part of it.
                found = load.find().await;
                lock
            }
        }),
        None => None,
    };
    if let (Some(storage), Some(file)) = (&load.storage, load.complete(&found)) {
        drop(lock);
        return load.load_stored(storage, file).await;
    }
    // Other tabs wait for the load that has the lock. They must not be shown the progress of any
    // other load.
    let holds = lock.is_some();
    let told = holds.then(|| Announcement::new(&load.address.url, load.opening.reporter));
    let (session, behind) = load.download(found).await?;
    if let Some(behind) = behind {
        // Other tabs wait until the whole file is stored.
        let held = (lock, told);
        let behind = async move {
            let is_stored = behind.await;
            drop(held);
            is_stored
        };
        load.opening.do_behind(behind.boxed_local());
    }
    Ok(session)
}
