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

pub(super) fn check(known: &[(&str, &str)], tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for file in tree.files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        if let Some((name, _)) = file.path.split_once("/src/") {
            let source = Source { file, module: paths::module_of(&file.path), named: paths::named_by(file) };
            crates.entry(name).or_default().push(source);
        }
    }
    let mut left: BTreeSet<&str> = known.iter().map(|(folder, _)| *folder).collect();
    for circle in crates.values().flat_map(|sources| circles(sources)) {
        let is_within = |folder: &str| circle.iter().all(|file| file.is_in(folder));
        match known.iter().find(|(folder, _)| is_within(folder)) {
            Some((folder, _)) => drop(left.remove(folder)),
            None => {
                let files: Vec<&str> = circle.iter().map(|file| file.path.as_str()).collect();
                let what = format!("these files import each other: {}", files.join(", "));
                findings.breach(Location::whole(files[0]), "no circles", what, "none can be read before the others");
            }
        }
    }
    for folder in left {
        let because = "a row that is no longer needed would let the next circle pass";
        findings.breach(Location::whole(folder), "no circles", "there is no circle any more", because);
    }
    findings
}

/// The circles among the files of one crate.
fn circles<'a>(sources: &[Source<'a>]) -> Vec<Vec<&'a File>> {
    let by_module: BTreeMap<&[String], usize> =
        sources.iter().enumerate().map(|(place, source)| (source.module.as_slice(), place)).collect();
    let imports: Vec<BTreeSet<usize>> = sources
        .iter()
        .enumerate()
        .map(|(own, source)| {
            let named = source.named.iter().filter_map(|it| defined_in(&it.path, sources, &by_module, HANDED_ON_MAX));
            named.filter(|&other| other != own && !is_above_or_below(source, &sources[other])).collect()
        })
        .collect();
    let reached: Vec<BTreeSet<usize>> = (0..sources.len()).map(|from| reached(from, &imports)).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for place in 0..sources.len() {
        let circle: Vec<usize> =
            reached[place].iter().copied().filter(|&other| reached[other].contains(&place)).collect();
        if circle.len() > 1 && seen.insert(circle.clone()) {
            found.push(circle.into_iter().map(|place| sources[place].file).collect());
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

fn reached(from: usize, imports: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        next.extend(imports[place].iter().copied().filter(|&other| reached.insert(other)));
    }
    reached
}
