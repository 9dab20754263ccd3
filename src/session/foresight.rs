//! Finds out which drafted tokens may follow.

use std::iter::repeat_n;

use super::constraint::{Constraint, Follow};
use crate::sampling::Mask;

/// The tokens that may follow in an answer, and those after them.
pub(super) struct Foresight<'a> {
    /// Decides which tokens may follow; `None`: as long as nothing else is known, `mask` does.
    pub(super) constraint: Option<&'a dyn Constraint>,
    /// The mask of the next token; `None`: any may follow.
    pub(super) mask: Option<&'a Mask>,
    /// Whether the engine chooses by masks.
    pub(super) masked: bool,
    /// The slot in which it does.
    pub(super) slot: usize,
    /// How many of the tokens in flight are chosen by masks of their own.
    pub(super) drafted: &'a mut usize,
}

impl Foresight<'_> {
    /// How many of `ids` may follow one another, and the masks of all of these and of the token after
    /// them. If any token may follow, there are no masks.
    pub(super) fn look(&self, ids: &[u32]) -> (usize, Vec<Mask>) {
        let Some(constraint) = self.constraint else {
            let masks = self.mask.into_iter().flat_map(|mask| repeat_n(mask, ids.len() + 1));
            return (ids.len(), masks.cloned().collect());
        };
        let (Some(mask), Some(mut copy)) = (self.mask, constraint.fork()) else {
            return (0, Vec::new());
        };
        let mut masks = vec![mask.clone()];
        for (n, &id) in ids.iter().enumerate() {
            if !masks[n].allows(id) || copy.take(id).is_err() {
                break;
            }
            match copy.follow() {
                Ok(Follow::OneOf(mask)) => masks.push(mask),
                // The token after it is not chosen, so any mask will do.
                Ok(_) => {
                    masks.push(masks[n].clone());
                    break;
                }
                Err(_) => break,
            }
        }
        (masks.len() - 1, masks)
    }

    /// Whether passes need the masks of [`Foresight::look`].
    pub(super) fn is_held(&self) -> bool {
        self.masked && self.constraint.is_some()
    }
}
