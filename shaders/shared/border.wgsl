// Where top-k and top-p end, as far as the bins show it. If one of them is not used, it ends at the
// last bin.
struct Border {
    greatest: u32,      // the key of the greatest logit
    k_bin: u32,         // top-k ends in this bin
    count_above_k: u32, // tokens above it
    mass_above_k: f32,  // their weights together, where the greatest logit weighs 1
    p_first: u32,       // top-p ends in this bin
    p_last: u32,        // or in a later one, up to this one
    mass_above_p: f32,  // the weight of the tokens above p_first
}

