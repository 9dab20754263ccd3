//! GPT-2's alphabet: a printable character for every byte, so that a vocabulary of byte strings can
//! be written as text.

/// Turns bytes into characters, and back.
pub(super) struct ByteAlphabet {
    chars: [char; 256],
}

impl ByteAlphabet {
    pub(super) fn new() -> Self {
        let mut chars = ['\0'; 256];
        let mut next = 0x100;
        for byte in 0..=255u8 {
            chars[usize::from(byte)] = if matches!(byte, 33..=126 | 161..=172 | 174..=255) {
                char::from(byte)
            } else {
                // The other 68 bytes, in increasing order, are the characters from U+0100 on.
                let char = char::from_u32(next).unwrap_or_default();
                next += 1;
                char
            };
        }
        Self { chars }
    }

    /// The character that stands for `byte`.
    pub(super) fn char(&self, byte: u8) -> char {
        self.chars[usize::from(byte)]
    }

    /// The bytes that `text` stands for; `None` if it has a character that stands for no byte.
    pub(super) fn decode(&self, text: &str) -> Option<Vec<u8>> {
        text.chars().map(|char| self.byte(char)).collect()
    }

    fn byte(&self, char: char) -> Option<u8> {
        let code = u32::from(char);
        if let Ok(byte) = u8::try_from(code) {
            return (self.char(byte) == char).then_some(byte);
        }
        // The other 68 bytes are 0 to 32, 127 to 160, and 173.
        match code - 0x100 {
            rank @ 0..=32 => Some(rank as u8),
            rank @ 33..=66 => Some((rank - 33) as u8 + 127),
            67 => Some(173),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_characters_correspond() {
        let alphabet = ByteAlphabet::new();
        let chars: std::collections::BTreeSet<char> = (0..=255).map(|b| alphabet.char(b)).collect();
        assert_eq!(chars.len(), 256);
        for byte in 0..=255 {
            assert_eq!(alphabet.byte(alphabet.char(byte)), Some(byte));
        }
        // As in GPT-2's vocabulary.
        assert_eq!((alphabet.char(b' '), alphabet.char(b'\n')), ('Ġ', 'Ċ'));
        assert_eq!(alphabet.decode("Ġa\u{144}"), None);
        assert_eq!(alphabet.decode("a b"), None);
    }
}
