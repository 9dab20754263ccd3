//! One load: its options, the progress that it reports, and the GPU or CPU that it opens.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use wasm_bindgen_futures::spawn_local;

use super::backend::Backend;
use super::options::LoadOptions;
use super::progress::Reporter;
use crate::error::Result;
use crate::session::{Progress, Session};
use crate::source::{Reader, Source};
use crate::transfer::Phase;

/// A load in progress.
pub(super) struct Opening<'a> {
    pub(super) options: &'a LoadOptions,
    pub(super) reporter: &'a Rc<Reporter>,
    backend: Backend,
    /// Work that begins once the model can be used.
    behind: RefCell<Option<Behind>>,
}

/// The storing of a model that can be used already. Gives whether all of it is stored in the end.
pub(super) type Behind = LocalBoxFuture<'static, bool>;

impl<'a> Opening<'a> {
    /// Begins to open the back end.
    ///
    /// Errors: `no-webgpu`.
    pub(super) fn new(options: &'a LoadOptions, reporter: &'a Rc<Reporter>) -> Result<Self> {
        let backend = Backend::begin(&options.wishes)?;
        Ok(Self { options, reporter, backend, behind: RefCell::default() })
    }

    /// Resolves when the back end is open.
    ///
    /// Errors: those of opening it.
    pub(super) async fn opened(&self) -> Result<()> {
        self.backend.opened().await
    }

    /// Loads a session. `counted` says that the source reports its bytes itself. `known` is called
    /// once the header has been read, if it describes a model that can run here.
    ///
    /// Can be called again if it fails.
    pub(super) async fn session<S: Source>(
        &self,
        reader: &mut Reader<S>,
        counted: bool,
        known: impl Fn(),
    ) -> Result<Session> {
        let mut told = |progress| match progress {
            Progress::Header => known(),
            progress => self.reporter.session(!counted, progress),
        };
        Session::load(self.backend.open(), reader, &self.options.session, &mut told).await
    }

    /// Does `work` later, once the model can be used.
    pub(super) fn do_behind(&self, work: Behind) {
        self.behind.replace(Some(work));
    }

    /// Reports that the model can be used, and begins the work for that time.
    pub(super) fn ready(self) {
        self.reporter.phase(Phase::Ready);
        if let Some(behind) = self.behind.take() {
            let reporter = Rc::clone(self.reporter);
            reporter.phase(Phase::Storing);
            spawn_local(async move {
                let is_stored = behind.await;
                reporter.phase(if is_stored { Phase::Stored } else { Phase::Ready });
            });
        }
    }
}
