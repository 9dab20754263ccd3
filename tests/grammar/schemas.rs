//! A schema may have some keywords, and its error says where it has something else.

use serde_json::{Value, json};
use tritloom_grammar::{Error, Format, Grammar, check};

use crate::{accepts, schema, vocabulary};

/// Asserts that a schema is refused for a reason in its part at `pointer`.
#[track_caller]
fn assert_refused(text: &str, pointer: &str, fact: &str) {
    let Err(error) = schema(text) else { panic!("no error for {text}") };
    assert_eq!(error.code(), "bad-option", "{error}");
    assert_eq!(error.pointer(), Some(pointer), "{error} of {text}");
    assert!(error.to_string().contains(fact), "{error} does not name {fact}");
}

#[test]
fn keywords_that_no_grammar_can_say_are_refused_by_their_pointer() {
    for (schema, pointer) in [
        (json!({ "not": {} }), "/not"),
        (json!({ "type": "array", "uniqueItems": true }), "/uniqueItems"),
        (json!({ "properties": { "a/b": { "if": {} } } }), "/properties/a~1b/if"),
        (json!({ "items": { "contains": {} } }), "/items/contains"),
        (json!({ "anyOf": [{}, { "dependentRequired": {} }] }), "/anyOf/1/dependentRequired"),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "not": {} } } }), "/$defs/a/not"),
        (json!({ "propertyNames": { "pattern": "a" } }), "/propertyNames"),
        (json!({ "items": { "$id": "other" } }), "/items/$id"),
        (json!({ "unevaluatedProperties": false }), "/unevaluatedProperties"),
    ] {
        assert_refused(&schema.to_string(), pointer, "is not supported");
        assert_eq!(check(&schema.to_string()).unwrap_err().pointer(), Some(pointer));
    }
}

/// Notes, names that JSON Schema does not know, and keywords that ask for nothing.
#[test]
fn keywords_that_say_nothing_are_let_through() {
    let notes = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.org/a",
        "title": "a", "description": "b", "default": 1, "examples": [1], "deprecated": true,
        "x-order": 3, "discriminator": { "propertyName": "kind" }, "uniqueItems": false,
        "propertyNames": { "type": "string" }, "unevaluatedItems": true, "type": "integer",
        "format": "int64", "pattern": "a",
    });
    assert!(accepts(&schema(&notes.to_string()).unwrap(), "12"));
    assert_refused(r#"{"type":"string","maxlength":3}"#, "/maxlength", "`maxLength` is");
}

