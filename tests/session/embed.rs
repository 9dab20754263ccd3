//! The vectors of texts: against another program's, and alone as among others.

use std::fs;

use futures_util::FutureExt;
use tritloom::Result;
use tritloom::chat::{Message, Role};
use tritloom::model::Pooling;
use tritloom::native::block_on;
use tritloom::session::{EmbedOptions, EmbedText, Embedded, Purpose, Session};

use crate::embeddings::{
    BITNET, apart, batches, check_vectors, embed, ids, load, sequences, texts,
};
use crate::setup::{Setup, generate, greedy};
use crate::support::{F32, File, Kv, assert_error, path};

fn options() -> EmbedOptions {
    EmbedOptions::default()
}

fn text(text: &str) -> EmbedText {
    EmbedText::Text(text.into())
}

fn try_embed(
    session: &mut Session,
    texts: &[EmbedText],
    options: &EmbedOptions,
) -> Result<Embedded> {
    block_on(session.embed(texts, options, &mut |_| {}))
}

#[test]
fn the_reference_has_the_vectors_of_a_float64_program() {
    check_vectors(|| Setup::default().on_reference(), true);
}

/// On the reference a pass changes no bit, whatever it holds.
#[test]
fn a_text_has_the_same_vector_alone_and_among_others() {
    let sequences = sequences();
    // Texts longer than a pass, a pass for some of them, and one for all.
    for pass in [8, 64, 1000] {
        let setup =
            Setup { pass: Some(pass), chunk: Some(pass), ..Setup::default().on_reference() };
        let mut session = load(&setup, BITNET);
        for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Last] {
            let options = EmbedOptions { pooling: Some(pooling), ..options() };
            let alone: Vec<Vec<f32>> = sequences
                .iter()
                .map(|ids| embed(&mut session, &[EmbedText::Ids(ids.clone())], &options).remove(0))
                .collect();
            for batch in batches().into_iter().chain([vec![8, 7, 6, 5, 4, 3, 2, 1, 0]]) {
                let some: Vec<Vec<u32>> = batch.iter().map(|&n| sequences[n].clone()).collect();
                let found = embed(&mut session, &ids(&some), &options);
                for (found, n) in found.iter().zip(&batch) {
                    assert_eq!(found, &alone[*n], "{n} of {batch:?}, {pooling:?}");
                }
            }
        }
    }
}

/// On a GPU the size of a pass chooses its kernels, which add floats in another order.
#[test]
fn on_a_gpu_too_but_for_rounding() {
    let sequences = sequences();
    let many: Vec<Vec<u32>> = (0..40).map(|n| sequences[n % sequences.len()].clone()).collect();
    let setup = Setup::exact().like_a_card();
    for file in [BITNET, "tests/data/embed/qwen3-embd-q2_0.gguf"] {
        let mut session = load(&setup, file);
        let alone: Vec<Vec<f32>> = sequences
            .iter()
            .map(|one| embed(&mut session, &ids(std::slice::from_ref(one)), &options()).remove(0))
            .collect();
        for (n, found) in embed(&mut session, &ids(&many), &options()).iter().enumerate() {
            let (_, most) = apart(found, &alone[n % alone.len()]);
            // With I2_S a rounding of an input may tip.
            let allowed = if file == BITNET { 4e-3 } else { 1e-5 };
            assert!(most <= allowed, "{file}, {n}: {most:.2e}");
        }
    }
}

/// In a deterministic session no bit depends on the texts beside one.
#[test]
fn a_deterministic_session_has_the_same_bits() {
    let mut setup = Setup::default().like_a_card();
    setup.load.engine.deterministic = true;
    let mut session = load(&setup, BITNET);
    let sequences = sequences();
    let together = embed(&mut session, &ids(&sequences[..4]), &options());
    for (n, expected) in together.iter().enumerate() {
        assert_eq!(&embed(&mut session, &ids(&sequences[n..=n]), &options())[0], expected, "{n}");
    }
}

#[test]
fn texts_become_tokens_with_an_end_and_nothing_special() {
    let mut session = load(&Setup::default().on_reference(), BITNET);
    let sequences = sequences();
    for (n, written) in texts() {
        let found = embed(&mut session, &[text(&written)], &options());
        assert_eq!(found, embed(&mut session, &ids(&sequences[n..=n]), &options()), "{written}");
    }
    // The text of the end is no end, and the real one comes once.
    let special = try_embed(&mut session, &[text("<|endoftext|>")], &options()).unwrap();
    assert!(special.tokens > 2, "{}", special.tokens);
    let tokens = try_embed(&mut session, &[text(""), text("")], &options()).unwrap();
    assert_eq!((tokens.tokens, &tokens.vectors[0]), (2, &tokens.vectors[1]));
}

