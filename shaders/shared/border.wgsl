// Where top-k and top-p end, as far as the bins tell. Without the one or the other, it ends at the
// last bin.
struct Border {
    greatest: u32,      // the key of the greatest logit
    k_bin: u32,         // top-k ends in this bin
    count_above_k: u32, // tokens above it
    mass_above_k: f32,  // their weights together; the greatest logit weighs 1
    p_first: u32,       // top-p ends in this bin
    p_last: u32,        // or in a later one, up to this
    mass_above_p: f32,  // what the tokens above p_first weigh
}

