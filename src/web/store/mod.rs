//! Model files on this device, each in several parts. Their records are in IndexedDB, and their
//! bytes in files of their own. In a browser without such files, the bytes are in IndexedDB too.
//! Where there is no browser, the records are files too.
//!
//! ```text
//! disk       the files with the bytes
//! records    the records of the files, in transactions
//! database   finds, adds and changes them
//! read       a file's parts, checked against their hashes
//! room       which other files give way to a new one
//! writer     stores a file while it is downloaded
//! ```

mod disk;
mod records;
mod database;
mod read;
mod room;
mod writer;

pub(super) use database::{Storage, new_file};
pub(super) use read::{StoredFile, read_part};
pub(super) use writer::{Reservation, Storing, Writer};
