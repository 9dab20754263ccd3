//! Ternary codes as files pack them (i2_s), in plain Rust.
//!
//! A tensor of n elements is n / 4 bytes of codes, rows one after another without padding, then
//! 32 bytes that begin with the f32 scale of the whole tensor. Code 0 is −1, 1 is 0, 2 is +1;
//! code 3 is never written.

/// Bytes after the codes: the scale and padding, whose content means nothing.
pub const TAIL: usize = 32;

/// In which order codes lie in their bytes. Nothing in a file tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Blocks of 128 elements in 32 bytes: element `j` is in byte `j % 32`, field `j / 32`, the
    /// first field in the highest bits. All official files, whatever made them.
    #[default]
    X86,
    /// Blocks of 64 elements in 16 bytes, as ARM builds of bitnet.cpp have quantised since
    /// November 2025.
    Arm,
}

impl Layout {
    /// Bytes of a block, which is also the distance of neighbours in one field.
    fn bytes(self) -> usize {
        match self {
            Self::X86 => 32,
            Self::Arm => 16,
        }
    }
}

/// The values −1, 0, 1 of packed codes. Code 3, which [`check_codes`] finds, gives 2.
pub fn unpack(codes: &[u8], layout: Layout) -> Vec<i8> {
    let mut values = Vec::with_capacity(codes.len() * 4);
    for block in codes.chunks(layout.bytes()) {
        for shift in [6, 4, 2, 0] {
            values.extend(block.iter().map(|byte| (byte >> shift & 3) as i8 - 1));
        }
    }
    values
}

/// Packs values −1, 0, 1, a whole number of blocks of them.
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

/// Rewrites codes from [`Layout::Arm`] to [`Layout::X86`] in place. Any piece of whole 128-element
/// blocks, which is 32 bytes, can be rewritten on its own.
pub fn repack_arm(codes: &mut [u8]) {
    for pair in codes.chunks_exact_mut(32) {
        let (first, second) = pair.split_at_mut(16);
        for (a, b) in first.iter_mut().zip(second) {
            // Element 32g + i of 128 is in ARM's block g / 2, field 2(g % 2) + i / 16: the even
            // fields of both blocks belong to the first sixteen bytes, the odd ones to the rest.
            let even = *a & 0xc0 | (*a & 0x0c) << 2 | (*b & 0xc0) >> 4 | (*b & 0x0c) >> 2;
            let odd = (*a & 0x30) << 2 | (*a & 0x03) << 4 | (*b & 0x30) >> 2 | *b & 0x03;
            (*a, *b) = (even, odd);
        }
    }
}

/// Looks for code 3, which stands for nothing: the index of the first byte that has one.
pub fn check_codes(codes: &[u8]) -> Result<(), usize> {
    /// The low bit of every field.
    const LOW: u64 = 0x5555_5555_5555_5555;
    let (words, rest) = codes.as_chunks::<8>();
    let bad = |byte: &u8| byte & (byte >> 1) & LOW as u8 != 0;
    // One pass without branches: the place is only sought when there is something to find.
    let found = words.iter().fold(0, |found, word| {
        let word = u64::from_ne_bytes(*word);
        found | word & (word >> 1)
    });
    if found & LOW == 0 && !rest.iter().any(bad) {
        return Ok(());
    }
    codes.iter().position(bad).map_or(Ok(()), Err)
}

/// The scale at the beginning of the 32 bytes after the codes, if it is a number.
pub fn scale(tail: &[u8]) -> Option<f32> {
    let scale = f32::from_le_bytes(*tail.first_chunk()?);
    scale.is_finite().then_some(scale)
}
