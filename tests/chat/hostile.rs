//! Templates that ask for too much time, memory or stack, and the operators that pay for it.

use tritloom::chat::{Role, Template, TemplateChoice};

use crate::support::assert_error;
use crate::{framed, given, model_of, says, special_tokens, with_special};

/// A template is hostile until it has run.
#[test]
fn templates_that_cannot_run_are_refused() {
    let (metadata, tokenizer) = model_of(&with_special("llama"));
    let nested = |start: &str, end: &str, n: usize| [start.repeat(n), end.repeat(n)].join("1");
    for (source, fact) in [
        ("{% for", "syntax error"),
        ("{{", "syntax error"),
        ("{% include 'x' %}", "include"),
        ("{% extends 'x' %}", "extends"),
        ("{% import 'x' as y %}", "import"),
        ("{{ self.x() }}", "unknown method"),
        ("{{ missing() }}", "missing"),
        ("{{ 1 | missing }}", "missing"),
        ("{{ missing.a.b }}", "undefined"),
        ("{{ ''.split('') }}", "separator"),
        ("{{ open('/etc/passwd') }}", "open"),
        (&format!("{{{{ {}1{} }}}}", "(".repeat(3000), ")".repeat(3000)), "brackets"),
        (&format!("{{{{ {}1{} }}}}", "[".repeat(17), "]".repeat(17)), "brackets"),
        (&format!("{{{{ {}1 }}}}", "not ".repeat(30000)), "too long"),
        (&nested("{% if 1 %}", "{% endif %}", 3000), "blocks"),
        (&nested("{% with x = [x] %}", "{% endwith %}", 25), "blocks"),
        (&format!("{{{{ x{} }}}}", " | batch(1)".repeat(150)), "batch"),
        (&"{% set x = [x] %}".repeat(999), "nested"),
        ("{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "namespace"),
        (
            "{% set ns = namespace() %}{% set x = {'a': [ns]} %}{% set ns.a = x %}{{ ns }}",
            "namespace",
        ),
        ("{% set a, b = 1, namespace() %}{% set b.a = {'b': b} %}", "namespace"),
        // None of these hides the tags after it, which bind a list within a list.
        (&format!("{{{{ raw }}}}{}", "{% set x = [x] %}".repeat(999)), "nested"),
        (&format!("{{#}} {{{{ ' #}}{}", "{% set x = [x] %}".repeat(999)), "nested"),
        (
            &format!(
                "{{% raw %}}endraw {{{{ ' {{%- endraw +%}}{}",
                "{% set x = [x] %}".repeat(999)
            ),
            "nested",
        ),
        (&"{%set(x)=[x]%}".repeat(999), "nested"),
        // Nor may a template take away the prices.
        ("{% macro __read(x) %}{% endmacro %}", "__read"),
        ("{% set __read = 1 %}", "__read"),
        ("{% for __read in [1] %}{% endfor %}", "__read"),
        ("{{ 1 is eq __read }}", "__read"),
        ("{% for i in [loop] %}{% endfor %}", "loop"),
        ("{{ a b }}", "read at"),
        ("{{ (1", "bracket"),
        (&format!("{{{{ 1{} }}}}", " + 1".repeat(40000)), "too long"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "recursion"),
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "long"),
        (
            "{% for i in range(99999) %}{% for j in range(99) %}xxxxxxxx{% endfor %}{% endfor %}",
            "long",
        ),
        ("{{ 'x' * 99999999 }}", "long"),
        ("{{ 'x' * 99999999999 }}", "long"),
        ("{{ range(9999999) | list }}", "too many"),
        ("{{ 'a' | center(999999999) }}", "center"),
        ("{{ 'a\n' * 9999 | indent(999999999) }}", ""),
        ("{{ '%999999999d' | format(1) }}", "format"),
        ("{% set x = ('ab' * 9999).replace('a', 'b' * 99999) %}", "long"),
        ("{% set x = ('ab' * 99999).join(range(99999) | map('string')) %}", "long"),
        (
            "{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}\
             {% endfor %}",
            "long",
        ),
        (
            "{% set ns = namespace(s='xx') %}{% for i in range(99) %}{% set x %}{{ ns.s }}{{ ns.s }}\
             {% endset %}{% set ns.s = x %}{% endfor %}",
            "long",
        ),
        (
            "{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}\
             {% endfor %}{{ ns.s | tojson }}",
            "",
        ),
    ] {
        let choice = TemplateChoice::Given(source.into());
        let rendered = Template::new(&metadata, &tokenizer, &choice)
            .and_then(|template| template.unwrap().tokens(&tokenizer, &[says(Role::User, "x")]));
        let shown = &source[..source.len().min(80)];
        println!("{shown}: {:?}", rendered.as_ref().err().map(ToString::to_string));
        assert_error(rendered, "bad-template", &[fact]);
    }
    let long = TemplateChoice::Given("x".repeat(1 << 19));
    assert_error(Template::new(&metadata, &tokenizer, &long), "bad-template", &["bytes"]);
    let refuses = given("{{ raise_exception('only ' ~ 'x' * 9999) }}");
    let prompt = refuses.prompt(&tokenizer, &[says(Role::User, "x")], None);
    assert!(prompt.as_ref().unwrap_err().to_string().len() < 600);
    assert_error(prompt, "bad-option", &["messages", "only xx"]);
}

