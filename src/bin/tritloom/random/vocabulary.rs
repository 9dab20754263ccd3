//! The tokenizers of models with random weights. They have the rules of real ones and made-up
//! words.

use tritloom::gguf::Value;

/// A tokenizer without its words.
pub(super) struct Vocabulary {
    /// `tokenizer.ggml.model`.
    model: &'static str,
    /// `tokenizer.ggml.pre`.
    pre: Option<&'static str>,
    /// Special tokens take the last ids, in this order.
    pub(super) special: &'static [&'static str],
    /// The index of the special token that begins a text.
    bos: Option<usize>,
    /// The index of the special token that ends a text.
    eos: usize,
}

pub(super) const LLAMA_3: Vocabulary = Vocabulary {
    model: "gpt2",
    pre: Some("llama-bpe"),
    special: &["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"],
    bos: Some(0),
    eos: 1,
};

pub(super) const QWEN_2: Vocabulary = Vocabulary {
    model: "gpt2",
    pre: Some("qwen2"),
    special: &["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    bos: None,
    eos: 2,
};

pub(super) const FALCON_3: Vocabulary = Vocabulary {
    model: "gpt2",
    pre: Some("falcon3"),
    special: &["<|system|>", "<|user|>", "<|assistant|>", "<|endoftext|>"],
    bos: None,
    eos: 3,
};

pub(super) const FALCON_E: Vocabulary = Vocabulary {
    model: "gpt2",
    pre: Some("falcon_e"),
    special: &["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    bos: None,
    eos: 2,
};

pub(super) const MINICPM: Vocabulary = Vocabulary {
    model: "llama",
    pre: None,
    special: &["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"],
    bos: Some(1),
    eos: 4,
};

// `tokenizer.ggml.token_type`.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const BYTE: i32 = 6;

impl Vocabulary {
    /// The metadata of a tokenizer with `n_vocab` tokens: the bytes, numbered words, and the
    /// special tokens.
    pub(super) fn metadata(&self, n_vocab: usize) -> Vec<(String, Value)> {
        let is_llama = self.model == "llama";
        // The text that begins a word. Then the token that follows the bytes: the one that the
        // merge makes, or the space.
        let (bytes, space, joined) = match is_llama {
            true => ((0..256).map(|b| format!("<0x{b:02X}>")).collect(), "\u{2581}", "\u{2581}"),
            false => (byte_characters(), "Ġ", "ab"),
        };
        let mut types = vec![NORMAL; n_vocab];
        types[n_vocab - self.special.len()..].fill(CONTROL);
        if is_llama {
            types[..bytes.len()].fill(BYTE);
        }
        let special = |i: usize| Value::U32((n_vocab - self.special.len() + i) as u32);
        let text = |text: &str| Value::String(text.into());
        let rules = if is_llama {
            // Of two words, the one with the lower id is joined first.
            let scores = (0..n_vocab).map(|id| -(id as f32));
            ("scores", Value::Numbers(scores.collect()))
        } else {
            ("merges", Value::Strings(["a b"].iter().collect()))
        };
        let mut tokens: Vec<String> = bytes;
        tokens.push(joined.into());
        let words = n_vocab - tokens.len() - self.special.len();
        tokens.extend((0..words).map(|i| format!("{space}{i}")));
        tokens.extend(self.special.iter().map(|text| text.to_string()));
        let keys = [
            Some(("model", text(self.model))),
            self.pre.map(|pre| ("pre", text(pre))),
            Some(("tokens", Value::Strings(tokens.iter().collect()))),
            Some(("token_type", Value::Numbers(types.into_iter().collect()))),
            Some(rules),
            self.bos.map(|bos| ("bos_token_id", special(bos))),
            Some(("eos_token_id", special(self.eos))),
        ];
        let named = |(name, value)| (format!("tokenizer.ggml.{name}"), value);
        keys.into_iter().flatten().map(named).collect()
    }
}

/// The 256 characters that stand for bytes in byte-level BPE.
fn byte_characters() -> Vec<String> {
    let printable = |b: &u32| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|b| !printable(b)).count() as u32;
    let bytes = (0..256).filter(printable).chain(256..256 + others);
    bytes.filter_map(char::from_u32).map(String::from).collect()
}
