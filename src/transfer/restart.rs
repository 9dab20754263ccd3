//! The failures of a download, and when they make the load start again in another way.

use super::manifest::Manifest;
use crate::error::{Error, Result};

/// How often a load may start again. If the server's file changes with every request, the load is
/// given up.
const MAX_RESTARTS: usize = 4;

/// The reason why no bytes come.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Another attempt may help.
    Transient {
        /// The failure.
        error: Error,
        /// Milliseconds that the server asks to wait before the next attempt.
        retry_after: Option<f64>,
    },
    /// The load has to start again, in another way.
    Restart(Cause),
    /// No further attempt can help.
    Permanent(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Permanent(error)
    }
}

impl Fault {
    /// Whether a later load cannot use the bytes that were stored before this fault.
    pub fn spoils_stored_bytes(&self) -> bool {
        match self {
            Self::Transient { .. } => false,
            Self::Restart(cause) => matches!(cause, Cause::Changed | Cause::WrongLength),
            Self::Permanent(error) => matches!(
                error,
                Error::BadGguf(_)
                    | Error::UnsupportedModel(_)
                    | Error::MissingTensor { .. }
                    | Error::TensorShape { .. }
                    | Error::Integrity { .. }
            ),
        }
    }
}

/// Why a load starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The server's file is not the one of which some bytes have come.
    Changed,
    /// The connection broke, and the server does not say what is needed to continue: the file's
    /// version and length.
    Broken,
    /// The server sends no ranges, or other ranges than the load asked for.
    NoRanges,
    /// The file is longer or shorter than the server said.
    WrongLength,
    /// Stored bytes are damaged or gone.
    Damaged,
    /// The stored file does not have the hash that the caller's `integrity` asks for.
    OtherFile,
}

impl Cause {
    /// The reason, for people.
    pub fn why(self) -> &'static str {
        match self {
            Self::Changed => "the file has changed on the server",
            Self::Broken => "the connection broke, and the server does not allow to continue",
            Self::NoRanges => "the server does not send parts of the file",
            Self::WrongLength => "the server gave a wrong length",
            Self::Damaged => "stored bytes were damaged or gone",
            Self::OtherFile => "the stored file has another hash",
        }
    }
}

/// The restarts of a load so far. They decide what must not be tried again.
#[derive(Clone, Debug, Default)]
pub struct Restarts(Vec<Cause>);

impl Restarts {
    /// Counts a restart of the load of `url`.
    ///
    /// Errors: if there were too many restarts, `storage` if the last one was because of stored
    /// bytes, else `network`.
    pub fn add(&mut self, cause: Cause, url: &str) -> Result<()> {
        self.0.push(cause);
        if self.0.len() <= MAX_RESTARTS {
            return Ok(());
        }
        let why = format!("{}, again and again", cause.why());
        Err(match cause {
            Cause::Damaged | Cause::OtherFile => Error::Storage(format!("{url}: {why}")),
            _ => Error::Network { what: url.into(), why },
        })
    }

    /// Whether the load has started again.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether to ask the server for parts of the file. Not if it has failed at that, and not if
    /// the file has changed twice while it was read.
    pub fn allow_ranges(&self) -> bool {
        self.count(Cause::NoRanges) == 0 && self.count(Cause::Changed) <= 1
    }

    /// Whether to use a whole stored file. Not if it has turned out to be another file, and not if
    /// it was damaged twice, because such damage cannot even be deleted.
    pub fn allow_stored(&self) -> bool {
        self.count(Cause::OtherFile) == 0 && self.count(Cause::Damaged) <= 1
    }

    /// Whether to believe a length that may be that of the compressed file.
    pub fn trust_claimed_length(&self) -> bool {
        self.count(Cause::WrongLength) == 0
    }

    /// Whether the load may continue where `file` ends. With `refresh` the caller wants all of the
    /// file again, so only bytes that this load itself has stored count.
    pub fn allow_resuming(&self, file: &Manifest, refresh: bool) -> bool {
        let begun = !file.complete && !file.stored.is_empty();
        let wanted = !refresh || self.any();
        begun && wanted && file.is_resumable()
    }

