//! A conversation as bytes, with its keys and values from the KV cache.
//!
//! | bytes | |
//! |---|---|
//! | 8 | [`MAGIC`], which ends with the version |
//! | 4 | the length of the head |
//! | | the head: what it belongs to, and the conversation |
//! | | the keys of the first block, its values, and so on, as the cache holds them |
//! | 44 | the SHA-256 of all before it, in base64 |
//!
//! Numbers are little-endian. Texts and lists have their length before them. The hash finds damage.
//! It does not find bytes that were made up together with their hash. These may make the model say
//! anything, as a prompt may. So everything that could lead out of a buffer is also checked.

use std::rc::Rc;

use super::caches::Wanted;
use super::conversation::{Asking, Conversation, PastAnswer};
use super::loaded::Session;
use super::room::MAX_KEPT;
use crate::chat::{Message, Role, ToolCall, Tools};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::transfer::Hasher;

/// The beginning of a saved chat. The last byte is the version.
const MAGIC: [u8; 8] = *b"TRITCHT\x01";

/// Bytes before the head.
const FRONT: u64 = 12;

/// The most bytes of the head. Everything that a context holds takes less.
const MAX_HEAD: usize = 64 << 20;

/// Bytes of the hash.
const HASH: u64 = 44;

/// The message for bytes that differ from those that were saved.
const DAMAGED: &str = "is damaged";
const CUT: &str = "has not all of its bytes, or too many";

/// The roles by their numbers.
const ROLES: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Tool];
/// The number of an assistant that calls tools. Its calls follow its text, as the id of its call
/// follows the text of a tool.
const CALLER: usize = ROLES.len();

/// Everything that is saved, except keys and values.
struct Head {
    /// The hash of the model, of how it was loaded, and of its adapters.
    model: u64,
    /// A note of the caller.
    note: String,
    /// The messages before the next question, which is not known yet.
    messages: Vec<Message>,
    /// The tools in their prompt, as JSON; empty without any.
    tools: String,
    /// The text of their prompt.
    text: String,
    /// The tokens of that prompt.
    prompt: Vec<u32>,
    /// The generated answers in it.
    answers: Vec<PastAnswer>,
    /// How many tokens of the prompt have saved keys and values.
    positions: usize,
}

impl Session {
    /// Writes the conversation of `messages`, with its keys and values from the KV cache, and
    /// `note`, which [`Session::restore`] gives back. `write` gets the head, then the keys or the
    /// values of one block after the other, then the hash.
    ///
    /// Errors: those of [`Session::chat_prompt`] and of `write`; `device-lost`.
    pub async fn save(
        &mut self,
        messages: &[Message],
        note: &str,
        write: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.engine.check()?;
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let messages = with_question(messages);
        // The next turn computes only what is new if it has the tools of the last one.
        let last = self.last(&messages).filter(|(last, _)| last.is_continued_by(&messages));
        let tools = last.and_then(|(last, _)| last.tools());
        let next = self.conversation(&messages, None, tools, None)?;
        let (first, positions) = self.caches.holding(&next.prompt).unwrap_or_default();
        let head = Head {
            model: self.values_hash(),
            note: note.into(),
            messages,
            tools: tools.map(|tools| tools.written()).unwrap_or_default(),
            text: next.text.marked.text().into(),
            prompt: next.prompt,
            answers: next.answers,
            positions,
        };
        let mut hasher = Hasher::default();
        let mut hashed = |bytes: &[u8]| {
            hasher.update(bytes);
            write(bytes)
        };
        hashed(&head.to_bytes())?;
        for buffer in 0..self.engine.cache_buffers() {
            if positions > 0 {
                let words = self.engine.read_cache(buffer, first, positions);
                hashed(bytemuck::cast_slice(&words.take().await?))?;
            }
        }
        write(hasher.finish().as_bytes())
    }

