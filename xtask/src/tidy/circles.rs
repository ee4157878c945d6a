//! Finds circles: files of one crate that import each other, directly or through others. None of them can be understood before
//! the others are.
//!
//! The file of a module (`mod.rs`, or the one beside the folder of its name) hands on what is below it. So a name that it hands
//! on counts as the name of the file that has it, and what it and the files below it name of each other does not count.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{self, NamedItem};
use super::tree::{File, Tree};
use super::{Findings, Location};

/// No name is handed on more often than this.
const HANDED_ON_MAX: usize = 8;

/// A file, the module that it holds, and what it names.
struct Source<'a> {
    file: &'a File,
    module: Vec<String>,
    named: Vec<NamedItem>,
}

/// Files that import each other.
struct Circle<'a> {
    first: &'a File,
    /// What each file names of the others.
    ties: Vec<String>,
}

pub(super) fn check(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        if let Some((name, _)) = file.path.split_once("/src/") {
            let source = Source { file, module: paths::module_of(&file.path), named: paths::named_by(file) };
            crates.entry(name).or_default().push(source);
        }
    }
    for sources in crates.values_mut() {
        name_from_the_root(sources);
    }
    for Circle { first, ties } in crates.values().flat_map(|sources| circles(sources)) {
        let what = format!("files import each other: {}", ties.join("; "));
        findings.breach(Location::whole(&first.path), "no circles", what, "none can be read before the others");
    }
    findings
}

/// Writes the paths that begin with a module below their file from the root, as the others are: `pub use tail::Tails` in
/// `watching/mod.rs` names `crate::watching::tail::Tails`.
fn name_from_the_root(sources: &mut [Source<'_>]) {
    let modules: BTreeSet<Vec<String>> = sources.iter().map(|source| source.module.clone()).collect();
    for Source { module, named, .. } in sources {
        for it in named {
            let below: Vec<String> = module.iter().chain(it.path.first()).cloned().collect();
            if modules.contains(&below) {
                it.path.splice(0..0, module.iter().cloned());
            }
        }
    }
}

/// The files that a file imports, with the names that it takes from each.
type Imports<'a> = BTreeMap<usize, BTreeSet<&'a str>>;

/// The circles among the files of one crate.
fn circles<'a>(sources: &[Source<'a>]) -> Vec<Circle<'a>> {
    let by_module: BTreeMap<&[String], usize> =
        sources.iter().enumerate().map(|(place, source)| (source.module.as_slice(), place)).collect();
    let imports: Vec<Imports<'_>> = sources
        .iter()
        .map(|source| {
            let mut imports = Imports::new();
            for it in &source.named {
                if let Some(other) = defined_in(&it.path, sources, &by_module, HANDED_ON_MAX)
                    && !is_above_or_below(source, &sources[other])
                {
                    imports.entry(other).or_default().extend(it.path.last().map(String::as_str));
                }
            }
            imports
        })
        .collect();
    let reached: Vec<BTreeSet<usize>> = (0..sources.len()).map(|from| reached(from, &imports)).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for place in 0..sources.len() {
        let circle: Vec<usize> =
            reached[place].iter().copied().filter(|&other| reached[other].contains(&place)).collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            let tie = |from: usize, (to, names): (&usize, &BTreeSet<&str>)| {
                let names: Vec<&str> = names.iter().copied().collect();
                format!("{} -> {}: {}", sources[from].file.path, sources[*to].file.path, names.join(", "))
            };
            let inside = |(to, _): &(&usize, &BTreeSet<&str>)| circle.contains(to);
            let ties = circle.iter().flat_map(|&from| imports[from].iter().filter(inside).map(move |it| tie(from, it)));
            found.push(Circle { first: sources[circle[0]].file, ties: ties.collect() });
        }
    }
    found
}

/// The file that has what a path names.
fn defined_in(
    path: &[String],
    sources: &[Source<'_>],
    by_module: &BTreeMap<&[String], usize>,
    times: usize,
) -> Option<usize> {
    let depth = (1..=path.len()).rev().find(|&depth| by_module.contains_key(&path[..depth]))?;
    let place = by_module[&path[..depth]];
    let handed_on = path.get(depth).filter(|_| times > 0).and_then(|name| {
        let below = |it: &&NamedItem| it.path.len() > depth + 1 && it.path[..depth] == path[..depth];
        sources[place].named.iter().filter(below).find(|it| it.path.last() == Some(name))
    });
    match handed_on {
        Some(it) => defined_in(&it.path, sources, by_module, times - 1),
        None => Some(place),
    }
}

/// Whether one of the two is the file of a module that the other is in.
fn is_above_or_below(one: &Source<'_>, other: &Source<'_>) -> bool {
    one.module.starts_with(&other.module) || other.module.starts_with(&one.module)
}

fn reached(from: usize, imports: &[Imports<'_>]) -> BTreeSet<usize> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        next.extend(imports[place].keys().copied().filter(|&other| reached.insert(other)));
    }
    reached
}
