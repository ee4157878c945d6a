//! Servers of the build before and of this one share a database while its schema is upgraded, under load: first the schema, then one server after
//! the other, then back, and forward again. A client that retries refused connections and 503 sees no failed request.
//!
//! It needs the binary of the build before, so `xtask upgrade --before BINARY` runs it, and `scripts/test` does not.

use std::path::PathBuf;
use std::process::Output;

use switchboard_test_servers::Postgres;

use super::postgres::load::{Load, Three};
use super::postgres::{Cluster, begin};
use super::process::binary;
use crate::support::limit::Limit;

/// So many answers are waited for after each step.
const ANSWERS_BETWEEN: usize = 40;

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
#[ignore = "needs the binary of the build before: xtask upgrade --before BINARY"]
fn servers_of_the_build_before_go_on_while_the_schema_is_upgraded() {
    let _limit = Limit::new();
    let before = PathBuf::from(std::env::var_os("SWITCHBOARD_BEFORE").expect("SWITCHBOARD_BEFORE names a binary"));
    let builds = [before, binary()];
    let database = Postgres::start();
    let cluster = Cluster::on(&database);
    let db =
        |build: usize, command: &str| said(&cluster.command_of(&builds[build], &["db", command]).output().unwrap());
    let mut three = Three::start(&cluster, &builds[0]);
    println!("build before: {}", db(0, "status").trim());
    println!("this build:   {}", db(1, "status").trim());
    assert!(db(1, "status").contains("brings it up to date"), "this build has another schema than the one before");
    let long = begin(three.server(0), "long", "stream 600");
    let go_on = |load: &Load, what: &str| {
        load.go_on(ANSWERS_BETWEEN);
        println!("{what}: {} answered so far, {} failed", load.answered(), load.failed());
    };
    let ids = three.under_load(|three, load| {
        go_on(load, "three servers of the build before");
        println!("db migrate of this build: {}", db(1, "migrate").trim());
        go_on(load, "the same servers on the new schema");
        println!("build before: {}", db(0, "status").trim());
        for (build, what) in [(1, "this build"), (0, "the build before"), (1, "this build")] {
            for place in 0..3 {
                three.replace(place, &builds[build]);
                go_on(load, &format!("server {} is of {what}", place + 1));
            }
        }
    });
    three.check(&ids, &long);
    for build in [0, 1] {
        let text = db(build, "verify");
        assert!(text.contains("no faults"), "{text}");
        println!("{}", text.trim());
    }
}