    /// Makes the KV cache hold a conversation that [`Session::save`] wrote. Gives the note.
    ///
    /// Errors: `bad-option` (`chat`) if the bytes are damaged, or belong to another model, to other
    /// options of loading or to other adapters; those of `source`; `device-lost`.
    pub async fn restore<S: Source>(&mut self, source: &mut S) -> Result<String> {
        self.engine.check()?;
        // Sequences may still count as running if a future was dropped.
        self.caches.release_all();
        let mut hasher = Hasher::default();
        let (head, at) = Head::read(source, &mut hasher).await?;
        if head.model != self.values_hash() {
            return Err(bad(
                "belongs to another model, or to one with other adapters or loaded with other options",
            ));
        }
        head.check(self.info.vocab_size)?;
        let each = head.positions as u64 * self.engine.position_bytes() as u64;
        if source.len() != at + each * self.engine.cache_buffers() as u64 + HASH {
            return Err(bad(CUT));
        }
        let tools = match head.tools.as_str() {
            "" => None,
            tools => Some(Rc::new(Tools::read(tools).map_err(|_| bad(DAMAGED))?)),
        };
        let asked = Asking { tools: tools.as_ref(), ..Asking::of(&head.messages) };
        let mut conversation = Conversation::new(&self.tokenizer, self.template()?, asked, None)?;
        // If the context has become too short, the next turn fails with an error that says so.
        let n = head.positions;
        let id = match (1..=self.traits.n_ctx).contains(&n) {
            true => self.place(&head.prompt[..n], Wanted { least: n, most: n }, MAX_KEPT).await?,
            false => None,
        };
        let first = id.and_then(|id| self.caches.get(id)).map(|cached| {
            // Until all is read, the sequence counts as empty, because this future may be dropped.
            cached.filled = 0;
            cached.first()
        });
        if let Err(error) = self.read_keys_and_values(source, (at, each), hasher, first).await {
            self.caches.release_all();
            return Err(error);
        }
        let Head { note, text, prompt, answers, .. } = head;
        // If the template writes another text now, such as another date, answers are encoded again.
        let is_same = conversation.text.marked.text() == text;
        conversation.answers = if is_same { answers } else { Vec::new() };
        conversation.prompt.clone_from(&prompt);
        match id.and_then(|id| Some((id, self.caches.get(id)?))) {
            Some((id, cached)) => {
                cached.filled = n;
                cached.tokens = prompt;
                cached.conversation = Some(conversation);
                self.caches.release(id);
            }
            None => self.caches.remember(prompt, Some(conversation)),
        }
        Ok(note)
    }

    /// Reads keys and values from byte `at` on, `each` bytes for each buffer of the cache, and then
    /// the hash. Writes them to the cache from position `first` on; with `None`, nowhere.
    async fn read_keys_and_values<S: Source>(
        &self,
        source: &mut S,
        (mut at, each): (u64, u64),
        mut hasher: Hasher,
        first: Option<usize>,
    ) -> Result<()> {
        for buffer in 0..self.engine.cache_buffers() {
            let bytes = source.read(at..at + each).await?;
            at += each;
            hasher.update(&bytes);
            if let Some(first) = first {
                // Waiting here keeps no more than these bytes in flight.
                self.engine.write_cache(buffer, first, &bytes).take().await?;
            }
        }
        let hash = source.read(at..at + HASH).await?;
        if hash == hasher.finish().as_bytes() { Ok(()) } else { Err(bad(DAMAGED)) }
    }
}

impl Head {
    /// The bytes before keys and values.
    fn to_bytes(&self) -> Vec<u8> {
        let mut head = Writing(self.model.to_le_bytes().to_vec());
        head.text(&self.note);
        head.number(self.messages.len());
        for message in &self.messages {
            head.message(message);
        }
        head.text(&self.tools);
        head.text(&self.text);
        head.number(self.prompt.len());
        self.prompt.iter().for_each(|&id| head.number(id as usize));
        head.number(self.answers.len());
        for PastAnswer { bytes, tokens } in &self.answers {
            head.number(*bytes);
            head.number(*tokens);
        }
        head.number(self.positions);
        let len = (head.0.len() as u32).to_le_bytes();
        [&MAGIC[..], &len, &head.0].concat()
    }

