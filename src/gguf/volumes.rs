//! Joins the volumes of a model in several files.
//!
//! The first volume has the metadata. Each volume has a header of its own, with some of the
//! tensors, its number, and the number of volumes.

use std::ops::Range;

use super::write::Header;
use super::{Gguf, TensorInfo, Value, shortened};
use crate::error::{Error, Result};
use crate::source::{Reader, Source};

/// The volumes of a model, read as the one file that joining them would make.
///
/// So no other module knows of volumes. A model of one file passes through as it is.
pub struct Joined<S> {
    volumes: Vec<Reader<S>>,
    /// The joined file's header. It replaces the headers of the volumes.
    header: Vec<u8>,
    /// The rest of the joined file, in order. Between two slices is padding.
    slices: Vec<Slice>,
    len: u64,
}

/// A range of the joined file that comes from one volume.
struct Slice {
    /// Offset in the joined file.
    start: u64,
    len: u64,
    volume: usize,
    /// Offset in the volume.
    offset: u64,
}

impl<S: Source> Joined<S> {
    /// A model of one file.
    pub fn single(source: S) -> Self {
        let len = source.len();
        let slice = Slice { start: 0, len, volume: 0, offset: 0 };
        Self { volumes: vec![Reader::new(source)], header: vec![], slices: vec![slice], len }
    }

    /// Reads the headers of all volumes, which are given in their order.
    ///
    /// Errors: `bad-gguf` for volumes that are not those of one model in this order; those of
    /// reading a header.
    pub async fn open(sources: Vec<S>) -> Result<Self> {
        let count = sources.len();
        let mut volumes: Vec<Reader<S>> = sources.into_iter().map(Reader::new).collect();
        let mut headers = Vec::with_capacity(count);
        for (index, volume) in volumes.iter_mut().enumerate() {
            let named =
                |why: String| Error::BadGguf(format!("file {} of {count}: {why}", index + 1));
            let gguf = Gguf::read(volume).await.map_err(|error| match error {
                Error::BadGguf(why) => named(why),
                other => other,
            })?;
            check(&gguf, headers.first(), index, count).map_err(named)?;
            headers.push(gguf);
        }
        check_tensors(&headers)?;

        let mut slices = Vec::new();
        let mut tensors = Vec::new();
        for (volume, gguf) in headers.iter().enumerate() {
            let mut in_order: Vec<&TensorInfo> = gguf.tensors.iter().collect();
            in_order.sort_by_key(|tensor| tensor.offset);
            for tensor in in_order {
                let TensorInfo { len, offset, .. } = *tensor;
                slices.push(Slice { start: 0, len, volume, offset });
                tensors.push(tensor.entry());
            }
        }
        let first = headers.swap_remove(0);
        let header = Header {
            version: 3,
            alignment: first.alignment,
            metadata: first
                .metadata
                .iter()
                .filter(|(key, _)| !key.starts_with("split."))
                .map(|(key, value)| (key.to_owned(), value.clone()))
                .collect(),
            tensors,
        };
        let bytes = header.to_bytes();
        let data_start = (bytes.len() as u64).next_multiple_of(header.alignment);
        for (slice, offset) in slices.iter_mut().zip(header.offsets()) {
            slice.start = data_start + offset;
        }
        let len = slices.last().map_or(data_start, |last| last.start + last.len);
        Ok(Self { volumes, header: bytes, slices, len })
    }

    /// Gives the volumes' sources back.
    pub fn into_inner(self) -> Vec<S> {
        self.volumes.into_iter().map(Reader::into_inner).collect()
    }
}

/// Refuses a header that cannot be that of the volume at `index`. Volumes after the first have few
/// keys, which must not contradict those of the `first`.
fn check(gguf: &Gguf, first: Option<&Gguf>, index: usize, count: usize) -> Result<(), String> {
    let integer = |key: &str| gguf.metadata.get(key).and_then(Value::integer);
    match integer("split.count") {
        Some(found) if found == count as i128 => {}
        None => return Err("its metadata does not say that there are others".into()),
        Some(found) => return Err(format!("its metadata says that there are {found}")),
    }
    match integer("split.no") {
        Some(found) if found == index as i128 => {}
        None => return Err("its metadata does not say which it is".into()),
        Some(found) => {
            return Err(format!("its metadata says that it is number {}", found.saturating_add(1)));
        }
    }
    let other = first.and_then(|first| {
        gguf.metadata.iter().find(|(key, value)| {
            let same = first.metadata.get(key).is_none_or(|of_first| of_first == *value);
            *key != "split.no" && !same
        })
    });
    match other {
        Some((key, _)) => {
            let key = shortened(key);
            Err(format!("it is of another model than the first, which has another `{key}`"))
        }
        None => Ok(()),
    }
}

/// Refuses volumes that do not have, together, as many tensors as the first one says.
fn check_tensors(headers: &[Gguf]) -> Result<()> {
    let found = headers.iter().map(|gguf| gguf.tensors.len() as i128).sum();
    let said = headers[0].metadata.get("split.tensors.count").and_then(Value::integer);
    match said {
        Some(said) if said != found => {
            let count = headers.len();
            let why = format!("the {count} files have {found} tensors, but there should be {said}");
            Err(Error::BadGguf(why))
        }
        _ => Ok(()),
    }
}

impl<S: Source> Source for Joined<S> {
    fn len(&self) -> u64 {
        self.len
    }

    async fn read(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let from_header = |at: u64| at.min(self.header.len() as u64) as usize;
        let mut bytes = self.header[from_header(range.start)..from_header(range.end)].to_vec();
        let mut next = self.slices.partition_point(|slice| slice.start + slice.len <= range.start);
        while let Some(slice) = self.slices.get(next).filter(|slice| slice.start < range.end) {
            next += 1;
            let start = range.start.max(slice.start);
            let end = range.end.min(slice.start + slice.len);
            if start >= end {
                continue;
            }
            let padded = (start - range.start) as usize;
            bytes.resize(padded, 0);
            let of_volume = |at: u64| slice.offset + (at - slice.start);
            let read = of_volume(start)..of_volume(end);
            let mut read = self.volumes[slice.volume].read(read).await?;
            // Most reads are within one tensor. For them this saves a copy.
            if bytes.is_empty() {
                bytes = read;
            } else {
                bytes.append(&mut read);
            }
        }
        bytes.resize((range.end - range.start) as usize, 0);
        Ok(bytes)
    }
}
