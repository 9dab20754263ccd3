//! Everything that names JavaScript: the class behind the npm package, and its sources of bytes.
//!
//! `pkg-template/` holds the TypeScript around it. From here up:
//!
//! ```text
//! error log abort options prompt progress    what crosses the border, and how
//! subgroups                                  what wgpu cannot ask a browser for
//! stream blob storage fetch                  bytes, from wherever a page has them
//! open                                       source and options to a loaded session
//! slot                                       the session between calls, and on a new device
//! bitnet cache                               the exported class and functions
//! ```

mod abort;
mod bitnet;
mod blob;
mod cache;
mod error;
mod fetch;
mod integrity;
mod log;
mod open;
mod options;
mod progress;
mod prompt;
mod slot;
mod storage;
mod stream;
mod subgroups;
