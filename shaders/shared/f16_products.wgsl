// Adds the products of eight f16 values with eight values of x to a sum. All kernels that compute a
// logit must give the same bits, so every operation is explicit and cannot be fused with another.

fn add_products(sum: f32, a: vec4f, b: vec4f) -> f32 {
    return sum + fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, a.x * b.x)));
}

fn add_eight(sum: f32, i: u32, words: vec4u) -> f32 {
    let first = add_products(
        sum,
        x[2u * i],
        vec4f(unpack2x16float(words.x), unpack2x16float(words.y)),
    );
    return add_products(
        first,
        x[2u * i + 1u],
        vec4f(unpack2x16float(words.z), unpack2x16float(words.w)),
    );
}

