//! Tokens to text, all at once and as a stream.

use tritloom::tokenizer::TextStream;

use crate::support::{Kv, Random, assert_error, tiny};
use crate::{bundled, of, of_rules};

#[test]
fn ids_outside_the_vocabulary_are_refused() {
    let tokenizer = bundled();
    assert_error(tokenizer.decode(&[1, 4096]), "bad-option", &["4096"]);
    assert_error(tokenizer.decode(&[u32::MAX]), "bad-option", &["4294967295"]);
    assert_error(TextStream::new().push(&tokenizer, 4096), "bad-option", &["4096"]);
}

/// Streaming gives the same text, in whole characters only.
#[test]
fn streamed_text_never_splits_a_character() {
    let tokenizer = bundled();
    let text = "Ünï 🙂 👩‍👩‍👧‍👦 日本語 हिन्दी e\u{301} \u{2028}, plain.";
    let ids = tokenizer.encode(text).unwrap();
    assert!(ids.len() > text.chars().count());
    let mut stream = TextStream::new();
    let mut whole = String::new();
    for &id in &ids {
        let text = stream.push(&tokenizer, id).unwrap();
        assert!(!text.contains('\u{fffd}'), "{text:?}");
        whole.push_str(&text);
    }
    assert_eq!(whole + &stream.finish(), text);
}

/// Sentencepiece puts a space before a text and after special tokens. It is not part of the text.
#[test]
fn sentencepieces_space_is_taken_back() {
    let mut file = of_rules("llama");
    for prefix in [true, false] {
        file.set("tokenizer.ggml.add_space_prefix", Kv::Bool(prefix));
        let tokenizer = of(&file).unwrap();
        let start = tokenizer.special("<|im_start|>").unwrap();
        let the = tokenizer.encode_text(if prefix { "the" } else { " the" }).unwrap();
        assert_eq!(tokenizer.bytes(the[0]).unwrap(), b" the", "one token with a space");
        let the = the[0];
        let middle = if prefix { "et" } else { "e t" };
        let at_start = if prefix { "the the" } else { " the the" };
        assert_eq!(tokenizer.decode(&[the, the]).unwrap(), at_start);
        assert_eq!(tokenizer.decode(&[start, the, the]).unwrap(), at_start);
        assert_eq!(tokenizer.decode(&[the, start, the]).unwrap(), at_start.replace("e t", middle));
        let first = |prompt: &[u32]| TextStream::after(prompt).push(&tokenizer, the).unwrap();
        assert_eq!(first(&[]), if prefix { "the" } else { " the" });
        assert_eq!(first(&[the, start]), if prefix { "the" } else { " the" });
        // A text that goes on keeps its space.
        assert_eq!(first(&[start, the]), " the");
    }
}

/// A character without a token is one token for each of its bytes.
#[test]
fn byte_tokens_are_streamed_as_whole_characters() {
    let tokenizer = of(&of_rules("llama")).unwrap();
    let text = "the 🙂 👩‍👩‍👧 ไทย \n\n é";
    let ids = tokenizer.encode_text(text).unwrap();
    assert!(ids.len() > text.chars().count());
    let mut stream = TextStream::new();
    let streamed: Vec<String> =
        ids.iter().map(|&id| stream.push(&tokenizer, id).unwrap()).collect();
    assert!(streamed.iter().all(|text| !text.contains('\u{fffd}')));
    assert!(streamed.iter().any(String::is_empty));
    assert_eq!(streamed.concat() + &stream.finish(), text);
    // A character that stops half way.
    let smile = tokenizer.encode_text("🙂").unwrap();
    assert_eq!(tokenizer.decode(&smile[..smile.len() - 1]).unwrap(), "\u{fffd}");
}

/// Streaming gives the same text as decoding all bytes at once, whatever bytes a model makes.
#[test]
fn streamed_rubbish_is_decoded_as_at_once() {
    let tokenizer = of(&tiny()).unwrap();
    let mut random = Random(11);
    for _ in 0..2000 {
        let bytes: Vec<u32> = (0..1 + random.below(8))
            .map(|_| {
                let edge = [0x00, 0x41, 0x7f, 0x80, 0xa0, 0xbf, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xff];
                if random.below(4) == 0 { random.below(256) as u32 } else { edge[random.below(12)] }
            })
            .collect();
        let mut stream = TextStream::new();
        let mut text = String::new();
        for &id in &bytes {
            text.push_str(&stream.push(&tokenizer, id).unwrap());
        }
        text.push_str(&stream.finish());
        assert_eq!(text, tokenizer.decode(&bytes).unwrap(), "{bytes:x?}");
        assert_eq!(stream.finish(), "");
    }
}
