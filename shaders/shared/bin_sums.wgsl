// Adds up the bins of sample_bins. The kernel declares bins.

const BINS_EACH: u32 = N_BINS / WORKGROUP; // bins of each lane

const_assert N_BINS % WORKGROUP == 0u;

// Sums of f32 have a smaller error than this share of them.
const SUM_ERROR: f32 = 2e-6;

var<workgroup> counts: array<u32, WORKGROUP>;
var<workgroup> masses: array<f32, WORKGROUP>;
// For each bin: the number of tokens in it and in the bins above it, and their weight.
var<workgroup> count_to: array<u32, N_BINS>;
var<workgroup> mass_to: array<f32, N_BINS>;

// The weight of all tokens of a bin. The tokens of the last bin weigh too little to matter.
fn mass_of(bin: u32, count_and_missing: vec2u) -> f32 {
    let tokens = f32(count_and_missing.x) - f32(count_and_missing.y) / (FINE * BINS_PER_NAT);
    return select(tokens * exp(-f32(bin) / BINS_PER_NAT), 0.0, bin == LAST_BIN);
}

fn sum_up(lane: u32) {
    var count = 0u;
    var mass = 0.0;
    for (var i = 0u; i < BINS_EACH; i++) {
        let bin = lane * BINS_EACH + i;
        count += bins[bin].x;
        mass += mass_of(bin, bins[bin]);
    }
    counts[lane] = count;
    masses[lane] = mass;
    for (var i = 0u; i < countTrailingZeros(WORKGROUP); i++) {
        let other = max(lane, 1u << i) - (1u << i);
        workgroupBarrier();
        let more = counts[other];
        let more_mass = masses[other];
        workgroupBarrier();
        if lane >= 1u << i {
            counts[lane] += more;
            masses[lane] += more_mass;
        }
    }
    workgroupBarrier();
    let before = max(lane, 1u) - 1u;
    count = select(counts[before], 0u, lane == 0u);
    mass = select(masses[before], 0.0, lane == 0u);
    for (var i = 0u; i < BINS_EACH; i++) {
        let bin = lane * BINS_EACH + i;
        count += bins[bin].x;
        mass += mass_of(bin, bins[bin]);
        count_to[bin] = count;
        mass_to[bin] = mass;
    }
}

fn count_above(bin: u32) -> u32 {
    return select(count_to[max(bin, 1u) - 1u], 0u, bin == 0u);
}

fn mass_above(bin: u32) -> f32 {
    return select(mass_to[max(bin, 1u) - 1u], 0.0, bin == 0u);
}
