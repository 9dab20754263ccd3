//! Everything that names JavaScript: the class behind the npm package, and its sources of bytes.
//!
//! `pkg-template/` holds the TypeScript around it. Each module names only those above it:
//!
//! ```text
//! types error log task abort timer logprobs  what crosses the border to JavaScript, and how
//! digest                                the hash of bytes, by the browser
//! backend                               the GPU or the CPU
//! fields tools options prompt decide embed inspect adapters   what a page asks for
//! progress                              what it is told
//! grammar                               formats of answers, which another module of WebAssembly has
//! opening                               a load in progress
//! bytes tabs store                      models on this device, and which tab downloads one
//! blob stream remote                    bytes, from wherever a page has them
//! open                                  from a source and options to a loaded session
//! holder                                the session between calls, and on a new device
//! bitnet cache file                     the exported classes and functions
//! ```

mod types;
mod error;
mod log;
mod task;
mod abort;
mod timer;
mod logprobs;
mod digest;
mod backend;
mod fields;
mod tools;
mod options;
mod prompt;
mod decide;
mod embed;
mod inspect;
mod adapters;
mod progress;
mod grammar;
mod opening;
mod bytes;
mod tabs;
mod store;
mod blob;
mod stream;
mod remote;
mod open;
mod holder;
mod bitnet;
mod cache;
mod file;
