//! Maps for templates.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, Value};

/// A map with these fields in this order.
pub(super) fn record<K: Into<Value>>(fields: impl IntoIterator<Item = (K, Value)>) -> Value {
    Value::from_object(Record(fields.into_iter().map(|(key, value)| (key.into(), value)).collect()))
}

#[derive(Debug)]
struct Record(Vec<(Value, Value)>);

impl Object for Record {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.iter().map(|(name, _)| name.clone()).collect())
    }
}
