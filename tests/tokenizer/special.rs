//! Special tokens: which text may become one, and which of them end an answer.

use tritloom::tokenizer::{Part, Special};

use crate::support::{Kv, tiny};
use crate::{bundled, kinds_of, list, of, of_rules};

#[test]
fn text_never_becomes_a_special_token() {
    let tokenizer = bundled();
    let eot = tokenizer.special("<|eot_id|>").unwrap();
    let ids = tokenizer.encode("a<|eot_id|>b<|begin_of_text|>").unwrap();
    assert!(ids.iter().all(|&id| id < 4088), "{ids:?}");
    assert_eq!(tokenizer.decode(&ids).unwrap(), "a<|eot_id|>b<|begin_of_text|>");
    assert!(tokenizer.encode_with_special("a<|eot_id|>b").unwrap().contains(&eot));

    // Not even if a control token's text is one word, which is looked up whole, or if a merge of
    // normal tokens makes it.
    let mut file = tiny();
    let kinds = (0..264).map(|id| if matches!(id, 258 | 259 | 261..) { 3 } else { 1 }).collect();
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds));
    file.set("tokenizer.ggml.merges", Kv::Strs(vec!["h e".into(), "l l".into()]));
    let tokenizer = of(&file).unwrap();
    assert_eq!(tokenizer.special("hello"), Some(259));
    assert_eq!(tokenizer.encode("hello").unwrap(), [256, 257, u32::from(b'o')]);
    assert_eq!(tokenizer.encode_with_special("hello").unwrap(), [259]);
}

#[test]
fn user_defined_tokens_are_found_in_any_text() {
    let mut file = tiny();
    let kinds = (0..264).map(|id| if id == 259 { 4 } else { i32::from(id > 260) * 2 + 1 });
    file.set("tokenizer.ggml.token_type", Kv::I32s(kinds.collect()));
    file.set("tokenizer.ggml.merges", Kv::Strs(vec!["h e".into()]));
    let tokenizer = of(&file).unwrap();
    assert_eq!(tokenizer.encode("xhellohe<|eot_id|>").unwrap()[..3], [u32::from(b'x'), 259, 256]);
    assert_eq!(tokenizer.decode(&[259]).unwrap(), "hello");
}

#[test]
fn untrusted_text_has_no_special_tokens_of_any_kind() {
    for model in ["gpt2", "llama"] {
        let tokenizer = of(&of_rules(model)).unwrap();
        let (start, think) = ("<|im_start|>", "<think>");
        let special = [tokenizer.special(start).unwrap(), tokenizer.special(think).unwrap()];
        let text = format!("a{start}b{think}c");
        let found = |ids: &[u32]| special.map(|special| ids.contains(&special));
        assert_eq!(found(&tokenizer.encode_text(&text).unwrap()), [false, false]);
        assert_eq!(found(&tokenizer.encode(&text).unwrap()), [false, true]);
        assert_eq!(found(&tokenizer.encode_with_special(&text).unwrap()), [true, true]);
        assert_eq!(tokenizer.decode(&tokenizer.encode_text(&text).unwrap()).unwrap(), text);
    }
}

/// The text of a template may become special tokens, and that of messages may not. All other text
/// is encoded as a whole: words may begin in one part and end in another.
#[test]
fn parts_of_a_text_have_different_trust() {
    for model in ["gpt2", "llama"] {
        let tokenizer = of(&of_rules(model)).unwrap();
        let trusted = |text| Part { text, special: Special::All };
        let untrusted = |text| Part { text, special: Special::None };
        let parts = |parts: &[Part<'_>]| tokenizer.encode_parts(parts).unwrap();

        assert_eq!(
            parts(&[trusted("<|im_start|>user\nhe"), untrusted("llo"), trusted("<|im_end|>\n")]),
            tokenizer.encode_with_special("<|im_start|>user\nhello<|im_end|>\n").unwrap()
        );
        // A token is not made of an untrusted text and a trusted one.
        let said = "<|im_end|>";
        for split in 0..=said.len() {
            let (left, right) = said.split_at(split);
            let ids = parts(&[trusted("x"), untrusted(left), untrusted(right), trusted("y")]);
            assert_eq!(ids, tokenizer.encode_text("x<|im_end|>y").unwrap());
            if (1..said.len()).contains(&split) {
                assert_eq!(parts(&[trusted(left), untrusted(right)]), parts(&[untrusted(said)]));
                assert_eq!(parts(&[untrusted(left), trusted(right)]), parts(&[untrusted(said)]));
            }
        }
        let defined = Part { text: "<think><|im_end|>", special: Special::UserDefined };
        assert_eq!(parts(&[defined]), tokenizer.encode(defined.text).unwrap());
        assert!(parts(&[]).is_empty());
        // A text that goes on does not begin again.
        let begin = tokenizer.encode_text("the").unwrap();
        let rest = [untrusted(" cat <think>"), trusted("<think>x")];
        assert_eq!(
            [&begin[..], &tokenizer.encode_parts_after(&begin, &rest).unwrap()].concat(),
            parts(&[&[untrusted("the")], &rest[..]].concat())
        );
        let start = tokenizer.special("<|im_start|>").unwrap();
        assert_eq!(tokenizer.encode_parts_after(&[start], &rest).unwrap(), parts(&rest));
        assert!(parts(&[trusted(""), untrusted("")]).is_empty());
    }
}

/// Every text that ends an answer does so in every vocabulary, whatever the file calls the token.
#[test]
fn stop_tokens_are_known_by_their_texts() {
    let texts = [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
    ];
    for kind in [1, 3, 4] {
        for text in texts {
            let mut file = tiny();
            let (tokens, kinds) = (list(&file, "tokens"), kinds_of(&file));
            file.set("tokenizer.ggml.tokens", Kv::Strs([&tokens[..261], &[text.into()]].concat()));
            file.set("tokenizer.ggml.token_type", Kv::I32s([&kinds[..261], &[kind]].concat()));
            file.remove("tokenizer.ggml.bos_token_id").remove("tokenizer.ggml.eos_token_id");
            let tokenizer = of(&file).unwrap();
            assert_eq!(tokenizer.stop(), [261], "{text}");
            assert_eq!(tokenizer.encode_with_special(text).unwrap(), [261]);
            assert!(!tokenizer.encode(text).unwrap().contains(&261));
        }
    }
}

#[test]
fn control_tokens_have_no_text() {
    let tokenizer = bundled();
    let ids = tokenizer.encode_with_special("<|begin_of_text|>Hello<|eot_id|>").unwrap();
    assert_eq!((ids.len(), tokenizer.decode(&ids).unwrap().as_str()), (3, "Hello"));
}
