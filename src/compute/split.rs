//! The rules of an LM head that is split into upper and lower bytes, which a GPU and the CPU have in common.
//! `kernels/rescore.rs` proves that the tokens are the same.

use super::LmHead;
use crate::error::{Error, Result};

/// The longest row of a split LM head. The proof covers it, and it fits into the memory of a GPU's workgroup.
pub const MAX_SPLIT_COLUMNS: usize = 7680;

/// A factor that covers the rounding of a sum of squares.
pub const SLACK: f32 = 1.002;

/// `2⁻⁵⁶`. Taken together, all values whose squares underflow have a smaller norm.
pub const MIN_NORM: f32 = 1.0 / (1u64 << 56) as f32;

/// Above this norm of the hidden state, divided by the temperature, a rank might overflow.
pub const MAX_NORM: f32 = 1e30;

/// `auto` does not split a smaller LM head.
const MIN_BYTES: usize = 32 << 20;

impl LmHead {
    /// Whether to split an LM head of `rows` with `columns` values each, which are f16 if `is_f16`. `auto` does so
    /// if it `pays` on this machine and the LM head is large: reading a small one takes less time than finding its
    /// candidates.
    ///
    /// Errors: `bad-option` if it cannot be split, but the caller asks for it.
    pub fn splits(self, is_f16: bool, [rows, columns]: [usize; 2], pays: bool) -> Result<bool> {
        let why = match columns {
            _ if !is_f16 => "the LM head is not of F16".to_owned(),
            0..=MAX_SPLIT_COLUMNS => {
                let is_large = rows * columns * 2 >= MIN_BYTES;
                return Ok(self == Self::Int8 || self == Self::Auto && pays && is_large);
            }
            _ => format!("rows have {columns} values, more than {MAX_SPLIT_COLUMNS}"),
        };
        match self {
            Self::Int8 => Err(Error::BadOption {
                name: "lmHead".into(),
                why: format!("cannot be int8: {why}"),
            }),
            Self::Auto | Self::F16 => Ok(false),
        }
    }
}
