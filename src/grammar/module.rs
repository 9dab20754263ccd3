//! The crate as a module of WebAssembly, for `crate/formats.ts` of the package.
//!
//! Its functions take and give numbers. A caller writes longer things where [`input`] says, and reads
//! them where [`text`] and [`words`] say. A negative result is an error, whose message is the text:
//! see [`State::failed`]. One module has one vocabulary.
#![allow(unsafe_code, reason = "names that stay as they are, and functions of JavaScript")]

use std::cell::RefCell;
use std::rc::Rc;

use crate::error::Error;
use crate::format::Format;
use crate::grammar::{Follow, Grammar, Matcher};
use crate::vocabulary::Vocabulary;

/// The results of [`follow`].
const NOTHING: i32 = 0;
const ONE_OF: i32 = 1;
const THESE: i32 = 2;

unsafe extern "C" {
    /// Gets the tokens of the text of `len` bytes at `text`, and says how many there are.
    fn encode(text: *const u8, len: usize) -> usize;
    /// Writes the tokens of the last text.
    fn encoded(ids: *mut u32);
}

#[derive(Default)]
struct State {
    input: Vec<u8>,
    text: String,
    words: Vec<u32>,
    vocabulary: Option<Rc<Vocabulary>>,
    grammars: Slab<Grammar>,
    matchers: Slab<Matcher>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(f: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(f)
}

/// Makes room for an input of `len` bytes, and says where.
#[unsafe(no_mangle)]
extern "C" fn input(len: usize) -> *mut u8 {
    with(|state| {
        state.input = vec![0; len];
        state.input.as_mut_ptr()
    })
}

/// Where the message of the last error is, and its bytes.
#[unsafe(no_mangle)]
extern "C" fn text() -> *const u8 {
    with(|state| state.text.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn text_len() -> usize {
    with(|state| state.text.len())
}

/// Where the last mask or the last tokens are, and their number.
#[unsafe(no_mangle)]
extern "C" fn words() -> *const u32 {
    with(|state| state.words.as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn words_len() -> usize {
    with(|state| state.words.len())
}

/// Reads the packed vocabulary that is the input.
#[unsafe(no_mangle)]
extern "C" fn vocabulary() -> i32 {
    with(|state| {
        let packed = std::mem::take(&mut state.input);
        match Vocabulary::unpacked(&packed, tokens) {
            Ok(vocabulary) => {
                state.vocabulary = Some(Rc::new(vocabulary));
                0
            }
            Err(error) => state.failed(&error),
        }
    })
}

/// The tokens of a text, as the model's tokenizer has them.
fn tokens(text: &str) -> Vec<u32> {
    // SAFETY: the text lives until the call ends, which only reads it.
    let n = unsafe { encode(text.as_ptr(), text.len()) };
    let mut ids = vec![0; n];
    // SAFETY: there is room for as many tokens as the call before has said.
    unsafe { encoded(ids.as_mut_ptr()) };
    ids
}

/// The number of a grammar for the format whose text is the input. Its kind is 0 for a JSON schema, 1
/// for any JSON object, 2 for a regular expression, 3 for a grammar of Lark and 4 for calls of
/// tools.
#[unsafe(no_mangle)]
extern "C" fn grammar(kind: u32) -> i32 {
    with(|state| {
        let text = String::from_utf8_lossy(&std::mem::take(&mut state.input)).into_owned();
        let format = match kind {
            0 => Format::JsonSchema(text),
            1 => Format::JsonObject,
            2 => Format::Regex(text),
            3 => Format::Lark(text),
            _ => Format::Calls(text),
        };
        let Some(vocabulary) = &state.vocabulary else {
            return state.failed(&Error::Internal("no vocabulary".into()));
        };
        match Grammar::new(vocabulary, &format) {
            Ok(grammar) => state.grammars.add(grammar),
            Err(error) => state.failed(&error),
        }
    })
}

/// Lets a grammar go. Its matchers go on.
#[unsafe(no_mangle)]
extern "C" fn free_grammar(number: u32) {
    with(|state| state.grammars.remove(number));
}

/// The number of a new matcher of a grammar, for an answer that begins with the text that is the input.
#[unsafe(no_mangle)]
extern "C" fn matcher(grammar: u32) -> i32 {
    with(|state| {
        let begun = String::from_utf8_lossy(&std::mem::take(&mut state.input)).into_owned();
        match state.grammars.get(grammar).map(|grammar| grammar.matcher_after(&begun)) {
            Some(Ok(matcher)) => state.matchers.add(matcher),
            Some(Err(error)) => state.failed(&error),
            None => state.failed(&Error::Internal(format!("no grammar {grammar}"))),
        }
    })
}

/// The number of a copy of a matcher, which goes its own way.
#[unsafe(no_mangle)]
extern "C" fn fork(matcher: u32) -> i32 {
    with(|state| match state.matchers.get(matcher).map(|matcher| matcher.clone()) {
        Some(matcher) => state.matchers.add(matcher),
        None => state.failed(&Error::Internal(format!("no matcher {matcher}"))),
    })
}

#[unsafe(no_mangle)]
extern "C" fn free_matcher(number: u32) {
    with(|state| state.matchers.remove(number));
}

/// Takes a token; 0, or an error.
#[unsafe(no_mangle)]
extern "C" fn take(matcher: u32, id: u32) -> i32 {
    with(|state| match state.matchers.get(matcher).map(|matcher| matcher.take(id)) {
        Some(Ok(())) => 0,
        Some(Err(error)) => state.failed(&error),
        None => state.failed(&Error::Internal(format!("no matcher {matcher}"))),
    })
}

/// Finds the tokens that may follow. The result says which: none; one of the mask, which is in the
/// words; or all of those in the words, which are forced.
#[unsafe(no_mangle)]
extern "C" fn follow(matcher: u32) -> i32 {
    with(|state| match state.matchers.get(matcher).map(Matcher::follow) {
        Some(Ok(Follow::Nothing)) => NOTHING,
        Some(Ok(Follow::OneOf(words))) => {
            state.words = words;
            ONE_OF
        }
        Some(Ok(Follow::These(ids))) => {
            state.words = ids;
            THESE
        }
        Some(Err(error)) => state.failed(&error),
        None => state.failed(&Error::Internal(format!("no matcher {matcher}"))),
    })
}

impl State {
    /// Keeps the message. The number stands for the code of the error.
    fn failed(&mut self, error: &Error) -> i32 {
        self.text = error.to_string();
        match error.code() {
            "bad-option" => -1,
            "unsupported-model" => -2,
            _ => -3,
        }
    }
}

/// Values by their numbers.
struct Slab<T>(Vec<Option<T>>);

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slab<T> {
    fn add(&mut self, value: T) -> i32 {
        let free = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[free] = Some(value);
        free as i32
    }

    fn get(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(number as usize)?.as_mut()
    }

    fn remove(&mut self, number: u32) {
        if let Some(place) = self.0.get_mut(number as usize) {
            *place = None;
        }
    }
}
