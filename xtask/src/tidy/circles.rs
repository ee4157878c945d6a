//! Finds circles: files of one crate that import each other, directly or through others. None of them can be understood before
//! the others are. The same holds for what stands side by side in a folder, where a folder is everything in it: `runs/` and
//! `state.rs` form a circle if any file of `runs/` imports the state, and the state any other.
//!
//! The file of a module (`mod.rs`, or the one beside the folder of its name) hands on what is below it. So a name that it hands
//! on counts as the name of the file that has it, and what it and the files below it name of each other does not count. A file in the
//! folder names that other file itself ([`check_handed_on`]).

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
    for sources in crates_of(tree).values() {
        let imports = imports_of(sources);
        let found = [("files", circles(sources, &imports)), ("folders", circles_of_folders(sources, &imports))];
        for (kind, circles) in found {
            for Circle { first, ties } in circles {
                let what = format!("{kind} import each other: {}", ties.join("; "));
                findings.breach(Location::whole(&first.path), "no circles", what, "none can be read before the others");
            }
        }
    }
    findings
}

/// Finds names that a file takes from the folder that it stands in, which only hands them on from the file that has them. `included` are files
/// that several modules include, and find in each of them other names.
pub(super) fn check_handed_on(included: &[&str], tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for sources in crates_of(tree).values() {
        let by_module = by_module(sources);
        for source in sources.iter().filter(|source| !included.contains(&source.file.path.as_str())) {
            for it in &source.named {
                let Some(folder) = deepest(&it.path, &by_module) else { continue };
                let Some(place) = defined_in(&it.path, sources, &by_module, HANDED_ON_MAX) else { continue };
                let is_own_folder = source.module.split_last().is_some_and(|(_, own)| own == folder);
                if is_own_folder && sources[place].module != folder && sources[place].module != source.module {
                    let what = format!("{} is in {}", it.text(), sources[place].file.path);
                    let because = "a reader looks for it there, and sees which files of a folder need each other";
                    let at = Location::line(&source.file.path, it.line);
                    findings.breach(at, "imports name the file", what, because);
                }
            }
        }
    }
    findings
}

/// The files of each crate, tests left out.
fn crates_of(tree: &Tree) -> BTreeMap<&str, Vec<Source<'_>>> {
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
    crates
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

/// The places of the files by their modules.
type ByModule<'a> = BTreeMap<&'a [String], usize>;

fn by_module<'a>(sources: &'a [Source<'_>]) -> ByModule<'a> {
    sources.iter().enumerate().map(|(place, source)| (source.module.as_slice(), place)).collect()
}

/// The module that a path leads to.
fn deepest<'p>(path: &'p [String], by_module: &ByModule<'_>) -> Option<&'p [String]> {
    (1..=path.len()).rev().map(|depth| &path[..depth]).find(|module| by_module.contains_key(module))
}

fn imports_of<'a>(sources: &'a [Source<'_>]) -> Vec<Imports<'a>> {
    let by_module = by_module(sources);
    let of = |source: &'a Source<'_>| {
        let mut imports = Imports::new();
        for it in &source.named {
            if let Some(other) = defined_in(&it.path, sources, &by_module, HANDED_ON_MAX)
                && !is_above_or_below(source, &sources[other])
            {
                imports.entry(other).or_default().extend(it.path.last().map(String::as_str));
            }
        }
        imports
    };
    sources.iter().map(of).collect()
}

/// The circles among the files of one crate.
fn circles<'a>(sources: &[Source<'a>], imports: &[Imports<'_>]) -> Vec<Circle<'a>> {
    let arrows: Vec<BTreeSet<usize>> = imports.iter().map(|of| of.keys().copied().collect()).collect();
    let all = |circle: Vec<usize>| {
        let inside = |from: usize, to: usize| circle.contains(&from) && circle.contains(&to);
        Circle { first: sources[circle[0]].file, ties: ties(sources, imports, inside) }
    };
    loops(&arrows).into_iter().map(all).collect()
}

/// The circles among what stands side by side in a folder, at least one of them a folder itself.
fn circles_of_folders<'a>(sources: &[Source<'a>], imports: &[Imports<'_>]) -> Vec<Circle<'a>> {
    let folders: BTreeSet<&[String]> =
        sources.iter().flat_map(|source| (1..source.module.len()).map(|depth| &source.module[..depth])).collect();
    let mut found = Vec::new();
    for folder in folders {
        let child = |place: usize| {
            let below = sources[place].module.strip_prefix(folder)?;
            below.first().map(String::as_str)
        };
        let names: BTreeSet<&str> = (0..sources.len()).filter_map(child).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let number = |place| child(place).and_then(|name| names.binary_search(&name).ok());
        let mut arrows = vec![BTreeSet::new(); names.len()];
        for (from, of) in imports.iter().enumerate() {
            for (from, to) in of.keys().filter_map(|&to| number(from).zip(number(to))) {
                arrows[from].insert(to);
            }
        }
        arrows.iter_mut().enumerate().for_each(|(own, to)| _ = to.remove(&own));
        for circle in loops(&arrows) {
            let is_inside = |place| number(place).is_some_and(|number| circle.contains(&number));
            let inside = |from, to| is_inside(from) && is_inside(to) && number(from) != number(to);
            let members: Vec<usize> = (0..sources.len()).filter(|&place| is_inside(place)).collect();
            if members.iter().any(|&place| sources[place].module.len() > folder.len() + 1) {
                found.push(Circle { first: sources[members[0]].file, ties: ties(sources, imports, inside) });
            }
        }
    }
    found
}

/// What the files of a circle name of each other.
fn ties(sources: &[Source<'_>], imports: &[Imports<'_>], inside: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut ties = Vec::new();
    for (from, of) in imports.iter().enumerate() {
        for (&to, names) in of.iter().filter(|&(&to, _)| inside(from, to)) {
            let names: Vec<&str> = names.iter().copied().collect();
            ties.push(format!("{} -> {}: {}", sources[from].file.path, sources[to].file.path, names.join(", ")));
        }
    }
    ties
}

/// The groups in which each can be reached from each other.
fn loops(arrows: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..arrows.len()).map(|from| reached(from, arrows)).collect();
    let together = |place: usize| -> Vec<usize> {
        reached[place].iter().copied().filter(|&other| reached[other].contains(&place)).collect()
    };
    let mut seen = BTreeSet::new();
    (0..arrows.len()).map(together).filter(|group| group.len() > 1 && seen.insert(group.clone())).collect()
}

/// The file that has what a path names.
fn defined_in(path: &[String], sources: &[Source<'_>], by_module: &ByModule<'_>, times: usize) -> Option<usize> {
    let module = deepest(path, by_module)?;
    let (depth, place) = (module.len(), by_module[module]);
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

fn reached(from: usize, arrows: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(place) = next.pop() {
        next.extend(arrows[place].iter().copied().filter(|&other| reached.insert(other)));
    }
    reached
}
