//! `probe_read`, whose time is that of reading: it has read everything if its sums say so.

use ternlight::gpu::Buffer;
use ternlight::kernels::{probe_read, probed_sums};

use crate::device::{device, read, run, step};
use crate::support::Random;

#[test]
fn the_probe_reads_everything_once() {
    let gpu = device();
    let mut random = Random(3);
    // One vector, one past a round of a workgroup, whole workgroups, and one past them.
    for count in [1, 257, 8192, 2 * 8192 + 1, 5 * 8192 - 1] {
        let data: Vec<[u32; 4]> =
            (0..count).map(|_| [(); 4].map(|()| random.next() as u32)).collect();
        let (words, sums): (_, Buffer<u32>) =
            (gpu.upload("data", &data), gpu.buffer("sums", probed_sums(count)));
        run(gpu, &step(0, 1), |recorder, plan, _| probe_read(recorder, plan, &words, &sums));
        let expected: Vec<u32> = data
            .chunks(8192)
            .map(|stretch| {
                stretch.iter().flatten().fold(0, |sum: u32, word| sum.wrapping_add(*word))
            })
            .collect();
        assert_eq!(read(gpu, &sums), expected, "{count}");
    }
}
