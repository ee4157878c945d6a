//! Which crates may come in: core's allow-list, the bans, one version each, and from where.

use std::collections::{BTreeMap, BTreeSet};

use super::graph::{Graph, Package};
use super::{Findings, Location};

const MANIFEST: &str = "Cargo.toml";
const LOCK: &str = "Cargo.lock";
const CORE: &str = "switchboard-core";
const CORE_MANIFEST: &str = "crates/switchboard-core/Cargo.toml";
const SWITCHBOARD_MANIFEST: &str = "crates/switchboard/Cargo.toml";
const RULES: &str = "xtask/src/tidy/rules.rs";

/// The tree of core is the list, no more and no less.
pub(super) fn core_tree(allowed: &[(&str, &str)], graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    if !graph.packages.iter().any(|package| package.name == CORE) {
        findings.not_yet.push(format!("no package {CORE}"));
        return findings;
    }
    let built_with = graph.built_with(CORE);
    let allowed: BTreeSet<&str> = allowed.iter().map(|(name, _)| *name).collect();
    let because = "core stays pure because it has nothing to be impure with";
    for name in built_with.difference(&allowed) {
        let what = format!("{name} is in the tree of {CORE} and not on the list");
        findings.breach(Location::whole(CORE_MANIFEST), "core needs little", what, because);
    }
    for name in allowed.difference(&built_with) {
        let what = format!("{name} is on the list and no longer in the tree of {CORE}: take the row out");
        findings.breach(Location::whole(RULES), "core needs little", what, because);
    }
    findings
}

/// A program that only calls agents is built without these.
pub(super) fn client_tree(unwanted: &[(&str, &str)], graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    for (name, because) in unwanted.iter().filter(|(name, _)| graph.client_tree.contains(*name)) {
        let what = format!("{name} is in the tree of switchboard with the feature client alone");
        findings.breach(Location::whole(SWITCHBOARD_MANIFEST), "the client needs little", what, because);
    }
    findings
}

pub(super) fn banned(anywhere: &[(&str, &str)], by_us: &[(&str, &str)], graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    for (at, package) in graph.packages.iter().enumerate() {
        if let Some((_, because)) = anywhere.iter().find(|(name, _)| *name == package.name) {
            let what = format!("{} comes in with {}", package.label(), graph.dependents(at).join(", "));
            findings.breach(Location::whole(LOCK), "banned crates", what, because);
        }
    }
    for package in graph.packages.iter().filter(|package| package.is_ours()) {
        for at in package.needs.iter().chain(&package.needs_in_tests) {
            let name = &graph.packages[*at].name;
            if let Some((_, because)) = by_us.iter().find(|(unwanted, _)| unwanted == name) {
                let what = format!("{} asks for {name}", package.name);
                findings.breach(Location::whole(MANIFEST), "banned crates", what, because);
            }
        }
    }
    findings
}

/// One version of each crate, but for the listed ones, and no row without a duplicate.
pub(super) fn duplicates(tolerated: &[(&str, &str)], graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    let mut versions: BTreeMap<&str, Vec<(usize, &Package)>> = BTreeMap::new();
    for (at, package) in graph.packages.iter().enumerate() {
        versions.entry(&package.name).or_default().push((at, package));
    }
    versions.retain(|_, found| found.len() > 1);
    let because = "a second version costs build time and size, and its types do not fit the first";
    for (name, found) in &versions {
        if !tolerated.iter().any(|(it, _)| it == name) {
            let each = found.iter().map(|(at, it)| format!("{} (of {})", it.version, graph.dependents(*at).join(", ")));
            let what = format!("{name} is built as {}", each.collect::<Vec<_>>().join(" and as "));
            findings.breach(Location::whole(LOCK), "one version of a crate", what, because);
        }
    }
    for (name, _) in tolerated.iter().filter(|(name, _)| !versions.contains_key(name)) {
        let what = format!("{name} is no longer built twice: take the row out");
        findings.breach(Location::whole(RULES), "one version of a crate", what, "a list of excuses should be short");
    }
    findings
}

/// Everything that is not ours comes from a registry, and from one registry.
pub(super) fn origins(graph: &Graph) -> Findings {
    let mut findings = Findings::default();
    let sources = || graph.packages.iter().filter_map(|package| package.source.as_deref());
    let registry = sources().find(|source| source.starts_with("registry+"));
    for package in &graph.packages {
        if let Some(source) = package.source.as_deref().filter(|source| Some(*source) != registry) {
            let what = format!("{} comes from {source}", package.label());
            let because =
                "what is not in the registry may be gone tomorrow, and what depends on it cannot be published";
            findings.breach(Location::whole(LOCK), "crates come from the registry", what, because);
        }
    }
    findings
}
