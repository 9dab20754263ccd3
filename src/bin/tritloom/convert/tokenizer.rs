//! The tokenizer: from tokenizer.json and its companions to metadata.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use tritloom::gguf::{Strings, Value};
use tritloom::{Error, Result};

use super::checkpoint::{json, json_if_there, text_if_there};
use super::pre_tokenizer::{self, Kind};
use super::safetensors::short;

/// Keys and values, in the order of the file.
pub(super) type Metadata = Vec<(String, Value)>;

/// The parts of tokenizer.json that are read.
#[derive(Deserialize)]
struct File {
    model: Bpe,
    #[serde(default)]
    added_tokens: Vec<Added>,
    normalizer: Option<Json>,
    pre_tokenizer: Option<Json>,
    post_processor: Option<Json>,
}

#[derive(Deserialize)]
struct Bpe {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    vocab: HashMap<String, u32>,
    #[serde(default)]
    merges: Vec<Merge>,
    unk_token: Option<String>,
    #[serde(default)]
    byte_fallback: bool,
    #[serde(default)]
    ignore_merges: bool,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    dropout: Option<f32>,
}

/// Old files have one text for a merge, with a space between its two tokens.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair([String; 2]),
}

#[derive(Deserialize)]
struct Added {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    single_word: bool,
}

/// The numbers that GGUF has for kinds of tokens.
mod token_type {
    pub(super) const NORMAL: i32 = 1;
    pub(super) const UNKNOWN: i32 = 2;
    pub(super) const CONTROL: i32 = 3;
    pub(super) const USER_DEFINED: i32 = 4;
    pub(super) const UNUSED: i32 = 5;
    pub(super) const BYTE: i32 = 6;
}

/// Tokens by id.
struct Tokens {
    texts: Vec<Option<String>>,
    types: Vec<i32>,
}

/// The token that ends each text of Qwen's and BitNet's embedding models. Their files also name the token that
/// ends an answer.
const END_OF_TEXT: &str = "<|endoftext|>";

/// The tokenizer's metadata, for an embedding of `n_vocab` rows, and notes for the user. `config`
/// is config.json. `embeds` says that the model embeds texts: each ends with a token.
///
/// Errors: `io`, and `unsupported-model` for rules that no tokenizer of a GGUF file has.
pub(super) fn metadata(
    folder: &Path,
    config: &Map<String, Json>,
    n_vocab: u64,
    embeds: bool,
) -> Result<(Metadata, Option<String>)> {
    let file: File = json(folder, "tokenizer.json")?;
    let options: Map<String, Json> =
        json_if_there(folder, "tokenizer_config.json")?.unwrap_or_default();
    let generation: Map<String, Json> =
        json_if_there(folder, "generation_config.json")?.unwrap_or_default();
    check(&file)?;
    let (kind, note) = pre_tokenizer::kind(
        file.normalizer.as_ref(),
        file.pre_tokenizer.as_ref(),
        file.model.byte_fallback,
        file.model.ignore_merges,
    )?;
    let tokens = Tokens::new(&file, n_vocab)?;

    let mut metadata = Vec::new();
    let mut set = |name: &str, value| metadata.push((format!("tokenizer.{name}"), value));
    match kind {
        Kind::ByteLevel(pre) => {
            set("ggml.model", Value::String("gpt2".into()));
            set("ggml.pre", Value::String(pre.into()));
        }
        Kind::Sentencepiece { space_prefix } => {
            set("ggml.model", Value::String("llama".into()));
            // llama.cpp looks for this key.
            set("ggml.pre", Value::String("default".into()));
            set("ggml.add_space_prefix", Value::Bool(space_prefix));
            set("ggml.scores", Value::Numbers(scores(&file, &tokens)?.into_iter().collect()));
        }
    }
    set("ggml.tokens", Value::Strings(tokens.named()));
    set("ggml.token_type", Value::Numbers(tokens.types.iter().copied().collect()));
    if matches!(kind, Kind::ByteLevel(_)) {
        set("ggml.merges", Value::Strings(merges(&file)?));
    }

    let bos =
        token(&options, "bos_token", &tokens)?.or(ids(config, "bos_token_id")?.first().copied());
    let mut ends: Vec<u32> = token(&options, "eos_token", &tokens)?.into_iter().collect();
    for list in [config, &generation] {
        ends.extend(ids(list, "eos_token_id")?);
    }
    if let Some(end) = tokens.id(END_OF_TEXT).filter(|_| embeds) {
        ends = vec![end];
    }
    let mut seen = HashSet::new();
    ends.retain(|id| seen.insert(*id));
    let end = ends.first().copied().filter(|_| embeds);
    if ends.len() > 3 {
        return unsupported(format!("the model ends texts at {} tokens, GGUF has 3", ends.len()));
    }
    let named = ["eos", "eot", "eom"].into_iter().zip(ends);
    let unknown = file.model.unk_token.as_ref().and_then(|text| tokens.id(text));
    let padding =
        token(&options, "pad_token", &tokens)?.or(ids(config, "pad_token_id")?.first().copied());
    let others = [("bos", bos), ("unknown", unknown), ("padding", padding)];
    let others = others.into_iter().filter_map(|(name, id)| Some((name, id?)));
    for (name, id) in named.chain(others) {
        if id as usize >= tokens.types.len() {
            let n = tokens.types.len();
            return unsupported(format!("the {name} token is {id}, but there are {n} tokens"));
        }
        set(&format!("ggml.{name}_token_id"), Value::U32(id));
    }
    set("ggml.add_bos_token", Value::Bool(adds_bos(&file, &options, [bos, end], &tokens)?));
    if embeds {
        set("ggml.add_eos_token", Value::Bool(true));
    }
    if let Some(template) = template(folder, &options)? {
        set("chat_template", Value::String(template.into()));
    }
    Ok((metadata, note))
}

