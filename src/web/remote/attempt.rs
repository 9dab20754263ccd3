//! Attempts to load a model: reads its volumes to the GPU, and stores the missing bytes of them.

use std::rc::Rc;

use futures_util::FutureExt;

use super::load::Load;
use super::volume::{Volume, VolumeSource, neutral};
use crate::error::{Error, Result};
use crate::gguf::Joined;
use crate::session::Session;
use crate::source::Reader;
use crate::transfer::{Cause, Fault, LoadedVersion, Manifest, Phase};
use crate::web::opening::Opening;
use crate::web::options::CacheMode;
use crate::web::store::Storing;
use crate::web::tabs::{Announcement, Lock};

/// A fault, and the index of its volume; `None` if the whole model has it.
type VolumeFault = (Option<usize>, Fault);

/// Loads the model. `loads` has the load of each of its volumes. Gives the version of each, too.
///
/// The model may be loaded before all of it is stored. Then the rest is left as work for later,
/// which keeps the lock `in_use`.
pub(super) async fn attempt(
    loads: &[Load<'_>],
    in_use: Option<&Rc<Lock>>,
) -> Result<(Session, Vec<LoadedVersion>), VolumeFault> {
    // The lock and the progress of the whole model are those of its first file.
    let (first, reporter) = (&loads[0], loads[0].opening.reporter);
    let mut found = find(loads).await?;
    let mut lock = None;
    if first.storage.is_some() && first.cache != CacheMode::Only && !is_complete(loads, &found) {
        lock = Some(match Lock::if_free(&first.address.url).await {
            Some(lock) => lock,
            None => {
                let lock = first.wait().await;
                // The other tab has stored the model, or some of it.
                found = find(loads).await?;
                lock
            }
        });
    }
    let complete = is_complete(loads, &found);
    if complete {
        lock = None;
    }
    // Other tabs wait for the load that has the lock, and must not be shown another one's progress.
    let told = lock.is_some().then(|| Announcement::new(&first.address.url, reporter));

    let storing = Storing::default();
    let (mut sources, mut volumes) = (Vec::new(), Vec::new());
    for (index, (load, found)) in loads.iter().zip(found).enumerate() {
        match load.volume(found, complete, &storing).await {
            Ok((source, volume)) => {
                sources.push(source);
                volumes.push(volume);
            }
            Err(fault) => {
                give_up(storing, sources, &volumes, &(Some(index), fault.clone())).await;
                return Err((Some(index), fault));
            }
        }
    }
    let gathered = sources.iter().any(VolumeSource::is_gathered);
    let sum = |bytes: fn(&Volume) -> u64| volumes.iter().map(bytes).sum::<u64>();
    let (phase, stored) = match (complete, gathered) {
        (true, _) => (Phase::Cache, 0),
        (_, true) => (Phase::Upload, 0),
        _ => (Phase::Download, sum(|volume| volume.stored)),
    };
    if !complete {
        reporter.resumed(sum(|volume| volume.file.bytes()));
    }
    reporter.begin(phase, (sum(|volume| volume.total), stored), 1.0);

    let (loaded, mut sources) = session(first.opening, sources, !gathered, &storing).await;
    let (session, hashes) = match read_rest(loads, loaded, &volumes, &mut sources).await {
        Ok(loaded) => loaded,
        Err(fault) => {
            give_up(storing, sources, &volumes, &fault).await;
            return Err(fault);
        }
    };
    let versions = volumes.iter().map(|volume| volume.file.loaded_version()).collect();
    if volumes.iter().any(|volume| volume.writer().is_some()) {
        // Other tabs wait until all is stored.
        let held = (lock, told, in_use.cloned());
        let behind = async move {
            let mut is_stored = true;
            for ((mut source, volume), hash) in sources.into_iter().zip(volumes).zip(hashes) {
                is_stored &= volume.finish(&mut source, hash).await;
            }
            drop(held);
            is_stored
        };
        first.opening.do_behind(behind.boxed_local());
    }
    Ok((session, versions))
}

async fn find(loads: &[Load<'_>]) -> Result<Vec<Option<Manifest>>, VolumeFault> {
    let mut found = Vec::with_capacity(loads.len());
    for (index, load) in loads.iter().enumerate() {
        let refused = |error: Error| (Some(index), error.into());
        found.push(load.find().await.map_err(refused)?);
    }
    Ok(found)
}

/// Whether every volume is stored and may be used.
fn is_complete(loads: &[Load<'_>], found: &[Option<Manifest>]) -> bool {
    let mut both = loads.iter().zip(found);
    both.all(|(load, found)| load.storage.is_some() && load.complete(found).is_some())
}

/// Loads the model, and gives the sources back. It gives none if the volumes cannot be joined.
/// `counted` says that the sources report their bytes themselves.
async fn session(
    opening: &Opening<'_>,
    mut sources: Vec<VolumeSource>,
    counted: bool,
    storing: &Storing,
) -> (Result<Session>, Vec<VolumeSource>) {
    let joined = match (sources.len(), sources.pop()) {
        (1, Some(source)) => Ok(Joined::single(source)),
        (_, last) => Joined::open(sources.into_iter().chain(last).collect()).await,
    };
    let mut reader = match joined {
        Ok(joined) => Reader::new(joined),
        Err(error) => return (Err(error), Vec::new()),
    };
    let loaded = opening.session(&mut reader, counted, || storing.header_is_known()).await;
    (loaded, reader.into_inner().into_inner())
}

/// Reads the volumes to the end for which that is needed, and compares hashes. Gives the hash of
/// each volume that was hashed.
async fn read_rest(
    loads: &[Load<'_>],
    loaded: Result<Session>,
    volumes: &[Volume],
    sources: &mut [VolumeSource],
) -> Result<(Session, Vec<Option<String>>), VolumeFault> {
    let (mut loaded, mut hashes) = (loaded, Vec::new());
    for (source, volume) in sources.iter_mut().zip(volumes) {
        let hash = match &loaded {
            Ok(_) if volume.to_the_end => source.drain().await,
            _ => Ok(None),
        };
        match hash {
            Ok(hash) => hashes.push(hash),
            Err(error) => loaded = Err(error),
        }
    }
    let session = match loaded {
        Ok(session) => session,
        Err(error) => return Err(fault(loads, error, volumes, sources).await),
    };
    for (index, ((load, volume), hash)) in loads.iter().zip(volumes).zip(&hashes).enumerate() {
        let compared = load.compare(volume, hash.as_deref()).await;
        compared.map_err(|fault| (Some(index), fault))?;
    }
    Ok((session, hashes))
}

/// The fault behind the `error` of a reader, which does not know about restarts.
async fn fault(
    loads: &[Load<'_>],
    error: Error,
    volumes: &[Volume],
    sources: &mut [VolumeSource],
) -> VolumeFault {
    let restart = volumes.iter().enumerate().find_map(|(i, volume)| Some((i, volume.restart()?)));
    match restart {
        Some(_) if loads[0].cache == CacheMode::Only => {
            return (None, Error::NotCached { url: loads[0].address.url.clone() }.into());
        }
        Some((index, cause)) => return (Some(index), Fault::Restart(cause)),
        None => {}
    }
    if matches!(error, Error::BadGguf(_)) {
        for (index, source) in sources.iter_mut().enumerate() {
            if source.claim_is_wrong().await {
                return (Some(index), Fault::Restart(Cause::WrongLength));
            }
        }
    }
    (None, error.into())
}

/// After a failure, deletes bytes that no later load can use.
async fn give_up(
    storing: Storing,
    sources: Vec<VolumeSource>,
    volumes: &[Volume],
    (of, fault): &VolumeFault,
) {
    // This ends all requests, and the waiting of writes for the header.
    drop((sources, storing));
    for (index, volume) in volumes.iter().enumerate() {
        // A fault of another volume does not show that this one is bad.
        match of {
            Some(of) if *of != index => volume.tidy(&neutral()).await,
            _ => volume.tidy(fault).await,
        }
    }
}
