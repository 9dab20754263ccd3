//! The decisions of a download: which parts of a file are stored, which bytes a response brings,
//! when to try again, and what to report.
//!
//! A file comes over several connections, with breaks between them that may last for days. Nothing
//! here needs a network or JavaScript: `web` fetches and stores.

mod backoff;
mod integrity;
mod headers;
mod manifest;
mod restart;
mod response;
mod progress;
mod volumes;

pub use backoff::Backoff;
pub use headers::{ContentRange, MAX_TOTAL, Version};
pub use integrity::{Hasher, Integrity};
pub use manifest::{LoadedVersion, MAX_PART, Manifest, Part, StoredPart};
pub use progress::{Due, Meter, Note, Phase, Report};
pub use response::{Content, Length, ResponseFacts};
pub use restart::{Cause, Fault, Restarts};
pub use volumes::{StoredModel, VolumeName, eviction_order, model_urls, other_versions};
