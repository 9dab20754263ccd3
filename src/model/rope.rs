//! The rotary embedding: the angle by which each pair of elements of a head rotates at each
//! position.

use std::f64::consts::PI;

/// How a file changes the frequencies of RoPE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// All frequencies are divided by `factor`; 1 leaves them as they are.
    Linear {
        /// The divisor of all frequencies, at least 1.
        factor: f64,
    },
    /// YaRN: low frequencies are divided by `factor`, high ones are kept, with a ramp between.
    /// It applies at all positions.
    Yarn {
        /// The divisor of the low frequencies, at least 1.
        factor: f64,
        /// Tokens of context before it was extended.
        original: f64,
    },
    /// Each frequency is divided by a factor of its own, from a tensor for contexts up to
    /// `original` tokens or from another one for longer contexts, and by `factor`.
    LongRope {
        /// The divisor of all frequencies besides their own factors, at least 1.
        factor: f64,
        /// Tokens of context before it was extended.
        original: u64,
    },
}

/// The constants of RoPE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub base: f64,
    /// How the file changes them.
    pub scaling: RopeScaling,
    /// The file's factor on cos and sin.
    pub attn_factor: f64,
}

/// The angles of RoPE. They are computed in f64, because angles in f32 are far off at large
/// positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Angles {
    /// The angle of each pair at position 1, `[head_dim / 2]`.
    pub per_position: Vec<f64>,
    /// Multiplies cos and sin.
    pub magnitude: f64,
}

impl Rope {
    /// Whether a context of `n_ctx` tokens takes the tensor of long factors, in a file that has two
    /// tensors of factors. This is decided once, when the model is loaded, as in llama.cpp.
    pub fn takes_long_factors(&self, n_ctx: usize) -> bool {
        matches!(self.scaling, RopeScaling::LongRope { original, .. } if n_ctx as u64 > original)
    }

    /// A sentence for people that says which of two tensors of factors a context of `n_ctx` tokens
    /// takes; `None` if the file does not have two.
    pub fn note(&self, n_ctx: usize) -> Option<String> {
        let RopeScaling::LongRope { original, .. } = self.scaling else { return None };
        let factors = if self.takes_long_factors(n_ctx) { "long" } else { "short" };
        Some(format!(
            "RoPE takes the file's {factors} factors, as the context has {n_ctx} tokens; the long \
             ones are for more than {original}"
        ))
    }
}

impl Angles {
    /// The angles for heads of `head_dim` values. `divisors` `[head_dim / 2]` are the factors of
    /// the file's tensor, if it has one.
    ///
    /// Source of YaRN: Peng et al. 2023, arXiv:2309.00071, with the ramp rounded as llama.cpp and
    /// transformers do.
    pub fn new(rope: &Rope, head_dim: usize, divisors: Option<&[f32]>) -> Self {
        let Rope { base, scaling, attn_factor } = *rope;
        let pairs = head_dim / 2;
        let width = head_dim as f64;
        let mut per_position: Vec<f64> =
            (0..pairs).map(|i| base.powf(-2.0 * i as f64 / width)).collect();
        if let Some(divisors) = divisors {
            for (angle, &divisor) in per_position.iter_mut().zip(divisors) {
                *angle /= f64::from(divisor);
            }
        }
        let mut magnitude = attn_factor;
        match scaling {
            RopeScaling::Linear { factor } | RopeScaling::LongRope { factor, .. } => {
                per_position.iter_mut().for_each(|angle| *angle /= factor);
            }
            RopeScaling::Yarn { factor, original } => {
                // The pair that makes so many rotations over the original context.
                let pair = |rotations: f64| {
                    width * (original / (rotations * 2.0 * PI)).ln() / (2.0 * base.ln())
                };
                let low = pair(BETA_FAST).floor().max(0.0);
                let high = pair(BETA_SLOW).ceil().min(width - 1.0);
                for (i, angle) in per_position.iter_mut().enumerate() {
                    let ramp = ((i as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
                    *angle *= (1.0 - ramp) + ramp / factor;
                }
                magnitude *= 1.0 + 0.1 * factor.ln();
            }
        }
        Self { per_position, magnitude }
    }

    /// cos and sin of every pair at `pos`, times the magnitude.
    pub fn at(&self, pos: usize) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.per_position.iter().map(move |angle| {
            let (sin, cos) = (pos as f64 * angle).sin_cos();
            [cos * self.magnitude, sin * self.magnitude]
        })
    }
}

/// YaRN keeps the frequencies that make at least so many rotations over the original context.
const BETA_FAST: f64 = 32.0;
/// YaRN divides the frequencies that make at most so many rotations.
const BETA_SLOW: f64 = 1.0;
