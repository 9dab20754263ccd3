//! The model before the fit: its vocabulary, and two layers of random weights.

use tritloom::ternary::{Layout, pack};

use crate::support::{F16, F32, File, I2_S, Kv, Random, Tensor, byte_char};

const N_LAYER: usize = 2;
pub(crate) const N_EMBD: usize = 128;
const N_HEAD: usize = 4;
const N_HEAD_KV: usize = 2;
const N_FF: usize = 256;
const N_CTX: usize = 1024;

/// The gain of the matrices that add to the residual stream. The values of the token's own row are
/// below 1, so they decide little.
const OUTPUT: f32 = 4.0;

/// The special tokens, in the order of their ids.
const SPECIAL: [&str; 3] = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];

/// The model before the fit. Its vocabulary has a token for every word of `words`. `probes` more
/// tokens follow, which never appear in a text; their logits are the hidden state.
pub(crate) fn model(words: &str, probes: usize) -> File {
    let mut file = File::empty();
    let arch = "bitnet-b1.58";
    file.set("general.architecture", Kv::Str(arch.into()));
    file.set("general.name", Kv::Str("Nine texts by heart".into()));
    let head_dim = N_EMBD / N_HEAD;
    for (name, value) in [
        ("context_length", N_CTX),
        ("embedding_length", N_EMBD),
        ("block_count", N_LAYER),
        ("feed_forward_length", N_FF),
        ("rope.dimension_count", head_dim),
        ("attention.head_count", N_HEAD),
        ("attention.head_count_kv", N_HEAD_KV),
    ] {
        file.set(&format!("{arch}.{name}"), Kv::U32(value as u32));
    }
    file.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), Kv::F32(1e-5));
    file.set(&format!("{arch}.rope.freq_base"), Kv::F32(10_000.0));

    let merges = merges(words);
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_char(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|merge| merge.concat()));
    let n_normal = tokens.len();
    tokens.extend(SPECIAL.map(String::from));
    let n_vocab = tokens.len();
    tokens.extend((0..probes).map(|i| format!("probe{i}")));
    let kinds = (0..tokens.len()).map(|id| if id < n_normal { 1 } else { 3 }).collect();
    file.set("tokenizer.ggml.model", Kv::Str("gpt2".into()));
    file.set("tokenizer.ggml.pre", Kv::Str("llama-bpe".into()));
    file.set("tokenizer.ggml.tokens", Kv::Strs(tokens.into_iter().map(Into::into).collect()));
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    let merges = merges.iter().map(|merge| merge.join(" ").into_bytes()).collect();
    file.set("tokenizer.ggml.merges", Kv::Strs(merges));
    file.set("tokenizer.ggml.bos_token_id", Kv::U32(n_normal as u32));
    file.set("tokenizer.ggml.eos_token_id", Kv::U32(n_normal as u32 + 1));

    let mut random = Random(58);
    let n_kv = head_dim * N_HEAD_KV;
    file.add("token_embd.weight", &[N_EMBD as u64, (n_vocab + probes) as u64], F16, &mut Random(1));
    for block in 0..N_LAYER {
        // With a `gain` of 1, the outputs of a matrix are as large as its inputs. Queries and keys
        // are larger, so that attention looks at few of the earlier tokens.
        for (name, columns, rows, gain) in [
            ("attn_q", N_EMBD, N_EMBD, 1.5),
            ("attn_k", N_EMBD, n_kv, 1.5),
            ("attn_v", N_EMBD, n_kv, 1.0),
            ("attn_output", N_EMBD, N_EMBD, OUTPUT),
            ("ffn_gate", N_EMBD, N_FF, 1.0),
            ("ffn_up", N_EMBD, N_FF, 1.0),
            ("ffn_down", N_FF, N_EMBD, OUTPUT),
        ] {
            let mut codes: Vec<i8> =
                (0..columns * rows).map(|_| (random.next() % 3) as i8 - 1).collect();
            if gain < OUTPUT {
                codes.chunks_mut(N_EMBD).for_each(mirror);
            }
            let scale: f32 = gain / (columns as f32 * 2.0 / 3.0).sqrt();
            let mut bytes = pack(&codes, Layout::X86);
            bytes.extend(scale.to_le_bytes());
            bytes.extend([0; 28]);
            file.tensors.push(Tensor {
                name: format!("blk.{block}.{name}.weight"),
                ne: vec![columns as u64, rows as u64],
                type_id: I2_S,
                bytes,
            });
        }
        for (name, n) in [
            ("attn_norm", N_EMBD),
            ("attn_sub_norm", N_EMBD),
            ("ffn_norm", N_EMBD),
            ("ffn_sub_norm", N_FF),
        ] {
            let mut values: Vec<f32> = (0..n).map(|_| 0.5 + random.float()).collect();
            if !name.ends_with("sub_norm") {
                mirror(&mut values);
            }
            file.tensors.push(Tensor {
                name: format!("blk.{block}.{name}.weight"),
                ne: vec![n as u64],
                type_id: F32,
                bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            });
        }
    }
    file.add("output_norm.weight", &[N_EMBD as u64], F32, &mut random);
    file
}

/// Makes the second half the mirror image of the first.
pub(crate) fn mirror<T: Copy>(values: &mut [T]) {
    let n = values.len();
    for i in 0..n / 2 {
        values[n - 1 - i] = values[i];
    }
}

/// The merges that build each word letter by letter, until it is one token.
fn merges(words: &str) -> Vec<[String; 2]> {
    let mut merges: Vec<[String; 2]> = Vec::new();
    let mut word = String::new();
    for c in words.chars() {
        let c = if c == ' ' { 'Ġ' } else { c };
        if !(c.is_ascii_lowercase() && !word.is_empty() || c.is_ascii_uppercase() && word == "Ġ") {
            word = String::from(c);
            continue;
        }
        let merge = [word.clone(), c.to_string()];
        if !merges.contains(&merge) {
            merges.push(merge);
        }
        word.push(c);
    }
    merges
}
