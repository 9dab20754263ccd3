//! The questions and options of `decide` from JavaScript, and its results.

use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use super::error::bad_option;
use super::fields::Fields;
use crate::error::Result;
use crate::session::{
    DecideOptions, Decided, Decision, Decisions, Label, Normalize, Question, QuestionKind,
};

const KINDS: [(&str, QuestionKind); 3] = [
    ("boolean", QuestionKind::Boolean),
    ("choice", QuestionKind::Choice),
    ("score", QuestionKind::Score),
];

const NORMALIZE: [(&str, Normalize); 3] =
    [("none", Normalize::None), ("length", Normalize::Length), ("prior", Normalize::Prior)];

/// The arguments of `decide` besides the text.
pub(super) struct Asked {
    pub(super) questions: Vec<Question>,
    pub(super) options: DecideOptions,
}

impl Asked {
    pub(super) fn parse(value: JsValue) -> Result<Self> {
        let mut fields = Fields::new("options", value)?;
        let default = DecideOptions::default();
        let options = DecideOptions {
            context: fields.string("context")?,
            normalize: fields.one_of("normalize", &NORMALIZE)?.unwrap_or(default.normalize),
            temperature: fields
                .number("temperature", f64::MIN_POSITIVE..=f64::MAX, "a number above 0")?
                .unwrap_or(default.temperature),
        };
        let several = fields.value("questions")?;
        let questions = if several.is_undefined() {
            vec![question(&mut fields, "")?]
        } else if !fields.value("question")?.is_undefined() {
            return Err(bad_option("question", "must be absent beside `questions`"));
        } else if Array::is_array(&several) {
            Array::from(&several).iter().enumerate().map(one_of_several).collect::<Result<_>>()?
        } else {
            return Err(bad_option("questions", "must be an array"));
        };
        fields.finish()?;
        if questions.is_empty() {
            return Err(bad_option("questions", "must not be empty"));
        }
        Ok(Self { questions, options })
    }
}

fn one_of_several((n, value): (usize, JsValue)) -> Result<Question> {
    let path = format!("questions[{n}]");
    // An array may hold `undefined`, which is no question.
    if !value.is_object() {
        return Err(bad_option(&path, "must be an object"));
    }
    let mut fields = Fields::new(path.as_str(), value)?;
    let question = question(&mut fields, &format!("{path}."))?;
    fields.finish()?;
    Ok(question)
}

/// The question of an object whose fields have names that begin with `path`.
fn question(fields: &mut Fields, path: &str) -> Result<Question> {
    let asked = fields.string("question")?;
    let asked = asked.ok_or_else(|| bad_option(&format!("{path}question"), "is missing"))?;
    let kind = fields.one_of("type", &KINDS)?;
    let given = fields.value("options")?;
    let options = if given.is_undefined() {
        Vec::new()
    } else if Array::is_array(&given) {
        let label = |(n, value)| label(&format!("{path}options[{n}]"), value);
        Array::from(&given).iter().enumerate().map(label).collect::<Result<_>>()?
    } else {
        return Err(bad_option(&format!("{path}options"), "must be an array"));
    };
    let of_options = if options.is_empty() { QuestionKind::Boolean } else { QuestionKind::Choice };
    let question = Question { question: asked, kind: kind.unwrap_or(of_options), options };
    question.check(path)?;
    Ok(question)
}

fn label(path: &str, value: JsValue) -> Result<Label> {
    if let Some(label) = value.as_string() {
        return Ok(Label { label, description: None });
    }
    if !value.is_object() {
        return Err(bad_option(path, "must be a string or an object"));
    }
    let mut fields = Fields::new(path, value)?;
    let label = fields.string("label")?;
    let label = label.ok_or_else(|| bad_option(&format!("{path}.label"), "is missing"))?;
    let description = fields.string("description")?;
    fields.finish()?;
    Ok(Label { label, description })
}

/// The result of `decide`.
pub(super) fn result(found: &Decisions) -> Result<JsValue, JsValue> {
    let decisions = found.decisions.iter().map(decision).collect::<Result<Array, JsValue>>()?;
    let stats = serde_wasm_bindgen::to_value(&found.stats)?;
    object(&[("decisions", decisions.into()), ("stats", stats)])
}

fn decision(found: &Decision) -> Result<JsValue, JsValue> {
    let of_each = |value: fn(&Decided) -> f64| {
        let fields = found.options.iter().map(|one| (&one.label[..], value(one).into()));
        object(&fields.collect::<Vec<_>>())
    };
    let best = &found.options[found.best];
    let mut fields = vec![
        ("label", JsValue::from(&best.label)),
        ("confidence", best.probability.into()),
        ("probabilities", of_each(|one| one.probability)?),
        ("logprobs", of_each(|one| one.logprob)?),
    ];
    fields.extend(found.expected_score.map(|score| ("expectedScore", score.into())));
    object(&fields)
}

/// An object with these fields of its own, whatever their names.
fn object(fields: &[(&str, JsValue)]) -> Result<JsValue, JsValue> {
    let entry = |(name, value): &(&str, JsValue)| Array::of2(&(*name).into(), value);
    Ok(Object::from_entries(&fields.iter().map(entry).collect::<Array>())?.into())
}
