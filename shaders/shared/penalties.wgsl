// How a text's tokens change their logits.

struct Penalties {
    repeat: f32,         // divides positive logits of tokens in the prompt or the output,
    inverse_repeat: f32, // and its inverse
    presence: f32,       // subtracted if the output has the token
    frequency: f32,      // subtracted once for each time
    n_counted: u32,      // tokens of prompt and output that the caller has counted
    growth: f32,         // the largest factor of the difference of two logits of a token
    masked: u32,         // whether a mask is set
    forbidden: f32,      // -inf
}

// A logit with its penalties. `count`: how often the output has the token, and IN_PROMPT if the prompt
// has it.
fn penalized(v: f32, count: u32) -> f32 {
    if count == 0u {
        return v;
    }
    let repeated = v * select(penalties.repeat, penalties.inverse_repeat, v > 0.0);
    let times = f32(count & ~IN_PROMPT);
    // Of two products, compilers could fuse either with the subtraction.
    return fma(-penalties.frequency, times, repeated) - penalties.presence * min(times, 1.0);
}
