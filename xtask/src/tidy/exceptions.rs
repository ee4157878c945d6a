//! The bans of `clippy.toml` are lifted only in the files that `rules::EXCEPTIONS` names.

use super::rules::HEADED;
use super::tree::Tree;
use super::{Findings, Location, source, text};

const RULE: &str = "bans are lifted in named files";
const LIFTS: &str = "clippy::disallowed_methods";

pub(super) fn check(exceptions: &[(&str, &str)], tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let mut lifted = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && !file.is_test() && text::is_under(&file.path, HEADED))
    {
        for line in text::lines_with(&source::split(&file.text).code, LIFTS) {
            lifted.push(file.path.as_str());
            if !exceptions.iter().any(|(path, _)| *path == file.path) {
                findings.breach(
                    Location::line(&file.path, line),
                    RULE,
                    format!("lifts {LIFTS}; take the clock, the dice or the supervisor as an argument, or add a row"),
                    "whoever looks for the clock, the dice or a stray task should have a short list of places to look",
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
