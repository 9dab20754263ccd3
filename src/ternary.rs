//! Ternary codes as files pack them (I2_S), in plain Rust.
//!
//! A tensor of n elements has n / 4 bytes of codes, row after row without padding. Then come 32
//! bytes, which begin with the f32 scale of the whole tensor. Code 0 is −1, 1 is 0, 2 is +1; code 3
//! is not used.

/// Bytes after the codes: the scale, and padding of any content.
pub const TAIL: usize = 32;

/// The order of the codes in their bytes. A file does not say which it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Blocks of 128 elements in 32 bytes: element `j` is in byte `j % 32`, field `j / 32`, and
    /// field 0 is in the highest bits. All official files have this order.
    #[default]
    X86,
    /// Blocks of 64 elements in 16 bytes: the order of ARM builds of bitnet.cpp since November
    /// 2025.
    Arm,
}

impl Layout {
    /// Bytes of a block.
    fn bytes(self) -> usize {
        match self {
            Self::X86 => 32,
            Self::Arm => 16,
        }
    }
}

/// The values −1, 0 and 1 of packed codes. Code 3 gives 2; [`check_codes`] finds it.
pub fn unpack(codes: &[u8], layout: Layout) -> Vec<i8> {
    let mut values = Vec::with_capacity(codes.len() * 4);
    for block in codes.chunks(layout.bytes()) {
        for shift in [6, 4, 2, 0] {
            values.extend(block.iter().map(|byte| (byte >> shift & 3) as i8 - 1));
        }
    }
    values
}

/// Packs values −1, 0 and 1, which must be whole blocks.
pub fn pack(values: &[i8], layout: Layout) -> Vec<u8> {
    let bytes = layout.bytes();
    let mut codes = Vec::with_capacity(values.len() / 4);
    for block in values.chunks_exact(bytes * 4) {
        codes.extend((0..bytes).map(|i| {
            let code = |field: usize| ((block[field * bytes + i] + 1) & 3) as u8;
            code(0) << 6 | code(1) << 4 | code(2) << 2 | code(3)
        }));
    }
    codes
}

/// Rewrites codes from [`Layout::Arm`] to [`Layout::X86`] in place. A tensor can be rewritten slice
/// by slice, each a multiple of 32 bytes.
pub fn repack_arm(codes: &mut [u8]) {
    for pair in codes.chunks_exact_mut(32) {
        let (first, second) = pair.split_at_mut(16);
        for (a, b) in first.iter_mut().zip(second) {
            // Of 128 elements, ARM has element 32g + i in block g / 2, field 2(g % 2) + i / 16. So
            // the even fields of both blocks go to the first 16 bytes, the odd fields to the rest.
            let even = *a & 0xc0 | (*a & 0x0c) << 2 | (*b & 0xc0) >> 4 | (*b & 0x0c) >> 2;
            let odd = (*a & 0x30) << 2 | (*a & 0x03) << 4 | (*b & 0x30) >> 2 | *b & 0x03;
            (*a, *b) = (even, odd);
        }
    }
}

/// Refuses code 3, which no value has. The error is the index of the first byte with it.
pub fn check_codes(codes: &[u8]) -> Result<(), usize> {
    /// The low bit of every field.
    const LOW: u64 = 0x5555_5555_5555_5555;
    let bad = |byte: &u8| byte & (byte >> 1) & LOW as u8 != 0;
    let both = |word: [u8; 8]| {
        let word = u64::from_ne_bytes(word);
        word & (word >> 1)
    };
    let (words, rest) = codes.as_chunks();
    let (fours, words) = words.as_chunks();
    // The index is looked for only if there is one. Taking four words at a time halves the time of
    // the search: a model has many millions of words, and the web's build unrolls no loops.
    let found =
        fours.iter().fold(0, |found, &[a, b, c, d]| found | both(a) | both(b) | both(c) | both(d));
    let found = words.iter().fold(found, |found, &word| found | both(word));
    if found & LOW == 0 && !rest.iter().any(bad) {
        return Ok(());
    }
    codes.iter().position(bad).map_or(Ok(()), Err)
}

/// The scale, from the 32 bytes after the codes; `None` if it is not finite.
pub fn scale(tail: &[u8]) -> Option<f32> {
    let scale = f32::from_le_bytes(*tail.first_chunk()?);
    scale.is_finite().then_some(scale)
}
