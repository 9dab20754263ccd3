//! One word for one thing: refuses the words that CONTRIBUTING's glossary has retired, in code,
//! comments, documents, shaders, tests and scripts.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// A retired word, the one to use, and the folders in which it is retired (none: everywhere).
///
/// Patterns are compared with lines in which `_` and the humps of camelCase are spaces, so that
/// `most_lots` and `mostLots` have the word `lots`.
struct Retired {
    pattern: &'static str,
    instead: &'static str,
    folders: &'static [&'static str],
}

const fn everywhere(pattern: &'static str, instead: &'static str) -> Retired {
    Retired { pattern, instead, folders: &[] }
}

const RETIRED: &[Retired] = &[
    everywhere(r"(?i)\blots?\b", "batch"),
    everywhere(r"(?i)\bunder ?way\b", "in flight, submitted; of a load, in progress"),
    everywhere(r"(?i)\bordered (ahead|behind)\b", "submitted"),
    everywhere(r"(?i)\bfore(see|sees|seen|saw|seeing)\b", "drafted; expected"),
    everywhere(r"(?i)\bparted\b", "split"),
    everywhere(r"(?i)\bstretch(es)?\b", "vocabulary block; range"),
    everywhere(r"(?i)\bpieces?\b", "part, slice, token or text"),
    everywhere(
        r"(?xi)\b(an?|the|its|their|this|that|these|those|whose|one|two|no|each|every|any|some|same
            |other|first|last|right|wrong)\ places?\b",
        "position, offset, index, slot or line",
    ),
    everywhere(r"\bMOST [A-Z]", "MAX_"),
    everywhere(r"\bLEAST [A-Z]", "MIN_"),
    everywhere(
        r"(?i)\b(heads? of (a|the) (gguf|file|model file)|(gguf|file('s)?) heads?)\b",
        "header",
    ),
    Retired {
        pattern: r"(?i)\bturns\b",
        instead: "RoPE table; a turn is a message of a conversation",
        folders: &["shaders", "src/engine", "src/gpu", "src/kernels"],
    },
    Retired { pattern: r"\bclass Engine\b", instead: "LocalTransport", folders: &["pkg-template"] },
];

/// The files and folders that are read.
const CHECKED: &[&str] = &[
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "benches",
    "docs",
    "models",
    "pkg-template",
    "playwright.config.ts",
    "scripts",
    "shaders",
    "src",
    "tests",
    "vite.config.ts",
    "www",
];

/// Not read: data, what others made, what the bundled model wrote, and this table.
const UNCHECKED: &[&str] =
    &["node_modules", "models/MODEL_CARD.md", "tests/data", "tests/vocabulary.rs"];

const EXTENSIONS: &[&str] = &["css", "html", "js", "md", "mjs", "rs", "ts", "wgsl"];

#[test]
fn retired_words_are_not_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let retired: Vec<(Regex, &Retired)> =
        RETIRED.iter().map(|row| (Regex::new(row.pattern).expect(row.pattern), row)).collect();
    let mut faults = Vec::new();
    for path in CHECKED.iter().flat_map(|name| files(root, Path::new(name))) {
        let name = path.to_string_lossy().replace('\\', "/");
        let text = fs::read_to_string(root.join(&path)).expect(&name);
        for (n, line) in (1..).zip(text.lines()) {
            // The rows of the glossary, which names them.
            if name == "CONTRIBUTING.md" && line.starts_with('|') {
                continue;
            }
            let words = words(line);
            for (pattern, row) in &retired {
                let applies =
                    row.folders.is_empty() || row.folders.iter().any(|f| name.starts_with(f));
                if let Some(found) = pattern.find(&words).filter(|_| applies) {
                    let found = found.as_str();
                    faults.push(format!("{name}:{n}: \"{found}\"; say {}", row.instead));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} retired words:\n{}", faults.len(), faults.join("\n"));
}

/// A comment of Rust, TypeScript, JavaScript or WGSL on a line; the first group is its beginning. A comment that goes on
/// from the line before is taken for one too.
const COMMENT: &str = r"^\s*(?://[/!]?|/\*\*?|\*)\s*(\S.*)|\s//\s+(.*)";

/// The beginnings and words that comments do not have: they make a reader wait for the subject.
const UNCLEAR: &str = r"(^|[.:;]\s)What(ever)?\s[^?]*$|\b[Nn]obody\b";

#[test]
fn comments_name_their_subject_first() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    for path in CHECKED.iter().flat_map(|name| files(root, Path::new(name))) {
        let name = path.to_string_lossy().replace('\\', "/");
        if [".rs", ".ts", ".wgsl", ".mjs"].iter().any(|extension| name.ends_with(extension)) {
            let text = fs::read_to_string(root.join(&path)).expect(&name);
            faults.extend(unclear(&text).map(|(n, comment)| format!("{name}:{n}: {comment}")));
        }
    }
    assert!(faults.is_empty(), "{} unclear comments:\n{}", faults.len(), faults.join("\n"));
}

/// The unclear comments of a text, with the numbers of their lines.
fn unclear(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let [comment, unclear] = [COMMENT, UNCLEAR].map(|pattern| Regex::new(pattern).expect(pattern));
    (1..).zip(text.lines()).filter_map(move |(n, line)| {
        let groups = comment.captures(line)?;
        let said = groups.get(1).or(groups.get(2))?.as_str();
        unclear.is_match(said).then_some((n, said))
    })
}

#[test]
fn unclear_comments_are_found() {
    let text =
        "/// What it says.\n//! Whatever comes.\nlet x = 1; // What it is.\n/** What is sent. */
     * Then nobody reads it.\n// Says what comes, whatever it is.\nlet what = \"What nobody says\";
/// Somebody asks: What is it?\n\"// WhatsApp\"\n// It waits. What comes is sent.";
    let lines: Vec<usize> = unclear(text).map(|(n, _)| n).collect();
    assert_eq!(lines, [1, 2, 3, 4, 5, 10]);
}

/// The files to read in a file or folder.
fn files(root: &Path, path: &Path) -> Vec<PathBuf> {
    if UNCHECKED.iter().any(|unchecked| path.ends_with(unchecked)) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(root.join(path)) else {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let read = extension.is_some_and(|extension| EXTENSIONS.contains(&extension));
        return if read && root.join(path).exists() { vec![path.to_owned()] } else { Vec::new() };
    };
    entries.flatten().flat_map(|entry| files(root, &path.join(entry.file_name()))).collect()
}

/// A line with spaces between the words of its names.
fn words(line: &str) -> String {
    let mut words = String::new();
    let mut before = ' ';
    for c in line.chars() {
        if c == '_' {
            words.push(' ');
        } else {
            if c.is_uppercase() && before.is_lowercase() {
                words.push(' ');
            }
            words.push(c);
        }
        before = c;
    }
    words
}

#[test]
fn retired_words_are_found() {
    let finds = |line: &str| {
        let words = words(line);
        RETIRED
            .iter()
            .filter(|row| Regex::new(row.pattern).expect(row.pattern).is_match(&words))
            .count()
    };
    for line in [
        "let most_lots = 4;",
        "const underWay = []",
        "/// Under way at most.",
        "const MOST_SPLITS: u32 = 8;",
        "tokens are foreseen",
        "the head of a GGUF file",
        "at the same place",
        "a passOrderedBehind others",
    ] {
        assert_eq!(finds(line), 1, "{line}");
    }
    for line in
        ["slots", "plots", "in place", "replace a head", "departed", "almost MOST", "placed"]
    {
        assert_eq!(finds(line), 0, "{line}");
    }
}
