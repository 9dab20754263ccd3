//! JSON-Schema-Test-Suite: a schema is refused, or its grammar takes the documents that are valid by it
//! and no others. docs/JSON-SCHEMA.md shows what comes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;

use serde_json::Value;
use tritloom_grammar::{Error, Format, Grammar};

use crate::{accepts, vocabulary};

/// Rows of file, group, schema and documents; a document is its name, whether it is valid, and itself.
const SUITE: &str = include_str!("../data/json-schema-suite/draft2020-12.json");

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/JSON-SCHEMA.md");

/// Files with valid documents that grammars refuse, and why.
const NARROWER: [(&str, &str); 13] = [
    ("const", "a whole number has no point"),
    ("enum", "a whole number has no point"),
    ("format", "formats are kept, as in `optional/format`"),
    ("optional/bignum", "numbers are smaller, and have no exponent"),
    ("optional/ecmascript-regex", "strings have few control characters"),
    ("optional/float-overflow", "numbers are smaller, and have no exponent"),
    ("optional/format/date-time", "no leap seconds, and capital letters"),
    ("optional/format/email", "no quotes, and no numbers of hosts"),
    ("optional/format/hostname", "shorter labels, and no hyphens in a row"),
    ("optional/format/ipv6", "no part of IPv4"),
    ("optional/format/time", "no leap seconds, and capital letters"),
    ("type", "a whole number has no point"),
    ("vocabulary", "metaschemas are not read"),
];

/// The results of a file.
#[derive(Default)]
struct Found<'a> {
    n_groups: usize,
    n_refused: usize,
    /// The keywords at which schemas are refused.
    at: BTreeSet<String>,
    n_documents: usize,
    /// Valid documents that are refused.
    narrower: Vec<&'a str>,
}

#[test]
fn the_test_suite_of_json_schema_is_refused_or_obeyed() {
    type Group = (String, String, Value, Vec<(String, bool, Value)>);
    let suite: Vec<Group> = serde_json::from_str(SUITE).unwrap();
    let vocabulary = vocabulary();
    let mut files: BTreeMap<&str, Found<'_>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (file, group, schema, documents) in &suite {
        let found = files.entry(file).or_default();
        found.n_groups += 1;
        let grammar = match Grammar::new(&vocabulary, &Format::JsonSchema(schema.to_string())) {
            Ok(grammar) => grammar,
            Err(error) => {
                assert_eq!(error.code(), "bad-option", "{file}, {group}: {error}");
                found.n_refused += 1;
                found.at.insert(place(&error));
                continue;
            }
        };
        for (name, is_valid, document) in documents {
            found.n_documents += 1;
            match (is_valid, spellings(document).iter().any(|text| accepts(&grammar, text))) {
                (true, false) => found.narrower.push(name),
                (false, true) => wrong.push(format!("{file}, {group}, {name}: {document}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "invalid, and accepted: {wrong:#?}");
    let found: Vec<&str> = files
        .iter()
        .filter(|(_, found)| !found.narrower.is_empty())
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(
        found,
        NARROWER.map(|(file, _)| file),
        "files with valid documents that are refused"
    );
    let tables = tables(&files);
    println!("{tables}");
    let page = fs::read_to_string(PAGE).unwrap();
    assert!(page.contains(&tables), "docs/JSON-SCHEMA.md has not these tables:\n{tables}");
}

/// The keyword at which a schema is refused.
fn place(error: &Error) -> String {
    if error.to_string().contains("cannot be met") {
        return "no value".into();
    }
    let parts = error.pointer().unwrap_or_default().rsplit('/');
    let is_name = |part: &&str| !part.is_empty() && part.parse::<usize>().is_err();
    parts.into_iter().find(is_name).map_or("the whole".into(), |name| format!("`{name}`"))
}

fn tables(files: &BTreeMap<&str, Found<'_>>) -> String {
    let mut text = String::from(
        "| file | schemas | refused | because of | documents |\n|---|---|---|---|---|\n",
    );
    for (file, found) in files {
        let at = found.at.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let Found { n_groups, n_refused, n_documents, .. } = found;
        let _ = writeln!(text, "| `{file}` | {n_groups} | {n_refused} | {at} | {n_documents} |");
    }
    let sum = |of: fn(&Found<'_>) -> usize| files.values().map(of).sum::<usize>();
    let sums = [sum(|of| of.n_groups), sum(|of| of.n_refused), sum(|of| of.n_documents)];
    let _ = writeln!(text, "| all | {} | {} | | {} |", sums[0], sums[1], sums[2]);
    text += "\nGrammars refuse some valid documents, so that every reader of JSON understands what models \
             write:\n\n| file | documents | why they are refused |\n|---|---|---|\n";
    for (file, why) in NARROWER {
        let names = files[file].narrower.join("; ").replace('|', "\\|");
        let _ = writeln!(text, "| `{file}` | {names} | {why} |");
    }
    text
}

/// A document in every order of its keys, because a grammar wants that of the schema.
fn spellings(document: &Value) -> Vec<String> {
    match document {
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(spellings).collect();
            one_of_each(&items).iter().map(|items| format!("[{}]", items.join(","))).collect()
        }
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| {
                let key = Value::from(key.as_str());
                spellings(value).iter().map(|value| format!("{key}:{value}")).collect()
            });
            let all = one_of_each(&pairs.collect::<Vec<_>>());
            let all = all.iter().flat_map(|pairs| orders(pairs));
            all.map(|pairs| format!("{{{}}}", pairs.join(","))).collect()
        }
        other => vec![other.to_string()],
    }
}

fn one_of_each(all: &[Vec<String>]) -> Vec<Vec<String>> {
    all.iter().fold(vec![Vec::new()], |chosen, more| {
        let with = |one: &String| {
            let longer = |before: &Vec<String>| [&before[..], std::slice::from_ref(one)].concat();
            chosen.iter().map(longer).collect::<Vec<_>>()
        };
        more.iter().flat_map(with).collect()
    })
}

fn orders(all: &[String]) -> Vec<Vec<String>> {
    if all.is_empty() {
        return vec![Vec::new()];
    }
    let beginning_with = |n: usize| {
        let rest = orders(&[&all[..n], &all[n + 1..]].concat());
        rest.into_iter().map(move |rest| [&all[n..=n], &rest].concat())
    };
    (0..all.len()).flat_map(beginning_with).collect()
}
