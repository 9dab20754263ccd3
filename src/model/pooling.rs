//! How the hidden states of a text's tokens become one vector.

/// How the hidden states of a text's tokens become one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The first token's.
    Cls,
    /// The last token's.
    Last,
}

/// Each pooling with its name and its number in GGUF's `pooling_type`.
const TABLE: [(Pooling, &str, i128); 3] =
    [(Pooling::Mean, "mean", 1), (Pooling::Cls, "cls", 2), (Pooling::Last, "last", 3)];

impl Pooling {
    /// The names, as options have them.
    pub const NAMES: [&str; 3] = [TABLE[0].1, TABLE[1].1, TABLE[2].1];

    /// The pooling of this name.
    pub fn named(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// The pooling of this number in GGUF.
    pub fn numbered(number: i128) -> Option<Self> {
        TABLE.iter().find(|row| row.2 == number).map(|row| row.0)
    }

    /// Its number in GGUF.
    pub fn number(self) -> u32 {
        TABLE[self as usize].2 as u32
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TABLE[self as usize].1
    }
}