/// Refuses rules that GGUF cannot express.
fn check(file: &File) -> Result<()> {
    let Bpe { kind, continuing_subword_prefix, end_of_word_suffix, dropout, vocab, .. } =
        &file.model;
    // Older files do not have this field.
    if kind.as_ref().is_some_and(|kind| kind != "BPE") {
        let kind = short(kind.as_deref().unwrap_or_default());
        return unsupported(format!("the model in tokenizer.json is `{kind}`, not `BPE`"));
    }
    if vocab.is_empty() {
        return unsupported("tokenizer.json has no tokens".into());
    }
    for (name, affix) in [
        ("continuing_subword_prefix", continuing_subword_prefix),
        ("end_of_word_suffix", end_of_word_suffix),
    ] {
        if affix.as_ref().is_some_and(|affix| !affix.is_empty()) {
            return unsupported(format!("tokenizer.json has a `{name}`"));
        }
    }
    if dropout.is_some_and(|dropout| dropout != 0.0) {
        return unsupported("tokenizer.json has a `dropout`".into());
    }
    let strips = |added: &&Added| added.lstrip || added.rstrip || added.single_word;
    match file.added_tokens.iter().find(strips) {
        None => Ok(()),
        Some(Added { content, .. }) => unsupported(format!(
            "the added token {:?} takes spaces beside it, or only whole words",
            short(content)
        )),
    }
}

impl Tokens {
    fn new(file: &File, n_vocab: u64) -> Result<Self> {
        let added = file.added_tokens.iter().map(|added| (&added.content, added.id));
        let n = file.model.vocab.values().copied().chain(added.clone().map(|(_, id)| id)).max();
        if let Some(last) = n.filter(|&last| u64::from(last) >= n_vocab) {
            return unsupported(format!(
                "tokenizer.json has a token {last}, but the embedding has {n_vocab} rows"
            ));
        }
        // llama.cpp needs a token for each row. So rows without a token get one that no text
        // contains.
        let n_vocab = n_vocab as usize;
        let mut tokens =
            Self { texts: vec![None; n_vocab], types: vec![token_type::UNUSED; n_vocab] };
        for (text, &id) in &file.model.vocab {
            let kind = match text.as_str() {
                text if file.model.byte_fallback && is_byte(text) => token_type::BYTE,
                text if Some(text) == file.model.unk_token.as_deref() => token_type::UNKNOWN,
                _ => token_type::NORMAL,
            };
            tokens.put(text, id, kind)?;
        }
        for Added { id, content, special, .. } in &file.added_tokens {
            if file.model.vocab.get(content).is_some_and(|known| known != id) {
                return unsupported(format!("the token {:?} has two ids", short(content)));
            }
            let is_unknown = Some(content) == file.model.unk_token.as_ref();
            let kind = match special {
                true if is_unknown => token_type::UNKNOWN,
                true => token_type::CONTROL,
                false => token_type::USER_DEFINED,
            };
            tokens.put(content, *id, kind)?;
        }
        Ok(tokens)
    }

