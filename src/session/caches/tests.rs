use super::*;

/// A KV cache that holds a token at each position, where the GPU's holds keys and values.
struct Held {
    caches: Caches,
    positions: Vec<u32>,
}

impl Held {
    fn new(positions: usize) -> Self {
        Self { caches: Caches::new(positions, None), positions: vec![u32::MAX; positions] }
    }

    /// Begins a generation. Gives the sequence's id, and how many tokens need not be computed.
    fn begin(&mut self, ids: &[u32], wanted: Wanted, anyway: bool) -> Option<(CacheId, usize)> {
        let placed = match anyway {
            true => self.caches.place_anyway(ids, wanted)?,
            false => self.caches.place(ids, wanted)?,
        };
        for Copied { from, to, n } in placed.copies {
            self.positions.copy_within(from..from + n, to);
        }
        let cached = self.caches.get(placed.id).unwrap();
        let (first, reused) = (cached.first(), cached.filled);
        assert!((wanted.least..=wanted.most.max(reused)).contains(&cached.room()));
        assert_eq!(self.positions[first..first + reused], ids[..reused]);
        assert!(reused < ids.len());
        self.positions[first + reused..first + ids.len()].copy_from_slice(&ids[reused..]);
        cached.filled = ids.len();
        self.check();
        Some((placed.id, reused))
    }

    /// Gives a sequence room for `n` tokens.
    fn extend(&mut self, id: CacheId, n: usize) {
        let wanted = Wanted { least: n, most: n };
        for Copied { from, to, n } in self.caches.extend_anyway(id, wanted).unwrap() {
            self.positions.copy_within(from..from + n, to);
        }
        self.check();
    }

    /// Checks that no two sequences share a position, and that each has its own tokens.
    fn check(&mut self) {
        let mut rooms: Vec<_> = self.caches.all.values().map(|c| c.room.clone()).collect();
        rooms.retain(|room| !room.is_empty());
        rooms.sort_by_key(|room| room.start);
        assert!(rooms.windows(2).all(|pair| pair[0].end <= pair[1].start), "{rooms:?}");
        for cached in self.caches.all.values() {
            let at = cached.first()..cached.first() + cached.valid();
            assert_eq!(self.positions[at], cached.tokens[..cached.valid()]);
        }
    }

    /// Runs a generation from its beginning to its end. Gives the tokens that were not
    /// computed.
    fn generate(&mut self, ids: &[u32]) -> usize {
        let wanted = Wanted { least: ids.len(), most: ids.len() };
        let (id, reused) = self.begin(ids, wanted, true).unwrap();
        self.caches.release(id);
        reused
    }
}

fn sequence(first: u32, len: u32) -> Vec<u32> {
    (first..first + len).collect()
}

#[test]
fn sequences_that_take_turns_keep_their_ranges() {
    let mut held = Held::new(1000);
    let mut sequences = [sequence(0, 200), sequence(1000, 200), sequence(2000, 200)];
    for turn in 0..3 {
        for sequence in &mut sequences {
            let reused = held.generate(sequence);
            assert_eq!(reused, if turn == 0 { 0 } else { sequence.len() - 20 });
            sequence.extend([7; 20]);
        }
    }
}

#[test]
fn the_sequence_used_longest_ago_gives_up_its_range() {
    let mut held = Held::new(500);
    for first in [0, 1000, 0, 2000] {
        held.generate(&sequence(first, 200));
    }
    assert_eq!(held.generate(&sequence(0, 200)), 199);
    assert_eq!(held.generate(&sequence(2000, 200)), 199);
    assert_eq!(held.generate(&sequence(1000, 200)), 0);
    // Not all sequences are kept, however short they are.
    let mut held = Held::new(500);
    for first in 0..=MAX_SEQUENCES as u32 {
        held.generate(&sequence(100 * first, 10));
    }
    assert_eq!(held.generate(&sequence(100, 11)), 10);
    assert_eq!(held.generate(&sequence(0, 11)), 0);
}

#[test]
fn a_sequence_that_begins_like_another_gets_a_copy_if_there_is_room() {
    let branch = |of: u32| [sequence(0, 200), sequence(of, 100)].concat();
    let mut held = Held::new(1000);
    assert_eq!(held.generate(&branch(1000)), 0);
    assert_eq!(held.generate(&branch(2000)), 200);
    for of in [1000, 2000] {
        assert_eq!(held.generate(&[branch(of), vec![9]].concat()), 300);
    }
    // There is no room for a copy. So the beginning is used in place, and the rest of the
    // sequence is lost.
    let mut held = Held::new(400);
    held.generate(&branch(1000));
    assert_eq!(held.generate(&branch(2000)), 200);
    assert_eq!(held.generate(&branch(1000)), 200);
}

#[test]
fn with_a_grid_only_whole_chunks_of_a_prompt_are_used_again() {
    let mut held = Held::new(1000);
    held.caches.grid = Some(64);
    let (id, _) = held.begin(&sequence(0, 200), Wanted { least: 300, most: 300 }, false).unwrap();
    let cached = held.caches.get(id).unwrap();
    // The generated tokens fill the prompt's last chunk. It is not used again, because steps of
    // single tokens have computed a part of it.
    cached.tokens.extend(200..300);
    cached.filled = 300;
    held.positions[200..300].copy_from_slice(&sequence(200, 100));
    held.caches.release(id);
    assert_eq!(held.generate(&sequence(0, 300)), 192);
    assert_eq!(held.generate(&sequence(0, 300)), 256);
    // The chunk of the last token is computed again as a whole.
    assert_eq!(held.generate(&sequence(0, 257)), 256);
    assert_eq!(held.generate(&sequence(0, 256)), 192);
    assert_eq!(held.generate(&sequence(0, 64)), 0);
}