    /// Reads the bytes before keys and values, and gives their number.
    async fn read<S: Source>(source: &mut S, hasher: &mut Hasher) -> Result<(Self, u64)> {
        let none = || bad("is no saved chat");
        if source.len() < FRONT + HASH {
            return Err(none());
        }
        let front = source.read(0..FRONT).await?;
        let version = MAGIC.len() - 1;
        if front[..version] != MAGIC[..version] {
            return Err(none());
        }
        if front[version] != MAGIC[version] {
            return Err(bad("was saved by another version of this package"));
        }
        let len = Reading(&front[MAGIC.len()..]).number().ok_or_else(none)?;
        let end = FRONT + len as u64;
        if len > MAX_HEAD {
            return Err(bad(DAMAGED));
        }
        if source.len() < end + HASH {
            return Err(bad(CUT));
        }
        let bytes = source.read(FRONT..end).await?;
        hasher.update(&front);
        hasher.update(&bytes);
        Ok((Self::of(&mut Reading(&bytes)).ok_or_else(|| bad(DAMAGED))?, end))
    }

    fn of(bytes: &mut Reading<'_>) -> Option<Self> {
        let head = Self {
            model: u64::from_le_bytes(bytes.array()?),
            note: bytes.text()?,
            messages: bytes.list(Reading::message)?,
            tools: bytes.text()?,
            text: bytes.text()?,
            prompt: bytes.list(|bytes| Some(u32::from_le_bytes(bytes.array()?)))?,
            answers: bytes.list(|bytes| {
                Some(PastAnswer { bytes: bytes.number()?, tokens: bytes.number()? })
            })?,
            positions: bytes.number()?,
        };
        bytes.0.is_empty().then_some(head)
    }

    /// Refuses a head that no session with a vocabulary of `n_vocab` tokens can have written.
    fn check(&self, n_vocab: usize) -> Result<()> {
        let is_answer = |answer: &PastAnswer| {
            answer.tokens <= self.prompt.len() && self.text.is_char_boundary(answer.bytes)
        };
        let is_sound = self.prompt.iter().all(|&id| (id as usize) < n_vocab)
            && self.positions < self.prompt.len()
            && self.answers.iter().all(is_answer);
        if is_sound { Ok(()) } else { Err(bad(DAMAGED)) }
    }
}

/// Bytes to which numbers and texts are added.
struct Writing(Vec<u8>);

impl Writing {
    fn number(&mut self, n: usize) {
        self.0.extend((n as u32).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.extend(text.as_bytes());
    }

    fn message(&mut self, Message { role, content, calls, call }: &Message) {
        self.number(match calls.is_empty() {
            true => ROLES.iter().take_while(|other| *other != role).count(),
            false => CALLER,
        });
        self.text(content);
        if !calls.is_empty() {
            self.number(calls.len());
            for ToolCall { id, name, arguments } in calls {
                [id, name, arguments].into_iter().for_each(|text| self.text(text));
            }
        }
        if *role == Role::Tool {
            self.text(call.as_deref().unwrap_or_default());
        }
    }
}

/// Bytes from which numbers and texts are taken; `None` if they have ended.
struct Reading<'a>(&'a [u8]);

impl Reading<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn number(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.array()?) as usize)
    }

    fn text(&mut self) -> Option<String> {
        let len = self.number()?;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn message(&mut self) -> Option<Message> {
        let (role, content) = (self.number()?, self.text()?);
        if role == CALLER {
            let call = |bytes: &mut Self| {
                Some(ToolCall { id: bytes.text()?, name: bytes.text()?, arguments: bytes.text()? })
            };
            let calls = self.list(call)?;
            return Some(Message { calls, ..Message::new(Role::Assistant, content) });
        }
        let role = *ROLES.get(role)?;
        let call = match role {
            Role::Tool => Some(self.text()?).filter(|id| !id.is_empty()),
            _ => None,
        };
        Some(Message { call, ..Message::new(role, content) })
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        // If the number is too large, the bytes end before.
        (0..self.number()?).map(|_| item(self)).collect()
    }
}

/// The conversation with a question after it. A prompt is the same up to the question, whatever the
/// question is.
fn with_question(messages: &[Message]) -> Vec<Message> {
    let question = Message::new(Role::User, "?");
    messages.iter().cloned().chain([question]).collect()
}

fn bad(why: &str) -> Error {
    Error::BadOption { name: "chat".into(), why: why.into() }
}
