// Writes a record of each row of logits: the likeliest tokens of all vocabulary blocks, and the
// sums that turn logits into log-probabilities. A token weighs exp(logit - the greatest logit).

// `Record` in src/kernels/logprobs.rs.
struct Record {
    id: u32,      // the row's token; in a step that chooses one token, the chosen one
    logit: f32,   // of this token
    greatest: f32,
    weights: f32, // of all tokens together
    top: array<vec2u, MAX_TOP>, // bits of the logit, id; NO_TOKEN after the last token
    pad: vec4u,
}

@group(0) @binding(0) var<uniform> sampling: Sampling;
@group(0) @binding(1) var<uniform> step: Step;
// [n_rows]
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
// [n_rows, N_VOCAB]
@group(0) @binding(3) var<storage, read> logits: array<f32>;
// For the next two bindings see logprob_blocks.
// [n_rows, N_BLOCKS]
@group(0) @binding(4) var<storage, read> weights: array<vec2f>;
// [n_rows, N_BLOCKS, MAX_TOP]
@group(0) @binding(5) var<storage, read> tops: array<vec2u>;
// [N_RECORDS]: the record of position p is number p % N_RECORDS
@group(0) @binding(6) var<storage, read_write> records: array<Record>;

// Blocks of each lane.
const EACH: u32 = (N_BLOCKS + WORKGROUP - 1u) / WORKGROUP;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(num_workgroups) groups: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.x * N_BLOCKS;
    let nth = (step.pos + step.n_tokens - groups.x + group.x) % N_RECORDS;
    var value = 0.0;
    var block = NO_TOKEN;
    for (var n = 0u; n < EACH; n++) {
        let i = n * WORKGROUP + lane;
        let other = weights[row + min(i, N_BLOCKS - 1u)];
        if i < N_BLOCKS && other.y > 0.0 && (block == NO_TOKEN || other.x > value) {
            value = other.x;
            block = i;
        }
    }
    reduce(lane, value, block);
    let greatest = workgroupUniformLoad(&values[0]);
    var sum = 0.0;
    for (var n = 0u; n < EACH; n++) {
        let i = n * WORKGROUP + lane;
        let other = weights[row + min(i, N_BLOCKS - 1u)];
        if i < N_BLOCKS && other.y > 0.0 {
            sum += other.y * exp(other.x - greatest);
        }
    }
    let total = sum_of_all(lane, sum);
    if lane == 0u {
        let id = tokens[group.x];
        records[nth].id = id;
        records[nth].logit = logits[group.x * N_VOCAB + min(id, N_VOCAB - 1u)];
        records[nth].greatest = greatest;
        records[nth].weights = total;
    }
    // How many tokens of each block are listed already. Within a block they are in order.
    var listed: array<u32, EACH>;
    let rounds = sampling.n_top;
    for (var i = 0u; i < rounds; i++) {
        value = 0.0;
        var id = NO_TOKEN;
        var block_of_id = 0u;
        for (var n = 0u; n < EACH; n++) {
            let block = n * WORKGROUP + lane;
            let top = tops[(row + min(block, N_BLOCKS - 1u)) * MAX_TOP + min(listed[n], MAX_TOP - 1u)];
            let other = bitcast<f32>(top.x);
            let is_left = block < N_BLOCKS && listed[n] < sampling.n_top && top.y != NO_TOKEN;
            if is_left && (id == NO_TOKEN || other > value) {
                value = other;
                id = top.y;
                block_of_id = n;
            }
        }
        reduce(lane, value, id);
        let best = workgroupUniformLoad(&ids[0]);
        let logit = workgroupUniformLoad(&values[0]);
        if id == best && id != NO_TOKEN {
            listed[block_of_id]++;
        }
        if lane == 0u {
            records[nth].top[i] = vec2u(bitcast<u32>(logit), best);
        }
    }
}
