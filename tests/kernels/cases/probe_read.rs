//! `probe_read` takes as long as reading takes. Its sums show that it reads everything once.

use tritloom::gpu::Buffer;
use tritloom::kernels::{PROBED_TOGETHER, probed_sums};

use super::device::{device, read, run, step};
use super::random::Random;

pub(crate) async fn the_probe_reads_everything_once() {
    let gpu = device();
    let mut random = Random(3);
    let together = PROBED_TOGETHER;
    // One vector; one more than a workgroup has lanes; a whole workgroup; one vector more and one
    // fewer than whole workgroups.
    for count in [1, 257, together, 2 * together + 1, 5 * together - 1] {
        let data: Vec<[u32; 4]> =
            (0..count).map(|_| [(); 4].map(|()| random.next() as u32)).collect();
        let (words, sums): (_, Buffer<u32>) =
            (gpu.upload("data", &data), gpu.buffer("sums", probed_sums(count)));
        run(gpu, &step(0, 1), |p| p.probe_read(&words, &sums));
        let expected: Vec<u32> = data
            .chunks(together)
            .map(|vectors| {
                vectors.iter().flatten().fold(0, |sum: u32, word| sum.wrapping_add(*word))
            })
            .collect();
        assert_eq!(read(gpu, &sums).await, expected, "{count}");
    }
}