    /// An added token replaces the same text in the vocabulary.
    fn put(&mut self, text: &str, id: u32, kind: i32) -> Result<()> {
        let index = id as usize;
        match &self.texts[index] {
            Some(other) if other != text => {
                let texts = (short(other), short(text));
                unsupported(format!("{:?} and {:?} are both token {id}", texts.0, texts.1))
            }
            _ => {
                self.texts[index] = Some(text.into());
                self.types[index] = kind;
                Ok(())
            }
        }
    }

    fn id(&self, text: &str) -> Option<u32> {
        self.texts.iter().position(|other| other.as_deref() == Some(text)).map(|id| id as u32)
    }

    fn named(&self) -> Strings {
        let texts = self.texts.iter().enumerate();
        texts.map(|(id, text)| text.clone().unwrap_or_else(|| format!("[PAD{id}]"))).collect()
    }
}

/// Whether a token is a byte, such as `<0x0A>`.
fn is_byte(text: &str) -> bool {
    let digits = text.strip_prefix("<0x").and_then(|text| text.strip_suffix('>'));
    digits.is_some_and(|d| d.len() == 2 && d.bytes().all(|c| c.is_ascii_hexdigit()))
}

impl Merge {
    fn pair(&self) -> Option<(&str, &str)> {
        match self {
            Self::Text(text) => text.split_once(' '),
            Self::Pair([left, right]) => Some((left, right)),
        }
    }
}

/// The merges in GGUF's form.
fn merges(file: &File) -> Result<Strings> {
    let mut all = Vec::with_capacity(file.model.merges.len());
    for merge in &file.model.merges {
        match merge.pair() {
            Some((left, right)) if !left.contains(' ') && !right.contains(' ') => {
                all.push(format!("{left} {right}"));
            }
            _ => return unsupported("a merge in tokenizer.json is not two tokens".into()),
        }
    }
    Ok(all.iter().collect())
}

/// The scores of Sentencepiece's tokens. tokenizer.json does not have them, but its merges are
/// sorted by the score of the token that they make, the best first.
///
/// If the merges of several tokens are mixed, these tokens had the same score.
fn scores(file: &File, tokens: &Tokens) -> Result<Vec<f32>> {
    let normal: HashMap<&str, usize> = (0..)
        .zip(&tokens.texts)
        .filter(|(id, _)| matches!(tokens.types[*id], token_type::NORMAL))
        .filter_map(|(id, text)| Some((text.as_deref()?, id)))
        .collect();
    // For each token its first and last merge, and how many there are.
    let mut ranks: Vec<Option<(usize, usize, usize)>> = vec![None; tokens.texts.len()];
    for (rank, merge) in file.model.merges.iter().enumerate() {
        let Some((left, right)) = merge.pair() else {
            return unsupported("a merge in tokenizer.json is not two tokens".into());
        };
        if let Some(&id) = normal.get(format!("{left}{right}").as_str())
            && normal.contains_key(left)
            && normal.contains_key(right)
        {
            let (first, _, count) = ranks[id].unwrap_or((rank, rank, 0));
            ranks[id] = Some((first, rank, count + 1));
        }
    }
    // Sentencepiece joins any two tokens whose text together is a token. So each way to split a
    // token must be a merge. A BPE without some of these merges would give other tokens.
    for (text, &id) in &normal {
        let splits = text.char_indices().skip(1).filter(|(at, _)| {
            normal.contains_key(&text[..*at]) && normal.contains_key(&text[*at..])
        });
        let (splits, merges) = (splits.count(), ranks[id].map_or(0, |(.., count)| count));
        if splits != merges {
            return unsupported(format!(
                "the token {:?} is two tokens in {splits} ways, but has {merges} merges: this is \
                 not the BPE of Sentencepiece",
                short(text)
            ));
        }
    }
    let mut joined: Vec<(usize, usize, usize)> = (0..)
        .zip(&ranks)
        .filter_map(|(id, ranks)| ranks.map(|(first, last, _)| (first, last, id)))
        .collect();
    joined.sort_unstable();
    let mut scores = vec![0.0; tokens.texts.len()];
    // The score of the tokens so far, and the last of their merges.
    let mut before: Option<(f32, usize)> = None;
    for (first, last, id) in joined {
        let (score, end) = match before {
            Some((score, end)) if first < end => (score, end.max(last)),
            _ => (-(first as f32) - 1.0, last),
        };
        scores[id] = score;
        before = Some((score, end));
    }
    Ok(scores)
}

