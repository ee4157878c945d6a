//! The schema: made once however many processes start together, and used by builds that it says can use it.

use super::super::schema::VERSION;
use super::super::{PostgresOptions, PostgresStore, migrate, status};
use super::{OnSchema, new_schema, server};

/// Another schema, whose tables are not made yet.
fn empty() -> PostgresOptions {
    PostgresOptions::new(server().url()).schema(new_schema()).readers(1)
}

#[test]
#[ignore = "starts PostgreSQL"]
fn many_that_start_together_make_the_tables_once() {
    let options = empty();
    let opened: Vec<PostgresStore> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..12)
            .map(|number| {
                let options = options.clone().replica(format!("replica {number}"));
                scope.spawn(move || PostgresStore::open(options).unwrap())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    drop(opened);
    let after = status(&options).unwrap();
    assert_eq!((after.found, after.known, after.is_usable()), (VERSION, VERSION, true), "{after}");
    assert!(after.to_string().ends_with("up to date"), "{after}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_store_that_may_not_migrate_refuses_an_empty_schema_and_names_the_command() {
    let options = empty();
    let refused = PostgresStore::open(options.clone().migrates(false)).err().unwrap().to_string();
    assert!(refused.contains("switchboard db migrate"), "{refused}");
    assert_eq!(migrate(&options).unwrap().found, 0, "the state before");
    assert_eq!(migrate(&options).unwrap().found, VERSION, "a second time does nothing");
    PostgresStore::open(options.migrates(false)).unwrap();
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_newer_schema_is_used_if_it_says_that_this_build_can() {
    let subject = OnSchema::new();
    let newer = VERSION + 1;
    subject.sql(&format!("insert into schema_version (version, works_from) values ({newer}, {VERSION})"));
    let usable = status(&subject.options).unwrap();
    assert!(usable.is_usable() && usable.to_string().contains("newer, and usable"), "{usable}");
    drop(subject.open("an older build"));
    subject.sql(&format!("update schema_version set works_from = {newer} where version = {newer}"));
    let refused = PostgresStore::open(subject.options.clone().replica("a build too old")).err().unwrap().to_string();
    assert!(refused.contains("too new, it needs a build that writes"), "{refused}");
}
