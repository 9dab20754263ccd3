//! Weights that are floats, with inputs that are floats.

use super::super::machine::{Simd, unroll};
use super::{Format, Order, Token, totals};
use crate::gguf::TensorType;

pub(super) struct F16;
pub(super) struct Bf16;
pub(super) struct F32;
/// The upper bytes of split f16 alone.
pub(super) struct Upper;

/// The kernel of a type of `$bytes` bytes for eight values. `$upper` says whether they are upper bytes alone.
macro_rules! dense {
    ($format:ident, $ty:ident, $upper:literal, $bytes:literal, $s:ident, $eight:ident => $load:expr) => {
        impl Format for $format {
            const TYPE: TensorType = TensorType::$ty;
            const ORDER: Order = Order::Floats;
            const UPPER: bool = $upper;

            #[inline(always)]
            fn row<S: Simd, const N: usize>(
                $s: S,
                row: &[u8],
                x: &[Token<'_, S::Stored>; N],
            ) -> [f32; N] {
                // Several sums for each token, because an addition takes some cycles. Upper bytes come sooner than
                // whole values.
                let each = if $upper && N == 1 { 4 } else { 2 };
                let mut sums = [[$s.zeros(); 4]; N];
                let (rows, _) = row.as_chunks::<{ 4 * $bytes }>();
                for (n, four) in rows.iter().enumerate() {
                    let (eights, _) = four.as_chunks::<$bytes>();
                    unroll!(f in 4 => {
                        let $eight = &eights[f];
                        let w = $load;
                        unroll!(i in N => {
                            let x = match x[i].floats[32 * n + 8 * f..].first_chunk() {
                                Some(x) => $s.floats(x),
                                None => $s.zeros(),
                            };
                            let sum = &mut sums[i][f % each];
                            *sum = $s.mul_add(w, x, *sum);
                        });
                    });
                }
                let mut all = [$s.zeros(); N];
                unroll!(i in N => {
                    all[i] = $s.add(sums[i][0], sums[i][1]);
                    if each == 4 {
                        all[i] = $s.add(all[i], $s.add(sums[i][2], sums[i][3]));
                    }
                });
                totals($s, all)
            }
        }
    };
}

dense!(F16, F16, false, 16, s, eight => s.f16s(eight));
dense!(Bf16, Bf16, false, 16, s, eight => s.bf16s(eight));
dense!(F32, F32, false, 32, s, eight => s.floats(&aligned(eight)));
dense!(Upper, F16, true, 8, s, eight => s.uppers(eight));

/// The bytes of eight f32 as f32. Weights may lie anywhere in memory.
#[inline(always)]
fn aligned(bytes: &[u8; 32]) -> [f32; 8] {
    let mut floats = [0.0; 8];
    for (float, bytes) in floats.iter_mut().zip(bytes.as_chunks().0) {
        *float = f32::from_le_bytes(*bytes);
    }
    floats
}
