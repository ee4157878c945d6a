//! Looking after keys from the command line.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};

fn keys_in(folder: &Path, typed: &[&str]) -> Result<String, Failure> {
    let Command::Keys(command) = Cli::parse_from(["switchboard", "keys"].iter().chain(typed)).command else {
        panic!("keys was typed")
    };
    run(&command, &Environment::of(&[]), folder)
}

#[test]
fn a_key_is_made_used_followed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let keys = |typed: &[&str]| keys_in(folder.path(), typed).unwrap();
    assert_eq!(keys(&["list"]), "there are no keys; `switchboard keys make` makes one");
    let made = keys(&["make", "--id", "autumn"]);
    assert!(made.starts_with("made autumn  ES256  signs") && made.contains("signs from now on"), "{made}");
    let made = keys(&["make", "--id", "winter", "--algorithm", "eddsa"]);
    assert!(made.starts_with("made winter  EdDSA  published"), "{made}");
    keys(&["rotate", "--to", "winter"]);
    let listed: serde_json::Value = serde_json::from_str(&keys(&["list", "--json"])).unwrap();
    assert_eq!((&listed[0]["id"], &listed[0]["active"]), (&"winter".into(), &true.into()));
    assert_eq!((&listed[1]["id"], &listed[1]["active"]), (&"autumn".into(), &false.into()));
    let set: serde_json::Value = serde_json::from_str(&keys(&["publish"])).unwrap();
    assert_eq!(set["keys"].as_array().unwrap().len(), 2);
    assert!(folder.path().join("switchboard-data/keys/autumn.pem").exists());
    keys(&["remove", "autumn"]);
    assert!(!folder.path().join("switchboard-data/keys/autumn.pem").exists());
    let refused = keys_in(folder.path(), &["remove", "autumn"]).unwrap_err();
    assert!(refused.to_string().contains("there is no key \"autumn\""), "{refused}");
}

#[test]
fn the_folder_is_the_one_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    keys_in(folder.path(), &["make", "--id", "a", "--keys-dir", "elsewhere"]).unwrap();
    assert!(folder.path().join("elsewhere/a.pem").exists());
    std::fs::write(folder.path().join("switchboard.toml"), "[server]\nkeys_dir = \"elsewhere\"\n").unwrap();
    assert!(keys_in(folder.path(), &["list"]).unwrap().starts_with("a  ES256  signs"));
    std::fs::write(folder.path().join("switchboard.toml"), "[server]\nmemory = true\n").unwrap();
    let refused = keys_in(folder.path(), &["list"]).unwrap_err();
    assert!(refused.to_string().contains("name one with --keys-dir"), "{refused}");
}
