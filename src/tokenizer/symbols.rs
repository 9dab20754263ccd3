//! Joins the characters of a text into tokens: the best pair of neighbours first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A part of a text that is one token, or will be part of one.
struct Symbol {
    start: usize,
    /// 0 once it was joined to the symbol before it.
    len: usize,
    before: usize,
    after: usize,
}

/// Stands for the index of a symbol that does not exist.
const NONE: usize = usize::MAX;

/// Splits `text` into characters and joins two neighbours as long as `rank` gives a rank for any
/// two. The pair with the highest rank is joined first; of equal ranks, the leftmost. `rank` gets
/// the text of both together and the number of bytes of the left one. Gives the symbols that are
/// left, in order.
pub(super) fn join<'a, R: Ord>(
    text: &'a str,
    rank: impl Fn(&'a str, usize) -> Option<R>,
) -> impl Iterator<Item = &'a str> {
    let mut symbols: Vec<Symbol> = text
        .char_indices()
        .enumerate()
        .map(|(i, (start, char))| Symbol {
            start,
            len: char.len_utf8(),
            before: i.wrapping_sub(1),
            after: i + 1,
        })
        .collect();
    if let Some(last) = symbols.last_mut() {
        last.after = NONE;
    }
    // The number of bytes tells later whether a join has changed either of the two meanwhile.
    let pair = |symbols: &[Symbol], left: usize, right: usize| {
        let (a, b) = (symbols.get(left)?, symbols.get(right)?);
        let len = a.len + b.len;
        Some((rank(&text[a.start..][..len], a.len)?, Reverse(left), right, len))
    };
    let all = 1..symbols.len();
    let mut queue: BinaryHeap<_> =
        all.filter_map(|right| pair(&symbols, right - 1, right)).collect();
    while let Some((_, Reverse(left), right, len)) = queue.pop() {
        let (a, b) = (&symbols[left], &symbols[right]);
        if a.len == 0 || b.len == 0 || a.len + b.len != len {
            continue;
        }
        let after = b.after;
        symbols[right].len = 0;
        symbols[left].len = len;
        symbols[left].after = after;
        if let Some(next) = symbols.get_mut(after) {
            next.before = left;
        }
        queue.extend(pair(&symbols, symbols[left].before, left));
        queue.extend(pair(&symbols, left, after));
    }
    let parts = symbols.into_iter().filter(|symbol| symbol.len > 0);
    parts.map(|symbol| &text[symbol.start..][..symbol.len])
}
