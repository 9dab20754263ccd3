//! `tritloom random`: models of random weights.

use std::fs;

use crate::{assert_fails, assert_wrong_usage, target, text};

#[test]
fn random_overwrites_a_file_only_with_force() {
    let model = target("random.gguf");
    let args = ["random", "--shape", "tiny", "--layers", "1", &model];
    let _ = fs::remove_file(&model);
    assert_eq!(text(&args), "");
    let written = fs::read(&model).unwrap();
    fs::write(&model, "something else").unwrap();
    assert_fails(&args, "bad-option", &[&model, "--force"]);
    assert_eq!(fs::read(&model).unwrap(), b"something else");
    assert_eq!(text(&[&args[..], &["--force"]].concat()), "");
    assert!(fs::read(&model).unwrap() == written, "the second file differs from the first");
    let shown = text(&["inspect", &model]);
    assert!(shown.contains("bitnet-b1.58.block_count = 1"), "{shown}");
    assert!(shown.contains("tritloom runs this model"), "{shown}");
}

/// Shapes with types of their own, whole. The headers of all are tested beside the program.
#[test]
fn random_models_of_other_types_are_whole() {
    const THIRDS: &str = "-1 33.6 %, 0 33.2 %, +1 33.2 %";
    const HALVES: &str = "-1 50.0 %, 0 0.0 %, +1 50.0 %";
    for (shape, row, shares) in [
        ("bonsai-1.7b", "token_embd.weight                Q2_0 [2048, 151669], 87361344", THIRDS),
        ("bonsai-1.7b-q1_0", "blk.0.attn_q.weight              Q1_0 [2048, 2048], 589824", HALVES),
        (
            "bitcpm-0.5b",
            "blk.0.ffn_down.weight            TQ2_0 [4096, 1024], 1081344 bytes",
            THIRDS,
        ),
    ] {
        let model = target(&format!("random-{shape}.gguf"));
        assert_eq!(text(&["random", "--shape", shape, "--layers", "1", "--force", &model]), "");
        let shown = text(&["inspect", &model]);
        fs::remove_file(&model).unwrap();
        let row = shown.lines().find(|line| line.starts_with(row)).unwrap_or(&shown);
        assert!(row.contains("  scales 0.0"), "{row}");
        assert!(row.ends_with(shares), "{row}");
        assert!(shown.ends_with("tritloom runs this model\n"), "{shown}");
    }
    let model = target("random-embedding.gguf");
    for (embedding, row) in [("q8_0", "Q8_0"), ("q6_k", "Q6_K"), ("f16", "F16")] {
        let shape = ["--shape", "tiny", "--layers", "1", "--embedding", embedding];
        assert_eq!(text(&[&["random"], &shape[..], &["--force", &model]].concat()), "");
        let shown = text(&["inspect", &model]);
        assert!(shown.contains(&format!("{row} [512, 4096]")), "{shown}");
        assert!(shown.ends_with("tritloom runs this model\n"), "{shown}");
    }
}

#[test]
fn an_embedding_of_f16_gets_the_deviation_that_was_asked_for() {
    let model = target("random-deviation.gguf");
    let shape = ["random", "--shape", "tiny", "--layers", "1", "--force"];
    let deviation = ["--embedding-deviation", "0.5", &model];
    assert_eq!(text(&[&shape[..], &deviation].concat()), "");
    let shown = text(&["inspect", &model]);
    assert!(shown.contains("random, embedding deviation 0.5"), "{shown}");
    assert!(shown.ends_with("tritloom runs this model\n"), "{shown}");
    for wrong in ["0", "-1", "nan", "inf", "10001", "much"] {
        let args = ["--embedding-deviation", wrong, &model];
        let expected = ["embedding-deviation", "must be a number from 0.0001 to 10000"];
        assert_wrong_usage(&[&shape[..], &args].concat(), &expected);
    }
    let q8_0 = [&shape[..], &["--embedding", "q8_0"], &deviation].concat();
    assert_fails(&q8_0, "bad-option", &["embedding-deviation", "F16", "Q8_0"]);
    let counting = [&shape[..], &["--counting"], &deviation].concat();
    assert_wrong_usage(&counting, &["--embedding-deviation", "--counting"]);
    let bench = ["bench", "--embedding-deviation", "0.5"];
    assert_wrong_usage(&bench, &["--shape"]);
    let bench = [&bench[..], &["--shape", "bonsai-1.7b"]].concat();
    assert_fails(&bench, "bad-option", &["embedding-deviation", "F16", "Q2_0"]);
    let bench = [&bench[..], &["--lookup"]].concat();
    assert_wrong_usage(&bench, &["--embedding-deviation", "--lookup"]);
}

#[test]
fn only_the_shapes_of_bitnet_count() {
    let shape = ["--shape", "bonsai-4b"];
    let random = [&["random", "--counting"], &shape[..], &["x.gguf"]].concat();
    assert_fails(&random, "bad-option", &["counting", "`2b4t`"]);
    let bench = [&["bench", "--lookup"], &shape[..]].concat();
    assert_fails(&bench, "bad-option", &["lookup", "`2b4t`"]);
    let small = ["random", "--shape", "tiny", "--embedding", "q8_0", "--counting", "x.gguf"];
    assert_fails(&small, "bad-option", &["counting", "F16"]);
}
