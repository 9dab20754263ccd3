// The gate of the feed-forward network: activation(gate) * up.

const_assert ACTIVATION == RELU2 || ACTIVATION == SILU || ACTIVATION == GELU;

fn gated(gate: f32, up: f32) -> f32 {
    if ACTIVATION == RELU2 {
        let g = max(gate, 0.0);
        return g * g * up;
    }
    if ACTIVATION == SILU {
        return gate / (1.0 + exp(-gate)) * up;
    }
    // On some drivers tanh overflows for large values. There it is 1 anyway.
    let inner = 0.7978845608 * gate * fma(0.044715 * gate, gate, 1.0);
    return 0.5 * gate * (1.0 + tanh(clamp(inner, -20.0, 20.0))) * up;
}
