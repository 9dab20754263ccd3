//! A matcher's way through an answer.

use tritloom_grammar::{Error, Follow, Format, Grammar, Spelling, Vocabulary};

use crate::{CONTROL, STOP, UNUSED, accepts, encode, schema, vocabulary};

const OBJECT: &str = r#"{"type":"object","properties":{"a":{"type":"boolean"},
    "b":{"type":"string","maxLength":4}},"required":["a","b"],"additionalProperties":false}"#;

fn allowed(mask: &[u32]) -> Vec<u32> {
    (0..mask.len() as u32 * 32).filter(|id| mask[*id as usize / 32] >> (id % 32) & 1 == 1).collect()
}

#[test]
fn tokens_that_are_forced_come_by_themselves() {
    let mut matcher = schema(OBJECT).unwrap().matcher();
    assert_eq!(matcher.follow(), Ok(Follow::These(encode("{\"a\":"))));
    let Ok(Follow::OneOf(mask)) = matcher.follow() else { panic!() };
    assert_eq!(mask.len(), vocabulary().n_words());
    assert_eq!(allowed(&mask), [encode("f"), encode("t"), encode("true")].concat());
    matcher.take(encode("true")[0]).unwrap();
    // The quote may be that of an empty string, which has a token together with the bracket.
    assert_eq!(matcher.follow(), Ok(Follow::These(encode(",\"b\":"))));
    matcher.take(u32::from(b'"')).unwrap();
    matcher.take(u32::from(b'x')).unwrap();
    assert!(!matcher.may_end());
    let end = encode("\"}")[0];
    let Ok(Follow::OneOf(mask)) = matcher.follow() else { panic!() };
    assert!(allowed(&mask).contains(&end) && !allowed(&mask).contains(&u32::from(b'\n')));
    matcher.take(end).unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::Nothing));
    assert!(matcher.may_end());
    assert_eq!(matcher.take(u32::from(b'x')), Err(Error::Token(u32::from(b'x'))));
}

/// At each position of an answer, the tokens of the mask are those that can be taken.
#[test]
fn a_mask_has_exactly_the_tokens_that_can_be_taken() {
    let answer = "[\"é\\n\",-1.5,null,{\"ab\":[true]}]";
    let grammar = schema(r#"{"type":"array"}"#).unwrap();
    for split in 0..answer.len() {
        let mut matcher = grammar.matcher();
        for byte in answer.bytes().take(split) {
            matcher.take(u32::from(byte)).unwrap();
        }
        let fits = (0..=UNUSED).filter(|&id| matcher.clone().take(id).is_ok());
        let fits: Vec<u32> = fits.collect();
        match matcher.follow().unwrap() {
            Follow::OneOf(mask) => assert_eq!(allowed(&mask), fits, "after {split} bytes"),
            Follow::These(ids) => assert!(fits.contains(&ids[0]), "after {split} bytes"),
            Follow::Nothing => panic!("after {split} bytes"),
        }
    }
    assert!(accepts(&grammar, answer));
}

#[test]
fn control_tokens_are_in_no_answer() {
    let grammar = Grammar::new(&vocabulary(), &Format::Regex("[^]*".into())).unwrap();
    let Ok(Follow::OneOf(mask)) = grammar.matcher().follow() else { panic!() };
    let tokens = allowed(&mask);
    assert!(tokens.contains(&STOP) && !tokens.contains(&CONTROL) && !tokens.contains(&UNUSED));
    for id in [CONTROL, UNUSED, UNUSED + 1, u32::MAX] {
        assert_eq!(grammar.matcher().take(id), Err(Error::Token(id)));
    }
}

#[test]
fn a_stop_token_is_taken_where_the_answer_may_end() {
    let grammar = Grammar::new(&vocabulary(), &Format::Regex("a+".into())).unwrap();
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.take(STOP), Err(Error::Token(STOP)));
    matcher.take(u32::from(b'a')).unwrap();
    matcher.take(STOP).unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::Nothing));
    // And where a grammar names it.
    let format = Format::Lark("start: /a+/ <|end|>".into());
    let mut matcher = Grammar::new(&vocabulary(), &format).unwrap().matcher();
    assert_eq!(matcher.take(STOP), Err(Error::Token(STOP)));
    matcher.take(u32::from(b'a')).unwrap();
    let Ok(Follow::OneOf(mask)) = matcher.follow() else { panic!() };
    assert_eq!(allowed(&mask), [u32::from(b'a'), STOP]);
    matcher.take(STOP).unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::Nothing));
}

#[test]
fn tokens_are_taken_back_and_clones_go_their_own_way() {
    let mut matcher = schema(OBJECT).unwrap().matcher();
    let Ok(Follow::These(forced)) = matcher.follow() else { panic!() };
    let before = matcher.clone().follow();
    matcher.take(encode("true")[0]).unwrap();
    let mut clone = matcher.clone();
    let Ok(Follow::These(more)) = matcher.follow() else { panic!() };
    matcher.rollback(more.len() + 1).unwrap();
    assert_eq!(matcher.follow(), before);
    assert_eq!(clone.follow(), Ok(Follow::These(more)));
    matcher.rollback(forced.len()).unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::These(forced)));
    assert!(matches!(matcher.rollback(99), Err(Error::Internal(_))));
    // A complete answer can be taken back too.
    let mut matcher = schema(r#"{"const":true}"#).unwrap().matcher();
    assert_eq!(matcher.follow(), Ok(Follow::These(encode("true"))));
    assert_eq!(matcher.follow(), Ok(Follow::Nothing));
    matcher.rollback(1).unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::These(encode("true"))));
}