#[test]
fn an_instruction_comes_before_the_text() {
    let mut session = load(&Setup::default().on_reference(), BITNET);
    let (n, whole) = texts().into_iter().find(|(_, text)| text.starts_with("Instruct")).unwrap();
    let expected = embed(&mut session, &ids(&sequences()[n..=n]), &options());
    let prefix = whole.strip_suffix("hello").unwrap();
    let sentence = "Given a web search query, retrieve relevant passages that answer the query";
    for purpose in [
        Purpose::task("query").unwrap(),
        Purpose::Instruction(sentence.into()),
        Purpose::Prefix(prefix.into()),
    ] {
        let options = EmbedOptions { purpose, ..options() };
        assert_eq!(embed(&mut session, &[text("hello")], &options), expected, "{options:?}");
        let given = try_embed(&mut session, &ids(&[vec![1]]), &options);
        assert_error(given, "bad-option", &["texts", "prefix"]);
    }
    assert_eq!(Purpose::task("document"), Some(Purpose::None));
    assert_eq!(Purpose::task("poem"), None);
    // Qwen's own models have no space after the colon.
    let mut qwen = load(&Setup::default().on_reference(), "tests/data/embed/qwen3-embd-q2_0.gguf");
    let query = EmbedOptions { purpose: Purpose::Instruction("Find".into()), ..options() };
    let found = embed(&mut qwen, &[text("hello")], &query);
    assert_eq!(found, embed(&mut qwen, &[text("Instruct: Find\nQuery:hello")], &options()));
}

#[test]
fn fewer_dimensions_are_the_first_ones_with_length_1() {
    let mut session = load(&Setup::default().on_reference(), BITNET);
    let whole = &embed(&mut session, &[text("hello")], &options())[0];
    let of = |session: &mut Session, n| {
        let options = EmbedOptions { dimensions: Some(n), ..options() };
        try_embed(session, &[text("hello")], &options)
    };
    for n in [1, 64, 256] {
        let found = of(&mut session, n).unwrap().vectors.remove(0);
        let length = whole[..n].iter().map(|x| x * x).sum::<f32>().sqrt();
        assert_eq!(found.len(), n);
        for (found, whole) in found.iter().zip(whole) {
            assert!((found - whole / length).abs() < 1e-6);
        }
    }
    for n in [0, 257] {
        assert_error(of(&mut session, n), "bad-option", &["dimensions", "1 to 256"]);
    }
}

#[test]
fn texts_that_are_too_long_are_refused_or_cut() {
    let mut session = load(&Setup::default().on_reference().context(16), BITNET);
    let long: Vec<u32> = (1..=40).collect();
    let fits: Vec<u32> = (1..=15).chain([268]).collect();
    let some = ids(&[vec![5], long, fits.clone()]);
    let refused = try_embed(&mut session, &some, &options());
    assert_error(refused, "context-full", &["texts[1]", "40", "16", "`truncate`"]);
    let cut = EmbedOptions { truncate: true, ..options() };
    let found = try_embed(&mut session, &some, &cut).unwrap();
    assert_eq!((found.cut, found.tokens), (vec![1], 33));
    assert_eq!(found.vectors[1], found.vectors[2]);
    // Of the longest one only the beginning is encoded. Its bound is within a character.
    let [long, longest] = [20, 100_000].map(|n| text(&"hello wörld ".repeat(n)));
    let found = try_embed(&mut session, &[long, longest.clone()], &cut).unwrap();
    assert_eq!((found.cut, found.tokens), (vec![0, 1], 32));
    assert_eq!(found.vectors[0], found.vectors[1]);
    let refused = try_embed(&mut session, &[text("a"), longest], &options());
    assert_error(refused, "context-full", &["texts[1]", "16"]);
}

#[test]
fn wrong_texts_are_refused_and_none_are_none() {
    let mut session = load(&Setup::default().on_reference(), BITNET);
    for (wrong, fact) in [(vec![], "no tokens"), (vec![1, 291], "291")] {
        let options = EmbedOptions { first: 256, ..options() };
        let found = try_embed(&mut session, &ids(&[vec![1], wrong]), &options);
        assert_error(found, "bad-option", &["`texts[257]`", fact]);
    }
    let none = try_embed(&mut session, &[], &options()).unwrap();
    assert_eq!((none.vectors.len(), none.tokens), (0, 0));
}

/// A value that is 0 in all texts stays 0, and so does a vector of zeros.
#[test]
fn zeros_stay_zeros() {
    let mut file = File::of(BITNET);
    let values = file.tensor("output_norm.weight").bytes.len();
    file.tensor("output_norm.weight").bytes = vec![0; values];
    let mut session = Setup::default().on_reference().load(&file.build()).unwrap();
    assert_eq!(embed(&mut session, &[text("hello")], &options())[0], vec![0.0; 256]);
}

/// An index would keep them for ever.
#[test]
fn values_that_are_not_finite_are_no_vector() {
    let mut file = File::of(BITNET);
    let norm = file.tensor("output_norm.weight");
    let values = norm.bytes.len() / 2;
    norm.type_id = F32;
    norm.bytes = f32::MAX.to_le_bytes().repeat(values);
    let mut session = Setup::default().on_reference().load(&file.build()).unwrap();
    let error = try_embed(&mut session, &[text("hello")], &options()).unwrap_err();
    assert_eq!(error.code(), "internal");
    assert!(error.to_string().contains("texts[0]"), "{error}");
}

