//! The meaning of a step's rows to a kernel.

use crate::gpu::Const;

/// The things for which a step has rows, see `shaders/shared/rows.wgsl`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum StepRows {
    /// It has none: its tokens follow one another in one sequence.
    None,
    /// Its few tokens, which may belong to several sequences.
    Tokens,
    /// Spans of tokens, each of a sequence of its own.
    Spans,
}

impl StepRows {
    /// `has_rows` says whether there is a row for each token.
    pub(super) fn of_tokens(has_rows: bool) -> Self {
        if has_rows { Self::Tokens } else { Self::None }
    }

    pub(super) fn consts(self) -> [Const; 2] {
        [Const::Bool("ROWS", self == Self::Tokens), Const::Bool("SPANS", self == Self::Spans)]
    }
}
