//! How long a weight of each type takes.

use serde::Serialize;
use web_time::Instant;

use super::formats::{Kernel, TILE, kernel_of, random_rows, types};
use super::input::Input;
use super::machine::InstructionSet;
use super::open::pool;
use super::pool::Pool;
use super::product::{Matrix, Products, multiply};

/// The matrix: gate or up of a model of 2 B weights. No type's fits into the first two caches of a CPU.
const ROWS: usize = 6912;
const COLUMNS: usize = 2560;

/// How often each product is computed. The fastest time counts.
const ROUNDS: usize = 12;

/// How long a weight of one type takes with one instruction set.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProductTime {
    /// The type, by the name that files give it.
    pub ty: String,
    /// The instruction set, by its name.
    pub instructions: &'static str,
    /// Bits of a weight in the file.
    pub bits: f64,
    /// Picoseconds of a weight in a product with one token.
    pub one_token: f64,
    /// The same for each of four tokens that are computed together, as those of a prompt are.
    pub four_tokens: f64,
}

/// Times a product of every type with every instruction set of this machine, on `threads` threads, or
/// on as many as run at once. All are computed in turn, so that what else the machine does meanwhile
/// slows down all of them, and so that the weights come from memory, as in a model.
pub fn product_times(threads: Option<usize>) -> Vec<ProductTime> {
    let pool = pool(threads);
    let mut matrices: Vec<Matrix> = types().filter_map(kernel_of).map(matrix).collect();
    let sets = InstructionSet::available();
    let blank = |matrix: &Matrix, set: &InstructionSet| ProductTime {
        ty: matrix.kernel.ty.to_string(),
        instructions: set.name(),
        bits: 8.0 * matrix.bytes.len() as f64 / (ROWS * COLUMNS) as f64,
        one_token: f64::INFINITY,
        four_tokens: f64::INFINITY,
    };
    let mut times: Vec<ProductTime> =
        matrices.iter().flat_map(|matrix| sets.iter().map(move |set| blank(matrix, set))).collect();
    for _ in 0..ROUNDS {
        let mut fastest = times.iter_mut();
        for matrix in &mut matrices {
            for (&set, found) in sets.iter().zip(fastest.by_ref()) {
                matrix.set = set;
                found.one_token = found.one_token.min(time(&*pool, matrix, 1));
                found.four_tokens = found.four_tokens.min(time(&*pool, matrix, TILE));
            }
        }
    }
    times
}

/// Random weights of a type.
fn matrix(kernel: &'static Kernel) -> Matrix {
    let bytes = random_rows(kernel.ty, COLUMNS, 8).repeat(ROWS / 8);
    let set = InstructionSet::SCALAR;
    Matrix { kernel, set, rows: ROWS, bytes, factor: 1.0, of_floats: false, split: None }
}

/// The picoseconds of a weight and a token in one product.
fn time(pool: &dyn Pool, matrix: &Matrix, tokens: usize) -> f64 {
    let x: Vec<f32> = (0..COLUMNS).map(|i| (i % 255) as f32 - 127.0).collect();
    let mut inputs = vec![Input::default(); tokens];
    inputs.iter_mut().for_each(|input| matrix.prepare(input, &x));
    let mut products = Products::default();
    let start = Instant::now();
    multiply(pool, [matrix], &inputs, [&mut products]);
    start.elapsed().as_secs_f64() * 1e12 / (ROWS * COLUMNS * tokens) as f64
}