    fn count(&self, cause: Cause) -> usize {
        self.0.iter().filter(|before| **before == cause).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::StoredPart;

    fn after(causes: &[Cause]) -> Restarts {
        let mut restarts = Restarts::default();
        for cause in causes {
            restarts.add(*cause, "http://a/b").expect("not too many");
        }
        restarts
    }

    #[test]
    fn a_load_ends_after_too_many_restarts_and_says_why() {
        for (cause, code) in [
            (Cause::Changed, "network"),
            (Cause::Broken, "network"),
            (Cause::NoRanges, "network"),
            (Cause::WrongLength, "network"),
            (Cause::Damaged, "storage"),
            (Cause::OtherFile, "storage"),
        ] {
            let mut restarts = after(&[cause; MAX_RESTARTS]);
            let error = restarts.add(cause, "http://a/b").expect_err("too many");
            assert_eq!(error.code(), code);
            let message = error.to_string();
            assert!(message.contains("http://a/b") && message.contains(cause.why()), "{message}");
        }
    }

    #[test]
    fn what_has_failed_is_not_tried_again() {
        use Cause::*;
        for (causes, ranges, stored, length) in [
            (&[][..], true, true, true),
            (&[NoRanges], false, true, true),
            (&[Changed], true, true, true),
            (&[Changed, Changed], false, true, true),
            (&[OtherFile], true, false, true),
            (&[Damaged], true, true, true),
            (&[Damaged, Damaged], true, false, true),
            (&[WrongLength], true, true, false),
            (&[Broken, Broken, Broken], true, true, true),
        ] {
            let restarts = after(causes);
            assert_eq!(restarts.allow_ranges(), ranges, "{causes:?}");
            assert_eq!(restarts.allow_stored(), stored, "{causes:?}");
            assert_eq!(restarts.trust_claimed_length(), length, "{causes:?}");
        }
    }

    #[test]
    fn a_load_continues_only_a_part_of_a_file_whose_version_is_known() {
        let part = StoredPart { key: 0, start: 0, length: 10, sha256: "aa".into(), on_disk: false };
        let mut begun = Manifest::new("id".into(), "http://a/b", 0.0);
        begun.total = Some(30);
        begun.version.etag = Some("\"x\"".into());
        begun.stored = vec![part];
        let first = Restarts::default();
        assert!(first.allow_resuming(&begun, false));
        assert!(!first.allow_resuming(&begun, true));
        assert!(after(&[Cause::Broken]).allow_resuming(&begun, true));
        let changes: [fn(&mut Manifest); 4] = [
            |file| file.complete = true,
            |file| file.stored.clear(),
            |file| file.total = None,
            |file| file.version.etag = Some("W/\"x\"".into()),
        ];
        for change in changes {
            let mut file = begun.clone();
            change(&mut file);
            assert!(!first.allow_resuming(&file, false), "{file:?}");
        }
    }

    #[test]
    fn bytes_of_a_bad_file_are_not_kept_those_of_a_broken_connection_are() {
        let network = || Error::Network { what: "a".into(), why: "b".into() };
        for (fault, spoils) in [
            (Fault::Transient { error: network(), retry_after: None }, false),
            (Fault::Permanent(network()), false),
            (Fault::Permanent(Error::Http { status: 404, url: "a".into() }), false),
            (Fault::Permanent(Error::DeviceLost("a".into())), false),
            (Fault::Permanent(Error::BadGguf("a".into())), true),
            (Fault::Permanent(Error::UnsupportedModel("a".into())), true),
            (Fault::Permanent(Error::Integrity { expected: "a".into(), found: "b".into() }), true),
            (Fault::Restart(Cause::Changed), true),
            (Fault::Restart(Cause::WrongLength), true),
            (Fault::Restart(Cause::Broken), false),
            (Fault::Restart(Cause::NoRanges), false),
        ] {
            assert_eq!(fault.spoils_stored_bytes(), spoils, "{fault:?}");
        }
    }
}
