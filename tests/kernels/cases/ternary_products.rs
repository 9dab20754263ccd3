//! Products of ternary matrices: `gemv_i2s` for one token, `gemm_few` for a few, `gemm_i2s` for
//! many, and `gemm_i2s_matrix` with matrix units. No adapter of the tests has these, so they are emulated.

use tritloom::gpu::{Buffer, Gpu, Recorder};
use tritloom::kernels::{Product, Quantized, Shard, Ternary};
use tritloom::model::Activation;
use tritloom::reference::ops;
use tritloom::ternary::{Layout, pack};

use super::device::{
    assert_close, device, on_each_device_and_as_cards, read, run, step, without_packed_dot,
};
use super::random::Random;
use super::rms_norm::pack_quantized;

/// `k` and rows: the least, one less and one more than a tile, the widths of the 2B model. Each takes
/// one product, whole or in shards: pipelines are slow to compile.
const SHAPES: [(usize, usize); 7] =
    [(128, 1), (384, 63), (2560, 65), (6912, 200), (6912, 1), (128, 1000), (384, 65)];

pub(crate) const PRODUCTS: [Product; 3] =
    [Product::Store, Product::Add, Product::Gated(Activation::Relu2)];

/// The output before the kernel runs. A product may be added to it.
pub(crate) const BEFORE: f32 = 0.375;

/// Scales of the activations and the weights, each with the tolerance. With the first pair,
/// dividing and multiplying are exact. The second pair is like a model's: WGSL allows a division an
/// error of 2.5 ULP.
pub(crate) const SCALES: [(Scale, f32); 2] = [
    (|i| (2f32.powi(i as i32 % 5 - 1), 2f32.powi(i as i32 % 7 - 3)), 0.0),
    (|i| (53.7 / (i as f32 + 0.3), 0.0123 + 0.1 * i as f32), 2e-6),
];
pub(crate) type Scale = fn(usize) -> (f32, f32);

/// `[matrices, rows, k]`.
pub(crate) struct Matrix {
    pub(crate) k: usize,
    pub(crate) rows: usize,
    matrices: usize,
    pub(crate) codes: Vec<i8>,
    pub(crate) scale: Vec<f32>,
}

/// `[n_tokens, k]`, and the scale of each token.
struct Activations {
    q: Vec<i8>,
    s: Vec<f32>,
}

impl Matrix {
    pub(crate) fn new(
        k: usize,
        rows: usize,
        product: Product,
        scale: Scale,
        random: &mut Random,
    ) -> Self {
        let matrices = product.matrices();
        let mut codes: Vec<i8> =
            (0..matrices * rows * k).map(|_| random.below(3) as i8 - 1).collect();
        // Rows with the largest and the smallest possible sums, and a row of zeros.
        codes[..k].fill(1);
        if rows > 2 {
            codes[k..2 * k].fill(-1);
            codes[2 * k..3 * k].fill(0);
        }
        Self { k, rows, matrices, codes, scale: (0..matrices * rows).map(|i| scale(i).1).collect() }
    }

    /// The matrix on a GPU, cut before the rows in `cuts`.
    pub(crate) fn upload(&self, gpu: &Gpu, cuts: &[usize]) -> Ternary {
        let row_of = |matrix: usize, row: usize| &self.codes[(matrix * self.rows + row) * self.k..];
        let ends = cuts.iter().copied().chain([self.rows]);
        let mut first = 0;
        let shards = ends
            .map(|end| {
                let rows = first..end;
                first = end;
                let bytes: Vec<u8> = (0..self.matrices)
                    .flat_map(|matrix| rows.clone().map(move |row| (matrix, row)))
                    .flat_map(|(matrix, row)| pack(&row_of(matrix, row)[..self.k], Layout::X86))
                    .collect();
                let words: Vec<u32> =
                    bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect();
                Shard { buffer: gpu.upload("w", &words), rows }
            })
            .collect();
        Ternary {
            k: self.k,
            rows: self.rows,
            matrices: self.matrices,
            shards,
            scale: gpu.upload("w_scale", &self.scale),
        }
    }

    /// The product with every token, in bitnet.cpp's order of operations.
    fn times(&self, x: &Activations, product: Product) -> Vec<f32> {
        let mut y = Vec::new();
        for (q, s) in x.q.chunks(self.k).zip(&x.s) {
            let sums = ops::matvec_ternary(&self.codes, self.k, q);
            let v: Vec<f32> =
                sums.iter().zip(&self.scale).map(|(&sum, scale)| sum as f32 / s * scale).collect();
            y.extend((0..self.rows).map(|row| match product {
                Product::Store => v[row],
                Product::Add => BEFORE + v[row],
                Product::Gated(_) => {
                    let gate = v[row].max(0.0);
                    gate * gate * v[self.rows + row]
                }
            }));
        }
        y
    }
}

impl Activations {
    fn new(k: usize, n_tokens: usize, scale: Scale, random: &mut Random) -> Self {
        let mut q: Vec<i8> = (0..n_tokens * k).map(|_| random.next() as i8).collect();
        // Rows of the largest value, of the smallest, of zeros, and of a single outlier.
        for (token, row) in q.chunks_mut(k).enumerate() {
            match token % 7 {
                1 => row.fill(127),
                2 => row.fill(-128),
                3 => row.fill(0),
                4 => {
                    row.fill(0);
                    row[random.below(k)] = -127;
                }
                _ => {}
            }
        }
        Self { q, s: (0..n_tokens).map(|i| scale(i).0).collect() }
    }