/// It has no template, whatever its file says, and no call asks for one before it says that the model embeds.
#[test]
fn an_embedding_model_needs_no_template() {
    let mut broken = File::of(BITNET);
    broken.set("tokenizer.chat_template", Kv::Str("{% broken".into()));
    for file in [File::of(BITNET), broken] {
        let mut setup = Setup::default().on_reference();
        setup.load.strict = true;
        let mut session = setup.load(&file.build()).unwrap();
        assert_eq!(session.info().template, None);
        assert_eq!(embed(&mut session, &[text("hello")], &options()).len(), 1);
        let asked = [Message::new(Role::User, "hello")];
        assert_error(session.chat_prompt(&asked, None), "embedding-model", &["`embed`"]);
        assert_error(session.template().map(|_| ()), "embedding-model", &["`embed`"]);
    }
}

#[test]
fn an_embedding_model_does_not_answer() {
    for file in [BITNET, "tests/data/embed/qwen3-embd-q2_0.gguf"] {
        let mut session = load(&Setup::default().on_reference(), file);
        let info = session.info();
        assert_eq!((info.embeds, info.pooling, info.dimensions), (true, Some("last"), 256));
        let found = generate(&mut session, &[1, 2], &greedy(3)).map(|_| ());
        assert_error(found, "embedding-model", &["`embed`"]);
        assert_error(block_on(session.logits(&[1, 2])), "embedding-model", &[]);
    }
}

/// Its pooling is an option of the load or of the call, because its file names none.
#[test]
fn a_model_that_answers_embeds_with_a_pooling() {
    let setup = Setup::default().on_reference();
    let mut session = setup.small();
    let some = ids(&[vec![1, 2, 3], vec![4, 5]]);
    assert_error(try_embed(&mut session, &some, &options()), "bad-option", &["pooling", "`last`"]);
    let before = generate(&mut session, &[1, 2, 3], &greedy(5)).unwrap();
    let mean = EmbedOptions { pooling: Some(Pooling::Mean), ..options() };
    let found = embed(&mut session, &some, &mean);
    // The sequence of the answer is still in the cache.
    let after = generate(&mut session, &[1, 2, 3], &greedy(5)).unwrap();
    assert_eq!((after.ids, after.stats.reused_tokens), (before.ids, 2));
    assert_eq!((session.info().embeds, session.info().pooling), (false, None));

    let mut setup = Setup::default().on_reference();
    setup.load.pooling = Some(Pooling::Mean);
    let mut session = setup.small();
    assert_eq!(session.info().pooling, Some("mean"));
    assert_eq!(embed(&mut session, &some, &options()), found);
    let last = EmbedOptions { pooling: Some(Pooling::Last), ..options() };
    assert_ne!(embed(&mut session, &some, &last), found);
}

#[test]
fn a_call_that_is_dropped_leaves_no_trace() {
    let mut session = load(&Setup::default().on_reference(), BITNET);
    let all = ids(&sequences());
    let expected = embed(&mut session, &all, &options());
    let mut done = Vec::new();
    {
        let mut progress = |texts| done.push(texts);
        let options = options();
        let mut call = Box::pin(session.embed(&all, &options, &mut progress));
        // A pass ends each time that it is polled.
        for _ in 0..4 {
            assert!((&mut call).now_or_never().is_none());
        }
    }
    assert!(done.len() > 1 && *done.last().unwrap() < all.len(), "{done:?}");
    assert_eq!(embed(&mut session, &all, &options()), expected);
    let mut done = Vec::new();
    block_on(session.embed(&all, &options(), &mut |texts| done.push(texts))).unwrap();
    assert!(done.is_sorted() && done.last() == Some(&all.len()), "{done:?}");
}

/// The type of vectors changes nothing: other writers have f32.
#[test]
fn vectors_may_be_of_any_float() {
    let mut session =
        Setup::default().on_reference().load(&fs::read(path(BITNET)).unwrap()).unwrap();
    let expected = embed(&mut session, &[text("hello")], &options());
    let mut file = File::of(BITNET);
    for tensor in file.tensors.iter_mut().filter(|tensor| tensor.ne.len() == 1) {
        let halves = tensor.bytes.as_chunks::<2>().0.iter();
        let wide = halves.flat_map(|&b| half::f16::from_le_bytes(b).to_f32().to_le_bytes());
        tensor.bytes = wide.collect();
        tensor.type_id = crate::support::F32;
    }
    file.set("qwen3.pooling_type", Kv::U32(1));
    let mut session = Setup::default().on_reference().load(&file.build()).unwrap();
    let last = EmbedOptions { pooling: Some(Pooling::Last), ..options() };
    assert_eq!(embed(&mut session, &[text("hello")], &last), expected);
    assert_eq!(session.info().pooling, Some("mean"));
}
