//! The digits of bytes that hold five trits, as TQ1_0 has them.

/// The most bytes whose digits are found together: those of 16 blocks of TQ1_0.
const TRIT_BYTES: usize = 16 * 54;

/// The digits of bytes, as codes of two bits.
pub(crate) struct Trits {
    /// The first digit of each byte in bits 0 and 1, the second in bits 4 and 5, the third in bits 2 and 3, the
    /// fourth in bits 6 and 7.
    pub(crate) fours: [u8; TRIT_BYTES],
    /// The fifth digit of each byte in bits 4 and 5.
    pub(crate) fifths: [u8; TRIT_BYTES],
}

impl Trits {
    pub(crate) const ZEROS: Self = Self { fours: [0; TRIT_BYTES], fifths: [0; TRIT_BYTES] };

    /// Where each 64 of `len` bytes begin. The last ones may have some of those before them again.
    #[inline(always)]
    pub(super) fn offsets(len: usize) -> impl Iterator<Item = usize> {
        (0..len).step_by(64).map(move |at| at.min(len.saturating_sub(64)))
    }

    /// The places of the digits of 64 bytes, the first of which has the index `at`.
    #[inline(always)]
    pub(super) fn places(&mut self, at: usize) -> [&mut [u8; 64]; 2] {
        [place(&mut self.fours, at), place(&mut self.fifths, at)]
    }
}

#[inline(always)]
fn place(digits: &mut [u8; TRIT_BYTES], at: usize) -> &mut [u8; 64] {
    let at = at.min(TRIT_BYTES - 64);
    let (place, _) = digits[at..].as_chunks_mut();
    &mut place[0]
}

/// The five digits of a byte. It is a fraction in base 3: each time that it is multiplied by 3, its next digit is
/// what exceeds 8 bits.
const fn digits(byte: u8) -> [u8; 5] {
    let (mut digits, mut rest, mut i) = ([0; 5], byte as u32, 0);
    while i < 5 {
        digits[i] = ((3 * rest) >> 8) as u8;
        rest = (3 * rest) & 0xff;
        i += 1;
    }
    digits
}

const fn four([a, b, c, d, _]: [u8; 5]) -> u8 {
    a | b << 4 | c << 2 | d << 6
}

const fn fifth([_, _, _, _, e]: [u8; 5]) -> u8 {
    e << 4
}

/// For each byte, its place in [`Trits::fours`] and in [`Trits::fifths`].
pub(super) const OF_BYTES: [[u8; 256]; 2] = {
    let (mut tables, mut byte) = ([[0; 256]; 2], 0);
    while byte < 256 {
        let digits = digits(byte as u8);
        tables[0][byte] = four(digits);
        tables[1][byte] = fifth(digits);
        byte += 1;
    }
    tables
};

/// The first three digits of a byte are those of a number below 27, and the others of one below 9. For each number
/// that the first three make, below 16 and from 16 on: their part of [`Trits::fours`].
pub(super) const OF_THREE: [[u8; 16]; 2] = {
    let (mut tables, mut n) = ([[0; 16]; 2], 0);
    while n < 27 {
        tables[n / 16][n % 16] = four([(n / 9) as u8, (n / 3 % 3) as u8, (n % 3) as u8, 0, 0]);
        n += 1;
    }
    tables
};

/// For each number that the last two digits make: their parts of [`Trits::fours`] and of [`Trits::fifths`].
pub(super) const OF_TWO: [[u8; 16]; 2] = {
    let (mut tables, mut n) = ([[0; 16]; 2], 0);
    while n < 9 {
        let digits = [0, 0, 0, (n / 3) as u8, (n % 3) as u8];
        tables[0][n] = four(digits);
        tables[1][n] = fifth(digits);
        n += 1;
    }
    tables
};
