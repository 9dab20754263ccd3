//! A JSON object of which every key must be understood.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use tritloom::{Error, Result};

use super::safetensors::short;

/// An object that remembers which keys were asked for. Keys that are `null` count as absent.
pub(super) struct Object {
    /// The object's name in messages, such as `config.json`.
    name: String,
    map: Map<String, Value>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl Object {
    pub(super) fn new(name: &str, map: Map<String, Value>) -> Self {
        Self { name: name.into(), map, asked: RefCell::default() }
    }

    /// The value of `key` as it is.
    pub(super) fn get(&self, key: &'static str) -> Option<&Value> {
        self.asked.borrow_mut().insert(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn integer(&self, key: &'static str) -> Result<Option<u64>> {
        self.typed(key, "a whole number", Value::as_u64)
    }

    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>> {
        self.typed(key, "a number", Value::as_f64)
    }

    pub(super) fn boolean(&self, key: &'static str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    pub(super) fn text(&self, key: &'static str) -> Result<Option<&str>> {
        self.typed(key, "a text", Value::as_str)
    }

    pub(super) fn numbers(&self, key: &'static str) -> Result<Option<Vec<f32>>> {
        self.typed(key, "a list of numbers", |value| {
            value.as_array()?.iter().map(|x| x.as_f64().map(|x| x as f32)).collect()
        })
    }

    /// An object within this one.
    pub(super) fn object(&self, key: &'static str) -> Result<Option<Self>> {
        let map = self.typed(key, "an object", Value::as_object)?;
        Ok(map.map(|map| Self::new(&format!("`{key}` in {}", self.name), map.clone())))
    }

    /// The value of a `key` that must be there, read by one of the getters:
    /// `object.require("vocab_size", Object::integer)`.
    pub(super) fn require<'a, T>(
        &'a self,
        key: &'static str,
        get: impl FnOnce(&'a Self, &'static str) -> Result<Option<T>>,
    ) -> Result<T> {
        get(self, key)?
            .ok_or_else(|| Error::UnsupportedModel(format!("{} has no `{key}`", self.name)))
    }

    /// Refuses any value but `usual`, with which the key changes nothing.
    pub(super) fn expect(&self, key: &'static str, usual: &Value) -> Result<()> {
        let same = |value: &Value| match (value.as_f64(), usual.as_f64()) {
            (Some(a), Some(b)) => a == b,
            _ => value == usual,
        };
        match self.get(key) {
            Some(value) if !same(value) => {
                let value = short(&value.to_string());
                unsupported(format!("`{key}` in {} is {value}, not {usual}", self.name))
            }
            _ => Ok(()),
        }
    }

    /// Refuses keys that were not asked for, except those that change no number.
    pub(super) fn finish(&self, harmless: &[&str]) -> Result<()> {
        let asked = self.asked.borrow();
        let known = |key: &str| asked.contains(key) || harmless.contains(&key);
        match self.map.iter().find(|(key, value)| !value.is_null() && !known(key)) {
            None => Ok(()),
            Some((key, value)) => unsupported(format!(
                "{} has `{}` ({}), which this program does not know; remove it if it does not \
                 change what the model computes",
                self.name,
                short(key),
                short(&value.to_string())
            )),
        }
    }

    fn typed<'a, T>(
        &'a self,
        key: &'static str,
        expected: &str,
        get: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        get(value).map(Some).ok_or_else(|| {
            let value = short(&value.to_string());
            Error::UnsupportedModel(format!("`{key}` in {} is {value}, not {expected}", self.name))
        })
    }
}

fn unsupported<T>(why: String) -> Result<T> {
    Err(Error::UnsupportedModel(why))
}
