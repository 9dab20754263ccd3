//! The GPU's order of codes.
//!
//! A shader takes four consecutive codes out of a word with one shift and one mask, which leaves
//! one code in each byte. So a word interleaves such *fours*: the first four is in the lowest bits
//! of each byte, the next one in the bits above. A word has eight fours of 1 bit, four of 2 bits,
//! two of 4 bits, or one of 8 bits.
//!
//! A code of 1 bit is 0 or 2: with 1 for zero, as in ternary types, it stands for -1 or +1.

/// Packs a code for each element. The codes must fill whole words.
///
/// With 2 bits, byte `b` of a word has element `4 i + b` of its 16 elements in bits `2 i` and
/// `2 i + 1`; with 4 bits, element `4 i + b` of 8 in bits `4 i` to `4 i + 3`; with 8 bits, element
/// `b`. With 1 bit, bit `i` of byte `b` has element `4 i + b` of 32.
pub fn pack(bits: u32, codes: &[u8]) -> Vec<u32> {
    let fours: Vec<u32> = codes.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect();
    let mut words = Vec::with_capacity(codes.len() * bits as usize / 32);
    interleave(bits, &fours, &mut words);
    words
}

/// Appends a code for each element of `words`.
pub fn unpack(bits: u32, words: &[u32], codes: &mut Vec<u8>) {
    let mask = if bits == 8 { u32::MAX } else { 0x0101_0101 * ((1 << bits) - 1) };
    let doubled = u32::from(bits == 1);
    codes.reserve(words.len() * 32 / bits as usize);
    for word in words {
        let four = |i| (word >> (bits * i) & mask) << doubled;
        (0..8 / bits).for_each(|i| codes.extend(four(i).to_le_bytes()));
    }
}

/// Appends fours as words. A four has one code in each of its bytes.
pub(super) fn interleave(bits: u32, fours: &[u32], words: &mut Vec<u32>) {
    match bits {
        1 => words.extend(fours.as_chunks().0.iter().map(|fours: &[u32; 8]| {
            fours.iter().enumerate().fold(0, |word, (i, four)| word | four >> 1 << i)
        })),
        2 => words.extend(
            fours.as_chunks().0.iter().map(|&[a, b, c, d]: &[u32; 4]| a | b << 2 | c << 4 | d << 6),
        ),
        4 => words.extend(fours.as_chunks().0.iter().map(|&[a, b]: &[u32; 2]| a | b << 4)),
        _ => words.extend(fours),
    }
}

/// Rewrites 16 codes of 2 bits from their natural order, element `j` in bits `2 j` and `2 j + 1`.
pub(super) fn from_natural(word: u32) -> u32 {
    // Element 4i + b moves from field b of byte i to field i of byte b: a 4 by 4 matrix of fields is
    // transposed. Its 2 by 2 quarters swap places first, then the fields within each quarter.
    let swapped = (word ^ (word >> 12)) & 0x0000_f0f0;
    let word = word ^ swapped ^ (swapped << 12);
    let swapped = (word ^ (word >> 6)) & 0x00cc_00cc;
    word ^ swapped ^ (swapped << 6)
}

/// The index of the first element with the 2-bit code 3, which no value has.
pub(super) fn find_3(words: &[u32]) -> Option<usize> {
    let threes = |word: u32| word & (word >> 1) & 0x5555_5555;
    // Most tensors have no 3. So a pass without branches finds out whether there is one, and only
    // then the element is looked for.
    if words.iter().fold(0, |found, &word| found | threes(word)) == 0 {
        return None;
    }
    let index = words.iter().position(|&word| threes(word) != 0)?;
    let mut codes = Vec::new();
    unpack(2, &words[index..=index], &mut codes);
    codes.iter().position(|&code| code == 3).map(|element| 16 * index + element)
}
