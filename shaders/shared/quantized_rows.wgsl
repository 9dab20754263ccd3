// Quantises a row of each token, by a workgroup of its own: see normed_input.wgsl. The kernel declares q
// [n_tokens, K] and q_scale [n_tokens].

fn put(token: u32, word: u32, values: vec4u) {
    q[token * WORDS + word] = values;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let s_sum = norm_input(group.x, lane);
    if lane == 0u {
        q_scale[group.x] = s_sum;
    }
}
