//! Target: absurd chat templates, with absurd messages.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tritloom::chat::{Message, Role, Template, TemplateChoice};
use tritloom::tokenizer::Tokenizer;

use crate::gguf::BASE;
use crate::run::{Input, Limits, assert_named, fuzz};
use crate::support::{File, read};

/// Parts of templates: tags whole and broken, values, operators, filters and methods.
const PARTS: &[&str] = &[
    "{% for m in messages %}",
    "{% for i in range(999) %}",
    "{%- for m in messages[::-1] -%}",
    "{% endfor %}",
    "{% if ",
    "{% elif x %}",
    "{% else %}",
    "{% endif %}",
    "{% set x = ",
    "{% set ns.x = ",
    "{% set x %}",
    "{% endset %}",
    "{% set ns = namespace(x='a', y=[1]) %}",
    "{% macro f(a, b=1) %}",
    "{% endmacro %}",
    "{% call f(1) %}",
    "{% endcall %}",
    "{% with x = [x] %}",
    "{% endwith %}",
    "{% break %}",
    "{% continue %}",
    "{% raw %}",
    "{% endraw %}",
    "{% include 'x' %}",
    "{% filter upper %}",
    "{% endfilter %}",
    "{# ",
    " #}",
    "{{ ",
    "{{- ",
    " }}",
    " -}}",
    " %}",
    " -%}",
    "m.content",
    "m['role']",
    "messages",
    "messages[0].content",
    "x",
    "ns",
    "ns.x",
    "f(x)",
    "loop.index0",
    "loop",
    "bos_token",
    "namespace()",
    "range(3)",
    "'<|eot_id|>'",
    "'\\n'",
    "\"\\u003c|\"",
    "''",
    "1",
    "-9223372036854775808",
    "1e308",
    "none",
    "true",
    "[",
    "]",
    "(",
    ")",
    "{'a': ",
    "}",
    " + ",
    " ~ ",
    " * ",
    " ** ",
    " // ",
    " % ",
    " - ",
    " in ",
    " is ",
    " not ",
    " == ",
    " < ",
    " if x else ",
    "string",
    "defined",
    "[1:]",
    "[::-1]",
    "[-1]",
    " | tojson",
    " | tojson(indent=99999999)",
    " | trim",
    " | length",
    " | list",
    " | join('ab')",
    " | trim(x)",
    " | replace(x, 'a')",
    " | map('trim', x)",
    " | select('eq', x)",
    " is eq x ",
    " not in ",
    " <= x",
    "(x * 99999)",
    "[[x] * 9999] * 9999",
    "[x:]",
    "[x]",
    ".1",
    " is defined",
    "loop.changed(x)",
    "('a' * 1048576)",
    "('b' * 1048576 ~ 'a')",
    " | indent(99999)",
    " | replace('a', 'bbbbbbbbbbbbbbbbbbbb')",
    " | map(attribute='role')",
    " | selectattr('role', 'equalto', 'user')",
    " | items",
    " | dictsort",
    " | reverse",
    " | sort",
    " | unique",
    " | string",
    " | int",
    " | upper",
    " | format(1)",
    ".split('|')",
    ".split()",
    ".strip('<|')",
    ".strip(x)",
    ".lstrip(m.content)",
    ".rstrip(x)",
    ".count(x)",
    ".find(x)",
    ".rfind(x)",
    ".replace('|', x)",
    ".join(messages)",
    ".items()",
    ".get('a')",
    ".startswith('<')",
    ".startswith(x)",
    ".title()",
    ".splitlines()",
    "strftime_now('%d %Y')",
    "raise_exception('no')",
    "System: ",
    "\n",
    " ",
    "é🦊",
    "\u{100000}",
];

fn source() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        12 => select(PARTS).prop_map(String::from),
        1 => ".{0,6}",
        1 => "[{}%#'\" a-z\\\\|().\\[\\]=-]{0,12}",
    ];
    // Whole statements, so that many templates run.
    let expression = vec(select(&PARTS[34..]), 1..5).prop_map(|parts| parts.concat());
    let statement = prop_oneof![
        expression.clone().prop_map(|e| format!("{{{{ {e} }}}}")),
        expression.clone().prop_map(|e| format!("{{% set x = {e} %}}")),
        expression.clone().prop_map(|e| format!("{{% set ns.x = {e} %}}")),
        expression.prop_map(|e| format!("{{% if {e} %}}<|eot_id|>{{% endif %}}")),
    ];
    let body = vec(statement, 0..8).prop_map(|statements| {
        format!(
            "{{% set ns = namespace(x='a') %}}{{% for m in messages %}}{}{{% endfor %}}",
            statements.concat()
        )
    });
    prop_oneof![2 => vec(part, 0..40).prop_map(|parts| parts.concat()), 3 => body]
}

fn inputs() -> impl Strategy<Value = Input> {
    let said = prop_oneof![
        3 => ".{0,40}",
        2 => vec(select(PARTS), 0..6).prop_map(|parts| parts.concat()),
        1 => "(<\\|eot_id\\|>|[|<> \u{100000}-\u{100040}]){0,9}",
    ];
    (source(), said).prop_map(|(source, said)| Input(format!("{said}\0{source}").into_bytes()))
}

fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (said, source) = text.split_once('\0').unwrap_or(("x", &text));
    let file = File { tensors: Vec::new(), ..BASE.clone() };
    let metadata = read(&file.build()).unwrap().metadata;
    let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
    let template = match Template::new(&metadata, &tokenizer, &TemplateChoice::Given(source.into()))
    {
        Ok(template) => template.unwrap(),
        Err(error) => return assert_named(&error),
    };
    let says = |role, said: &str| Message::new(role, said);
    let messages = [says(Role::User, said), says(Role::Assistant, "y"), says(Role::User, "x")];
    let prompt = match template.prompt(&tokenizer, &messages, None) {
        Ok(prompt) => prompt,
        Err(error) => return assert_named(&error),
    };
    let ids = template.encode(&tokenizer, &prompt).unwrap();
    // All tokens together are the text, and no message has become a token.
    let end = tokenizer.special("<|eot_id|>").unwrap();
    let ends = ids.iter().filter(|&&id| id == end).count();
    if !source.contains('<') {
        assert_eq!(ends, 0, "{source:?} with {said:?}");
    }
    assert!(ids.len() <= prompt.marked.text().len() + 1);
}

#[test]
fn template() {
    fuzz("template", &Limits { memory: 256 << 20, memory_per_byte: 4096 }, inputs(), target);
}
