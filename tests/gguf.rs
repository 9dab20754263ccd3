//! Reading GGUF heads.
use ternlight::gguf::Gguf;
use ternlight::model::{Config, weights};
use ternlight::native::{FileSource, block_on};
use ternlight::source::Reader;
use ternlight::tokenizer::Tokenizer;

#[test]
fn smoke() {
    let mut reader = Reader::new(FileSource::open("models/tiny-stories.gguf").unwrap());
    let gguf = block_on(Gguf::read(&mut reader)).unwrap();
    let config = Config::from_gguf(&gguf).unwrap();
    println!("{config:?}");
    let weights = weights::weights(&config, &gguf).unwrap();
    println!("{} {:?}", weights.len(), weights[0]);
    let tokenizer = Tokenizer::from_gguf(&gguf, &config).unwrap();
    println!("{:?}", tokenizer.encode_with_special("<|begin_of_text|>Once upon a time"));
}
