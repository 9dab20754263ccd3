//! How to load a model.

use crate::chat::TemplateChoice;
use crate::compute::EngineOptions;
use crate::model::Pooling;
use crate::tokenizer::Rules;

/// How to load a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// How the engine holds it.
    pub engine: EngineOptions,
    /// How to treat a tokenizer that this crate does not know.
    pub tokenizer: Rules,
    /// The chat template.
    pub template: TemplateChoice,
    /// How a text's vector is made of its tokens', instead of as the file says.
    pub pooling: Option<Pooling>,
    /// Whether to refuse a model instead of replacing anything that its file names: by other
    /// tokenizer rules, by a built-in template that was not asked for, or by a context shorter than
    /// the model's. [`GpuOptions::strict`](crate::gpu::GpuOptions::strict) says the same of the
    /// adapter.
    pub strict: bool,
}
