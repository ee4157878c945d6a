//! Which of memory, a folder and PostgreSQL holds the tasks.

use super::load;
use crate::config::{Storage, print};

const URL: &str = "postgres://u:hidden@db.example/a";
const KEY: (&str, &str) = ("SWITCHBOARD_SECRETS_KEY", "swkey_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");

#[test]
fn tasks_are_in_postgres_if_its_address_is_given_and_it_is_not_printed() {
    let config = load(&["--store", URL, "--replica", "one"], &[KEY], "[server]\ndata = \"d\"").unwrap();
    assert!(matches!(&config.storage, Storage::Postgres { schema, .. } if schema == "switchboard"), "{config:?}");
    assert_eq!(config.storage.folder(), None);
    let printed = print(&config).unwrap();
    assert!(
        printed.contains("address of PostgreSQL from --store") && printed.contains("replica = \"one\""),
        "{printed}"
    );
    assert!(!printed.contains("hidden") && !printed.contains("data = "), "{printed}");
    assert!(!format!("{config:?}").contains("hidden"));
}

#[test]
fn a_folder_of_a_higher_layer_replaces_postgres() {
    let config = load(&["--data", "d"], &[("SWITCHBOARD_STORE", URL)], "").unwrap();
    assert!(matches!(config.storage, Storage::Sqlite { .. }), "{config:?}");
}

#[test]
fn what_postgres_cannot_be_used_with_is_refused_by_name() {
    let refused = |flags: &[&str], variables: &[(&str, &str)], file: &str| load(flags, variables, file).unwrap_err();
    for (told, expected) in [
        (refused(&["--store", URL], &[], ""), "--store: secrets of webhooks are encrypted"),
        (refused(&["--store", URL, "--data", "d"], &[KEY], ""), "--data: cannot be used with --store"),
        (refused(&["--store", URL], &[KEY], "[server]\nmemory = true"), "keep one of memory and store"),
        (refused(&["--store", "mysql://u:hidden@h/a"], &[KEY], ""), "--store: expected postgres://"),
        (refused(&["--store", URL, "--store-schema", "a b"], &[KEY], ""), "--store-schema: expected up to 63 letters"),
        (refused(&["--store", URL, "--replica", "a b"], &[KEY], ""), "--replica: expected up to 100 letters"),
    ] {
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("hidden"), "{told}");
    }
}
