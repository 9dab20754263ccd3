//! Models in several files. GGUF calls them splits; here each file is a *volume*.

use super::manifest::Manifest;

/// The most volumes of a model.
const MAX_VOLUMES: u32 = 100;

/// The volume that a file's name means: `model-00001-of-00003.gguf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeName<'a> {
    stem: &'a str,
    /// The number of this volume, from 1.
    pub number: u32,
    /// How many volumes there are.
    pub count: u32,
    /// The rest of an address after the name: nothing, or `?` and more.
    query: &'a str,
}

impl<'a> VolumeName<'a> {
    /// Reads a file's name or path; `None` if it does not name a volume.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (rest, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let five = |digits: &str| {
            let all = digits.len() == 5 && digits.bytes().all(|digit| digit.is_ascii_digit());
            all.then(|| digits.parse().ok()).flatten()
        };
        let (number, count) = (five(number)?, five(count)?);
        let is_one_of_several = (1..=count).contains(&number) && count > 1;
        is_one_of_several.then_some(Self { stem, number, count, query: "" })
    }

    /// Reads an address.
    pub fn in_url(url: &'a str) -> Option<Self> {
        let (path, query) = url.split_at(url.find('?').unwrap_or(url.len()));
        Some(Self { query, ..Self::parse(path)? })
    }

    /// The name of another volume.
    pub fn of(&self, number: u32) -> String {
        format!("{}-{number:05}-of-{:05}.gguf{}", self.stem, self.count, self.query)
    }

    /// The names of all volumes, if this is the first.
    ///
    /// Errors: the reason, for people.
    pub fn all(&self) -> Result<Vec<String>, String> {
        let Self { number, count, .. } = *self;
        if number != 1 {
            let first = self.of(1);
            return Err(format!("this is file {number} of {count}; load the first one, {first}"));
        }
        if count > MAX_VOLUMES {
            return Err(format!("it is one of {count} files, more than {MAX_VOLUMES}"));
        }
        Ok((1..=count).map(|number| self.of(number)).collect())
    }
}

/// The addresses of all files of the model to which the file at `url` belongs, the first one first.
/// Most models have one file.
pub fn model_urls(url: &str) -> Vec<String> {
    let all = VolumeName::in_url(url).and_then(|name| VolumeName::in_url(&name.of(1))?.all().ok());
    all.unwrap_or_else(|| vec![url.to_owned()])
}

/// A stored model: its file, or those of its volumes that are stored, in whole or in part.
#[derive(Clone, Debug)]
pub struct StoredModel {
    /// The address from which it is loaded, which is that of its first file.
    pub url: String,
    /// The records of its files, at least one. Of one file there may be two, if another version of
    /// it has begun to come.
    pub files: Vec<Manifest>,
    /// How many files the whole model has.
    count: usize,
}

impl StoredModel {
    /// Puts the volumes of each model together.
    pub fn group(files: Vec<Manifest>) -> Vec<Self> {
        let mut models: Vec<Self> = Vec::new();
        for file in files {
            let urls = model_urls(&file.url);
            let (count, url) = (urls.len(), urls.into_iter().next().unwrap_or_default());
            match models.iter_mut().find(|model| count > 1 && model.url == url) {
                Some(model) => model.files.push(file),
                None => models.push(Self { url, files: vec![file], count }),
            }
        }
        models
    }

    /// Bytes that are stored, of all versions.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(Manifest::bytes).sum()
    }

    /// Bytes that a load would not download.
    pub fn usable_bytes(&self) -> u64 {
        self.taken().iter().map(|file| file.bytes()).sum()
    }

    /// Bytes in the whole model, if that is known.
    pub fn total(&self) -> Option<u64> {
        let totals: Option<Vec<u64>> = self.taken().iter().map(|file| file.total).collect();
        totals.filter(|totals| totals.len() == self.count).map(|totals| totals.iter().sum())
    }

    /// Whether all of it is stored.
    pub fn is_complete(&self) -> bool {
        let taken = self.taken();
        taken.len() == self.count && taken.iter().all(|file| file.complete)
    }

    /// The record that a load takes of each of its files.
    fn taken(&self) -> Vec<&Manifest> {
        let mut taken: Vec<&Manifest> = Vec::new();
        for file in &self.files {
            match taken.iter_mut().find(|other| other.url == file.url) {
                Some(other) if file.rank() > other.rank() => *other = file,
                Some(_) => {}
                None => taken.push(file),
            }
        }
        taken
    }

    /// When any of it was last loaded, in milliseconds since 1970.
    pub fn used(&self) -> f64 {
        self.files.iter().fold(f64::MIN, |last, file| last.max(file.used))
    }

    /// When it was first stored, in milliseconds since 1970.
    pub fn added(&self) -> f64 {
        self.files.iter().fold(f64::MAX, |first, file| first.min(file.added))
    }
}

