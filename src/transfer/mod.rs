//! A file that comes in pieces: over several connections, with breaks between them, perhaps days
//! apart. What is known of it, and what that means. Plain data; fetching and storing are `web`'s.

mod backoff;
mod headers;
mod manifest;

pub use backoff::Backoff;
pub use headers::{ContentRange, Version};
pub use manifest::{Chunk, MAX_CHUNK, MAX_TOTAL, Manifest, Part, Record};
