//! Regular expressions mean what they mean in JavaScript.

use tritloom_grammar::{Format, Grammar};

use crate::{accepts, vocabulary};

fn regex(pattern: &str) -> Grammar {
    Grammar::new(&vocabulary(), &Format::Regex(pattern.into()))
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

#[test]
fn patterns_match_what_they_match_in_javascript() {
    for (pattern, right, wrong) in [
        ("a.c", &["abc", "aéc", "a\u{85}c"][..], &["a\nc", "a\rc", "a\u{2028}c", "ac"][..]),
        (r"\d+", &["12"], &["١", ""]),
        (r"\D", &["١", "a"], &["1"]),
        (r"\w", &["_", "Z"], &["é", "-"]),
        (r"\s", &[" ", "\u{a0}", "\u{feff}", "\u{3000}"], &["\u{85}", "a"]),
        (r"\S", &["\u{85}", "é"], &["\t"]),
        (r"[\w-z]", &["-", "a", "z"], &["{"]),
        (r"[^\s\d]", &["a"], &["1", " "]),
        ("[&&~~/-]", &["&", "~", "/", "-"], &["a"]),
        ("[+--]", &["+", ",", "-"], &["."]),
        (r"[a-\d]", &["a", "-", "1"], &["b"]),
        ("[[a]", &["[", "a"], &["]"]),
        ("[a^-]", &["a", "^", "-"], &["b"]),
        ("[^]", &["a", "\n"], &["", "ab"]),
        (r"[\b]", &["\u{8}"], &["b"]),
        (r"a/b\/c", &["a/b/c"], &["abc"]),
        (r"\u00e9\u{1F98A}\ud83e\udd8a\x41", &["é🦊🦊A"], &["e"]),
        (r"\cJ\t\0", &["\n\t\0"], &["J"]),
        (r"a{2}b{1,}c{0,1}", &["aab", "aabbc"], &["ab"]),
        ("a{,2}{}", &["a{,2}{}"], &["aa"]),
        ("(?<name>a|b)(?:c)", &["ac", "bc"], &["a"]),
        ("(?<stop>a)b", &["ab"], &["a"]),
        ("^ab$", &["ab"], &["b"]),
        (r"\p{Lu}\P{L}", &["É1"], &["éa"]),
        (r"\$\.\-", &["$.-"], &["a"]),
        ("", &[""], &["a"]),
        ("é\n", &["é\n"], &["e"]),
    ] {
        let grammar = regex(pattern);
        right.iter().for_each(|text| assert!(accepts(&grammar, text), "{pattern} and {text:?}"));
        wrong.iter().for_each(|text| assert!(!accepts(&grammar, text), "{pattern} and {text:?}"));
    }
}

#[test]
fn patterns_that_are_wrong_or_not_supported_are_refused_with_the_reason() {
    for (pattern, fact) in [
        ("a(?=b)", "looks ahead"),
        ("a(?!b)", "looks ahead"),
        ("(?<=a)b", "looks behind"),
        ("(?<!a)b", "looks behind"),
        (r"(a)\1", "back reference"),
        (r"(?<a>a)\k<a>", "back reference"),
        (r"\bword", "word boundary"),
        ("(?i:a)", "group of an unknown kind"),
        (r"\q", "unknown escape `\\q`"),
        (r"\p{Nonsense}", "is wrong"),
        (r"\u12", "without 4 hexadecimal digits"),
        (r"\ud83e", "stands for no character"),
        ("[]", "empty class"),
        ("[a", "unclosed class"),
        ("[b-a]", "is wrong"),
        ("(a", "unclosed group"),
        ("(?<a", "unclosed name"),
        ("*", "is wrong"),
        ("a{10001}", "repeats more than 10000 times"),
        ("\\", "ends with `\\`"),
        ("a^b", "is not supported"),
    ] {
        let error = Grammar::new(&vocabulary(), &Format::Regex(pattern.into())).err().unwrap();
        assert_eq!(error.code(), "bad-option");
        assert!(error.to_string().contains(fact), "{pattern}: {error} does not name {fact}");
    }
}
