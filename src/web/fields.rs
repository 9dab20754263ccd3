//! The fields of objects from JavaScript. An unknown name or a value that is not allowed is a
//! `bad-option`.

use std::ops::RangeInclusive;

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::error::{bad_option, text};
use crate::error::Result;

/// The fields of a JavaScript object. Each is taken by its name, and [`Fields::finish`] refuses all
/// others.
///
/// A field that is `undefined` counts as absent.
pub(super) struct Fields {
    path: String,
    object: JsValue,
    known: Vec<&'static str>,
}

impl Fields {
    /// The fields of `object`; none if it is `undefined`. Errors call the object `path`.
    pub(super) fn new(path: impl Into<String>, object: JsValue) -> Result<Self> {
        let path = path.into();
        if object.is_undefined() || (object.is_object() && !Array::is_array(&object)) {
            Ok(Self { path, object, known: Vec::new() })
        } else {
            Err(bad_option(&path, "must be an object"))
        }
    }

    /// The field, of any type.
    pub(super) fn value(&mut self, name: &'static str) -> Result<JsValue> {
        self.known.push(name);
        if self.object.is_undefined() {
            return Ok(JsValue::UNDEFINED);
        }
        Reflect::get(&self.object, &name.into()).map_err(|thrown| {
            bad_option(&self.name(name), format!("cannot be read: {}", text(&thrown)))
        })
    }

    /// The field, which is a string.
    pub(super) fn string(&mut self, name: &'static str) -> Result<Option<String>> {
        self.take(name, JsValue::as_string, "a string")
    }

    /// The field, which is one of several strings. Gives the meaning of the string.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        let quoted: Vec<_> = choices.iter().map(|(text, _)| format!("'{text}'")).collect();
        let expected = match quoted.split_last() {
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => String::new(),
        };
        let chosen = |value: &JsValue| {
            let text = value.as_string()?;
            choices.iter().find(|(choice, _)| *choice == text).map(|(_, meaning)| *meaning)
        };
        self.take(name, chosen, &expected)
    }

    pub(super) fn bool(&mut self, name: &'static str) -> Result<Option<bool>> {
        self.take(name, JsValue::as_bool, "true or false")
    }

    pub(super) fn strings(&mut self, name: &'static str) -> Result<Option<Vec<String>>> {
        let strings = |value: &JsValue| {
            let array = value.dyn_ref::<Array>()?;
            array.iter().map(|item| item.as_string()).collect()
        };
        self.take(name, strings, "an array of strings")
    }

    /// A number within a range.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<f64>,
        expected: &str,
    ) -> Result<Option<f64>> {
        let number = |value: &JsValue| value.as_f64().filter(|number| range.contains(number));
        self.take(name, number, expected)
    }

    pub(super) fn u32(&mut self, name: &'static str, min: u32) -> Result<Option<u32>> {
        let integer = self.integer(name, u64::from(min)..=u64::from(u32::MAX))?;
        Ok(integer.map(|integer| integer as u32))
    }

    pub(super) fn integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        self.take(name, |value| as_integer(value, range), &expected)
    }

    fn take<T>(
        &mut self,
        name: &'static str,
        convert: impl FnOnce(&JsValue) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>> {
        let value = self.value(name)?;
        if value.is_undefined() {
            return Ok(None);
        }
        match convert(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(bad_option(&self.name(name), format!("must be {expected}"))),
        }
    }

    /// Fails if the object has a field that was not taken.
    pub(super) fn finish(self) -> Result<()> {
        if self.object.is_undefined() {
            return Ok(());
        }
        let keys = Object::keys(self.object.unchecked_ref::<Object>());
        match keys.iter().find_map(|key| {
            let key = key.as_string()?;
            (!self.known.contains(&key.as_str())).then_some(key)
        }) {
            Some(key) => Err(bad_option(&self.name(&key), "there is no such option")),
            None => Ok(()),
        }
    }

    fn name(&self, name: &str) -> String {
        if self.path == "options" { name.into() } else { format!("{}.{name}", self.path) }
    }
}

/// An argument that is an integer.
pub(super) fn integer(name: &str, value: &JsValue) -> Result<u32> {
    let range = 0..=u64::from(u32::MAX);
    let why = || format!("must be an integer from 0 to {}", u32::MAX);
    as_integer(value, range).map(|n| n as u32).ok_or_else(|| bad_option(name, why()))
}

/// An argument that is `true` or `false`.
pub(super) fn boolean(name: &str, value: &JsValue) -> Result<bool> {
    value.as_bool().ok_or_else(|| bad_option(name, "must be true or false"))
}

fn as_integer(value: &JsValue, range: RangeInclusive<u64>) -> Option<u64> {
    let number = value.as_f64()?;
    let within = number >= *range.start() as f64 && number <= *range.end() as f64;
    (within && number.fract() == 0.0).then_some(number as u64)
}