#[test]
fn a_sequence_moves_where_another_follows_its_range() {
    let mut held = Held::new(1000);
    held.generate(&sequence(0, 200));
    held.generate(&sequence(1000, 200));
    assert_eq!(held.generate(&sequence(0, 400)), 200);
    assert_eq!(held.caches.all.len(), 2);
    assert_eq!(held.generate(&sequence(1000, 201)), 200);
}

#[test]
fn a_running_generation_keeps_its_range() {
    let mut held = Held::new(500);
    let wanted = |least, most| Wanted { least, most };
    let (first, _) = held.begin(&sequence(0, 100), wanted(200, 300), false).unwrap();
    assert_eq!(held.caches.get(first).unwrap().room(), 300);
    assert!(held.begin(&sequence(0, 101), wanted(300, 300), true).is_none());
    // No other sequence may use the tokens of a running one.
    let (second, reused) = held.begin(&sequence(0, 101), wanted(101, 300), false).unwrap();
    assert_eq!((held.caches.get(second).unwrap().room(), reused), (200, 0));
    held.caches.release(first);
    assert_eq!(held.begin(&sequence(0, 150), wanted(200, 300), true).unwrap().1, 100);
}

#[test]
fn idle_sequences_keep_their_ranges_if_they_would_not_suffice() {
    let mut held = Held::new(500);
    let wanted = |least, most| Wanted { least, most };
    let (first, _) = held.begin(&sequence(0, 100), wanted(200, 200), false).unwrap();
    held.generate(&sequence(1000, 100));
    let (second, _) = held.begin(&sequence(2000, 100), wanted(100, 100), false).unwrap();
    assert!(held.begin(&sequence(3000, 100), wanted(201, 300), true).is_none());
    assert!(held.caches.extend_anyway(first, wanted(301, 400)).is_none());
    assert!(held.caches.extend_anyway(second, wanted(301, 400)).is_none());
    assert_eq!(held.caches.all.len(), 3);
    // Without the idle one there is as much as this, in place, and after all others.
    held.extend(first, 300);
    assert_eq!(held.caches.all.len(), 2);
    held.caches.release(first);
    held.extend(second, 500);
    assert_eq!(held.caches.all[&second].room, 0..500);
}

#[test]
fn no_sequence_holds_tokens_of_an_empty_prompt() {
    let mut held = Held::new(500);
    held.generate(&sequence(0, 10));
    assert_eq!(held.caches.holding(&[]), None);
}

#[test]
fn a_sequence_without_room_serves_to_make_one_prompt() {
    let mut held = Held::new(500);
    held.caches.remember(sequence(0, 50), None);
    assert_eq!(held.caches.latest().unwrap().tokens, sequence(0, 50));
    assert_eq!(held.generate(&sequence(0, 60)), 0);
    assert_eq!(held.caches.all.len(), 1);
}

#[test]
fn a_running_sequence_gets_more_room_in_place_or_elsewhere() {
    let mut held = Held::new(1000);
    let wanted = |least| Wanted { least, most: least };
    let (first, _) = held.begin(&sequence(0, 100), wanted(100), false).unwrap();
    let (second, _) = held.begin(&sequence(1000, 100), wanted(100), false).unwrap();
    held.extend(second, 300);
    assert_eq!(held.caches.all[&second].room, 100..400);
    held.extend(first, 300);
    assert_eq!(held.caches.all[&first].room, 400..700);
    // There is room for this sequence if the sequences move together.
    held.extend(second, 400);
    assert_eq!(held.caches.all[&second].room, 600..1000);
    assert!(held.caches.extend_anyway(first, wanted(601)).is_none());
    held.caches.release(second);
    held.check();
    assert!(held.caches.extend(first, wanted(901)).is_none());
    held.extend(first, 1000);
    assert_eq!(held.caches.all.len(), 1);
}

#[test]
fn random_sequences_never_share_a_position() {
    let mut state = 1_u32;
    let mut random = |n: u32| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (state >> 8) % n
    };
    let mut held = Held::new(800);
    let mut running = Vec::new();
    for _ in 0..3000 {
        let mut ids = sequence(1000 * random(5), 1 + random(250));
        ids.extend(sequence(10_000 * random(3), random(40)));
        let least = ids.len() + random(50) as usize;
        let wanted = Wanted { least, most: least + random(400) as usize };
        if let Some((id, _)) = held.begin(&ids, wanted, random(2) == 0) {
            running.push(id);
            if random(3) == 0
                && let Some(copies) =
                    held.caches.extend(id, Wanted { least: least + 30, most: least + 60 })
            {
                for Copied { from, to, n } in copies {
                    held.positions.copy_within(from..from + n, to);
                }
            }
        }
        if running.len() > 2 || random(2) == 0 {
            for id in running.drain(..) {
                held.caches.release(id);
            }
        }
        held.check();
    }
}

#[test]
fn a_prompt_replaces_no_known_sequence_but_that_which_it_goes_on_with() {
    let mut held = Held::new(100);
    held.caches.remember(sequence(0, 5), None);
    let is_known = |held: &Held| held.caches.all.values().any(|cached| cached.room.is_empty());
    held.generate(&sequence(500, 8));
    assert!(is_known(&held));
    held.generate(&sequence(0, 8));
    assert!(!is_known(&held));
}
