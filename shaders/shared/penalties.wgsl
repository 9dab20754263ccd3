// The penalties, which change the logits of tokens that the sequence has.

struct Penalties {
    repeat: f32,         // divides the positive logits of tokens in the prompt or the output
    inverse_repeat: f32, // the inverse of that, for negative logits too
    presence: f32,       // subtracted if the output has the token
    frequency: f32,      // subtracted once for each time that the output has the token
    n_counted: u32,      // tokens of prompt and output that the caller has counted
    growth: f32,         // the largest factor by which the difference of two logits can grow
    masked: u32,         // whether a mask is set
    forbidden: f32,      // -inf
}

// A logit with its penalties. `count` says how often the output has the token, and has IN_PROMPT if
// the prompt has it.
fn penalized(v: f32, count: u32) -> f32 {
    if count == 0u {
        return v;
    }
    let repeated = v * select(penalties.repeat, penalties.inverse_repeat, v > 0.0);
    let times = f32(count & ~IN_PROMPT);
    // A compiler could fuse either of two products with the subtraction, so one is explicit.
    return fma(-penalties.frequency, times, repeated) - penalties.presence * min(times, 1.0);
}
