// How a generation chooses tokens. src/sampling.rs explains the fields.
struct Sampling {
    inverse_temperature: f32, // 0 means greedy
    top_k: u32,               // 0 keeps all
    top_p: f32,               // 1 keeps all
    reach: f32,               // the greatest distance below the greatest logit at which min-p keeps a token
    seed: u32,
    bins_per_logit: f32,      // see selection.wgsl
    all_bins: f32,            // the difference of two logits that all bins but the last span together
    n_top: u32,               // how many of the likeliest tokens are recorded
}

