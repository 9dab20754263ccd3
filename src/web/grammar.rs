//! Constraints that the module of grammars decides. It is WebAssembly of its own, which pages fetch
//! only if an answer has a format; `crate/formats.ts` of the package stands between.

use js_sys::{Array, Uint32Array};
use wasm_bindgen::prelude::*;

use super::error::{bad_option, text};
use crate::error::{Error, Result};
use crate::sampling::Mask;
use crate::session::{Constraint, Constraints, Follow};

/// The option that gives the beginning of an answer.
const PREFIX: &str = "prefix";

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = "
/** A format that has been prepared for the tokens of a model. */
export interface Grammar {
  /** Begins an answer that begins with the text `begun`. Throws `bad-option` if none begins so. */
  matcher(begun: string): Matcher
}

/** Follows one answer. Its errors have the code of the failure as their name. */
export interface Matcher {
  /** Takes the next token of the answer. */
  take(id: number): void
  /** A mask of the tokens that may follow; tokens that are forced, which count as taken; or nothing. */
  follow(): Uint32Array | readonly number[] | undefined
  /** A copy that goes its own way. */
  fork(): Matcher
  free(): void
}
";

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Grammar")]
    pub type Grammar;
    #[wasm_bindgen(method, catch)]
    fn matcher(this: &Grammar, begun: &str) -> Result<Matcher, JsValue>;

    type Matcher;
    #[wasm_bindgen(method, catch)]
    fn take(this: &Matcher, id: u32) -> Result<(), JsValue>;
    #[wasm_bindgen(method, catch)]
    fn follow(this: &Matcher) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn fork(this: &Matcher) -> Result<Matcher, JsValue>;
    #[wasm_bindgen(method, catch)]
    fn free(this: &Matcher) -> Result<(), JsValue>;
}

/// The constraints of answers by `grammar`, which the option of this name gave.
pub(super) fn constraints(grammar: Grammar, option: &'static str, n_vocab: usize) -> Constraints {
    Constraints::new(move |begun| {
        let matcher = grammar.matcher(begun).map_err(|thrown| converted(PREFIX, &thrown))?;
        Ok(Box::new(Held { matcher, option, n_vocab }))
    })
}

/// An answer that is held to its format.
struct Held {
    matcher: Matcher,
    option: &'static str,
    n_vocab: usize,
}

impl Constraint for Held {
    fn take(&mut self, id: u32) -> Result<()> {
        self.matcher.take(id).map_err(|thrown| converted(self.option, &thrown))
    }

    fn follow(&mut self) -> Result<Follow> {
        let found = self.matcher.follow().map_err(|thrown| converted(self.option, &thrown))?;
        Ok(match (found.dyn_ref::<Uint32Array>(), found.dyn_ref::<Array>()) {
            (Some(words), _) => Follow::OneOf(Mask::from_words(self.n_vocab, &words.to_vec())),
            (_, Some(ids)) => {
                Follow::These(ids.iter().filter_map(|id| Some(id.as_f64()? as u32)).collect())
            }
            _ => Follow::Nothing,
        })
    }

    fn fork(&self) -> Option<Box<dyn Constraint>> {
        // This fails if the module has crashed, or has no memory left.
        let matcher = self.matcher.fork().ok()?;
        Some(Box::new(Self { matcher, ..*self }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // This fails only if the module has crashed.
        let _ = self.matcher.free();
    }
}

/// An error of the module, because of an option.
fn converted(option: &str, thrown: &JsValue) -> Error {
    let name = thrown.dyn_ref::<js_sys::Error>().map(|error| String::from(error.name()));
    match name.as_deref() {
        Some("bad-option") => bad_option(option, text(thrown)),
        _ => Error::Internal(format!("grammar: {}", text(thrown))),
    }
}
