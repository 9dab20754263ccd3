// Gumbel noise. The token with the greatest sum of logit / temperature and noise is a fair draw:
// each token is drawn with its softmax probability.
//
// The kernel declares sampling and step.

// PCG-RXS-M-XS. The noise depends on seed, position and token, never on timing.
fn hash(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn gumbel(id: u32) -> f32 {
    let bits = hash(hash(hash(sampling.seed) ^ (step.pos + step.n_tokens)) ^ id) >> 9u;
    // A number of 23 bits plus a half is exact in f32. So the quotient is never 0 or 1.
    let uniform_open = (f32(bits) + 0.5) / 8388608.0;
    // The largest noise comes from numbers near 1. There a GPU's logarithm may be off by 2^-21,
    // which is more than its value, so the noise could be infinite. There the series of log(1 -
    // rest) is exact.
    let rest = (f32(8388607u - bits) + 0.5) / 8388608.0;
    let exponential =
        select(-log(uniform_open), rest * (1.0 + rest * (0.5 + rest / 3.0)), rest < 0.01);
    return -log(exponential);
}

// The rank of a token: its logit, or in a draw the sum. The greatest rank wins.
fn rank(logit: f32, id: u32) -> f32 {
    if sampling.inverse_temperature > 0.0 {
        return fma(logit, sampling.inverse_temperature, gumbel(id));
    }
    return logit;
}
