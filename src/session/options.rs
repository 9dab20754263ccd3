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
}
