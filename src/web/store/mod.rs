//! Model files on this device: IndexedDB, each file in several parts.
//!
//! ```text
//! database   the files and their parts, in transactions
//! read       a file's parts, checked against their hashes
//! room       which other files give way to a new one
//! writer     stores a file while it is downloaded
//! ```

mod database;
mod read;
mod room;
mod writer;

pub(super) use database::{Storage, new_file};
pub(super) use read::{StoredFile, read_part};
pub(super) use room::Room;
pub(super) use writer::{WriteSlot, Writer};
