//! How a text's vector is made of those of its tokens, as folders for sentence-transformers say it.

use std::path::Path;

use serde_json::{Map, Value as Json};

use tritloom::model::Pooling;
use tritloom::{Error, Result};

use super::checkpoint::json_if_there;
use super::safetensors::short;

/// The keys of a pooling's `config.json`, and what each means.
const MODES: [(&str, Pooling); 3] = [
    ("pooling_mode_mean_tokens", Pooling::Mean),
    ("pooling_mode_cls_token", Pooling::Cls),
    ("pooling_mode_lasttoken", Pooling::Last),
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
    // A folder comes from strangers. It must not make this program read a file elsewhere.
    if Path::new(&path).file_name().is_none_or(|plain| plain != &*path) {
        let path = short(&path);
        return Err(Error::UnsupportedModel(format!("modules.json names the folder {path:?}")));
    }
    let Some(config) = json_if_there::<Map<String, Json>>(&folder.join(path), "config.json")?
    else {
        return Ok(None);
    };
    let is_on = |key: &str| config.get(key) == Some(&Json::Bool(true));
    let on = config.keys().filter(|key| key.starts_with("pooling_mode") && is_on(key));
    let found: Vec<&String> = on.collect();
    let known = |key: &str| MODES.iter().find(|mode| mode.0 == key).map(|mode| mode.1);
    match &found[..] {
        [] => Ok(None),
        [one] if known(one).is_some() => Ok(known(one)),
        _ => Err(Error::UnsupportedModel(format!("the pooling of the folder is {found:?}"))),
    }
}