#[test]
fn values_that_are_no_schemas_are_refused() {
    for (text, pointer, fact) in [
        ("", "", "cannot be read as JSON"),
        ("{", "", "cannot be read as JSON"),
        ("3", "", "must be an object or a boolean"),
        (r#"{"items":3}"#, "/items", "must be an object or a boolean"),
        (r#"{"type":"strin"}"#, "/type", "must be of null"),
        (r#"{"type":[]}"#, "/type", "must be of null"),
        (r#"{"properties":[]}"#, "/properties", "must be an object"),
        (r#"{"required":[1]}"#, "/required", "must be an array of strings"),
        (r#"{"enum":[]}"#, "/enum", "must be an array of values"),
        (r#"{"anyOf":[]}"#, "/anyOf", "must have a schema"),
        (r#"{"allOf":{}}"#, "/allOf", "must be an array of schemas"),
        (r#"{"minLength":-1}"#, "/minLength", "must be a whole number"),
        (r#"{"minItems":1000000}"#, "/minItems", "must be less"),
        (r#"{"minimum":"1"}"#, "/minimum", "must be a number"),
        (r#"{"minimum":1e300}"#, "", "not supported"),
        (r#"{"multipleOf":0}"#, "/multipleOf", "must be greater than 0"),
        (r#"{"multipleOf":1e-9}"#, "/multipleOf", "too many digits"),
        (r#"{"multipleOf":4000000007}"#, "/multipleOf", "more than 10000"),
        (r#"{"multipleOf":10007}"#, "/multipleOf", "more than 10000"),
        (r#"{"multipleOf":100.07}"#, "/multipleOf", "more than 10000"),
        (
            r#"{"allOf":[{"type":"integer","multipleOf":9973},{"multipleOf":9967}]}"#,
            "/allOf/1/multipleOf",
            "with another",
        ),
        (r#"{"pattern":"("}"#, "/pattern", "unclosed group"),
        (r#"{"pattern":3}"#, "/pattern", "must be a string"),
        (r#"{"format":"poem"}"#, "/format", "must be one of date, date-time, email"),
        (r#"{"format":"iri","pattern":"a"}"#, "/format", "must be one of date, date-time, email"),
        (r#"{"const":[1,"\u0001"]}"#, "/const/1", "control character"),
        (r#"{"enum":[1,9007199254740993]}"#, "/enum/1", "more digits than a double holds"),
        (r#"{"$ref":"other.json#/a"}"#, "/$ref", "leads out of the schema"),
        (r##"{"$ref":"#name"}"##, "/$ref", "names an anchor"),
        (r##"{"$ref":"#/$defs/a"}"##, "/$ref", "leads to nothing"),
    ] {
        assert_refused(text, pointer, fact);
    }
}

#[test]
fn schemas_that_no_value_meets_are_refused_by_the_part_at_fault() {
    let open = "`properties` does not list can be repeated";
    for (schema, pointer, fact) in [
        (json!(false), "", "cannot be met"),
        (json!({ "type": "integer", "minimum": 3, "maximum": 2 }), "", "minimum (3) is greater"),
        (
            json!({ "properties": { "a": { "type": "string", "minLength": 3, "maxLength": 2 } },
                "required": ["a"] , "type": "object" }),
            "/properties/a",
            "minLength (3) is greater",
        ),
        (
            json!({ "type": "array", "items": { "allOf": [{ "type": "null" }, { "type": "string" }] },
                "minItems": 1 }),
            "/items",
            "incompatible types",
        ),
        (
            json!({ "type": "string", "pattern": "^[0-9]+$", "format": "date" }),
            "",
            "no string has this pattern",
        ),
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object", "required": ["a"],
                "properties": { "a": { "$ref": "#/$defs/a" } } } } }),
            "/$defs/a",
            "no value of it ends",
        ),
        (json!({ "type": "object", "minProperties": 2 }), "/minProperties", open),
        (
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "maxProperties": 1 }),
            "",
            "min/maxProperties only supported when all keys",
        ),
        (
            json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }),
            "/oneOf",
            "a value may fit both 0 and 1",
        ),
    ] {
        assert_refused(&schema.to_string(), pointer, fact);
    }
}

/// Checks that a schema becomes a grammar.
fn held(text: Value) {
    schema(&text.to_string()).unwrap_or_else(|error| panic!("{text}: {error}"));
}

#[test]
fn options_of_one_of_may_list_many_values() {
    let of = |from: usize| (from..from + 900).map(|n| format!("v{n}")).collect::<Vec<_>>();
    let listing = |from| {
        json!({ "type": "object", "required": ["a"], "additionalProperties": false,
        "properties": { "a": { "enum": of(from) } } })
    };
    held(json!({ "oneOf": [listing(0), listing(900), listing(1800), listing(2700)] }));
    let both = json!({ "oneOf": [listing(0), listing(899)] });
    assert_refused(&both.to_string(), "/oneOf", "a value may fit both 0 and 1");
    let numbers = json!({ "oneOf": [{ "enum": [[1, 0.0]] }, { "enum": [[1.0, -0.0]] }] });
    assert_refused(&numbers.to_string(), "/oneOf", "a value may fit both 0 and 1");
    // Each pair of options is compared in each pair of theirs.
    let nested = |n: usize| {
        let one = |m: usize| {
            json!({ "type": "object", "required": ["a"],
                "properties": { "a": { "const": n }, "b": { "const": m } } })
        };
        json!({ "anyOf": (0..40).map(one).collect::<Vec<_>>() })
    };
    let many = json!({ "oneOf": (0..6).map(nested).collect::<Vec<_>>() });
    assert_refused(&many.to_string(), "/oneOf", "too many options to compare");
}

#[test]
fn a_format_says_nothing_about_numbers() {
    held(json!({ "type": "integer", "format": "int64" }));
    held(json!({ "type": ["number", "null"], "format": "double" }));
    let text = json!({ "type": ["integer", "string"], "format": "int64" });
    assert_refused(&text.to_string(), "/format", "must be one of");
}

/// An option or an optional property that no value meets is left out.
#[test]
fn what_cannot_be_met_may_be_where_nothing_asks_for_it() {
    let endless = json!({
        "type": "object", "properties": { "a": { "$ref": "#/$defs/endless" } }, "required": ["a"],
    });
    let all = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/endless" }, "b": false, "c": { "const": 1 } },
        "additionalProperties": false,
        "$defs": { "endless": endless },
    });
    let grammar = schema(&all.to_string()).unwrap();
    assert!(accepts(&grammar, "{}") && accepts(&grammar, r#"{"c":1}"#));
    assert!(!accepts(&grammar, r#"{"b":1}"#) && !accepts(&grammar, r#"{"a":{}}"#));
}

#[test]
fn limits_are_refused_by_the_part_that_exceeds_them() {
    let strings = |n: usize| -> Vec<Value> { (0..n).map(|n| json!(format!("s{n}"))).collect() };
    let keys = |n: usize, schema: Value| -> Value {
        (0..n).map(|n| (format!("k{n}"), schema.clone())).collect::<serde_json::Map<_, _>>().into()
    };
    let two = json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let pattern = |n: usize| json!({ "type": "string", "pattern": format!("a.{{{n}}}b") });
    let chain: serde_json::Map<_, _> = (0..300)
        .map(|n| (n.to_string(), json!({ "$ref": format!("#/$defs/{}", n + 1) })))
        .collect();
    let itself = |name: &str| json!({ "type": "object", "properties": { "a": { "$ref": format!("#/$defs/{name}") } } });
    for (schema, pointer, fact) in [
        (json!({ "enum": strings(4001) }), "/enum/4000", "value more than 4000"),
        (json!({ "enum": ["x".repeat(1 << 18)] }), "", "bytes, more than"),
        (json!({ "prefixItems": vec![json!({}); 1000] }), "/prefixItems/999", "more than 1000"),
        (json!({ "$ref": "#/$defs/0", "$defs": chain }), "/$defs/128", "is deeper than 128"),
        (json!({ "type": "object", "properties": keys(201, json!({})) }), "/properties", "200"),
        (json!({ "anyOf": vec![json!({ "type": "array" }); 101] }), "/anyOf", "more than 100"),
        (json!({ "allOf": vec![two; 8] }), "", "intersects too many options"),
        (
            json!({ "allOf": [{ "enum": strings(1500) }, { "enum": strings(1500) }] }),
            "",
            "intersects too many schemas",
        ),
        (
            json!({ "allOf": (0..5).map(pattern).collect::<Vec<_>>() }),
            "",
            "too many patterns and formats",
        ),
        (
            json!({ "type": "object", "properties": keys(201, pattern(1)), "required":
                (0..201).map(|n| format!("k{n}")).collect::<Vec<_>>() }),
            "/properties/k200/pattern",
            "more than 200",
        ),
        (
            json!({ "patternProperties": keys(9, json!({})) }),
            "/patternProperties/k8",
            "more than 8",
        ),
        (
            json!({ "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/b" }],
                "$defs": { "a": itself("a"), "b": itself("b") } }),
            "",
            "intersects schemas that refer to themselves",
        ),
    ] {
        assert_refused(&schema.to_string(), pointer, fact);
    }
}

/// Of two ways to write a key, an answer has one: otherwise it could have the key twice.
#[test]
fn keys_and_strings_are_written_in_one_way() {
    let text = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;
    let grammar = schema(text).unwrap();
    assert!(accepts(&grammar, r#"{"a":1,"b":"x\n\"é"}"#));
    for other in [r#"{"\u0061":"x"}"#, r#"{"b":"\u0061"}"#, r#"{ "a":1}"#, r#"{"a": 1}"#] {
        assert!(!accepts(&grammar, other), "{other}");
    }
}

#[test]
fn numbers_are_those_that_programs_read() {
    let number = schema(r#"{"type":"number"}"#).unwrap();
    let integer = schema(r#"{"type":"integer"}"#).unwrap();
    let any = schema("true").unwrap();
    for (grammar, right, wrong) in [
        (
            &number,
            &["0", "-0.5", "1000000000000000000"][..],
            &["1e9", "01", "2000000000000000000"][..],
        ),
        (&integer, &["9007199254740991", "-7"], &["9007199254740992", "1.0"]),
        (&any, &["12", "[1.5,{}]"], &["1e999", "[1e999]"]),
    ] {
        right.iter().for_each(|text| assert!(accepts(grammar, text), "{text}"));
        wrong.iter().for_each(|text| assert!(!accepts(grammar, text), "{text}"));
    }
}

/// Digits that a double does not hold would round a number up to its bound.
#[test]
fn exclusive_bounds_hold_for_what_programs_read() {
    let below = schema(r#"{"type":"number","minimum":0,"exclusiveMaximum":1}"#).unwrap();
    for (text, fits) in [
        ("0", true),
        ("0.9", true),
        ("0.99999999", true),
        ("0.999999999", false),
        ("1", false),
        ("1.0", false),
        ("0.99999999999999999999", false),
    ] {
        assert_eq!(accepts(&below, text), fits, "{text}");
    }
    let above = schema(r#"{"type":"number","exclusiveMinimum":0}"#).unwrap();
    assert!(accepts(&above, "0.001") && accepts(&above, "12.5") && !accepts(&above, "0.0"));
    let both = r#"{"allOf":[{"type":"integer","multipleOf":100},{"multipleOf":250}]}"#;
    let grammar = schema(both).unwrap();
    assert!(accepts(&grammar, "1500") && !accepts(&grammar, "1100"));
    let many = r#"{"type":"array","prefixItems":[{"type":"integer","multipleOf":97},
        {"type":"integer","multipleOf":9973}]}"#;
    assert!(accepts(&schema(many).unwrap(), "[970,19946]"));
    let fine = schema(r#"{"type":"number","minimum":1e-12,"exclusiveMaximum":1e-11}"#).unwrap();
    assert!(accepts(&fine, "0.000000000002") && !accepts(&fine, "0.00000000001"));
    let both = r#"{"allOf":[{"type":"number","exclusiveMaximum":1},{"multipleOf":7}]}"#;
    assert!(accepts(&schema(both).unwrap(), "-14"));
    let both = r#"{"allOf":[{"type":"number","minimum":0},{"exclusiveMaximum":1}]}"#;
    assert!(!accepts(&schema(both).unwrap(), "0.99999999999999999999"));
}

#[test]
fn dates_are_in_the_calendar() {
    let date = schema(r#"{"format":"date","type":"string"}"#).unwrap();
    for (text, is_date) in [
        ("2024-02-29", true),
        ("2023-02-29", false),
        ("2000-02-29", true),
        ("1900-02-29", false),
        ("2023-04-31", false),
        ("2023-12-31", true),
    ] {
        assert_eq!(accepts(&date, &format!("\"{text}\"")), is_date, "{text}");
    }
}

/// Names of properties may be those of keywords.
#[test]
fn properties_may_be_called_like_keywords() {
    let mut schema = json!({
        "type": "object",
        "properties": { "$ref": { "const": 1 }, "enum": { "const": 2 }, "not": { "not": {} } },
        "required": ["$ref"],
        "additionalProperties": false,
    });
    assert_refused(&schema.to_string(), "/properties/not/not", "is not supported");
    schema["properties"]["not"] = json!({ "const": 3 });
    let grammar = self::schema(&schema.to_string()).unwrap();
    assert!(accepts(&grammar, r#"{"$ref":1,"enum":2,"not":3}"#));
}

#[test]
fn other_formats_are_checked_too() {
    let refused = |format: Format| Grammar::new(&vocabulary(), &format).err().unwrap();
    for (format, fact) in [
        (Format::Regex("(".into()), "the regular expression is wrong"),
        (Format::Regex("x".repeat(10_001)), "has 10001 bytes, more than 10000"),
        (Format::Lark("start: a\na: b".into()), "the grammar is wrong"),
        (Format::Lark(String::new()), "the grammar is wrong: no start rule"),
        (Format::Lark(" ".repeat(1 << 17)), "bytes, more than"),
        (Format::Lark(format!("start: {}", "(".repeat(500))), "has more than 400 colons"),
        (Format::Lark("start: %json {}".into()), "`%json`, which is not supported"),
        (Format::Lark("start: A // x\nA: /a/ & /b/".into()), "`&`, which is not supported"),
        (Format::Lark("start: A\nA: \"\\\"/\" ~/b\\//".into()), "`~`, which is not supported"),
    ] {
        let error = refused(format);
        assert_eq!((error.code(), error.pointer()), ("bad-option", None));
        assert!(error.to_string().contains(fact), "{error} does not name {fact}");
        assert!(!matches!(error, Error::Internal(_)));
    }
    let text = "start: /a&~\\/\"/ \"~&\\\"/\" // & ~\n# & ~";
    let grammar = Grammar::new(&vocabulary(), &Format::Lark(text.into())).unwrap();
    assert!(accepts(&grammar, "a&~/\"~&\"/"));
}

/// The JSON schemas that zod 4 prints for its types, with its own patterns.
#[test]
fn what_zod_prints_is_understood() {
    let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    let uuid = "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}\
        |00000000-0000-0000-0000-000000000000|ffffffff-ffff-ffff-ffff-ffffffffffff)$";
    let datetime = r"^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z))$";
    let string = |format: &str, pattern: &str| json!({ "type": "string", "format": format, "pattern": pattern });
    let option = |kind: &str, more: &str| {
        json!({ "type": "object", "properties": { "kind": { "type": "string", "const": kind },
            more: { "type": "number" } }, "required": ["kind", more], "additionalProperties": false })
    };
    let all = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {
            "email": string("email", email),
            "url": { "type": "string", "format": "uri" },
            "id": string("uuid", uuid),
            "at": string("date-time", datetime),
            "shape": { "oneOf": [option("circle", "radius"), option("square", "side")] },
            "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "counts": { "type": "object", "propertyNames": { "type": "string" },
                "additionalProperties": { "type": "integer", "minimum": -9007199254740991_i64,
                    "maximum": 9007199254740991_i64 } },
        },
        "required": ["email", "url", "id", "at", "shape", "note"],
        "additionalProperties": false,
    });
    let grammar = schema(&all.to_string()).unwrap();
    let answer = |email: &str, at: &str| {
        format!(
            "{{\"email\":\"{email}\",\"url\":\"https://example.org/a?b\",\
             \"id\":\"123e4567-e89b-12d3-a456-426614174000\",\"at\":\"{at}\",\
             \"shape\":{{\"kind\":\"square\",\"side\":1.5}},\"note\":null}}"
        )
    };
    assert!(accepts(&grammar, &answer("a.b@example.org", "2024-02-29T10:00:00Z")));
    for wrong in [("a..b@example.org", "2024-02-29T10:00:00Z"), ("a@b.org", "2023-02-29T10:00:00Z")]
    {
        assert!(!accepts(&grammar, &answer(wrong.0, wrong.1)), "{wrong:?}");
    }
}
