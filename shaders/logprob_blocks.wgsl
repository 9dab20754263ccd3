// Finds the likeliest tokens of each vocabulary block, the likeliest one first, and the sum of the
// weights of all its tokens. A token weighs exp(logit - the block's greatest logit).

@group(0) @binding(0) var<uniform> sampling: Sampling;
// [n_rows, N_VOCAB]
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// [n_rows, n_blocks]: the greatest logit, and the sum of weights, which is 0 if no logit is a
// number
@group(0) @binding(2) var<storage, read_write> weights: array<vec2f>;
// [n_rows, n_blocks, MAX_TOP]: bits of the logit, id
@group(0) @binding(3) var<storage, read_write> tops: array<vec2u>;

const EACH: u32 = VOCAB_BLOCK / WORKGROUP;

// Half the greatest f32. With this limit the distance of two logits is finite.
const MAX_VALUE: f32 = 1.7e38;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group.y * groups.x + group.x;
    let first = group.x * VOCAB_BLOCK + lane;
    var own: array<f32, EACH>;
    // Bit n is set if the lane's token n is a number and not listed yet.
    var left = 0u;
    for (var n = 0u; n < EACH; n++) {
        let id = first + n * WORKGROUP;
        let logit = logits[group.y * N_VOCAB + min(id, N_VOCAB - 1u)];
        let is_number = (bitcast<u32>(logit) & 0x7fffffffu) <= 0x7f800000u;
        own[n] = clamp(logit, -MAX_VALUE, MAX_VALUE);
        left |= select(0u, 1u << n, is_number && id < N_VOCAB);
    }
    let numbers = left;
    var greatest = 0.0;
    // At least one round, because the logit of the first token is needed.
    let rounds = max(sampling.n_top, 1u);
    for (var i = 0u; i < rounds; i++) {
        var value = 0.0;
        var id = NO_TOKEN;
        for (var n = 0u; n < EACH; n++) {
            if ((left >> n) & 1u) == 1u && (id == NO_TOKEN || own[n] > value) {
                value = own[n];
                id = first + n * WORKGROUP;
            }
        }
        reduce(lane, value, id);
        let best = workgroupUniformLoad(&ids[0]);
        let logit = workgroupUniformLoad(&values[0]);
        if i == 0u {
            greatest = logit;
        }
        if best != NO_TOKEN && best % WORKGROUP == lane {
            left &= ~(1u << (best % VOCAB_BLOCK / WORKGROUP));
        }
        if lane == 0u {
            tops[block * MAX_TOP + i] = vec2u(bitcast<u32>(logit), best);
        }
    }
    var sum = 0.0;
    for (var n = 0u; n < EACH; n++) {
        sum += select(0.0, exp(own[n] - greatest), ((numbers >> n) & 1u) == 1u);
    }
    let total = sum_of_all(lane, sum);
    if lane == 0u {
        weights[block] = vec2f(greatest, total);
    }
}