/// The id of a token that the options name, as a text or as an object with its `content`.
fn token(options: &Map<String, Json>, key: &str, tokens: &Tokens) -> Result<Option<u32>> {
    let value = options.get(key).filter(|value| !value.is_null());
    let Some(value) = value else { return Ok(None) };
    let text = value.as_str().or_else(|| value.get("content")?.as_str());
    match text.and_then(|text| tokens.id(text)) {
        Some(id) => Ok(Some(id)),
        None => {
            let value = short(&value.to_string());
            unsupported(format!("`{key}` in tokenizer_config.json is {value}, which is no token"))
        }
    }
}

/// The ids that a key has: one id or several.
fn ids(config: &Map<String, Json>, key: &str) -> Result<Vec<u32>> {
    let id = |value: &Json| value.as_u64().and_then(|id| u32::try_from(id).ok());
    let ids = match config.get(key) {
        None | Some(Json::Null) => Some(Vec::new()),
        Some(Json::Array(list)) => list.iter().map(id).collect(),
        Some(value) => id(value).map(|id| vec![id]),
    };
    ids.ok_or_else(|| {
        let value = short(&config[key].to_string());
        Error::UnsupportedModel(format!("`{key}` is {value}, not ids of tokens"))
    })
}

/// Whether a text begins with the beginning-of-text token.
///
/// `add_bos_token` says so. Without it, the post-processor's template does. If there is an `end`, texts end with
/// that token.
fn adds_bos(
    file: &File,
    options: &Map<String, Json>,
    [bos, end]: [Option<u32>; 2],
    tokens: &Tokens,
) -> Result<bool> {
    let option = |key: &str| options.get(key).and_then(Json::as_bool);
    if option("add_eos_token") == Some(true) && end.is_none() {
        return unsupported("`add_eos_token` in tokenizer_config.json is true".into());
    }
    let template_adds = match &file.post_processor {
        Some(processor) => template_adds_bos(processor, [bos, end], tokens)?,
        None => false,
    };
    Ok(option("add_bos_token").unwrap_or(template_adds))
}

/// Whether the post-processor puts the beginning-of-text token before a text.
///
/// Errors: a post-processor that adds anything else.
fn template_adds_bos(
    processor: &Json,
    [bos, end]: [Option<u32>; 2],
    tokens: &Tokens,
) -> Result<bool> {
    let mut adds = false;
    let steps = match processor["type"].as_str() {
        Some("Sequence") => processor["processors"].as_array().into_iter().flatten().collect(),
        _ => vec![processor],
    };
    for step in steps {
        match step["type"].as_str().unwrap_or_default() {
            "ByteLevel" => {}
            "TemplateProcessing" => {
                let parts = step["single"].as_array().into_iter().flatten();
                let special: Vec<Option<&str>> =
                    parts.map(|part| part["SpecialToken"]["id"].as_str()).collect();
                adds = match special[..] {
                    [None] => false,
                    [None, Some(text)] if end.is_some() && tokens.id(text) == end => false,
                    [Some(text), None] if bos.is_some() && tokens.id(text) == bos => true,
                    _ => {
                        let parts = short(&step["single"].to_string());
                        return unsupported(format!("the post-processor adds tokens: {parts}"));
                    }
                };
            }
            other => return unsupported(format!("the post-processor `{}`", short(other))),
        }
    }
    Ok(adds)
}

/// The chat template: a file of its own, or in the options.
fn template(folder: &Path, options: &Map<String, Json>) -> Result<Option<String>> {
    if let Some(template) = text_if_there(folder, "chat_template.jinja")? {
        return Ok(Some(template));
    }
    match options.get("chat_template") {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(template)) => Ok(Some(template.clone())),
        // Several templates, each with a name.
        Some(list) => {
            let templates = list.as_array().into_iter().flatten();
            let default = templates.into_iter().find(|template| template["name"] == "default");
            match default.and_then(|template| template["template"].as_str()) {
                Some(template) => Ok(Some(template.into())),
                None => unsupported("`chat_template` has no template named `default`".into()),
            }
        }
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
