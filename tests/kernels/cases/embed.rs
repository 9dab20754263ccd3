//! `embed` looks tokens up in the embedding.

use half::f16;
use tritloom::gpu::Gpu;
use tritloom::kernels::{Dense, DenseType, Shard};

use super::device::{device, read, run, step};
use super::greedy_lm_head::split;
use super::random::Random;

/// `values` `[rows, k]` on the GPU, cut before the rows in `cuts`.
pub(crate) fn upload(gpu: &Gpu, values: &[f32], k: usize, ty: DenseType, cuts: &[usize]) -> Dense {
    let rows = values.len() / k;
    let mut first = 0;
    let shards = cuts
        .iter()
        .copied()
        .chain([rows])
        .map(|end| {
            let rows = first..end;
            first = end;
            let values = &values[rows.start * k..rows.end * k];
            let words: Vec<u32> = match ty {
                DenseType::F16 | DenseType::F16Split => {
                    let half = |v: f32| u32::from(f16::from_f32(v).to_bits());
                    values.as_chunks().0.iter().map(|&[a, b]| half(a) | half(b) << 16).collect()
                }
                DenseType::F32 => values.iter().map(|v| v.to_bits()).collect(),
            };
            Shard { buffer: gpu.upload("embd", &words), rows }
        })
        .collect();
    let mut dense = Dense { k, rows, ty, shards, shifts: gpu.buffer("shifts", rows) };
    if ty == DenseType::F16Split {
        dense.ty = DenseType::F16;
        split(gpu, &mut dense);
    }
    dense
}

/// Values that f16 holds exactly. They include the largest and smallest normal values and zeros of
/// both signs.
pub(crate) fn hard_values(n: usize, random: &mut Random) -> Vec<f32> {
    let value = |i: usize, random: &mut Random| match i % 101 {
        7 => 65504.0,
        11 => -65504.0,
        13 => 6.103_515_6e-5,
        17 => 0.0,
        19 => -0.0,
        _ => f16::from_f32(2.0 * random.float() - 1.0).to_f32(),
    };
    (0..n).map(|i| value(i, random)).collect()
}

pub(crate) async fn embed_copies_the_rows_of_all_shards() {
    let gpu = device();
    let mut random = Random(5);
    for (k, rows) in [(128, 1), (384, 65), (2560, 300), (6912, 63)] {
        let values = hard_values(rows * k, &mut random);
        // More shards than one dispatch reads.
        let cuts: &[usize] = if rows > 3 { &[20, 21, 30, 40, 50, rows - 1] } else { &[] };
        // The ends of every shard, and one token twice.
        let last = rows as u32 - 1;
        let ids = [0, 19, 20, 21, 29, 30, 39, 40, 49, 50, last.max(1) - 1, last, 19, 0];
        let ids = ids.map(|id: u32| id.min(last));
        for (ty, scale) in
            [(DenseType::F16, 1.0), (DenseType::F16Split, 1.0), (DenseType::F32, 12.0)]
        {
            let embd = upload(gpu, &values, k, ty, cuts);
            let x = gpu.upload("x", &vec![f32::NAN; ids.len() * k]);
            let tokens = gpu.upload("tokens", &ids);
            run(gpu, &step(0, ids.len()), |p| p.embed(&tokens, &embd, scale, &x, false));
            let expected: Vec<f32> = ids
                .iter()
                .flat_map(|&id| &values[id as usize * k..][..k])
                .map(|value| scale * value)
                .collect();
            assert_eq!(read(gpu, &x).await, expected, "{k} x {rows}, {ty:?}");
        }
    }
}
