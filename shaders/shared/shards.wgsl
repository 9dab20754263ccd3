// A dispatch over the rows of up to three neighbouring shards. Shard 1 begins at row SHARD_1 of the
// dispatch, and shard 2 at row SHARD_2. If there is no such shard, the constant is N_ROWS.

// The rows of a workgroup, counted within the dispatch. They all belong to one shard.
struct Rows {
    shard: u32,
    start: u32, // the shard's first row
    first: u32, // the workgroup's first row
    end: u32,   // the end of the shard
}

// Each shard has as many workgroups as its rows need, with up to `each` rows. The last workgroup
// may be past all rows.
fn rows_of_group(index: u32, each: u32) -> Rows {
    var rows = Rows(0u, 0u, index * each, SHARD_1);
    let groups0 = (SHARD_1 + each - 1u) / each;
    if SHARD_1 < N_ROWS && index >= groups0 {
        rows = Rows(1u, SHARD_1, SHARD_1 + (index - groups0) * each, SHARD_2);
        let groups1 = groups0 + (SHARD_2 - SHARD_1 + each - 1u) / each;
        if SHARD_2 < N_ROWS && index >= groups1 {
            rows = Rows(2u, SHARD_2, SHARD_2 + (index - groups1) * each, N_ROWS);
        }
    }
    return rows;
}
