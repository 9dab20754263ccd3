//! Shows what is in a GGUF file.

use std::path::Path;

use ternlight::gguf::{Gguf, TensorType};
use ternlight::model::{Config, weights};
use ternlight::native::{FileSource, block_on};
use ternlight::source::Reader;
use ternlight::tokenizer::Tokenizer;
use ternlight::{Error, Result, ternary};

use crate::output::print;

pub(crate) fn inspect(file: &Path) -> Result<()> {
    let mut reader = Reader::new(FileSource::open(file)?);
    let gguf = block_on(Gguf::read(&mut reader))?;
    let mut text = vec![format!(
        "GGUF {}, {} tensors, data at {}",
        gguf.version,
        gguf.tensors.len(),
        gguf.data_start
    )];
    text.extend(gguf.metadata.iter().map(|(key, value)| format!("{key} = {value}")));

    let mut tensors: Vec<_> = gguf.tensors.iter().collect();
    tensors.sort_by_key(|tensor| tensor.offset);
    let mut total = [0; 3];
    for tensor in tensors {
        let mut line = format!("{:32} {tensor}, {} bytes", tensor.name, tensor.len);
        if tensor.ty == TensorType::I2S {
            let range = tensor.offset..tensor.offset + tensor.len;
            let counts = count(&tensor.name, &block_on(reader.read(range))?)?;
            line += &format!("  {}", shares(counts));
            (0..3).for_each(|i| total[i] += counts[i]);
        }
        text.push(line);
    }
    if total != [0; 3] {
        text.push(format!("all ternary weights: {}", shares(total)));
    }
    let runs = Config::from_gguf(&gguf)
        .and_then(|config| weights::weights(&config, &gguf).map(|_| config))
        .and_then(|config| Tokenizer::from_gguf(&gguf, &config));
    text.push(match runs {
        Ok(_) => "ternlight runs this model".into(),
        Err(error) => format!("ternlight does not run this model: {error}"),
    });
    print(&(text.join("\n") + "\n"))
}

/// How many codes of an I2_S tensor are −1, 0 and +1.
fn count(name: &str, bytes: &[u8]) -> Result<[u64; 3]> {
    let (codes, tail) = bytes.split_at(bytes.len() - ternary::TAIL);
    let bad = |what: &str| Error::BadGguf(format!("tensor `{name}` has {what}"));
    ternary::check_codes(codes).map_err(|_| bad("the unused code 3"))?;
    ternary::scale(tail).ok_or_else(|| bad("a scale that is not a number"))?;
    let mut counts = [0; 3];
    for byte in codes {
        (0..4).for_each(|field| counts[usize::from(byte >> (2 * field) & 3)] += 1);
    }
    Ok(counts)
}

fn shares(counts: [u64; 3]) -> String {
    let all: u64 = counts.iter().sum();
    let percent = counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
    format!("-1 {:.1} %, 0 {:.1} %, +1 {:.1} %", percent[0], percent[1], percent[2])
}
