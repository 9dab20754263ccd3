// y = W q for one token: ternary rows times an int8 vector. LANES lanes share a row.
//
// PARTS = 1: y[row] = product, or y[row] += product if ADD.
// PARTS = 2: the rows come in pairs, gate and up, and y[row] = relu(gate)² * up.

@group(0) @binding(0) var<storage, read> w: array<u32>;         // [PARTS, N_ROWS, K] codes, K / 16 words a row
@group(0) @binding(1) var<storage, read> w_scale: array<f32>;   // [PARTS, ALL_ROWS]
@group(0) @binding(2) var<storage, read> q: array<vec4u>;       // [K] int8, see quantize.wgsl
@group(0) @binding(3) var<storage, read> q_scale: array<vec2f>; // s, sum of q
@group(0) @binding(4) var<storage, read_write> y: array<f32>;   // [ALL_ROWS]

const WORDS: u32 = K / 16u;
const ROWS: u32 = WORKGROUP / LANES / PARTS; // of y, in one workgroup

var<workgroup> parts: array<i32, WORKGROUP / LANES>;

fn dot_word(word: u32, q: vec4u) -> i32 {
    return dot4I8Packed((word >> 6u) & 0x03030303u, q.x)
        + dot4I8Packed((word >> 4u) & 0x03030303u, q.y)
        + dot4I8Packed((word >> 2u) & 0x03030303u, q.z)
        + dot4I8Packed(word & 0x03030303u, q.w);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let slot = lane / LANES; // of the row and part this lane works on
    let part = slot / ROWS;
    let row = group.x * ROWS + slot % ROWS;
    var sum = 0;
    if row < N_ROWS {
        let first = (part * N_ROWS + row) * WORDS;
        for (var i = lane % LANES; i < WORDS; i += LANES) {
            sum += dot_word(w[first + i], q[i]);
        }
    }
    let d = lanes_sum_i32(lane, sum);
    let at = FIRST_ROW + row;
    if PARTS == 1u {
        if lane % LANES == 0u && row < N_ROWS {
            let v = product(d, q_scale[0], w_scale[at]);
            if ADD {
                y[at] += v;
            } else {
                y[at] = v;
            }
        }
    } else {
        if lane % LANES == 0u {
            parts[slot] = d;
        }
        workgroupBarrier();
        if lane < ROWS && group.x * ROWS + lane < N_ROWS {
            let out = FIRST_ROW + group.x * ROWS + lane;
            y[out] = relu2_glu(
                product(parts[lane], q_scale[0], w_scale[out]),
                product(parts[ROWS + lane], q_scale[0], w_scale[ALL_ROWS + out]),
            );
        }
    }
}
