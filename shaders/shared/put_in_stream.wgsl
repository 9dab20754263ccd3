// Writes the residual stream as the input of the next norm's products: see products/norm.wgsl.
//
// The kernel declares stream, `array<u32>`, and STREAM_ROWS, the number of values of the residual
// stream.

const SCALES_AT: u32 = (STREAM_ROWS + 511u) / 512u * 128u;
const SQUARES_AT: u32 = SCALES_AT + STREAM_ROWS / 16u;

// Writes the four values number `i` if `is_mine`. `squares` is the sum of the squares of their group.
fn put_in_stream(i: u32, four: Quantized, squares: f32, is_mine: bool) {
    if is_mine {
        stream[four_at(i)] = four.word;
    }
    if is_mine && i % 8u == 0u {
        let group = i / 8u;
        stream[SCALES_AT + 2u * group] = bitcast<u32>(four.scale);
        stream[SCALES_AT + 2u * group + 1u] = bitcast<u32>(four.scaled_sum);
        stream[SQUARES_AT + group] = bitcast<u32>(squares);
    }
}
