//! `tritloom inspect`.

use tritloom::gguf::type_id::Q2_0;

use crate::support::{File, Kv, Tensor, tiny};
use crate::{assert_fails, file, text};

#[test]
fn inspect_shows_the_content_of_a_file() {
    let shown = text(&["inspect", "models/tiny-stories.gguf"]);
    for line in [
        "GGUF 3, 90 tensors, data at 152352",
        "general.architecture = \"bitnet-b1.58\"",
        "bitnet-b1.58.rope.freq_base = 10000",
        "token_embd.weight                F16 [512, 4096], 4194304 bytes",
        "tritloom runs this model",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "no line {line:?} in\n{shown}");
    }
    // The counts of the goldens: 87280, 87747 and 87117 of 262144.
    let row = shown.lines().find(|line| line.starts_with("blk.0.attn_q.weight")).unwrap();
    assert!(row.ends_with("-1 33.3 %, 0 33.5 %, +1 33.2 %"), "{row}");
    assert!(shown.contains("all ternary weights: -1 33.0 %, 0 33.8 %, +1 33.2 %"));

    assert!(row.contains("  scale 0."), "{row}");

    // Types in blocks too. Two blocks of 64 have the same codes as one of 128, so the same shares.
    let shown = text(&["inspect", "tests/data/models/qwen3-yarn-q2_0.gguf"]);
    let older = text(&["inspect", "tests/data/models/qwen3-yarn-q2_0-legacy-g128.gguf"]);
    let row = |shown: &str| {
        shown.lines().find(|line| line.starts_with("blk.0.attn_q.weight")).unwrap().to_owned()
    };
    let (row, older) = (row(&shown), row(&older));
    assert!(row.contains("Q2_0 [256, 256], 18432 bytes  scales 0."), "{row}");
    assert!(older.contains("Q2_0 (of 128) [256, 256], 17408 bytes  scales 0."), "{older}");
    assert_eq!(row.split_once("scales").unwrap().1, older.split_once("scales").unwrap().1);

    let mut other = File::empty();
    other.set("general.architecture", Kv::Str("gpt2".into()));
    let shown = text(&["inspect", &file("other.gguf", &other.build())]);
    assert!(shown.contains("does not run this model: unsupported model: architecture `gpt2`"));
}

#[test]
fn inspect_refuses_bad_files() {
    assert_fails(&["inspect", "Cargo.toml"], "bad-gguf", &["GGUF"]);
    assert_fails(&["inspect", "src"], "io", &["src"]);
    for name in ["bad_i2s_short", "bad_ntensors_huge", "bad_short0"] {
        let path = format!("tests/data/hostile/{name}.gguf");
        assert_fails(&["inspect", &path], "bad-gguf", &[]);
    }
    let mut spoiled = tiny();
    spoiled.tensor("blk.2.ffn_up.weight").bytes[5] |= 0b11;
    let spoiled = file("inspect-code3.gguf", &spoiled.build());
    assert_fails(&["inspect", &spoiled], "bad-gguf", &["`blk.2.ffn_up.weight`", "code 3"]);

    // In types with blocks, with the offset of the block.
    let mut blocks = File::empty();
    blocks.tensors.push(Tensor {
        name: "t".into(),
        ne: vec![128, 32],
        type_id: Q2_0,
        bytes: [[0; 18]; 64].concat(),
    });
    for (byte, value, what) in [(7, 0b1100, "code 3"), (1, 0x7c, "a scale that is not a number")] {
        let mut spoiled = blocks.clone();
        spoiled.tensors[0].bytes[18 * 9 + byte] = value;
        let bytes = spoiled.build();
        let at = bytes.len() - 64 * 18 + 9 * 18;
        let spoiled = file(&format!("inspect-block-{byte}.gguf"), &bytes);
        assert_fails(
            &["inspect", &spoiled],
            "bad-gguf",
            &["`t`", what, &format!("(at byte {at})")],
        );
    }
}
