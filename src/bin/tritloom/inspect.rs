//! Shows what is in a GGUF file.

use std::ops::Range;
use std::path::Path;

use tritloom::blocks::{Fault, block_type};
use tritloom::gguf::{Gguf, Joined, TensorInfo, TensorType};
use tritloom::model::{Config, weights};
use tritloom::native::{FileSource, block_on, open};
use tritloom::source::Reader;
use tritloom::tokenizer::Tokenizer;
use tritloom::{Error, Result, ternary};

use crate::output::print;

/// Bytes that are read at a time, rounded to whole blocks.
const SLICE: usize = 1 << 20;

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
        if let Some(content) = content(&mut reader, tensor)? {
            line += &content.to_string();
            total.iter_mut().zip(content.counts).for_each(|(all, count)| *all += count);
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

/// The codes and the scales of a tensor.
#[derive(Default)]
struct Content {
    /// How many elements are -1, 0 and +1, in types that have only these values.
    counts: [u64; 3],
    /// The smallest and the largest scale.
    scales: Option<(f32, f32)>,
    offsets: Option<(f32, f32)>,
}

impl Content {
    /// Counts -1 and +1 in words of 32 codes of 1 bit. The order of the codes does not matter.
    fn count_bits(&mut self, words: &[u32]) {
        let plus: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        self.counts[0] += 32 * words.len() as u64 - plus;
        self.counts[2] += plus;
    }

    /// Counts the codes -1, 0 and +1 in words of 16 codes. The order of the codes does not matter.
    fn count(&mut self, words: impl Iterator<Item = u32>) {
        for word in words {
            let ones = |word: u32| u64::from((word & 0x5555_5555).count_ones());
            let (zero, plus) = (ones(word), ones(word >> 1));
            let minus = 16 - zero - plus;
            self.counts.iter_mut().zip([minus, zero, plus]).for_each(|(all, count)| *all += count);
        }
    }

    /// Extends the ranges of scales and offsets to these.
    fn extend(&mut self, scales: &[f32], offsets: &[f32]) {
        for (range, values) in [(&mut self.scales, scales), (&mut self.offsets, offsets)] {
            for &value in values {
                let (least, most) = range.unwrap_or((value, value));
                *range = Some((least.min(value), most.max(value)));
            }
        }
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, range) in [("scale", self.scales), ("offset", self.offsets)] {
            match range {
                None => {}
                Some((one, other)) if one == other => write!(f, "  {name} {one}")?,
                Some((least, most)) => write!(f, "  {name}s {least} to {most}")?,
            }
        }
        match self.counts {
            [0, 0, 0] => Ok(()),
            counts => write!(f, "  {}", shares(counts)),
        }
    }
}

/// Reads a tensor whose type has scales.
///
/// Errors: `bad-gguf` for a code that no value has and for a scale that is not finite.
fn content(
    reader: &mut Reader<Joined<FileSource>>,
    tensor: &TensorInfo,
) -> Result<Option<Content>> {
    let mut content = Content::default();
    let end = tensor.offset + tensor.len;
    let bad = |what: &str, at: u64| {
        Err(Error::BadGguf(format!("tensor `{}` has {what} (at byte {at})", tensor.name)))
    };
    const CODE: &str = "the unused code 3";
    const SCALE: &str = "a scale that is not a number";
    if let Some(row) = block_type(tensor.ty) {
        let (mut words, mut scales, mut offsets) = (vec![], vec![], vec![]);
        for range in slices(tensor.offset..end, row.bytes) {
            let bytes = block_on(reader.read(range.clone()))?;
            words.clear();
            scales.clear();
            offsets.clear();
            if let Err(fault) = row.repack(&bytes, &mut words, &mut scales, &mut offsets) {
                let what = if matches!(fault, Fault::Code(_)) { CODE } else { SCALE };
                return bad(what, range.start + row.offset_of(fault) as u64);
            }
            content.extend(&scales, &offsets);
            // Codes of 1 and 2 bits stand for -1, 0 and +1 times the scale.
            match row.bits {
                1 => content.count_bits(&words),
                2 => content.count(words.iter().copied()),
                _ => {}
            }
        }
    } else if tensor.ty == TensorType::I2S {
        let tail = end - ternary::TAIL as u64;
        for range in slices(tensor.offset..tail, size_of::<u32>()) {
            let bytes = block_on(reader.read(range.clone()))?;
            if let Err(index) = ternary::check_codes(&bytes) {
                return bad(CODE, range.start + index as u64);
            }
            content.count(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        match ternary::scale(&block_on(reader.read(tail..end))?) {
            Some(scale) => content.extend(&[scale], &[]),
            None => return bad(SCALE, tail),
        }
    } else {
        return Ok(None);
    }
    Ok(Some(content))
}

/// Cuts a range into slices of whole blocks.
fn slices(range: Range<u64>, block: usize) -> impl Iterator<Item = Range<u64>> {
    let step = SLICE.next_multiple_of(block);
    let end = range.end;
    range.step_by(step).map(move |start| start..end.min(start + step as u64))
}

fn shares(counts: [u64; 3]) -> String {
    let all: u64 = counts.iter().sum();
    let percent = counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
    format!("-1 {:.1} %, 0 {:.1} %, +1 {:.1} %", percent[0], percent[1], percent[2])
}
