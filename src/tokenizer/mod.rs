//! Text to tokens and back, from the vocabulary in a GGUF file.

/// A vocabulary with its merges.
pub struct Tokenizer {}
