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

#[test]
fn hints_over_nats_need_a_database_and_their_address_is_not_printed() {
    let given = ["--store", URL, "--hints", "nats://u:hidden@nats.example"];
    let config = load(&given, &[KEY], "[server]\nhints_subject = \"prod.eu\"").unwrap();
    let printed = print(&config).unwrap();
    assert!(
        printed.contains("address of NATS from --hints") && printed.contains("hints_subject = \"prod.eu\""),
        "{printed}"
    );
    assert!(!printed.contains("hidden") && !format!("{config:?}").contains("hidden"), "{printed}");

    let refused = |flags: &[&str], file: &str| load(flags, &[KEY], file).unwrap_err();
    for (told, expected) in [
        (refused(&["--hints", "nats://u:hidden@h"], ""), "--hints: hints are between servers that share a database"),
        (refused(&["--store", URL, "--hints", "redis://u:hidden@h"], ""), "--hints: expected nats://"),
        (refused(&["--store", URL], "[server]\nhints_subject = \"a.>\""), "without wildcards, got \"a.>\""),
        (refused(&["--store", URL, "--hints-credentials", "absent"], ""), "absent cannot be read"),
    ] {
        assert!(told.contains(expected), "{told}");
        assert!(!told.contains("hidden"), "{told}");
    }
}

#[test]
fn credentials_for_nats_come_from_a_variable_and_are_not_shown() {
    let variables = [KEY, ("SWITCHBOARD_HINTS_CREDENTIALS", "hidden")];
    let config = load(&["--store", URL, "--hints", "nats://nats.example"], &variables, "").unwrap();
    assert_eq!(config.hints_credentials.as_ref().map(|secret| &*secret.0), Some("hidden"));
    assert!(!format!("{config:?}").contains("hidden"));
}
