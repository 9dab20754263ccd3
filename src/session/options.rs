//! How to load a model.

use crate::chat::TemplateChoice;
use crate::compute::EngineOptions;
use crate::tokenizer::Rules;

/// How to load a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// How the engine holds it.
    pub engine: EngineOptions,
    /// What to do with a tokenizer that this crate does not know.
    pub tokenizer: Rules,
    /// The chat template.
    pub template: TemplateChoice,
    /// Whether to refuse a model rather than take something else than its file names: other tokenizer rules,
    /// a built-in template that was not asked for, a context shorter than the model's.
    /// [`GpuOptions::strict`](crate::gpu::GpuOptions::strict) says the same of the adapter.
    pub strict: bool,
}
