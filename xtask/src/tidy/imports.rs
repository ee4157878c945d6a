//! Checks the walls of `rules::WALLS` against the paths that each file names.

use std::collections::BTreeSet;

use super::paths::{self, NamedItem};
use super::rules::{Law, Wall};
use super::tree::{File, Tree};
use super::{Findings, Location};

pub(super) fn check(walls: &[Wall], tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    let sources: Vec<(&File, Vec<NamedItem>)> =
        tree.files.iter().filter(|file| file.is_rust()).map(|file| (file, paths::named_by(file))).collect();
    for wall in walls {
        for module in wall.modules {
            let inside: Vec<_> = sources.iter().filter(|(file, _)| file.is_in(module)).collect();
            if inside.is_empty() {
                findings.not_yet.push(format!("{}: no file in {module}", wall.name));
                continue;
            }
            for target in missing_targets(wall, module, tree) {
                findings.not_yet.push(format!("{}: no module {target}", wall.name));
            }
            for (file, named) in inside.into_iter().filter(|(file, _)| !file.is_test()) {
                for it in named {
                    if let Some(what) = breach(&wall.law, module, file, it, tree) {
                        findings.breach(Location::line(&file.path, it.line), wall.name, what, wall.because);
                    }
                }
            }
        }
    }
    findings
}

/// What is wrong with `file`, in `module`, naming `it`.
fn breach(law: &Law, module: &str, file: &File, it: &NamedItem, tree: &Tree) -> Option<String> {
    match law {
        Law::Never(modules) => {
            modules.iter().any(|module| it.is_within(module)).then(|| format!("imports {}", it.text()))
        }
        Law::Only(modules) => (it.is_ours() && !modules.iter().any(|module| it.is_within(module)))
            .then(|| format!("imports {}; of ours it may import only {}", it.text(), modules.join(", "))),
        Law::Apart(names) => {
            let names: BTreeSet<&str> = names.iter().copied().collect();
            neighbour(&names, module, file, it)
        }
        Law::ApartExcept(shared) => {
            let mut names = modules_inside(module, tree);
            names.retain(|name| !shared.contains(name));
            neighbour(&names, module, file, it)
        }
    }
}

/// `file` lies in one of the named modules inside `module`, and `it` lies in another.
fn neighbour(names: &BTreeSet<&str>, module: &str, file: &File, it: &NamedItem) -> Option<String> {
    let own = names.iter().find(|name| file.is_in(&format!("{module}/{name}")))?;
    let depth = paths::module_of(&format!("{module}/mod.rs")).len();
    let within = it.is_within(&paths::module_of(&format!("{module}/mod.rs")).join("::"));
    let other = it.path.get(depth).filter(|name| within && names.contains(name.as_str()))?;
    (other != own).then(|| format!("imports {}, its neighbour", it.text()))
}

fn modules_inside<'a>(module: &str, tree: &'a Tree) -> BTreeSet<&'a str> {
    tree.files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
        .filter_map(|file| file.path.strip_prefix(module)?.strip_prefix('/'))
        .filter_map(|inside| match inside.split_once('/') {
            Some((folder, _)) => Some(folder),
            None => inside.strip_suffix(".rs").filter(|stem| !matches!(*stem, "mod" | "lib" | "main")),
        })
        .collect()
}

/// Modules of the same crate that the wall names and that do not exist: a rule about them cannot be broken.
fn missing_targets<'a>(wall: &'a Wall, module: &str, tree: &Tree) -> Vec<&'a str> {
    let (Law::Never(modules) | Law::Only(modules)) = &wall.law else { return Vec::new() };
    let Some((krate, _)) = module.split_once("/src") else { return Vec::new() };
    modules
        .iter()
        .filter(|module| {
            module.strip_prefix("crate::").is_some_and(|inside| {
                let module = format!("{krate}/src/{}", inside.replace("::", "/"));
                !tree.files.iter().any(|file| file.is_in(&module))
            })
        })
        .copied()
        .collect()
}
