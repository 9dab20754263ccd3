//! Everything in a file that a session needs besides the weights.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::options::LoadOptions;
use crate::chat::{Template, TemplateChoice};
use crate::error::{Error, Result};
use crate::gguf::Gguf;
use crate::model::weights::weights;
use crate::model::{Config, Weight};
use crate::source::{Reader, Source};
use crate::tokenizer::{Rules, Tokenizer};

pub(super) struct Header {
    pub(super) config: Config,
    /// The model's tensors, in the file's order.
    pub(super) table: Vec<Weight>,
    pub(super) tokenizer: Tokenizer,
    pub(super) template: Option<Template>,
    /// The texts of the tokens that end an answer.
    pub(super) stop_tokens: Vec<String>,
    /// A hash of the file's header and length, which identifies the file.
    pub(super) file: u64,
}

impl Header {
    /// Reads everything before the first tensor.
    ///
    /// Errors: those of the file (`bad-gguf`, `unsupported-model`, `missing-tensor`,
    /// `tensor-shape`), of the template that was chosen (`bad-option`), and of the source.
    pub(super) async fn read<S: Source>(
        reader: &mut Reader<S>,
        options: &LoadOptions,
    ) -> Result<Self> {
        let gguf = Gguf::read(reader).await?;
        let config = Config::from_gguf(&gguf)?;
        let table = weights(&config, &gguf)?;
        let rules = if options.strict { Rules::Strict } else { options.tokenizer };
        let tokenizer = Tokenizer::from_gguf_with(&gguf, &config, rules)?;
        // A model that embeds does not chat, and needs no template that works.
        let template = match config.is_embedding() {
            true => None,
            false => Template::new(&gguf.metadata, &tokenizer, &options.template)?,
        };
        if options.strict && options.template == TemplateChoice::Auto {
            refuse_builtin(template.as_ref())?;
        }
        let stop_tokens = stop_texts(&gguf, &tokenizer)?;
        let mut hasher = DefaultHasher::new();
        reader.len().hash(&mut hasher);
        reader.front(gguf.data_start).await?.get(..gguf.data_start as usize).hash(&mut hasher);
        Ok(Self { config, table, tokenizer, template, stop_tokens, file: hasher.finish() })
    }
}

/// Refuses a built-in template, because the caller did not ask for one.
fn refuse_builtin(template: Option<&Template>) -> Result<()> {
    match template.and_then(Template::builtin) {
        None => Ok(()),
        Some(name) => Err(Error::BadOption {
            name: "template".into(),
            why: format!(
                "the file has none that works, and with `strict` the built-in one, `{name}`, is taken \
                 only by `builtin`"
            ),
        }),
    }
}

fn stop_texts(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Vec<String>> {
    let tokens = gguf.metadata.strings("tokenizer.ggml.tokens")?;
    let text = |&id: &u32| tokens.and_then(|tokens| tokens.get(id as usize));
    let texts = tokenizer.stop().iter().filter_map(text);
    Ok(texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}
