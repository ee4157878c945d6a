//! `switchboard db migrate` and `status`, and what `serve` says about a database that it cannot use.

use std::process::Output;

use switchboard_test_servers::Postgres;

use super::super::process::free_addr;
use super::{Cluster, begin, follow};

const CERTIFICATE: &str = include_str!("../../../certificates/first.cert.pem");
const KEY: &str = include_str!("../../../certificates/first.key.pem");

/// What a command printed, and its exit code.
fn told(output: &Output) -> (Option<i32>, String) {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    (output.status.code(), text)
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_database_is_migrated_by_many_at_once_and_its_status_is_told() {
    let cluster = Cluster::new();
    let (code, text) = told(&cluster.run(&["db", "status"]));
    assert!(code == Some(1) && text.contains("empty, `switchboard db migrate` makes the tables"), "{text}");
    let commands: Vec<_> = (0..8).map(|_| cluster.command(&["db", "migrate"]).spawn().unwrap()).collect();
    for mut command in commands {
        assert!(command.wait().unwrap().success());
    }
    let (code, text) = told(&cluster.run(&["db", "status"]));
    assert!(code == Some(0) && text.contains("up to date"), "{text}");
    let (code, text) = told(&cluster.run(&["db", "migrate"]));
    assert!(code == Some(0) && text.contains("nothing to do"), "{text}");
    // Servers that may not change the schema find it as they need it.
    cluster.configure("store_migrate = false");
    cluster.start(["first", "second"]);
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_that_cannot_use_its_database_says_why_and_ends() {
    let mut cluster = Cluster::new();
    let addr = free_addr().to_string();
    let mut without_key = cluster.command(&["serve", "--listen", &addr]);
    without_key.env_remove("SWITCHBOARD_SECRETS_KEY");
    let (code, text) = told(&without_key.output().unwrap());
    assert!(code == Some(2) && text.contains("--secrets-key-file") && text.contains("SWITCHBOARD_STORE"), "{text}");

    cluster.configure("store_migrate = false");
    let (code, text) = told(&cluster.run(&["serve", "--listen", &addr]));
    assert!(code == Some(1) && text.contains("`switchboard db migrate` makes the tables"), "{text}");

    cluster.url = "postgres://nobody:hidden@127.0.0.1:1/none".to_owned();
    let (code, text) = told(&cluster.run(&["serve", "--listen", &addr]));
    assert!(code == Some(1) && text.contains("PostgreSQL cannot be reached (connection refused)"), "{text}");
    assert!(!text.contains("hidden"), "{text}");
    let (code, text) = told(&cluster.run(&["serve", "--listen", &addr, "--print-config"]));
    assert!(code == Some(0) && text.contains("Left out: the address of PostgreSQL from SWITCHBOARD_STORE"), "{text}");
    assert!(!text.contains("hidden"), "{text}");

    cluster.url = "mysql://nobody@127.0.0.1/none".to_owned();
    let (code, text) = told(&cluster.run(&["serve", "--listen", &addr]));
    assert!(code == Some(2) && text.contains("expected postgres://"), "{text}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn the_certificate_of_the_database_is_checked() {
    let postgres = Postgres::start_with_tls(CERTIFICATE, KEY);
    let mut cluster = Cluster::on(&postgres);
    let address = cluster.url.clone();
    cluster.url = format!("{address}?sslmode=require");
    let (code, text) = told(&cluster.run(&["db", "migrate"]));
    assert!(code == Some(1) && text.contains("certificate is not trusted"), "{text}");
    let authority = cluster.folder.path().join("authority.pem");
    std::fs::write(&authority, CERTIFICATE).unwrap();
    cluster.url = format!("{address}?sslmode=require&sslrootcert={}", authority.display());
    let (code, text) = told(&cluster.run(&["db", "migrate"]));
    assert!(code == Some(0) && text.contains("migrated from version 0"), "{text}");
    cluster.start(["first"]);
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_database_is_verified_while_it_is_used_and_removed_when_it_is_not() {
    let cluster = Cluster::new();
    let [server] = cluster.start(["first"]);
    let id = begin(&server, "m-1", "stream 5");
    let last = follow(&server, &id, 0).last().unwrap();
    let verify = || told(&cluster.run(&["db", "verify"]));
    let (code, text) = verify();
    assert!(code == Some(0) && text.contains("no faults") && text.contains("looked at 1 tasks"), "{text}");
    let (code, text) = told(&cluster.run(&["audit", "verify"]));
    assert!(code == Some(0) && text.contains("entries of the audit log"), "{text}");

    let damage = |record: &str| {
        let schema = &cluster.schema;
        let _ = cluster.postgres.sql(&format!("update {schema}.log set record = {record} where version = 3"));
    };
    damage("record || ' '");
    let (code, text) = verify();
    let expected = format!("task {id}: commit 3 does not match its checksum");
    assert!(code == Some(1) && text.contains(&expected), "{last:?}: {text}");
    damage("rtrim(record)");
    assert_eq!(verify().0, Some(0));

    for (arguments, instead) in [
        (&["db", "backup", "--to", "copy.db"][..], "pg_dump"),
        (&["db", "compact"][..], "autovacuum"),
        (&["db", "rotate-secrets-key"][..], "put the new key in front"),
    ] {
        let (code, text) = told(&cluster.run(arguments));
        assert!(code == Some(2) && text.contains(instead), "{arguments:?}: {text}");
    }
    let (code, text) = told(&cluster.run(&["db", "reset"]));
    assert!(code == Some(2) && text.contains("say --yes"), "{text}");
    let (code, text) = told(&cluster.run(&["db", "reset", "--yes"]));
    assert!(code == Some(1) && text.contains("servers use the database (first)"), "{text}");
    server.terminate();
    let (code, text) = told(&cluster.run(&["db", "reset", "--yes"]));
    assert!(code == Some(0) && text.contains("deleted the schema"), "{text}");
    let (code, text) = told(&cluster.run(&["db", "reset", "--yes"]));
    assert!(code == Some(0) && text.contains("nothing to delete"), "{text}");
}
