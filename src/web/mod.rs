//! Everything that names JavaScript: the class behind the npm package, and its sources of bytes.
//!
//! `pkg-template/` holds the TypeScript around it. From here up:
//!
//! ```text
//! error log abort timer                                   what crosses the border, and how
//! digest integrity                                        whether bytes are those they should be
//! options prompt progress                                 what a page asks for, and what it is told
//! subgroups                                               what wgpu cannot ask a browser for
//! store tabs                                              models on this device, and who loads one
//! bytes stream blob remote                                bytes, from wherever a page has them
//! open                                                    source and options to a loaded session
//! slot                                                    the session between calls, and on a new device
//! bitnet cache                                            the exported class and functions
//! ```

mod abort;
mod bitnet;
mod blob;
mod bytes;
mod cache;
mod digest;
mod error;
mod integrity;
mod log;
mod open;
mod options;
mod progress;
mod prompt;
mod remote;
mod slot;
mod store;
mod stream;
mod subgroups;
mod tabs;
mod timer;
