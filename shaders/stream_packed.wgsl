// Adds a product to the residual stream, see stream_rows.wgsl.

@group(0) @binding(0) var<storage, read> w: array<vec4u>;
@group(0) @binding(1) var<storage, read> w_scale: array<u32>;
@group(0) @binding(2) var<storage, read> q: array<vec4u>;         // [Q_VECTORS]
@group(0) @binding(3) var<storage, read> q_scale: array<vec4f>;   // [SIXTY_FOURS]
@group(0) @binding(4) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(5) var<storage, read_write> x: array<f32>;
@group(0) @binding(6) var<storage, read_write> stream: array<u32>;

fn prepare_input(lane: u32) -> f32 {
    stage_input(lane);
    workgroupBarrier();
    return 1.0;
}
