// How a generation chooses tokens. src/sampling.rs explains the fields.
struct Sampling {
    inverse_temperature: f32, // 0 is greedy
    top_k: u32,               // 0 keeps all
    top_p: f32,               // 1 keeps all
    min_p: f32,               // 0 keeps all
    seed: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
}

