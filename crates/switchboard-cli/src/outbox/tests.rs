//! The commands against a database, and what they refuse. Against a server they are tested with the real binary.

use std::path::Path;

use clap::Parser;
use expect_test::expect;
use serde_json::json;

use super::{encoded, picture, run};
use crate::cli::{Cli, Command, OutboxStateName};
use crate::config::Environment;
use crate::failure::Failure;

async fn outbox(folder: &Path, args: &[&str]) -> Result<String, Failure> {
    let words = ["switchboard", "outbox"].iter().chain(args);
    let Command::Outbox(command) = Cli::try_parse_from(words).unwrap().command else { panic!("it is the outbox") };
    run(&command, &Environment::of(&[]), folder).await
}

#[tokio::test]
async fn a_database_without_deliveries_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let failure = outbox(folder.path(), &["list", "--data", "data"]).await.unwrap_err();
    assert!(matches!(&failure, Failure::Runtime(why) if why.starts_with("there is no database at ")), "{failure}");
    assert!(!folder.path().join("data").exists(), "looking creates nothing");

    std::fs::create_dir(folder.path().join("data")).unwrap();
    let database = folder.path().join("data").join(crate::config::DATABASE_NAME);
    drop(switchboard::OfflineOutbox::open(&database).unwrap());
    let say = async |args: &[&str]| match outbox(folder.path(), args).await {
        Ok(said) => said,
        Err(failure) => format!("{failure:?}"),
    };
    let mut said = String::new();
    for args in [
        &["list"][..],
        &["list", "--state", "all", "--json"],
        &["show", "7"],
        &["show", "../x"],
        &["redrive", "7"],
        &["redrive", "--all"],
        &["purge", "--endpoint", "https://hooks.example", "--yes"],
        &["purge", "--endpoint", "hooks.example", "--yes"],
    ] {
        let args: Vec<&str> = args.iter().chain(&["--data", "data"]).copied().collect();
        said.push_str(&format!("{}\n", say(&args).await));
    }
    expect![[r#"
        no dead letters
        {"deliveries":[],"endpoints":[],"more":false}
        Runtime("refused with status 404: Invalid parameters: id: \"7\" is no delivery that waits or was given up on")
        Runtime("refused with status 404: Invalid parameters: id: \"..%2Fx\" is no delivery that waits or was given up on")
        Runtime("refused with status 404: Invalid parameters: id: \"7\" is no delivery that waits or was given up on")
        0 deliveries due again; they go out when the server starts
        0 deliveries dropped
        Runtime("refused with status 400: Invalid parameters: endpoint: must be scheme, host and port, as in https://hooks.example:443")
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn many_are_meant_only_if_it_is_said_and_dropping_wants_a_second_word() {
    let folder = tempfile::tempdir().unwrap();
    for args in
        [&["redrive"][..], &["redrive", "7", "--all"], &["purge", "--yes"], &["purge", "7"], &["purge", "--all"]]
    {
        let failure = outbox(folder.path(), args).await.unwrap_err();
        assert!(matches!(failure, Failure::Usage(_)), "{args:?}: {failure}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let failure = outbox(folder.path(), &["list", "--url", "http://127.0.0.1:9"]).await.unwrap_err();
    assert!(matches!(&failure, Failure::Runtime(why) if why.contains("http://127.0.0.1:9")), "{failure}");
    let failure = outbox(folder.path(), &["list", "--url", "127.0.0.1:9"]).await.unwrap_err();
    assert!(matches!(failure, Failure::Usage(_)), "{failure}");
}

#[test]
fn a_list_is_a_table_and_one_delivery_a_page() {
    let delivery = json!({
        "id": "17", "state": "dead", "endpoint": "https://hooks.example:443", "taskId": "t-1", "configId": "c",
        "agent": "echo", "tenant": "", "principal": "alice", "deliveredSeq": 2, "newestSeq": 5, "failures": 12,
        "nextAttemptAt": null, "lastAttemptAt": "2026-01-01T00:00:00.000Z", "lastError": "the receiver\u{1b}answered 500",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "next": {"seq": 3, "deliveryId": "t-1:c:3", "kind": "artifactUpdate"},
    });
    let down = json!({
        "endpoint": "https://hooks.example:443", "state": "down", "downSince": "2026-01-01T00:00:00.000Z",
        "nextProbeAt": "2026-01-01T00:01:00.000Z", "lastError": "no connection",
    });
    let list = picture::list(std::slice::from_ref(&delivery), &[down], OutboxStateName::Dead, true);
    expect![[r#"
        down: https://hooks.example:443 since 2026-01-01T00:00:00.000Z, next probe 2026-01-01T00:01:00.000Z: no connection
        ID  STATE  FAILURES  BEHIND  ENDPOINT                   TASK  LAST ERROR
        17  dead   12        3       https://hooks.example:443  t-1   the receiver?answered 500
        there are more; see --limit"#]]
    .assert_eq(&list);
    expect![[r#"
        Delivery: 17
        State: dead
        Endpoint: https://hooks.example:443
        Task: t-1
        Config: c
        Agent: echo
        Tenant: -
        Principal: alice
        Delivered: 2
        Newest: 5
        Failures: 12
        Last attempt: 2026-01-01T00:00:00.000Z
        Last error: the receiver?answered 500
        Next attempt: -
        Registered: 2026-01-01T00:00:00.000Z
        Next update: 3 artifactUpdate (t-1:c:3)"#]]
    .assert_eq(&picture::one(&delivery));
}

#[test]
fn a_text_in_a_url_stays_one_segment() {
    assert_eq!(encoded("../x?y&z=1 é"), "..%2Fx%3Fy%26z%3D1%20%C3%A9");
}
