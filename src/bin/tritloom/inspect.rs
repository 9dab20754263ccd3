//! Shows what is in a GGUF file.

use std::path::Path;

use tritloom::Result;
use tritloom::contents::{Contents, Spread, contents};
use tritloom::gguf::Gguf;
use tritloom::model::{Config, weights};
use tritloom::native::{block_on, open};
use tritloom::source::Reader;
use tritloom::tokenizer::Tokenizer;

use crate::output::print;

pub(crate) fn inspect(file: &Path) -> Result<()> {
    let mut reader = Reader::new(open(file)?);
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
        if let Some(contents) = block_on(contents(&mut reader, tensor))? {
            line += &described(&contents);
            total.iter_mut().zip(contents.counts).for_each(|(all, count)| *all += count);
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
        Ok(_) => "tritloom runs this model".into(),
        Err(error) => format!("tritloom does not run this model: {error}"),
    });
    print(&(text.join("\n") + "\n"))
}

/// The scales, offsets and shares of a tensor, behind its line.
fn described(contents: &Contents) -> String {
    let mut text = String::new();
    for (name, spread) in [("scale", contents.scales), ("offset", contents.offsets)] {
        match spread {
            None => {}
            Some(Spread { min, max, .. }) if min == max => text += &format!("  {name} {min}"),
            Some(Spread { min, max, .. }) => text += &format!("  {name}s {min} to {max}"),
        }
    }
    match contents.counts {
        [0, 0, 0] => text,
        counts => text + "  " + &shares(counts),
    }
}

fn shares(counts: [u64; 3]) -> String {
    let all: u64 = counts.iter().sum();
    let percent = counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
    format!("-1 {:.1} %, 0 {:.1} %, +1 {:.1} %", percent[0], percent[1], percent[2])
}
