//! Keys in a folder: who may read them, which one signs, and what is published.

use serde_json::Value;

use super::{KEYS_MAX, KeyAlgorithm, KeyFolder, SigningKeys};

fn folder() -> (tempfile::TempDir, KeyFolder) {
    let dir = tempfile::tempdir().unwrap();
    let folder = KeyFolder::at(dir.path().join("keys"));
    (dir, folder)
}

fn published(keys: &SigningKeys) -> Vec<String> {
    let set: Value = serde_json::from_str(&keys.jwk_set()).unwrap();
    let keys = set["keys"].as_array().unwrap().iter();
    keys.map(|key| format!("{} {} {}", key["kid"].as_str().unwrap(), key["alg"], key["use"])).collect()
}

#[test]
fn the_first_key_signs_until_another_is_named_and_all_are_published() {
    let (dir, folder) = folder();
    let keys = SigningKeys::open(dir.path().join("keys")).unwrap();
    assert!(keys.is_empty());
    assert_eq!(keys.jwk_set(), r#"{"keys":[]}"#);
    assert!(folder.make(Some("one"), KeyAlgorithm::Es256).unwrap().is_active);
    assert!(!folder.make(Some("a-two"), KeyAlgorithm::EdDsa).unwrap().is_active);
    keys.reload().unwrap();
    assert_eq!(published(&keys), [r#"one "ES256" "sig""#, r#"a-two "EdDSA" "sig""#]);
    folder.rotate(Some("a-two"), KeyAlgorithm::Es256).unwrap();
    keys.reload().unwrap();
    assert_eq!(keys.ids(), ["a-two", "one"]);
    let why = folder.remove("a-two").unwrap_err().to_string();
    assert!(why.contains("is the one that signs"), "{why}");
    folder.remove("one").unwrap();
    folder.remove("a-two").unwrap();
    keys.reload().unwrap();
    assert!(keys.is_empty());
    // The folder is as good as new.
    assert!(folder.make(Some("three"), KeyAlgorithm::Es256).unwrap().is_active);
}

#[test]
fn the_public_set_holds_no_private_part() {
    for algorithm in [KeyAlgorithm::Es256, KeyAlgorithm::EdDsa] {
        let keys = SigningKeys::generate(algorithm).unwrap();
        let set: Value = serde_json::from_str(&keys.jwk_set()).unwrap();
        assert_eq!(set["keys"][0].get("d"), None);
        assert_eq!(set["keys"][0]["kid"].as_str().unwrap().len(), 16);
    }
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_key_and_one_that_others_can_read_is_refused() {
    use std::fs::{Permissions, metadata, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    let (dir, folder) = folder();
    let file = folder.make(Some("one"), KeyAlgorithm::Es256).unwrap().file;
    assert_eq!(metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(metadata(dir.path().join("keys")).unwrap().permissions().mode() & 0o777, 0o700);
    for mode in [0o640, 0o604, 0o620] {
        set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        let why = SigningKeys::open(dir.path().join("keys")).unwrap_err().to_string();
        assert!(why.contains("chmod 600"), "{why}");
    }
}

#[test]
fn ids_are_names_of_files_and_belong_to_one_key() {
    let (_dir, folder) = folder();
    for id in ["", "../one", ".one", "-one", "a/b", "a b", &"x".repeat(65)] {
        let why = folder.make(Some(id), KeyAlgorithm::Es256).unwrap_err().to_string();
        assert!(why.contains("must be 1 to 64 letters"), "{id:?}: {why}");
    }
    folder.make(Some("one"), KeyAlgorithm::Es256).unwrap();
    let why = folder.make(Some("one"), KeyAlgorithm::Es256).unwrap_err().to_string();
    assert!(why.contains("already"), "{why}");
    let why = folder.rotate(Some("two"), KeyAlgorithm::Es256).unwrap_err().to_string();
    assert!(why.contains(r#"no key "two""#), "{why}");
}

#[test]
fn a_folder_that_does_not_say_which_key_signs_is_refused_and_can_be_put_right() {
    let (dir, folder) = folder();
    folder.make(Some("one"), KeyAlgorithm::Es256).unwrap();
    folder.make(Some("two"), KeyAlgorithm::Es256).unwrap();
    std::fs::remove_file(dir.path().join("keys/active")).unwrap();
    let why = folder.list().unwrap_err().to_string();
    assert!(why.contains("keys rotate --to"), "{why}");
    folder.rotate(Some("two"), KeyAlgorithm::Es256).unwrap();
    assert_eq!(folder.list().unwrap()[0].id, "two");
    // A key that cannot be read takes none away from a server that runs.
    let keys = SigningKeys::open(dir.path().join("keys")).unwrap();
    std::fs::write(dir.path().join("keys/one.pem"), "no key").unwrap();
    let why = keys.reload().unwrap_err().to_string();
    assert!(why.contains("is no private key in PEM form"), "{why}");
    assert_eq!(keys.ids(), ["two", "one"]);
}

#[test]
fn there_are_only_so_many_keys() {
    let (_dir, folder) = folder();
    for _ in 0..KEYS_MAX {
        folder.make(None, KeyAlgorithm::EdDsa).unwrap();
    }
    let why = folder.make(None, KeyAlgorithm::EdDsa).unwrap_err().to_string();
    assert!(why.contains("remove one"), "{why}");
}
