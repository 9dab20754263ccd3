//! The option that applies adapters.

use std::path::PathBuf;

use clap::Args;

use tritloom::Result;
use tritloom::native::open;
use tritloom::session::Session;
use tritloom::source::Reader;

#[derive(Args)]
pub(crate) struct AdapterArgs {
    /// Apply this adapter (LoRA, a GGUF file), times a scale [default: 1]; may be repeated
    #[arg(long = "adapter", value_name = "FILE[=SCALE]", value_parser = adapter)]
    adapters: Vec<(PathBuf, f32)>,
}

impl AdapterArgs {
    /// Applies them to a session.
    pub(crate) async fn apply(&self, session: &mut Session) -> Result<()> {
        let mut adapters = Vec::new();
        for (path, scale) in &self.adapters {
            let adapter = session.load_adapter(&mut Reader::new(open(path)?)).await?;
            adapters.push((adapter, *scale));
        }
        session.set_adapters(&adapters).await
    }
}

/// The parser of a path and a scale. A path may have an equals sign too.
fn adapter(text: &str) -> Result<(PathBuf, f32), String> {
    let scaled = text
        .rsplit_once('=')
        .and_then(|(path, scale)| Some((PathBuf::from(path), scale.parse().ok()?)));
    Ok(scaled.unwrap_or_else(|| (PathBuf::from(text), 1.0)))
}
