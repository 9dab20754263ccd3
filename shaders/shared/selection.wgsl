// The parts that the kernels of top-k, top-p and min-p share. src/kernels/selection.rs says how
// these kernels work together.

// Beyond the last bin no token is drawn. Those tokens share the last bin.
const LAST_BIN: u32 = N_BINS - 1u;

// The distance of a logit below the greatest one, in bins.
fn bins_below(greatest: u32, key: u32) -> f32 {
    let distance = value_of(greatest) - value_of(key);
    let bins = min(distance * sampling.bins_per_logit, f32(LAST_BIN));
    // The product may overflow.
    return select(bins, f32(LAST_BIN), distance >= sampling.all_bins);
}

// The least key that min-p accepts.
fn least_key(greatest: u32) -> u32 {
    return min(key_of(value_of(greatest) - sampling.reach), greatest);
}

