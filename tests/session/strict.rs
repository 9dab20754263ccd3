//! With `strict`, nothing is taken that the caller has not asked for. Each test also loads without it.

use tritloom::chat::TemplateChoice;
use tritloom::compute::LmHead;
use tritloom::gpu::{Gpu, GpuOptions};
use tritloom::native::block_on;
use tritloom::session::Session;
use tritloom::tokenizer::Rules;

use crate::setup::{Setup, small};
use crate::support::{File, Kv, assert_error};

fn load(setup: Setup, file: &File) -> tritloom::Result<Session> {
    setup.load(&file.build())
}

fn strict(mut setup: Setup) -> Setup {
    setup.load.strict = true;
    setup
}

/// Of an architecture whose file has the right template.
fn with_template() -> File {
    let mut file = small();
    file.set("tokenizer.chat_template", Kv::Str("{{ messages[0].content }}".into()));
    file
}

#[test]
fn no_closest_tokenizer() {
    let mut file = small();
    file.set("tokenizer.ggml.pre", Kv::Str("unknown".into()));
    let closest = || {
        let mut setup = Setup::default().on_reference();
        setup.load.tokenizer = Rules::Closest;
        setup.load.template = TemplateChoice::Builtin;
        setup
    };
    assert_eq!(load(closest(), &file).unwrap().info().notes.len(), 1);
    let refused = load(strict(closest()), &file).map(|_| ());
    assert_error(refused, "unsupported-model", &["`unknown`", "`default` is used instead"]);
}

/// BitNet's files bring a wrong template, which the built-in one replaces.
#[test]
fn no_builtin_template_unless_it_is_asked_for() {
    let setup = |template: TemplateChoice| {
        let mut setup = Setup::default().on_reference();
        setup.load.template = template;
        setup
    };
    for file in [small(), with_template()] {
        let auto = load(setup(TemplateChoice::Auto), &file).unwrap();
        assert_eq!(auto.info().template.as_deref(), Some("builtin: bitnet"));
        let refused = load(strict(setup(TemplateChoice::Auto)), &file).map(|_| ());
        assert_error(refused, "bad-option", &["template", "`bitnet`", "`builtin`"]);
        load(strict(setup(TemplateChoice::Builtin)), &file).unwrap();
    }
    let session = load(strict(setup(TemplateChoice::File)), &with_template()).unwrap();
    assert_eq!(session.info().template.as_deref(), Some("file"));
}

/// A binding holds half of the model's context.
#[test]
fn no_shorter_context_unless_it_is_asked_for() {
    let capped = || {
        let mut setup = Setup::default();
        setup.gpu.limits.max_storage_buffer_binding_size = Some(128 << 10);
        setup.load.template = TemplateChoice::Builtin;
        setup
    };
    assert_eq!(load(capped(), &small()).unwrap().info().context_length, 512);
    let refused = load(strict(capped()), &small()).map(|_| ());
    assert_error(refused, "out-of-memory", &["1024 tokens", "262144", "131072"]);
    let session = load(strict(capped()).context(100), &small()).unwrap();
    assert_eq!(session.info().context_length, 100);
}

/// It reads an LM head of int8 as a GPU does.
#[test]
fn the_cpu_takes_all_that_it_is_asked_for() {
    let mut setup = strict(Setup::default().on_cpu());
    setup.load.engine.lm_head = LmHead::Int8;
    setup.load.template = TemplateChoice::Builtin;
    assert_eq!(load(setup, &small()).unwrap().info().notes, Vec::<String>::new());
}

/// On a machine with a card, that is taken either way.
#[test]
fn no_cpu_as_an_adapter_unless_it_is_asked_for() {
    let open = |strict, software| {
        let mut options = GpuOptions { strict, ..GpuOptions::default() };
        options.features.software = software;
        block_on(Gpu::open(&options))
    };
    let plain = open(false, None).unwrap();
    match plain.software {
        false => assert!(open(true, None).is_ok()),
        true => {
            for software in [None, Some(false)] {
                let refused = open(true, software).map(|_| ());
                assert_error(refused, "no-adapter", &["strict", &plain.adapter]);
            }
        }
    }
    assert!(open(true, Some(true)).is_ok());
}