/// The models that may be deleted to make room for `url`. These are the models of other addresses,
/// the least recently used one first.
pub fn eviction_order(files: Vec<Manifest>, url: &str) -> Vec<StoredModel> {
    let own = model_urls(url).into_iter().next();
    let mut models = StoredModel::group(files);
    models.retain(|model| Some(&model.url) != own.as_ref() && model.bytes() > 0);
    models.sort_by(|a, b| a.used().total_cmp(&b.used()));
    models
}

/// The other versions of the file with the record `id`. They may be deleted to make room for it, if
/// deleting the models of other addresses is not enough.
pub fn other_versions(mut files: Vec<Manifest>, url: &str, id: &str) -> Option<StoredModel> {
    files.retain(|file| file.url == url && file.id != id && file.bytes() > 0);
    let model = StoredModel { url: url.into(), count: 1, files };
    Some(model).filter(|model| !model.files.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::StoredPart;

    fn file(url: &str, used: f64, length: u64, total: Option<u64>) -> Manifest {
        let mut file = Manifest::new(url.into(), url, 0.0);
        (file.used, file.total, file.complete) = (used, total, total == Some(length));
        let part = StoredPart { key: 0, start: 0, length, sha256: "aa".into(), on_disk: false };
        file.stored.extend((length > 0).then_some(part));
        file
    }

    #[test]
    fn the_model_used_longest_ago_gives_way_first() {
        let files = vec![
            file("b", 3.0, 1, None),
            file("a", 1.0, 1, None),
            file("none", 0.0, 0, None),
            file("own", 0.0, 1, None),
            // This volume was used together with the other one.
            file("v-00001-of-00002.gguf", 0.0, 1, None),
            file("v-00002-of-00002.gguf", 2.0, 1, None),
        ];
        let order = |url: &str| -> Vec<_> {
            eviction_order(files.clone(), url).into_iter().map(|model| model.url).collect()
        };
        assert_eq!(order("own"), ["a", "v-00001-of-00002.gguf", "b"]);
        assert_eq!(order("v-00002-of-00002.gguf"), ["own", "a", "b"]);
    }

    #[test]
    fn other_versions_of_a_file_are_those_of_its_address() {
        let version = |id: &str, url: &str, length| {
            let mut version = file(url, 0.0, length, Some(10));
            version.id = id.into();
            version
        };
        let [old, new] = [version("old", "a", 10), version("new", "a", 5)];
        let files = vec![old, new.clone(), version("b", "b", 10), version("empty", "a", 0)];
        let found = other_versions(files, "a", "new").expect("one");
        assert_eq!(found.files.iter().map(|file| file.id.as_str()).collect::<Vec<_>>(), ["old"]);
        assert_eq!((found.url.as_str(), found.bytes()), ("a", 10));
        assert!(other_versions(vec![new], "a", "new").is_none());
    }

    #[test]
    fn the_volumes_of_a_model_are_one_model() {
        let url = |number| format!("https://a/m-0000{number}-of-00002.gguf?x=1");
        let whole = |number, bytes| file(&url(number), f64::from(number), bytes, Some(bytes));
        let [both] = &StoredModel::group(vec![whole(2, 20), whole(1, 10)])[..] else { panic!() };
        assert_eq!((both.url.as_str(), both.bytes(), both.used()), (url(1).as_str(), 30, 2.0));
        assert_eq!((both.total(), both.is_complete()), (Some(30), true));
        let [first] = &StoredModel::group(vec![whole(1, 10)])[..] else { panic!() };
        assert_eq!((first.bytes(), first.total(), first.is_complete()), (10, None, false));
        let begun = file(&url(2), 0.0, 5, Some(20));
        let [begun] = &StoredModel::group(vec![whole(1, 10), begun])[..] else { panic!() };
        assert_eq!((begun.bytes(), begun.total(), begun.is_complete()), (15, Some(30), false));
        // Another version has begun to come. A load takes the whole one.
        let newer = file(&url(2), 0.0, 5, Some(25));
        let [both] = &StoredModel::group(vec![newer, whole(1, 10), whole(2, 20)])[..] else {
            panic!()
        };
        assert_eq!((both.usable_bytes(), both.bytes()), (30, 35));
        assert_eq!((both.total(), both.is_complete()), (Some(30), true));
        // Two records of one address do not count as two volumes.
        let one = |bytes| file("https://a/m.gguf", 0.0, bytes, Some(10));
        assert_eq!(StoredModel::group(vec![one(10), one(5)]).len(), 2);
        assert_eq!(model_urls(&url(2)), [url(1), url(2)]);
        assert_eq!(model_urls("https://a/m.gguf"), ["https://a/m.gguf"]);
    }
}
