//! `xtask sbom`: a software bill of materials of the binary, as CycloneDX 1.5 in JSON. It lists every crate that
//! `switchboard-cli` is built with (all features, on the platform of `tidy/rules.rs`, build scripts and macros included, tests
//! not), with its version, licence, the checksum of its archive from `Cargo.lock`, and what it depends on. The same tree gives
//! the same text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::folders::root;
use crate::tidy::graph::{Graph, Package};

/// The crate of the binary.
const BINARY: &str = "switchboard-cli";

pub(crate) fn run() -> Result<bool> {
    let root = root();
    let document = document(&Graph::read(&root)?, &checksums(&root)?)?;
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(true)
}

fn document(graph: &Graph, checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let binary = graph.packages.iter().position(|package| package.name == BINARY).context("the binary has no crate")?;
    let mut reached = BTreeSet::from([binary]);
    let mut ahead = vec![binary];
    while let Some(at) = ahead.pop() {
        ahead.extend(graph.packages[at].needs.iter().filter(|needed| reached.insert(**needed)));
    }
    let reference = |at: usize| purl(&graph.packages[at]);
    let component = |package: &Package| {
        let mut component = json!({
            "type": if package.name == BINARY { "application" } else { "library" },
            "bom-ref": purl(package),
            "name": package.name,
            "version": package.version,
            "purl": purl(package),
        });
        if let Some(licence) = &package.licence {
            component["licenses"] = json!([{"expression": licence.replace('/', " OR ")}]);
        }
        if let Some(checksum) = checksums.get(&(package.name.clone(), package.version.clone())) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let others = reached.iter().filter(|at| **at != binary);
    let dependencies = reached.iter().map(|at| {
        let needs: BTreeSet<String> = graph.packages[*at].needs.iter().map(|needed| reference(*needed)).collect();
        json!({"ref": reference(*at), "dependsOn": needs})
    });
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(&graph.packages[binary])},
        "components": others.map(|at| component(&graph.packages[*at])).collect::<Vec<_>>(),
        "dependencies": dependencies.collect::<Vec<_>>(),
    }))
}

/// The name of a package that is the same everywhere.
fn purl(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

/// The checksum of each archive, by name and version.
fn checksums(root: &Path) -> Result<BTreeMap<(String, String), String>> {
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock cannot be read")?;
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
            Some(line.trim_end_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) = (value("name"), value("version"), value("checksum")) {
            found.insert((name, version), checksum);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Graph, checksums, document, root};

    #[test]
    fn the_bill_has_what_is_built_with_its_checksums_and_nothing_of_the_tests() {
        let root = root();
        let bill = document(&Graph::read(&root).unwrap(), &checksums(&root).unwrap()).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], "switchboard-cli");
        let components = bill["components"].as_array().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let names: BTreeSet<String> = components.iter().map(|component| text(&component["name"])).collect();
        for built in ["switchboard-core", "rusqlite", "libsqlite3-sys", "rustls", "tokio", "serde_derive"] {
            assert!(names.contains(built), "{built} is missing");
        }
        for of_tests in ["proptest", "expect-test", "switchboard-fuzz", "switchboard-tests", "xtask"] {
            assert!(!names.contains(of_tests), "{of_tests} is not in the binary");
        }
        for component in components {
            let is_ours = component["name"].as_str().unwrap().starts_with("switchboard");
            let hash = component["hashes"][0]["content"].as_str().unwrap_or_default();
            assert!(is_ours || hash.len() == 64, "{component}");
            assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        }
        let known: BTreeSet<String> = components.iter().map(|component| text(&component["bom-ref"])).collect();
        for dependency in bill["dependencies"].as_array().unwrap() {
            for needed in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(needed.as_str().unwrap()), "{needed} is not listed");
            }
        }
    }
}
