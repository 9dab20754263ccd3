//! How a text's vector is made of those of its tokens, as folders for sentence-transformers say it.

use std::path::Path;

use serde_json::{Map, Value as Json};

use tritloom::model::Pooling;
use tritloom::{Error, Result};

use super::checkpoint::json_if_there;
use super::safetensors::short;

/// The keys of a pooling's `config.json`, the texts of `pooling_mode` that newer ones have instead, and what
/// each means.
const MODES: [(&str, &str, Pooling); 3] = [
    ("pooling_mode_mean_tokens", "mean", Pooling::Mean),
    ("pooling_mode_cls_token", "cls", Pooling::Cls),
    ("pooling_mode_lasttoken", "lasttoken", Pooling::Last),
];

/// The pooling of the folder; `None` if it does not say one.
///
/// Errors: `io`, and `unsupported-model` for another pooling, or several.
pub(super) fn of(folder: &Path) -> Result<Option<Pooling>> {
    let modules: Option<Json> = json_if_there(folder, "modules.json")?;
    let modules = modules.as_ref().and_then(Json::as_array).into_iter().flatten();
    let text = |module: &Json, key: &str| module[key].as_str().map(str::to_owned);
    let is_pooling =
        |module: &&Json| text(module, "type").is_some_and(|ty| ty.ends_with("Pooling"));
    let Some(path) = modules.into_iter().find(is_pooling).and_then(|one| text(one, "path")) else {
        return Ok(None);
    };
    // A folder comes from strangers. It must not make this program read a file elsewhere. Without a name it is
    // the folder of the model.
    let is_plain = Path::new(&path).file_name().is_some_and(|plain| plain == &*path);
    if !is_plain && !path.is_empty() {
        let path = short(&path);
        return Err(Error::UnsupportedModel(format!("modules.json names the folder {path:?}")));
    }
    let Some(config) = json_if_there::<Map<String, Json>>(&folder.join(path), "config.json")?
    else {
        return Ok(None);
    };
    let unsupported = |what: &str| {
        Err(Error::UnsupportedModel(format!("the pooling of the folder is {}", short(what))))
    };
    if let Some(mode) = config.get("pooling_mode") {
        let known = MODES.iter().find(|known| mode.as_str() == Some(known.1));
        return known.map_or_else(|| unsupported(&mode.to_string()), |known| Ok(Some(known.2)));
    }
    let is_on = |key: &str| config.get(key) == Some(&Json::Bool(true));
    let on = config.keys().filter(|key| key.starts_with("pooling_mode") && is_on(key));
    let found: Vec<&String> = on.collect();
    let known = |key: &str| MODES.iter().find(|mode| mode.0 == key).map(|mode| mode.2);
    match &found[..] {
        [] => Ok(None),
        [one] if known(one).is_some() => Ok(known(one)),
        _ => unsupported(&format!("{found:?}")),
    }
}
