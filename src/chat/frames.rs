//! The built-in templates, for files without a template or with a wrong one.

use crate::error::Result;
use crate::gguf::Metadata;
use crate::tokenizer::Tokenizer;

/// A built-in template.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its name in `info`.
    pub(super) name: &'static str,
    /// The values of `general.architecture` that it is for; none: it is for any.
    architectures: &'static [&'static str],
    /// The special tokens that the vocabulary must have.
    pub(super) needs: &'static [&'static str],
    /// Whether the model cannot do without a beginning-of-text token.
    pub(super) needs_bos: bool,
    /// The Jinja text.
    pub(super) source: &'static str,
}

/// The frames. A model gets the first one that fits it.
const FRAMES: &[Frame] = &[
    Frame {
        name: "bitnet",
        architectures: WRONG_IN_FILE,
        needs: &["<|eot_id|>"],
        needs_bos: true,
        source: include_str!("frames/bitnet.jinja"),
    },
    Frame {
        name: "qwen3",
        architectures: &["qwen3"],
        needs: &["<|im_start|>", "<|im_end|>"],
        needs_bos: false,
        source: include_str!("frames/qwen3.jinja"),
    },
    Frame {
        name: "llama3",
        architectures: &[],
        needs: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        needs_bos: false,
        source: include_str!("frames/llama3.jinja"),
    },
    Frame {
        name: "chatml",
        architectures: &[],
        needs: &["<|im_start|>", "<|im_end|>"],
        needs_bos: false,
        source: include_str!("frames/chatml.jinja"),
    },
    Frame {
        name: "falcon3",
        architectures: &[],
        needs: &["<|system|>", "<|user|>", "<|assistant|>"],
        needs_bos: false,
        source: include_str!("frames/falcon3.jinja"),
    },
];

/// The architectures whose files have a wrong template. With that template these models hardly ever
/// end an answer.
const WRONG_IN_FILE: &[&str] = &["bitnet-b1.58", "bitnet-25"];

/// Whether the template in a file of this architecture is to be ignored.
pub(super) fn is_wrong_in_file(architecture: &str) -> bool {
    WRONG_IN_FILE.contains(&architecture)
}

/// The frame of a model; `None` if no frame fits it.
pub(super) fn find(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Option<&'static Frame>> {
    let architecture = metadata.text("general.architecture")?.unwrap_or_default();
    Ok(FRAMES.iter().find(|frame| {
        if frame.architectures.is_empty() {
            frame.needs.iter().all(|text| tokenizer.special(text).is_some())
        } else {
            // If such a model lacks special tokens, the error comes when it is asked to chat.
            frame.architectures.contains(&architecture)
        }
    }))
}
