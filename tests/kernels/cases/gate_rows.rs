//! `gate_rows` gates products that were stored side by side.

use tritloom::model::Activation;
use tritloom::reference::ops;

use super::device::{assert_close, device, read, run, step};
use super::random::Random;

pub(crate) async fn gate_rows_gates_each_token_of_the_step() {
    let gpu = device();
    let mut random = Random(3);
    for activation in [Activation::Relu2, Activation::Silu, Activation::Gelu] {
        for n in [32, 257, 3072] {
            let mut values: Vec<f32> = (0..3 * 2 * n).map(|_| 8.0 * random.float() - 4.0).collect();
            values[..3].copy_from_slice(&[0.0, 90.0, -90.0]);
            let gate_up = gpu.upload("gate_up", &values);
            let y = gpu.upload("y", &vec![f32::NAN; 3 * n]);
            run(gpu, &step(5, 2), |p| p.gate_rows(activation, n, &gate_up, &y));
            let found = read(gpu, &y).await;
            let expected: Vec<f32> = values[..2 * 2 * n]
                .chunks(2 * n)
                .flat_map(|row| ops::gated(activation, &row[..n], &row[n..]))
                .collect();
            // f32, with the exponential of a driver. A gate below 0 is a small difference of large values.
            let allowed = |i: usize| {
                let (gate, up) = (values[i / n * 2 * n + i % n], values[i / n * 2 * n + n + i % n]);
                2e-6 * (gate.abs() + gate * gate) * up.abs() + 1e-9
            };
            let what = format!("{activation:?} of {n}");
            assert_close(("gate_rows", &what), &found[..2 * n], &expected, 1.0, allowed);
            assert!(found[2 * n..].iter().all(|value| value.is_nan()), "beyond the step");
        }
    }
}