    fn upload(&self, gpu: &Gpu, k: usize) -> Quantized {
        let words: Vec<u32> = self.q.chunks(k).flat_map(pack_quantized).collect();
        let sum = |q: &[i8]| q.iter().map(|&q| f32::from(q)).sum();
        let scale: Vec<[f32; 2]> =
            self.q.chunks(k).zip(&self.s).map(|(q, &s)| [s, sum(q)]).collect();
        Quantized { q: gpu.upload("q", &words), scale: gpu.upload("q_scale", &scale) }
    }
}

/// Cuts the rows into three shards if `time` is odd. The second shard has a single row.
pub(crate) fn cuts(rows: usize, time: usize) -> Vec<usize> {
    if rows < 3 || time.is_multiple_of(2) { vec![] } else { vec![rows / 3, rows / 3 + 1] }
}

/// The output, with room for one token more: nothing may be written to that.
fn output(gpu: &Gpu, rows: usize, n_tokens: usize) -> Buffer<f32> {
    gpu.upload("y", &vec![BEFORE; rows * (n_tokens + 1)])
}

async fn check(
    gpu: &Gpu,
    what: (&str, &str),
    y: &Buffer<f32>,
    mut expected: Vec<f32>,
    relative: f32,
) {
    expected.resize(y.len(), BEFORE);
    let size = |i: usize| expected[i].abs().max(BEFORE);
    assert_close(what, &read(gpu, y).await, &expected, relative, size);
}

/// The recorder's method for a kernel.
type Multiply = fn(&mut Recorder, &Ternary, &Quantized, &Buffer<f32>, Product);

/// Checks every product with each scale, whole and in shards. All take all token counts.
async fn check_products(gpu: &Gpu, counts: &[usize], kernel: &str, multiply: Multiply) {
    check_shapes(gpu, &SHAPES, counts, kernel, multiply).await;
}

async fn check_shapes(
    gpu: &Gpu,
    shapes: &[(usize, usize)],
    counts: &[usize],
    kernel: &str,
    multiply: Multiply,
) {
    let mut random = Random(1);
    for (i, &(k, rows)) in shapes.iter().enumerate() {
        let product = PRODUCTS[i % 3];
        let (scale, relative) = SCALES[i / 3 % 2];
        let matrix = Matrix::new(k, rows, product, scale, &mut random);
        let cuts = cuts(rows, i);
        let w = matrix.upload(gpu, &cuts);
        for &n_tokens in counts {
            let x = Activations::new(k, n_tokens, scale, &mut random);
            let expected = matrix.times(&x, product);
            let x = x.upload(gpu, k);
            let y = output(gpu, rows, n_tokens);
            run(gpu, &step(3, n_tokens), |p| multiply(p, &w, &x, &y, product));
            let what = format!("{k} x {rows}, {n_tokens} tokens, {product:?}, cut at {cuts:?}");
            check(gpu, (kernel, &what), &y, expected, relative).await;
        }
    }
}

pub(crate) async fn gemv_i2s_is_exact() {
    on_each_device_and_as_cards(async |gpu| {
        check_products(gpu, &[1, 2], "gemv_i2s", |p, w, x, y, product| {
            p.gemv_i2s(w, x, y, product);
        })
        .await;
    })
    .await;
}

/// The kernels take four or eight tokens at a time. The counts leave a remainder of every size.
pub(crate) async fn products_of_several_tokens_are_exact() {
    on_each_device_and_as_cards(async |gpu| {
        let counts = [1, 2, 3, 4, 5, 7, 13];
        check_products(gpu, &counts, "gemv_i2s", |p, w, x, y, product| {
            p.gemv_i2s_of_several(w, x, y, product);
        })
        .await;
        check_products(gpu, &counts, "gemm_few", |p, w, x, y, product| {
            p.gemm_few(w, x, y, product);
        })
        .await;
    })
    .await;
}

/// Two products in one integer do not change each other.
pub(crate) async fn products_without_packed_dot_are_exact() {
    let gpu = without_packed_dot();
    check_products(gpu, &[1, 2], "gemv_i2s", |p, w, x, y, product| {
        p.gemv_i2s(w, x, y, product);
    })
    .await;
    check_products(gpu, &[8, 5, 2], "gemm_few", |p, w, x, y, product| {
        p.gemm_few(w, x, y, product);
    })
    .await;
    check_products(gpu, &[5, 65], "gemm_i2s", |p, w, x, y, product| {
        p.gemm_i2s(w, x, y, product);
    })
    .await;
}

/// Token counts of about a quarter of a tile, a whole tile and several.
pub(crate) async fn gemm_i2s_is_exact() {
    let counts = [1, 15, 16, 17, 33, 64, 65];
    check_products(device(), &counts, "gemm_i2s", |p, w, x, y, product| {
        p.gemm_i2s(w, x, y, product);
    })
    .await;
}

/// A tile and a token; with the smallest shapes also other counts at the borders of tiles.
pub(crate) async fn gemm_i2s_matrix_is_exact() {
    let multiply: Multiply = |p, w, x, y, product| p.gemm_i2s_matrix(w, x, y, product);
    check_products(device(), &[129], "gemm_i2s_matrix", multiply).await;
    check_shapes(device(), &SHAPES[..2], &[1, 127, 128, 257], "gemm_i2s_matrix", multiply).await;
}
