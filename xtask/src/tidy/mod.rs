//! `tidy`: checks that the tree keeps the rules of this repository.
//!
//! Two things come in: the text files of the tree (`tree`) and the crates cargo would build (`graph`). Each check is a
//! pure function from one of them to [`Findings`], so its tests plant a breach in a few lines of memory and see it
//! found. What the rules *are* stands in `rules`; nothing else here knows a name or a number.

mod rules;

pub(crate) mod graph;
mod paths;
mod source;
mod tree;

mod circles;
mod crates;
mod imports;
mod licence;
mod links;
mod named_files;
mod text;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use graph::Graph;
use tree::Tree;

/// Checks the workspace this program was built from, prints what it saw, and says whether every rule is kept.
pub(crate) fn run() -> Result<bool> {
    let root = workspace_root();
    let tree = Tree::read(&root)?;
    let graph = Graph::read(&root)?;
    let mut tidy = true;
    for (title, findings) in check_all(&tree, &graph) {
        let verdict = match findings.breaches.len() {
            0 => "ok".to_owned(),
            n => format!("{n} broken"),
        };
        println!("{title:<30} {verdict}");
        for dormant in &findings.not_yet {
            println!("    not yet: {dormant}");
        }
        for breach in &findings.breaches {
            println!("{breach}");
            tidy = false;
        }
    }
    println!("{} files and {} crates looked at", tree.files.len(), graph.packages.len());
    Ok(tidy)
}

fn check_all(tree: &Tree, graph: &Graph) -> Vec<(&'static str, Findings)> {
    vec![
        ("walls between modules", imports::check(rules::WALLS, tree)),
        ("circles", circles::check(tree)),
        ("names handed on", circles::check_handed_on(rules::INCLUDED_BY_SEVERAL, tree)),
        ("exceptions to the bans", text::check_exceptions(rules::EXCEPTIONS, tree)),
        ("texts", text::check(tree)),
        ("links", links::check(tree)),
        ("named files", named_files::check(tree)),
        ("dependencies of core", crates::core_tree(rules::CORE_TREE, graph)),
        ("dependencies of the client", crates::client_tree(rules::CLIENT_WITHOUT, graph)),
        ("banned crates", crates::banned(rules::BANNED, rules::NOT_BY_US, graph)),
        ("duplicate crates", crates::duplicates(rules::DUPLICATES, graph)),
        ("origins", crates::origins(graph)),
        ("licences", licence::check(rules::LICENCES, graph)),
    ]
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies one folder below the root").to_owned()
}

/// What one check has to say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    breaches: Vec<Breach>,
    /// Rules that had nothing to look at. Shown, so that a rule about a folder that does not exist cannot pass for a
    /// kept one.
    not_yet: Vec<String>,
}

impl Findings {
    fn breach(&mut self, place: Location<'_>, rule: &str, what: impl Into<String>, because: &str) {
        let Location { file, line } = place;
        self.breaches.push(Breach {
            file: file.to_owned(),
            line,
            rule: rule.to_owned(),
            what: what.into(),
            because: because.to_owned(),
        });
    }
}

/// Where a rule was broken: a file of the tree, and the line where there is one.
#[derive(Debug, Clone, Copy)]
struct Location<'a> {
    file: &'a str,
    line: Option<usize>,
}

impl<'a> Location<'a> {
    fn line(file: &'a str, line: usize) -> Self {
        Self { file, line: Some(line) }
    }

    fn whole(file: &'a str) -> Self {
        Self { file, line: None }
    }
}

/// One broken rule. Prints as `file:line: rule: what happened`, which editors turn into a link, and the reason below.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    file: String,
    line: Option<usize>,
    rule: String,
    what: String,
    because: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}: {}\n    because {}", self.rule, self.what, self.because)
    }
}
