//! Turns failures into JavaScript's errors.

use wasm_bindgen::prelude::*;

use crate::error::Error;

// The class is TypeScript, so that `instanceof` holds for errors from both sides.
#[wasm_bindgen(raw_module = "./error.js")]
extern "C" {
    type BitNetError;
    #[wasm_bindgen(constructor)]
    fn new(code: &str, message: &str) -> BitNetError;
}

impl From<Error> for JsValue {
    fn from(error: Error) -> Self {
        BitNetError::new(error.code(), &error.to_string()).into()
    }
}

/// The message of a thrown value.
pub(super) fn text(thrown: &JsValue) -> String {
    // The message of a platform's exception may be empty, but its name is not.
    if let Some(exception) = thrown.dyn_ref::<web_sys::DomException>() {
        return format!("{}: {}", exception.name(), exception.message());
    }
    match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => error.message().into(),
        None => thrown.as_string().unwrap_or_else(|| format!("{thrown:?}")),
    }
}

/// An [`Error::BadOption`].
pub(super) fn bad_option(name: &str, why: impl Into<String>) -> Error {
    Error::BadOption { name: name.into(), why: why.into() }
}
