//! The format of calls of tools.

use llguidance::ParserFactory;
use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::schema::{Checked, checked_of, of_calls};

/// Calls whose schemas have been checked.
pub(crate) struct Calls {
    /// How calls are written.
    spelling: Map<String, Value>,
    tools: Vec<Tool>,
}

struct Tool {
    /// The index that its caller knows it by.
    index: u64,
    name: String,
    parameters: Checked,
}

/// Bytes of a description at most.
const MAX_BYTES: usize = 1 << 18;

/// The name of the grammar of the arguments of tool `n`.
fn arguments_of(n: usize) -> String {
    format!("arguments_{n}")
}

impl Calls {
    /// Reads the description that [`crate::Format::Calls`] holds.
    ///
    /// Errors: [`Error::Tool`]; [`Error::Internal`] if the description is wrong, because the
    /// caller's own code makes it.
    pub(crate) fn read(text: &str) -> Result<Self, Error> {
        if text.len() > MAX_BYTES {
            let why = format!("the tools have {} bytes, more than {MAX_BYTES}", text.len());
            return Err(Error::TooComplex(why));
        }
        let wrong = || Error::Internal("a wrong description of calls".into());
        let Ok(Value::Object(mut spelling)) = serde_json::from_str(text) else {
            return Err(wrong());
        };
        let Some(Value::Array(given)) = spelling.remove("tools") else { return Err(wrong()) };
        let mut tools = Vec::new();
        for mut tool in given {
            let (index, name) = (tool["index"].as_u64(), tool["name"].as_str().map(String::from));
            let (Some(index), Some(name)) = (index, name) else { return Err(wrong()) };
            let parameters = checked_of(tool["parameters"].take());
            let parameters = parameters.map_err(|error| of_tool(index, error))?;
            tools.push(Tool { index, name, parameters });
        }
        Ok(Self { spelling, tools })
    }

    /// The grammar, for a vocabulary whose special tokens are those of `is_special`.
    pub(crate) fn grammar(&self, is_special: impl Fn(&str) -> bool) -> TopLevelGrammar {
        let said = |key: &str| self.spelling.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = |key: &str| self.spelling.get(key).and_then(Value::as_bool) == Some(true);
        let marker = |key: &str| match said(key) {
            text if is_special(text) => text.into(),
            text => literal(text),
        };
        let names: Vec<String> = (0..self.tools.len()).map(|n| format!("tool_{n}")).collect();
        // The token that ends the first `begin` may also have the brace after it.
        let mut lark = match is("begun") {
            true => format!("start: {}? rest", literal(said("open"))),
            false => String::from("start: call"),
        };
        if is("many") {
            lark += &format!(" ({} call)*", literal(said("between")));
        }
        lark += &format!("\ncall: {} {} rest", marker("begin"), literal(said("open")));
        lark += &format!(
            "\nrest: {} tool {} {}",
            literal("{\"name\": \""),
            literal(&format!("}}{}", said("close"))),
            marker("end")
        );
        lark += &format!("\ntool: {}", names.join(" | "));
        for (n, tool) in self.tools.iter().enumerate() {
            let front = format!("{}\", \"arguments\": ", tool.name);
            lark += &format!("\ntool_{n}: {} @{}", literal(&front), arguments_of(n));
        }
        let lark = GrammarWithLexer { lark_grammar: Some(lark), ..Default::default() };
        let arguments = self.tools.iter().enumerate().map(|(n, tool)| GrammarWithLexer {
            name: Some(arguments_of(n)),
            json_schema: Some(of_calls(&tool.parameters.plain)),
            ..Default::default()
        });
        TopLevelGrammar {
            grammars: [lark].into_iter().chain(arguments).collect(),
            max_tokens: None,
        }
    }

    /// The error when llguidance has `said` something of the grammar: that of the first tool whose
    /// parameters it refuses by themselves.
    pub(crate) fn blamed(&self, factory: &ParserFactory, said: &str) -> Error {
        let refused = self.tools.iter().find_map(|tool| {
            let schema = of_calls(&tool.parameters.plain);
            let made = factory.create_parser(TopLevelGrammar::from_json_schema(schema));
            Some((tool, made.err()?.to_string()))
        });
        match refused {
            Some((tool, said)) => of_tool(tool.index, tool.parameters.blamed(&said)),
            None => Error::TooComplex(said.chars().take(300).collect()),
        }
    }
}

/// A text as Lark writes it.
fn literal(text: &str) -> String {
    Value::from(text).to_string()
}

/// The error of the parameters of a tool.
fn of_tool(index: u64, error: Error) -> Error {
    match error {
        Error::Schema { pointer, why } => Error::Tool { index, pointer, why },
        error => error,
    }
}
