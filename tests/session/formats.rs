//! The same weights in another format give the same logits.

use half::{bf16, f16};
use ternlight::native::block_on;
use ternlight::session::Session;
use ternlight::ternary::{Layout, TAIL, pack, unpack};

use crate::setup::{Setup, cosine, small};
use crate::support::{BF16, F32, I2_S};

const IDS: [u32; 6] = [3, 1, 4, 1, 5, 259];

fn logits(session: &mut Session) -> Vec<f32> {
    block_on(session.logits(&IDS)).unwrap()
}

#[test]
fn the_arm_layout_is_read() {
    let mut file = small();
    let expected = logits(&mut Setup::default().load(&file.build()).unwrap());
    for tensor in file.tensors.iter_mut().filter(|tensor| tensor.type_id == I2_S) {
        let n = tensor.bytes.len() - TAIL;
        let values = unpack(&tensor.bytes[..n], Layout::X86);
        tensor.bytes[..n].copy_from_slice(&pack(&values, Layout::Arm));
    }
    let mut setup = Setup::default();
    assert_ne!(logits(&mut setup.load(&file.build()).unwrap()), expected);
    setup.load.engine.i2s_arm = true;
    assert_eq!(logits(&mut setup.load(&file.build()).unwrap()), expected);
}

#[test]
fn embeddings_may_be_f32_and_bf16() {
    let mut file = small();
    let expected = logits(&mut Setup::default().load(&file.build()).unwrap());
    let halves = file.tensor("token_embd.weight").bytes.clone();
    let values: Vec<f32> =
        halves.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect();

    let tensor = file.tensor("token_embd.weight");
    tensor.type_id = F32;
    tensor.bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let found = logits(&mut Setup::default().load(&file.build()).unwrap());
    assert!(cosine(&found, &expected) > 0.99999);

    // BF16 keeps eight of the eleven bits.
    let tensor = file.tensor("token_embd.weight");
    tensor.type_id = BF16;
    tensor.bytes = values.iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
    let found = logits(&mut Setup::default().load(&file.build()).unwrap());
    assert!(cosine(&found, &expected) > 0.99, "{}", cosine(&found, &expected));
}
