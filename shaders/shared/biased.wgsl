// The value that is added to the logit of a token: its bias, or -inf if a mask is set and has no
// bit for the token. The kernel declares penalties, biases and masks.

// `mask` is the number of the mask.
fn bias_of(id: u32, mask: u32) -> f32 {
    if penalties.masked != 0u {
        let word = masks[mask * MASK_WORDS + id / 32u];
        if ((word >> (id % 32u)) & 1u) == 0u {
            return penalties.forbidden;
        }
    }
    return biases[id];
}
