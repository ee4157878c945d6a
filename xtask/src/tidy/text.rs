//! What every text is held to: length, a head, no words left behind, no path of one machine; and where bans are lifted.

use super::rules::{self, Scope};
use super::source;
use super::tree::{File, Tree};
use super::{Findings, Location};

pub(super) fn check(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in &tree.files {
        if file.is_rust() {
            length(file, rules::RUST_LINES_MAX, "it holds more than one subject: move one out", &mut findings);
            head(file, &mut findings);
            words(file, &mut findings);
            check_restricted_code(file, &mut findings);
        }
        if is_written_by_hand(file) {
            machine_paths(file, &mut findings);
        }
    }
    match tree.files.iter().find(|file| file.path == "ARCHITECTURE.md") {
        Some(file) => length(file, rules::ARCHITECTURE_LINES_MAX, "it should be read in one sitting", &mut findings),
        None => findings.not_yet.push("ARCHITECTURE.md".to_owned()),
    }
    findings
}

fn length(file: &File, lines_max: usize, because: &str, findings: &mut Findings) {
    let lines = file.text.lines().count();
    if lines > lines_max {
        let what = format!("{lines} lines, {lines_max} at most");
        findings.breach(Location::line(&file.path, lines_max + 1), "length", what, because);
    }
}

fn head(file: &File, findings: &mut Findings) {
    if is_under(&file.path, rules::HEADED) && !file.text.starts_with("//!") {
        let because = "a reader who opens a file should be told what it is for";
        findings.breach(Location::line(&file.path, 1), "head", "does not begin with //!", because);
    }
}

fn words(file: &File, findings: &mut Findings) {
    let split = source::split(&file.text);
    for (scope, word, because) in rules::WORDS {
        let half = match scope {
            Scope::Code => &split.code,
            Scope::Comment => &split.comments,
        };
        for line in lines_with(half, word) {
            findings.breach(Location::line(&file.path, line), "words left behind", format!("has {word}"), because);
        }
    }
}

fn check_restricted_code(file: &File, findings: &mut Findings) {
    if file.is_test() {
        return;
    }
    for (folder, code, only, because) in rules::ONLY_HERE {
        if only.contains(&file.path.as_str()) || !is_under(&file.path, &[folder]) {
            continue;
        }
        for line in lines_with(&source::split(&file.text).code, code) {
            findings.breach(Location::line(&file.path, line), "only in some files", format!("has {code}"), because);
        }
    }
}

fn machine_paths(file: &File, findings: &mut Findings) {
    if rules::MACHINE_PATHS_FREE.iter().any(|free| file.path.starts_with(free)) {
        return;
    }
    for (number, line) in (1..).zip(file.text.lines()) {
        for start in rules::MACHINE_PATHS {
            // `docs/home/` and `https://host/work/` only contain such a path; it must begin here.
            let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~/}".contains(c));
            if line.match_indices(start).any(|(at, _)| begins(at)) {
                findings.breach(
                    Location::line(&file.path, number),
                    "no path of one machine",
                    format!("names {start}…"),
                    "the next reader has another machine",
                );
            }
        }
    }
}

/// Golden files and the lock file are others' words, kept as they came.
fn is_written_by_hand(file: &File) -> bool {
    file.path != "Cargo.lock" && !file.path.split('/').any(|folder| folder == "golden")
}

/// Whether `path` lies below one of `folders`, where `*` stands for one name.
pub(super) fn is_under(path: &str, folders: &[&str]) -> bool {
    folders.iter().any(|folder| {
        let mut names = path.split('/');
        folder.split('/').all(|wanted| names.next().is_some_and(|name| wanted == "*" || wanted == name))
            && names.next().is_some()
    })
}

/// The numbers of the lines where `word` stands as a word of its own.
pub(super) fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let stands_alone = |line: &str| {
        line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    };
    (1..).zip(text.lines()).filter(|(_, line)| stands_alone(line)).map(|(number, _)| number).collect()
}

const LIFTED_RULE: &str = "bans are lifted in named files";
const LIFTS: &str = "clippy::disallowed_methods";

/// The bans of `clippy.toml` are lifted only in the files that `exceptions` names.
pub(super) fn check_exceptions(exceptions: &[(&str, &str)], tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let mut lifted = Vec::new();
    for file in
        tree.files.iter().filter(|file| file.is_rust() && !file.is_test() && is_under(&file.path, rules::HEADED))
    {
        for line in lines_with(&source::split(&file.text).code, LIFTS) {
            lifted.push(file.path.as_str());
            if !exceptions.iter().any(|(path, _)| *path == file.path) {
                findings.breach(
                    Location::line(&file.path, line),
                    LIFTED_RULE,
                    format!("lifts {LIFTS}; take the clock, the dice or the supervisor as an argument, or add a row"),
                    "a reader who looks for the clock, for randomness or for a spawned task needs a short list of files",
                );
            }
        }
    }
    for (path, purpose) in exceptions {
        if !lifted.contains(path) {
            findings.not_yet.push(format!("{path}: {purpose}"));
        }
    }
    findings
}