/// A tokenizer that normalises a text or leaves bytes out spells another text.
#[test]
fn forced_text_is_spelled_even_if_the_tokenizer_spells_another() {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let single = || bytes.iter().map(|byte| Spelling::Text(byte));
    let encoders: [fn(&str) -> Vec<u32>; 3] =
        [|_| Vec::new(), |text| encode(&text.to_uppercase()), |_| vec![u32::MAX]];
    for encode in encoders {
        let vocabulary = Vocabulary::new(single(), &[], encode).unwrap().into();
        let grammar = Grammar::new(&vocabulary, &Format::Regex("abc".into())).unwrap();
        let mut matcher = grammar.matcher();
        assert_eq!(matcher.follow(), Ok(Follow::These(vec![97, 98, 99])));
        assert_eq!(matcher.follow(), Ok(Follow::Nothing));
    }
}

#[test]
fn vocabularies_of_any_tokens_are_read() {
    let long = vec![b'a'; 5000];
    let tokens = [
        Spelling::Text(b"a"),
        Spelling::Text(b"a"),
        Spelling::Text(&[0xFF, b'[']),
        Spelling::Text(&long),
        Spelling::Special(""),
        Spelling::Text(b""),
        Spelling::Unused,
    ];
    let vocabulary = Vocabulary::new(tokens, &[4, 99], |_| Vec::new()).unwrap().into();
    let grammar = Grammar::new(&vocabulary, &Format::Regex("a*".into())).unwrap();
    // Two tokens of the same bytes are both allowed.
    let Ok(Follow::OneOf(mask)) = grammar.matcher().follow() else { panic!() };
    assert_eq!(allowed(&mask), [0, 1, 4]);
    let none = Vocabulary::new([], &[], |_| Vec::new());
    assert!(none.is_ok_and(|none| none.n_words() == 0));
    let many = Vocabulary::new(vec![Spelling::Unused; (1 << 20) + 1], &[], |_| Vec::new());
    assert_eq!(many.err().unwrap().code(), "unsupported-model");
}

/// Some files say that the token that ends an answer is a text like others.
#[test]
fn a_stop_token_is_no_text() {
    let tokens = [Spelling::Text(b"a"), Spelling::Text(b"b"), Spelling::Text(b"ab")];
    let vocabulary = Vocabulary::new(tokens, &[2], |_| vec![2, 2]).unwrap().into();
    let grammar = Grammar::new(&vocabulary, &Format::Regex("[ab]{2,9}".into())).unwrap();
    let mut matcher = grammar.matcher();
    for allows in [&[0, 1][..], &[0, 1], &[0, 1, 2]] {
        let Ok(Follow::OneOf(mask)) = matcher.follow() else { panic!() };
        assert_eq!(allowed(&mask), allows);
        matcher.take(0).unwrap();
    }
    let grammar = Grammar::new(&vocabulary, &Format::Regex("abab".into())).unwrap();
    assert_eq!(grammar.matcher().follow(), Ok(Follow::These(vec![0, 1, 0, 1])));
}

/// A beginning may end where no token does.
#[test]
fn an_answer_may_be_begun_with_a_text() {
    let grammar = schema(OBJECT).unwrap();
    assert_eq!(grammar.matcher_after("").unwrap().follow(), grammar.matcher().follow());
    let mut matcher = grammar.matcher_after("{").unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::These(encode("\"a\":"))));
    assert!(matches!(matcher.rollback(99), Err(Error::Internal(_))));
    let mut matcher = grammar.matcher_after("{\"a\":tr").unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::These(encode("ue,\"b\":"))));
    let mut matcher = grammar.matcher_after("{\"a\":true,\"b\":\"é").unwrap();
    assert!(matches!(matcher.follow(), Ok(Follow::OneOf(_))));
    let mut matcher = grammar.matcher_after("{\"a\":true,\"b\":\"é\"}").unwrap();
    assert_eq!(matcher.follow(), Ok(Follow::Nothing));
    for (begun, taken, rest) in [
        ("[", "", "["),
        ("{\"a\":true,\"b\":\"12345", "{\"a\":true,\"b\":\"1234", "5"),
        ("{\"a\":true,\"b\":\"\"}é", "{\"a\":true,\"b\":\"\"}", "é"),
    ] {
        let error = grammar.matcher_after(begun).err().unwrap();
        assert_eq!(error.code(), "bad-option");
        assert_eq!(error, Error::Begun { taken: taken.into(), rest: rest.into() });
        assert!(error.to_string().len() < 300, "{error}");
    }
    let long = "x".repeat(1 << 16);
    let regex = Grammar::new(&vocabulary(), &Format::Regex("x*".into())).unwrap();
    assert!(regex.matcher_after(&long).is_ok());
    assert!(regex.matcher_after(&(long + "y")).err().unwrap().to_string().len() < 300);
    // No token spells the character.
    let vocabulary = Vocabulary::new([Spelling::Text(b"a")], &[], |_| Vec::new()).unwrap().into();
    let regex = Grammar::new(&vocabulary, &Format::Regex("[ab]*".into())).unwrap();
    let error = regex.matcher_after("ab").err().unwrap();
    assert_eq!(error, Error::Begun { taken: "a".into(), rest: "b".into() });
}
