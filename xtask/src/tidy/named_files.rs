//! Files that a text names exist. A page names them in code marks and in fenced blocks (`docs/errors.md`); a Rust file names
//! pages anywhere, in comments and in texts for users. Links are looked at in `links`.

use super::rules::{FOREIGN_PATHS, TEXTS_FREE_TO_NAME};
use super::tree::{File, Tree};
use super::{Findings, Location};

pub(super) fn check(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files.iter().filter(|file| !TEXTS_FREE_TO_NAME.iter().any(|free| file.path.starts_with(free))) {
        for (line, path) in named(file).filter(|(_, path)| !FOREIGN_PATHS.contains(path)) {
            if !exists(tree, &file.path, path) {
                let because = "a reader who looks for it finds nothing";
                findings.breach(
                    Location::line(&file.path, line),
                    "named files exist",
                    format!("there is no {path}"),
                    because,
                );
            }
        }
    }
    findings
}

/// What a file names, with the line it stands on.
fn named(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    let lines = (1..).zip(file.text.lines());
    lines.flat_map(move |(number, line)| {
        let pieces: Vec<&str> = if file.is_rust() {
            words(line).filter(|path| path.starts_with("docs/") && path.ends_with(".md")).collect()
        } else if !file.is_markdown() {
            Vec::new()
        } else {
            let is_fence = line.trim_start().starts_with("```");
            fenced ^= is_fence;
            match fenced {
                true => words(line).filter(|path| is_from_the_root(path)).collect(),
                false => line.split('`').skip(1).step_by(2).flat_map(words).filter(|path| is_path(path)).collect(),
            }
        };
        pieces.into_iter().map(move |path| (number, path))
    })
}

/// The words of a line that may be paths: no signs before or after them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_sign =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | ')' | '[' | ']' | ',' | ';' | '=' | ':' | '`');
    text.split(is_sign).map(|word| word.trim_end_matches(['.', '/']).trim_start_matches("./"))
}

/// A path with a variable part (`docs/{page}.md`, `docs/*.md`) names no single file.
fn is_path(word: &str) -> bool {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    is_plain && (is_from_the_root(word) || word.contains('/') && word.ends_with(".rs"))
}

/// Whether the word begins with one of our folders and goes on.
fn is_from_the_root(word: &str) -> bool {
    let folders = ["bench", "crates", "deploy", "docs", "proto", "scripts", "tests", "xtask"];
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'));
    is_plain && word.split_once('/').is_some_and(|(first, rest)| folders.contains(&first) && !rest.is_empty())
}

/// Whether there is such a file or folder: from the root, or beside the file that names it. One that does not begin with one of
/// our folders may lie anywhere.
fn exists(tree: &Tree, by: &str, path: &str) -> bool {
    let beside = by.rsplit_once('/').map_or_else(|| path.to_owned(), |(folder, _)| format!("{folder}/{path}"));
    let lies_below = |known: &String| known.strip_suffix(path).is_some_and(|above| above.ends_with('/'));
    tree.paths.contains(path)
        || tree.paths.contains(&beside)
        || !is_from_the_root(path) && tree.paths.iter().any(lies_below)
}
