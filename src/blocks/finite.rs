//! Finds f16 that are no numbers.

/// Whether all of these f16 are numbers. It looks at sixteen at a time: it runs on the CPU, an
/// embedding has hundreds of millions of values, and the web's build unrolls no loops.
pub fn are_finite(bytes: &[u8]) -> bool {
    /// Masks for the four f16 of a word: the lowest bit of the exponent, the whole exponent, and
    /// the sign.
    const LOW: u64 = 0x0400_0400_0400_0400;
    const EXPONENT: u64 = 0x7c00_7c00_7c00_7c00;
    const SIGN: u64 = 0x8000_8000_8000_8000;
    // Infinities and NaN have an exponent of ones. Adding to it carries into the bit of the sign.
    let carried = |word: [u8; 8]| (u64::from_le_bytes(word) & EXPONENT) + LOW;
    let (words, rest) = bytes.as_chunks();
    let (fours, words) = words.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let all = fours.iter().fold(carried(last), |all, &[a, b, c, d]| {
        all | carried(a) | carried(b) | carried(c) | carried(d)
    });
    let all = words.iter().fold(all, |all, &word| all | carried(word));
    all & SIGN == 0
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_f16_that_is_no_number_is_found() {
        for bits in 0..=u16::MAX {
            let value = f16::from_bits(bits);
            for index in 0..22 {
                let mut halves = [0x3bff_u16; 22];
                halves[index] = bits;
                let found = are_finite(bytemuck::cast_slice(&halves));
                assert_eq!(found, value.is_finite(), "{bits:#06x}");
            }
        }
        assert!(are_finite(bytemuck::cast_slice(&[0x3bff_u16; 7])));
    }
}
