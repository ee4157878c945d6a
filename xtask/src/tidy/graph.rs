//! The crates cargo would build, all features on, for one platform: asked from `cargo metadata`, kept small.
//!
//! `cargo metadata` also lists optional crates that a feature mentions weakly (`name?/feature`) and nothing turns on.
//! They are never compiled, so they are left out: an optional dependency counts when a feature that is on asks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{CargoOpt, DependencyKind, MetadataCommand, Node, NodeDep, PackageId};

use super::rules::PLATFORM;

#[derive(Debug, Default, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Where it came from; nothing for what lies in the workspace.
    pub(crate) source: Option<String>,
    /// The packages it is built with, by their place in the graph. Development dependencies are apart.
    pub(crate) needs: Vec<usize>,
    pub(super) needs_in_tests: Vec<usize>,
}

impl Package {
    pub(crate) fn is_ours(&self) -> bool {
        self.source.is_none()
    }

    pub(super) fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Graph {
    pub(crate) packages: Vec<Package>,
    /// The names of what `switchboard` is built with if the feature `client` alone is on, as `cargo tree` tells it.
    pub(super) client_tree: BTreeSet<String>,
}

impl Graph {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .features(CargoOpt::AllFeatures)
            .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), PLATFORM.to_owned()])
            .exec()
            .context("cargo metadata has no answer")?;
        let resolve = metadata.resolve.as_ref().context("cargo metadata resolved nothing")?;
        let nodes: BTreeMap<&PackageId, &Node> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
        let packages: BTreeMap<&PackageId, &cargo_metadata::Package> =
            metadata.packages.iter().map(|package| (&package.id, package)).collect();

        // Walk from our own crates over the edges that are really built.
        let mut reached: BTreeSet<&PackageId> = BTreeSet::new();
        let mut ahead: Vec<&PackageId> = metadata.workspace_members.iter().collect();
        let mut edges: BTreeMap<&PackageId, Vec<&NodeDep>> = BTreeMap::new();
        while let Some(id) = ahead.pop() {
            if !reached.insert(id) {
                continue;
            }
            let (node, package) = (nodes[id], packages[id]);
            let live: Vec<&NodeDep> =
                node.deps.iter().filter(|dep| is_built(package, node, packages[&dep.pkg])).collect();
            ahead.extend(live.iter().map(|dep| &dep.pkg));
            edges.insert(id, live);
        }

        let places: BTreeMap<&PackageId, usize> = reached.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let packages = reached.iter().map(|id| {
            let package = packages[id];
            let needs = |tests: bool| {
                let kinds = move |dep: &&&NodeDep| {
                    dep.dep_kinds.iter().any(|it| (it.kind == DependencyKind::Development) == tests)
                };
                edges[id].iter().filter(kinds).map(|dep| places[&dep.pkg]).collect()
            };
            Package {
                name: package.name.to_string(),
                version: package.version.to_string(),
                licence: package.license.clone(),
                source: package.source.as_ref().map(ToString::to_string),
                needs: needs(false),
                needs_in_tests: needs(true),
            }
        });
        Ok(Self { packages: packages.collect(), client_tree: client_tree(root)? })
    }

    /// Everything `name` is built with, directly or not, without itself.
    pub(super) fn built_with(&self, name: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let roots = self.packages.iter().filter(|package| package.name == name);
        let mut ahead: Vec<usize> = roots.flat_map(|package| package.needs.clone()).collect();
        while let Some(at) = ahead.pop() {
            if reached.insert(at) {
                ahead.extend(&self.packages[at].needs);
            }
        }
        reached.into_iter().map(|at| self.packages[at].name.as_str()).collect()
    }

    /// The labels of the packages that depend on the package at `place`.
    pub(super) fn dependents(&self, place: usize) -> Vec<String> {
        let asks = |package: &&Package| package.needs.contains(&place) || package.needs_in_tests.contains(&place);
        self.packages.iter().filter(asks).map(Package::label).collect()
    }
}

fn client_tree(root: &Path) -> Result<BTreeSet<String>> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args([
        "tree",
        "--locked",
        "-p",
        "switchboard",
        "--no-default-features",
        "--features",
        "client",
    ]);
    cargo.args(["-e", "normal,build", "--prefix", "none", "--format", "{p}", "--target", PLATFORM]);
    let output = cargo.output().context("cargo tree cannot be run")?;
    ensure!(output.status.success(), "cargo tree has no answer: {}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).context("cargo tree writes text")?;
    Ok(lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// Whether `package`, with the features of `node` on, is built with `dependency`.
fn is_built(package: &cargo_metadata::Package, node: &Node, dependency: &cargo_metadata::Package) -> bool {
    let on: Vec<&str> = node.features.iter().map(|feature| feature.as_str()).collect();
    let mut declared = package.dependencies.iter().filter(|it| it.name == *dependency.name);
    declared.any(|it| {
        let key = it.rename.as_deref().unwrap_or(&it.name);
        !it.optional || is_asked_for(key, &on, &package.features)
    })
}

/// Whether one of the features that are `on` turns on the optional dependency `key`: as `key`, `dep:key` or
/// `key/feature`, and not as `key?/feature`, which only adds to what another has turned on.
pub(super) fn is_asked_for(key: &str, on: &[&str], features: &BTreeMap<String, Vec<String>>) -> bool {
    let asks = |wish: &str| {
        let wish = wish.strip_prefix("dep:").unwrap_or(wish);
        wish.split_once('/').map_or(wish, |(crate_named, _)| crate_named) == key
    };
    on.iter().any(|feature| {
        *feature == key || features.get(*feature).is_some_and(|wishes| wishes.iter().any(|wish| asks(wish)))
    })
}
