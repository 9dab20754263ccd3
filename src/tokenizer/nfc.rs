//! Unicode's normal form C: a letter and its accents become one character if there is such a
//! character.

use std::borrow::Cow;

/// `text` in normal form C.
pub(super) fn nfc(text: &str) -> Cow<'_, str> {
    // All characters below U+0300, the first combining one, are in normal form C already.
    if text.chars().all(|char| char < '\u{300}') {
        return Cow::Borrowed(text);
    }
    Cow::Owned(normalize(text))
}

#[cfg(not(target_arch = "wasm32"))]
fn normalize(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization;
    text.nfc().collect()
}

/// JavaScript has the tables already. In the WebAssembly they would take 65 kB of the download.
#[cfg(target_arch = "wasm32")]
fn normalize(text: &str) -> String {
    js_sys::JsString::from(text).normalize("NFC").into()
}
