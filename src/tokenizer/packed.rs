//! A vocabulary in one run of bytes, for the crate of grammars. In a page that is another module of
//! WebAssembly, which shares no memory with this one.

use std::collections::HashMap;

use super::Tokenizer;

/// Kinds of tokens in the bytes.
const TEXT: u8 = 0;
const SPECIAL: u8 = 1;
const UNUSED: u8 = 2;

impl Tokenizer {
    /// The vocabulary in bytes: the number of tokens and of those that end an answer, the ids of
    /// these, and then each token: its kind in a byte, the length of its bytes in two, and its bytes.
    /// Numbers have four bytes, and the lowest comes first.
    ///
    /// The kind is 0 for a text; 1 for a special token, whose bytes are its name; 2 for one that
    /// must not be chosen, which has no bytes.
    pub fn packed(&self) -> Vec<u8> {
        let names: HashMap<u32, &str> = self.special.iter().map(|(text, id)| (id, text)).collect();
        let mut packed = Vec::new();
        for number in [self.n_vocab as u32, self.stop.len() as u32].iter().chain(&self.stop) {
            packed.extend(number.to_le_bytes());
        }
        for id in 0..self.n_vocab as u32 {
            let bytes = self.bytes.get(id as usize).unwrap_or_default();
            let (kind, bytes) = match names.get(&id) {
                Some(name) => (SPECIAL, name.as_bytes()),
                None if bytes.is_empty() => (UNUSED, bytes),
                None => (TEXT, bytes),
            };
            match u16::try_from(bytes.len()) {
                Ok(len) => {
                    packed.push(kind);
                    packed.extend(len.to_le_bytes());
                    packed.extend(bytes);
                }
                // No text that is forced or chosen is so long.
                Err(_) => packed.extend([UNUSED, 0, 0]),
            }
        }
        packed
    }
}