/// A product that only remembered its list would be a chain after a loop, too deep for the stack of
/// WebAssembly, which has a megabyte.
#[test]
fn a_loop_makes_no_deep_chain_of_lists() {
    let run = || {
        let (_, tokenizer) = model_of(&with_special("llama"));
        for (first, value) in [("[1]", "ns.x * 1"), ("[[1]]", "[ns.x[0] * 1]")] {
            let source = format!(
                "{{% set ns = namespace(x={first}) %}}\
                 {{% for i in range(5000) %}}{{% set ns.x = {value} %}}{{% endfor %}}{{{{ ns.x }}}}"
            );
            let prompt = given(&source).prompt(&tokenizer, &[says(Role::User, "x")], None);
            assert_eq!(prompt.unwrap().marked.text(), first);
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    thread.join().unwrap();
}

/// A template that asks for `call` without end.
fn often(call: &str) -> String {
    format!("{{% for i in range(20000) %}}{{% if {call} %}}{{% endif %}}{{% endfor %}}")
}

/// A template pays for what it reads as for what it writes: a long text, a long argument of a
/// method, and every rendering of one call. In a debug build each of these took minutes.
#[test]
fn templates_that_read_without_end_are_stopped() {
    let (metadata, tokenizer) = model_of(&with_special("llama"));
    let long = "{% set a = 'a' * 1048576 %}{% set b = 'b' * 1048576 ~ 'a' %}";
    for call in [
        "'x'.count(a)",
        "'x'.find(a)",
        "'x'.rfind(a)",
        "'x'.replace(a, '')",
        "'x'.startswith(a)",
        "'x'.endswith([a, b])",
        "'x'.removeprefix(a)",
        "'x'.removesuffix(a)",
        "'x'.split(a)",
        "'x'.strip(b)",
        "'x' | trim(b)",
        "'x' | replace(a, '')",
        "a is eq b",
        "a is in [b]",
        "'x' is in a",
        "strftime_now(a)",
    ] {
        let choice = TemplateChoice::Given(format!("{long}{}", often(call)));
        let template = Template::new(&metadata, &tokenizer, &choice).unwrap().unwrap();
        let rendered = template.tokens(&tokenizer, &[says(Role::User, "x")]);
        assert_error(rendered, "bad-template", &["too long"]);
    }
    for filter in
        ["map('trim', 'x')", "map('length')", "map('upper')", "select('eq', b)", "string", "join"]
    {
        let source = format!(
            "{long}{{% for i in range(99) %}}{{% set x = ([a] * 100000) | {filter} | list %}}{{% endfor %}}"
        );
        let template = Template::new(&metadata, &tokenizer, &TemplateChoice::Given(source));
        let rendered = template.unwrap().unwrap().tokens(&tokenizer, &[says(Role::User, "x")]);
        assert_error(rendered, "bad-template", &["too long"]);
    }
    for method in ["a.strip(b)", "a.lstrip(b)", "a.rstrip(b)", "a | trim(b)"] {
        // Each takes a tenth of the budget, and nothing is left of `a`.
        assert_eq!(
            given(&format!("{long}x{{{{ {method} }}}}"))
                .tokens(&tokenizer, &[says(Role::User, "x")])
                .unwrap()
                .len(),
            2,
            "{method}"
        );
    }
}

/// So does an operator pay for its operands, however they are written.
#[test]
fn operators_that_read_without_end_are_stopped() {
    let (_, tokenizer) = model_of(&with_special("llama"));
    let is_stopped = |source: &str| {
        println!("{source}");
        let rendered = given(source).tokens(&tokenizer, &[says(Role::User, "x")]);
        assert_error(rendered, "bad-template", &["too long"]);
    };
    // Texts of one length, one of them twice, in a name that is a word of the language elsewhere.
    let long = "{% set if = 'b' * 1048576 ~ 'a' %}{% set b = 'b' * 1048576 ~ 'a' %}\
                {% set ns = namespace(x=if) %}{% set m = {b: 1, 2: 3} %}";
    for call in [
        "if == b",
        "b != if",
        "not b < if",
        "if <= ns.x",
        "b > if",
        "b >= if",
        "b == if == b",
        "b == if != 1",
        "(b) == (b)",
        "x or b == b and x",
        "(x if b == if else x)",
        "if in [b]",
        "b not in [if]",
        "x is eq b or b in [b]",
        "[b] == [if]",
        "{'a': b} == {'a': if}",
        "b in m",
        "m[if]",
        "m[if] is defined",
        "m.get(if)",
        "m.get([if])",
        "{if: 1}",
        "dict(**m)",
        "b[1:2]",
        "(b)[-1:]",
        "-1 == b[-1:0:-1]",
        "b[-1]",
        "b.999999",
        "'x' in b",
        "loop.changed(b)",
        "loop.changed(1, b)",
        "x is eq b[1]",
    ] {
        is_stopped(&format!("{long}{}", often(call)));
    }
    // Lists that are short to write, and endless to read or to keep.
    let lists = "[[[1] * 9999] * 9999] * 9999";
    for source in [
        &format!("{{{{ {lists} == {lists} }}}}"),
        &format!("{{% if {lists} < {lists} %}}{{% endif %}}"),
        &format!("{{{{ [1] in {lists} }}}}"),
        &format!("{{{{ {lists} in 'x' }}}}"),
        &format!("{{{{ {lists} }}}}"),
        &format!("{{{{ 'x' ~ {lists} }}}}"),
        &format!("{{{{ {{1: 2, 3: 4}}[{lists}] }}}}"),
        &format!("{{{{ {{{lists}: 4}} }}}}"),
        &format!("{{{{ [1] * 99999999{} }}}}", " + [1]".repeat(40)),
        "{% for a, b in [[1] * 99999999] %}{% endfor %}",
        "{% for (a, b) in [[1] * 99999999] %}{% endfor %}",
        "{% with (a, b) = [1] * 99999999 %}{% endwith %}",
        "{% with a = 1, (b, c) = [1] * 99999999 %}{% endwith %}",
        "{% set x = [1] * 50000 %}{% set y = x[49999:] %}\
         {% for i in range(20000) %}{% for j in y %}{% endfor %}{% endfor %}",
        "{% set x = 'b' * 999999 %}\
         {% for i in range(20000) %}{% for j in x %}{% break %}{% endfor %}{% endfor %}",
        "{% set x = 'b' * 999999 %}{% for i in range(20000) %}\
         {% for j in [1] recursive %}{{ loop(x) if loop.depth == 1 }}{% break %}{% endfor %}\
         {% endfor %}",
    ] {
        is_stopped(source);
    }
}

/// Operators give the same values as before they paid.
#[test]
fn operators_that_pay_mean_the_same() {
    let (_, tokenizer) = model_of(&with_special("llama"));
    let names = "{% set a = [1, 2, 3] %}{% set m = {'k': 'v', 2: [a, 'x']} %}{% set s = 'abc' %}\
                 {% set n, none_ = 2, none %}{% set ns = namespace(x=5) %}";
    for (source, expected) in [
        (
            "{{ a == [1, 2, 3] }} {{ a != a }} {{ n < 3 <= n + 1 }} {{ 1 < n < 2 }}",
            "True False True False",
        ),
        ("{{ not a == a }} {{ not n in a }} {{ n not in a }}", "False False False"),
        (
            "{{ 'b' in s }} {{ n in a and s in m }} {{ 'k' in m }} {{ n in m }}",
            "True False True True",
        ),
        ("{{ s ~ n ~ a }} {{ s + s ~ n }} {{ 1 ~ n + 1 ~ n }}", "abc2[1, 2, 3] abcabc2 1212"),
        ("{{ s + 'd' == 'ab' ~ 'cd' }} {{ n + 1 - n == -1 + n }}", "True True"),
        (
            "{{ a + a }} {{ a * n }} {{ n * n + n ** n // n % 3 - -n }} {{ -n * n ~ s * n == '-4' + s + s }}",
            "[1, 2, 3, 1, 2, 3] [1, 2, 3, 1, 2, 3] 8 True",
        ),
        (
            "{{ a[0] }}{{ a[-1] }}{{ a[n - 1] }}{{ a.1 }}{{ a[ 0 ] }}{{ m[n][0][1] }}{{ m[2].1 }}",
            "132212x",
        ),
        ("{{ m['k'] }}{{ m.k }}{{ m['k'][0] }}{{ s[1] }}{{ s[-1] }}{{ a[9] }}{{ m[a] }}", "vvvbc"),
        (
            "{{ a[1:] }}{{ a[:n] }}{{ a[::-1] }}{{ a[::2][0] }}{{ s[1:] }}{{ s[::-1] }}{{ a[:] }}",
            "[2, 3][1, 2][3, 2, 1]1bccba[1, 2, 3]",
        ),
        (
            "{{ a[1:] is sequence }} {{ (a + a)[n:][0] }} {{ [s, n][-1:][0] }} {{ -a[1:][0] }}",
            "True 3 2 -2",
        ),
        (
            "{{ n is eq 2 }} {{ n is not eq n }} {{ s[0] is in s }} {{ n is in [1, 2] }}",
            "True False True True",
        ),
        (
            "{{ n is eq 2 == true }} {{ x is defined }} {{ x is not defined or x == n }}",
            "True False True",
        ),
        (
            "{{ n is eq a[1] and n is number }} {{ -1 is eq -a[0] }} {{ n is string }}",
            "True True False",
        ),
        (
            "{{ s if n == 2 else a }} {{ (s if n != 2) }} {{ 'y' if x else n if n > 1 else 'z' }}",
            "abc  2",
        ),
        (
            "{{ s | upper ~ s }} {{ s | replace('b', n ~ '') == 'a2c' }} {{ a | join(', ') ~ n }}",
            "ABCabc True 1, 2, 32",
        ),
        (
            "{{ a | length == n + 1 }} {{ a | map('string') | join == '123' }} \
             {{ a | select('eq', n) | first }}",
            "True True 2",
        ),
        (
            "{{ {s ~ n: n + 1, 'b': a[0]} }} {{ {'a': {'b': n}}['a']['b'] }} {{ {}|length }}",
            "{'abc2': 3, 'b': 1} 2 0",
        ),
        (
            "{{ (1, n) == (1, 2) }} {{ (n,) }} {{ () }} {{ [] == [] }} {{ [n, ] }}",
            "True (2,) () True [2]",
        ),
        (
            "{{ 1.5 + n }} {{ 1.5e-1 + 0x1F }} {{ 2. + n }} {{ 1e2 == 100 }} {{ 1_000 + n }} {{ n + 1.e+1 }}",
            "3.5 31.15 4.0 True 1002 12.0",
        ),
        ("{{ 'a' 'b' ~ 'c' }} {{ 'it\\'s' + \"'\" }} {{ '' == s[9:] }}", "abc it's' True"),
        (
            "{{ dict(a=n + 1, **{'b': n}) }} {{ range(*a) | list }} {{ ns.x + n }}",
            "{'a': 3, 'b': 2} [1] 7",
        ),
        ("{% for x in a if x != n %}{{ x }}{{ loop.index0 + n }}{% endfor %}", "1233"),
        ("{% for k, v in m.items() %}{{ k ~ v }};{% endfor %}", "kv;2[[1, 2, 3], 'x'];"),
        ("{% for (k, v) in [(1, n)] %}{{ k + v }}{% else %}no{% endfor %}", "3"),
        (
            "{% for x in a[1:] + [n] %}{{ x }}{% endfor %}{% for x in x or a %}{{ x }}{% endfor %}",
            "232123",
        ),
        (
            "{% for x in [1, [2, [3]]] recursive %}{{ loop(x) if x is sequence else x }}\
             {% endfor %}",
            "123",
        ),
        (
            "{% for x in a %}{{ loop.changed(x == 1) }} {{ loop.cycle('a', s) }} {% endfor %}",
            "True a True abc False a ",
        ),
        ("{% set ns.x = ns.x + 1 %}{{ ns.x }}{% set (c, d) = (n, s) %}{{ d ~ c }}", "6abc2"),
        (
            "{% set c | replace('b', n ~ '=') %}abc{% endset %}{{ c }}\
             {% filter upper %}x{{ n }}{% endfilter %}",
            "a2=cX2",
        ),
        ("{% with c = n + 1, (d, e) = [n, a[0]] %}{{ c ~ d ~ e }}{% endwith %}", "321"),
        (
            "{% macro f(x, y=n + 1) %}{{ x ~ y }}{% endmacro %}{{ f(a[1]) }}{{ f(1, y=s[0]) }}",
            "231a",
        ),
        (
            "{% macro f(x) %}{{ caller(x + 1, 2) }}{% endmacro %}\
             {% call(x, y) f(n) %}{{ x == y + 1 }}{% endcall %}",
            "True",
        ),
        (
            "{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{{ n == 2 }}{% endcall %}",
            "True",
        ),
        ("{%- if n == 2 and not s == a %}y{% elif n in a %}z{% else %}w{% endif -%} .", "y."),
        ("{% set if = n %}{{ if + 1 if if == n else if }}{{ not not if == 3 }}", "3False"),
        (
            "{% raw %}{{ n == 2 }}{% {% endraw %}{# {{ n == #}{#}{{ n #}{#-#}.{% do ns.get(n) %}",
            "{{ n == 2 }}{% .",
        ),
    ] {
        let template = given(&format!("{names}{source}"));
        let ask = [says(Role::User, "x")];
        println!("{source}");
        assert_eq!(template.prompt(&tokenizer, &ask, None).unwrap().marked.text(), expected);
    }
}

/// The renderings of one call share what it may use. The first takes most of it here, so the second,
/// which finds out what the template wrote, cannot end, and nothing becomes a special token.
#[test]
fn renderings_share_their_fuel() {
    let (_, tokenizer) = model_of(&with_special("llama"));
    let ends = |source: &str| {
        let ids = given(source).tokens(&tokenizer, &[says(Role::User, "x")]).unwrap();
        ids.iter().filter(|&&id| tokenizer.special("<|eot_id|>") == Some(id)).count()
    };
    assert_eq!(ends("{% for i in range(9999) %}{% endfor %}<|eot_id|>"), 1);
    assert_eq!(ends("{% for i in range(45000) %}{% endfor %}<|eot_id|>"), 0);
}

/// Long conversations get as much as they need.
#[test]
fn a_long_conversation_is_not_too_much() {
    let (_, tokenizer, template) = framed("qwen3");
    let long = "All work and no play. ".repeat(3000);
    let mut messages = Vec::new();
    for _ in 0..300 {
        messages.push(says(Role::User, "Why?"));
        messages.push(says(Role::Assistant, "<think>\nBecause\n</think>\n\nBecause."));
    }
    messages.push(says(Role::User, &long));
    let prompt = template.prompt(&tokenizer, &messages, None).unwrap();
    assert!(prompt.marked.text().ends_with("<|im_end|>\n<|im_start|>assistant\n"));
    let special = special_tokens(&tokenizer, &template, &messages);
    assert_eq!(special.len(), 2 * 601 + 1);
}
