//! How a download begins: the first answer, what of the file is here, and a place for the rest.

use super::fetcher::wait;
use super::request::{Answer, Cause, Content, Fault, Length, Question, ask};
use super::{Load, not_stored};
use crate::error::Error;
use crate::transfer::{Backoff, Manifest, Version};
use crate::web::options::CacheMode;
use crate::web::progress::Note;
use crate::web::store::{Room, new_file};

/// A download that has begun.
pub(super) struct Begun {
    pub(super) answer: Answer,
    /// What of the file is here; nothing for a file that is not stored.
    pub(super) file: Manifest,
    /// Whether it is stored.
    pub(super) stored: bool,
}

impl Load<'_> {
    /// A part that can be gone on with.
    pub(super) fn resumable(&self, found: Option<Manifest>) -> Option<Manifest> {
        found.filter(|file| {
            let begun = !file.complete && !file.chunks.is_empty();
            // With `refresh`, what was there before the load is not of interest.
            let wanted = self.cache != CacheMode::Refresh || !self.begun_anew.is_empty();
            begun && wanted && file.total.is_some() && file.version.validator().is_some()
        })
    }

    /// Asks for the file, or for what is missing of it, and makes it a place in the storage.
    pub(super) async fn begin(&self, partial: Option<Manifest>) -> Result<Begun, Fault> {
        let mut answer = self.first_answer(partial.as_ref()).await?;
        if let Content::Whole(length @ Length::Claimed(_)) = &mut answer.content
            && self.begun_anew.contains(&Cause::WrongLength)
        {
            // Not to be believed again, nor written into the file's record.
            *length = Length::Unknown;
        }
        let total = match &answer.content {
            Content::Part(part) => Some(part.total),
            Content::Whole(Length::Known(total) | Length::Claimed(total)) => Some(*total),
            Content::Whole(Length::Unknown) => None,
        };
        if let Some(file) = partial {
            return if file.version.is_same(&answer.version) && file.total == total {
                if matches!(answer.content, Content::Whole(_)) {
                    self.not_resumable(&answer.version, total);
                }
                self.opening.meter.note(Note::Resumed { bytes: file.bytes() });
                let stored = self.has_room(&file, total).await;
                Ok(Begun { answer, file, stored })
            } else {
                self.discard(&file).await;
                Err(Fault::Restart(Cause::Changed))
            };
        }
        match &answer.content {
            Content::Part(_) if answer.version.validator().is_some() => {}
            Content::Part(_) => return Err(Fault::Restart(Cause::NoRanges)),
            Content::Whole(_) => self.not_resumable(&answer.version, total),
        }
        let mut file = new_file(&self.address.url);
        file.final_url = Some(answer.final_url.clone());
        file.version = answer.version.clone();
        file.total = total;
        let stored = self.has_room(&file, total).await && self.create(&file).await;
        Ok(Begun { answer, file, stored })
    }

    async fn first_answer(&self, partial: Option<&Manifest>) -> Result<Answer, Fault> {
        let ours = is_ours(&self.address.url);
        let came_from = partial.and_then(|file| file.final_url.as_deref());
        let validator = partial.and_then(|file| file.version.validator());
        let validator = validator.filter(|_| came_from.is_some_and(is_ours));
        let nothing = new_file(&self.address.url);
        let question = Question {
            range: self.with_ranges().then(|| partial.unwrap_or(&nothing).first_missing()),
            if_range: validator.map(Into::into),
            stored: self.storage.is_some(),
            patience: self.opening.options.patience,
        };
        let (mut backoff, mut failures) = (Backoff::default(), 0);
        loop {
            let fault = match ask(self.address, &question, &self.arrays).await {
                Err(fault @ Fault::Passing { .. }) => fault,
                answer => return answer,
            };
            let unanswered = matches!(fault, Fault::Passing { error: Error::Network { .. }, .. });
            if unanswered && question.range.is_some() && (failures > 0 || !ours) {
                // What looks like no connection may be a refusal: of another origin, to be asked
                // for a part; of the browser, to take a compressed part.
                let plain = Question { range: None, if_range: None, ..question.clone() };
                let answer = ask(self.address, &plain, &self.arrays).await;
                match answer.as_ref().map(|answer| &answer.content) {
                    Ok(Content::Whole(Length::Unknown)) => return answer,
                    // What is here already is worth a second attempt to go on with it.
                    Ok(Content::Whole(Length::Claimed(_))) if partial.is_none() || failures > 0 => {
                        return answer;
                    }
                    _ => {}
                }
            }
            failures += 1;
            wait(&mut backoff, partial.is_some(), fault).await?;
        }
    }

    fn not_resumable(&self, version: &Version, total: Option<u64>) {
        let why = match (version.validator(), total) {
            (None, _) => "the server names no version of the file (ETag, Last-Modified)",
            (_, None) => "the server names no length of the file",
            _ => "the server gives no parts of the file",
        };
        self.opening.meter.note(Note::NotResumable { why: why.into() });
    }

    /// Whether the rest of `file` will fit into the storage, if need be in place of other models.
    async fn has_room(&self, file: &Manifest, total: Option<u64>) -> bool {
        let Some(storage) = &self.storage else { return false };
        let Some(needed) = total.map(|total| total - file.bytes()) else { return true };
        let (meter, url) = (self.opening.meter, &self.address.url);
        match storage.make_room(url, needed).await {
            Room::Made(evicted) => {
                meter.evicted(evicted);
                true
            }
            Room::Not { possible } => {
                let why = format!("{needed} bytes are needed, {possible} could be had");
                meter.note(Note::NotStored { why: Error::StorageFull(why).to_string() });
                if file.chunks.is_empty() {
                    // For the sake of a better message when it is asked for offline.
                    let _ = storage.refuse(url, needed).await;
                }
                false
            }
        }
    }

    async fn create(&self, file: &Manifest) -> bool {
        let Some(storage) = &self.storage else { return false };
        let created = storage.create(file).await;
        if let Err(error) = &created {
            not_stored(self.opening, error);
        }
        created.is_ok()
    }
}

/// Whether the address is of the page's own origin.
pub(super) fn is_ours(url: &str) -> bool {
    let origin = js_sys::Reflect::get(&js_sys::global(), &"origin".into());
    let origin = origin.ok().and_then(|origin| origin.as_string()).unwrap_or_default();
    url.strip_prefix(&origin).is_some_and(|rest| rest.starts_with('/'))
}
