//! The documents say the truth about the repository: files they name exist, every error code is
//! explained, and the README stays a page.

use std::fs;
use std::path::{Path, PathBuf};

use tritloom::Error;

const MAX_README_LINES: usize = 130;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The documents by their path in the repository.
fn documents() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .into_iter()
        .map(PathBuf::from)
        .chain(
            [
                "docs/results/DIARY.md",
                "models/MODEL_CARD.md",
                "pkg-template/README.md",
                "tests/data/README.md",
            ]
            .map(PathBuf::from),
        )
        .collect();
    for entry in fs::read_dir(root().join("docs")).expect("docs/") {
        let name = entry.expect("an entry of docs/").file_name();
        if name.to_string_lossy().ends_with(".md") {
            paths.push(Path::new("docs").join(name));
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(root().join(&path)).expect("a document");
        (path.display().to_string(), text)
    };
    paths.into_iter().map(read).collect()
}

/// The text between backticks outside of code blocks.
fn quoted(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

/// Whether a quoted text is meant as a path in this repository.
fn is_path(text: &str) -> bool {
    const FOLDERS: [&str; 10] = [
        "src/",
        "shaders/",
        "tests/",
        "scripts/",
        "www/",
        "pkg-template/",
        "models/",
        "docs/",
        "benches/",
        ".ci/",
    ];
    let placeholder = text.contains("NAME") || text.contains(['*', ' ', '{', '<']);
    !placeholder && FOLDERS.iter().any(|folder| text.starts_with(folder))
}

#[test]
fn files_named_in_documents_exist() {
    let mut missing = Vec::new();
    let mut found = 0;
    for (document, text) in documents() {
        for path in quoted(&text).into_iter().filter(|text| is_path(text)) {
            if root().join(path).exists() {
                found += 1;
            } else {
                missing.push(format!("{document} names {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(found > 30, "only {found} paths were recognised");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for (document, text) in documents() {
        let folder = root().join(&document).parent().expect("a folder").to_path_buf();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if !target.contains("://") && !file.is_empty() && !folder.join(file).exists() {
                broken.push(format!("{document} links to {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_document_begins_with_a_title_and_a_sentence() {
    for (document, text) in documents() {
        let mut lines = text.lines();
        let title = lines.next().is_some_and(|line| line.starts_with("# "));
        let is_apart = lines.next() == Some("");
        let first = lines.next().and_then(|line| line.chars().next());
        let is_text = first.is_some_and(|c| c.is_alphabetic() || "`[*<".contains(c));
        assert!(title && is_apart && is_text, "{document} begins otherwise");
    }
}

/// Codes of errors that only the package's TypeScript has.
const OF_THE_PACKAGE: [&str; 3] = ["incomplete", "index-damaged", "index-mismatch"];

#[test]
fn every_error_code_is_explained() {
    let text = fs::read_to_string(root().join("docs/TROUBLESHOOTING.md")).expect("the document");
    let rows: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next()).collect();
    let explained: Vec<&str> = rows
        .iter()
        .flat_map(|row| row.split("`, `"))
        .map(|code| code.trim_end_matches('`'))
        .collect();
    for code in Error::CODES {
        assert!(explained.contains(code), "{code} is not in docs/TROUBLESHOOTING.md");
    }
    for code in explained {
        assert!(
            Error::CODES.contains(&code) || OF_THE_PACKAGE.contains(&code),
            "docs/TROUBLESHOOTING.md explains {code}, which is no code"
        );
    }
}

#[test]
fn the_readme_is_a_page() {
    let text = fs::read_to_string(root().join("README.md")).expect("README.md");
    let lines = text.lines().count();
    assert!(lines <= MAX_README_LINES, "README.md has {lines} lines of at most {MAX_README_LINES}");
}
