//! Loads a model from an address: from this device if it is stored there, else from the network.
//! Then it is stored.
//!
//! ```text
//! request    one request: asks, checks the response, reads its body
//! threads    requests that other threads make
//! fetcher    one version of a file over many requests: retries, continues
//! parts      the parts of a file in order, from storage and network
//! load       what all attempts to load a file have in common
//! begin      the first response of a download, and whether the file can fit
//! volume     a file of a model, from storage or network or both
//! attempt    all volumes of a model, to the GPU and into storage
//! ```
//!
//! A model in one file is a model of one volume. Each volume is fetched and stored by itself.
//! Together they are read as one. If a file has changed meanwhile, or if the server does not do what
//! it seemed to do, this file starts the load again.

mod request;
mod threads;
mod fetcher;
mod parts;
mod load;
mod begin;
mod volume;
mod attempt;

use std::rc::Rc;

use super::error::bad_option;
use super::opening::Opening;
use super::tabs::Lock;
use crate::error::Result;
use crate::session::Session;
use crate::transfer::{Fault, LoadedVersion, Note, VolumeName};

use attempt::attempt;
use load::Load;
pub(super) use request::Address;

/// How a model that came from an address is found again.
#[derive(Default)]
pub(super) struct Trace {
    /// While this is held, no tab deletes the stored model to make room. `None` without storage.
    _in_use: Option<Rc<Lock>>,
    /// The version of each of its volumes.
    pub(super) versions: Vec<LoadedVersion>,
}

/// Loads the model at `address`, which is the address of its first volume. If `versions` has the
/// version of a volume, no other one is taken.
pub(super) async fn load(
    opening: &Opening<'_>,
    address: &Address,
    versions: &[LoadedVersion],
) -> Result<(Session, Trace)> {
    let urls = volumes(&address.url, opening.options.integrity.is_some())?;
    let addresses = urls.iter().map(|url| address.beside(url)).collect::<Result<Vec<_>>>()?;
    let model = Load::new(opening, address).await;
    let in_use = match &model.storage {
        Some(_) => Some(Rc::new(Lock::in_use(&address.url).await)),
        None => None,
    };
    let mut loads = match addresses.as_slice() {
        [] => vec![model],
        all => all.iter().enumerate().map(|(i, address)| model.of_volume(i, address)).collect(),
    };
    for (load, version) in loads.iter_mut().zip(versions) {
        load.version = Some(version.clone());
    }
    loop {
        match attempt(&loads, in_use.as_ref()).await {
            Ok((session, versions)) => return Ok((session, Trace { _in_use: in_use, versions })),
            Err((_, Fault::Permanent(error) | Fault::Transient { error, .. })) => {
                return Err(error);
            }
            Err((index, Fault::Restart(cause))) => {
                let load = &mut loads[index.unwrap_or(0)];
                load.restarts.add(cause, &load.address.url)?;
                opening.reporter.note(Note::Restarted { why: cause.why().into() });
            }
        }
    }
}

/// The addresses of all volumes of the model whose first one is at `first`; none if the model is in
/// one file. `compared` says whether its hash is to be compared with one that the caller gave.
///
/// Errors: `bad-option`.
pub(super) fn volumes(first: &str, compared: bool) -> Result<Vec<String>> {
    let Some(name) = VolumeName::in_url(first) else { return Ok(Vec::new()) };
    let urls = name.all().map_err(|why| bad_option("source", why))?;
    if compared {
        let why = "cannot be compared with a model in several files";
        return Err(bad_option("integrity", why));
    }
    Ok(urls)
}
