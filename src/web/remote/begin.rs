//! Begins a download: gets the first response, compares it with the stored bytes, and asks whether
//! there can be room for the rest.

use super::fetcher::wait;
use super::load::Load;
use super::request::{FileRequest, FileResponse, ask};
use crate::error::{Error, Result};
use crate::transfer::{Backoff, Cause, Content, Fault, Length, Manifest, Note, Version};
use crate::web::options::CacheMode;
use crate::web::store::new_file;

/// The reason why a download cannot be resumed: without a version, two versions of a file cannot be
/// told apart.
const NO_VERSION: &str = "the server names no version of the file (ETag, Last-Modified)";

/// A download that has begun.
pub(super) struct Begun {
    pub(super) response: FileResponse,
    /// The record of the file. It has no parts if nothing is stored.
    pub(super) file: Manifest,
    /// Whether the download is stored.
    pub(super) stored: bool,
}

impl Load<'_> {
    /// The file, if the load can continue after its stored bytes.
    pub(super) fn resumable(&self, found: Option<Manifest>) -> Option<Manifest> {
        let refresh = self.cache == CacheMode::Refresh;
        found.filter(|file| self.restarts.allow_resuming(file, refresh))
    }

    /// Asks for the file, or for its missing bytes, and creates its record in the storage.
    pub(super) async fn begin(&self, partial: Option<Manifest>) -> Result<Begun, Fault> {
        let mut response = self.first_response(partial.as_ref()).await?;
        if let Content::Whole(length @ Length::Claimed(_)) = &mut response.content
            && !self.restarts.trust_claimed_length()
        {
            *length = Length::Unknown;
        }
        let total = response.content.total();
        if let Some(file) = partial {
            return if file.version.is_same(&response.version) && file.total == total {
                if matches!(response.content, Content::Whole(_)) {
                    self.not_resumable(&response.version, total);
                }
                let stored = self.has_room(&file, total).await;
                Ok(Begun { response, file, stored })
            } else {
                self.discard(&file).await;
                Err(Fault::Restart(Cause::Changed))
            };
        }
        match &response.content {
            Content::Part(_) if response.version.validator().is_some() => {}
            Content::Part(_) => return Err(Fault::Restart(Cause::NoRanges)),
            Content::Whole(_) => self.not_resumable(&response.version, total),
        }
        let mut file = new_file(&self.address.url);
        file.final_url = Some(response.final_url.clone());
        file.version = response.version.clone();
        file.total = total;
        let stored = self.has_room(&file, total).await && self.create(&file).await;
        Ok(Begun { response, file, stored })
    }

    /// The response to the first request, which asks for the missing bytes of `partial`, or for the
    /// whole file.
    ///
    /// Faults: also `integrity` if the model was loaded before, from another version of the file.
    pub(super) async fn first_response(
        &self,
        partial: Option<&Manifest>,
    ) -> Result<FileResponse, Fault> {
        let response = self.answered(partial).await?;
        match &self.version {
            Some(version) if version.differs(&response.version) => Err(Error::Integrity {
                expected: format!("the version of {} that was loaded at first", self.address.url),
                found: "another on the server".into(),
            }
            .into()),
            _ => Ok(response),
        }
    }

    async fn answered(&self, partial: Option<&Manifest>) -> Result<FileResponse, Fault> {
        let same_origin = is_same_origin(&self.address.url);
        let came_from = partial.and_then(|file| file.final_url.as_deref());
        let validator = partial.and_then(|file| file.version.validator());
        let validator = validator.filter(|_| came_from.is_some_and(is_same_origin));
        let with_ranges = self.address.has_ranges() && self.restarts.allow_ranges();
        let nothing = new_file(&self.address.url);
        let first_missing = || {
            let range = partial.unwrap_or(&nothing).first_missing();
            if self.probes() { range.start..range.start + 1 } else { range }
        };
        let request = FileRequest {
            range: with_ranges.then(first_missing),
            if_range: validator.map(Into::into),
            stored: self.storage.is_some(),
            stall_timeout: self.opening.options.stall_timeout,
        };
        let (mut backoff, mut failures) = (Backoff::default(), 0);
        loop {
            let fault = match ask(self.address, &request, &self.pool).await {
                Err(fault @ Fault::Transient { .. }) => fault,
                response => return response,
            };
            let unanswered = matches!(fault, Fault::Transient { error: Error::Network { .. }, .. });
            if unanswered && request.range.is_some() && (failures > 0 || !same_origin) {
                // This may be a refusal that looks like a broken connection: another origin may not
                // allow ranges, and a browser may refuse a compressed part.
                let plain = FileRequest { range: None, if_range: None, ..request.clone() };
                let response = ask(self.address, &plain, &self.pool).await;
                match response.as_ref().map(|response| &response.content) {
                    Ok(Content::Whole(Length::Unknown)) => return response,
                    // If some bytes have come before, there is a second attempt to continue first.
                    Ok(Content::Whole(Length::Claimed(_))) if partial.is_none() || failures > 0 => {
                        return response;
                    }
                    _ => {}
                }
            }
            failures += 1;
            wait(&mut backoff, partial.is_some(), fault).await?;
        }
    }

    /// Whether the stored `file` is still the server's. If the server cannot be asked, it is
    /// assumed to be.
    ///
    /// Errors: with `strict`, `network` if the server cannot be asked.
    pub(super) async fn is_current(&self, file: &Manifest) -> Result<bool> {
        let request = FileRequest {
            range: self.address.has_ranges().then_some(0..1),
            stored: true,
            stall_timeout: self.opening.options.stall_timeout,
            ..FileRequest::default()
        };
        let why = match ask(self.address, &request, &self.pool).await {
            Ok(response) if response.version.is_same(&file.version) => return Ok(true),
            Ok(response) if response.version.differs(&file.version) => return Ok(false),
            Ok(_) => NO_VERSION.into(),
            Err(Fault::Permanent(error) | Fault::Transient { error, .. }) => error.to_string(),
            Err(Fault::Restart(cause)) => cause.why().into(),
        };
        if self.opening.options.session.strict {
            let what = self.address.url.clone();
            let why = format!("{why}; with `strict`, the stored model is not taken unasked");
            return Err(Error::Network { what, why });
        }
        self.opening.reporter.note(Note::NotRevalidated { why });
        Ok(true)
    }

    fn not_resumable(&self, version: &Version, total: Option<u64>) {
        let why = match (version.validator(), total) {
            (None, _) => NO_VERSION,
            (_, None) => "the server does not tell the length of the file",
            _ => "the server does not send parts of the file",
        };
        self.opening.reporter.note(Note::NotResumable { why: why.into() });
    }

    /// Whether the rest of `file` can fit into the storage, if other models are deleted. This deletes
    /// none, because the length is only the server's claim. The writer deletes them when it must.
    async fn has_room(&self, file: &Manifest, total: Option<u64>) -> bool {
        let Some(storage) = &self.storage else { return false };
        let Some(needed) = total.map(|total| total - file.bytes()) else { return true };
        let url = &self.address.url;
        let fits = storage.may_fit(url, &file.id, needed).await;
        let Err(possible) = fits else { return true };
        let why = format!("{needed} bytes are needed, {possible} are possible");
        let why = Error::StorageFull(why).to_string();
        self.opening.reporter.note(Note::NotStored { why });
        if file.stored.is_empty() {
            // It gives a better error when only the stored copy is allowed.
            let _ = storage.refuse(url, needed).await;
        }
        false
    }

    async fn create(&self, file: &Manifest) -> bool {
        let Some(storage) = &self.storage else { return false };
        let created = storage.create(file).await;
        if let Err(error) = &created {
            self.not_stored(error);
        }
        created.is_ok()
    }
}

/// Whether the address is of the page's own origin.
pub(super) fn is_same_origin(url: &str) -> bool {
    let origin = js_sys::Reflect::get(&js_sys::global(), &"origin".into());
    let origin = origin.ok().and_then(|origin| origin.as_string()).unwrap_or_default();
    url.strip_prefix(&origin).is_some_and(|rest| rest.starts_with('/'))
}
