//! The schema: made once however many processes start together, and used by builds that it says can use it.

use std::sync::Arc;

use switchboard_core::model::Dialect;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, scope, webhook};
use switchboard_engine::ports::storage::CALL_BYTES;
use switchboard_engine::ports::store::PushChange;

use super::super::prune;
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

/// A webhook that was registered before the second version of the schema is filed under its owner by the migration, and one that a
/// build of the first version registers afterwards by the trigger.
#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn webhooks_of_the_first_version_are_filed_under_their_owners() {
    let mut subject = OnSchema::new();
    let register = async |subject: &OnSchema, principal: &str| {
        let mut writer = RecordWriter::new(scope("", principal, "echo"), principal, "ctx");
        let opening = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opening]);
        let config = webhook(&writer, "p");
        commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
        Arc::make_mut(&mut commit.head).push_configs = 1;
        writer.write(subject, commit).await;
    };
    register(&subject, "ann").await;
    subject.sql(
        "drop trigger file_under_owner on push; drop function file_under_owner_v1(); \
         alter table push drop column owner_no; \
         drop function commit_v2; drop view a2a_calls; drop function observe_clock_v2(bigint); drop table call; drop function call_bytes_v1(); delete from schema_version where version > 1",
    );
    // It waits on a runtime of its own, which cannot be done on a thread that has one.
    let before = std::thread::scope(|scope| scope.spawn(|| migrate(&subject.options).unwrap().found).join().unwrap());
    assert_eq!(before, 1);
    subject.restart();
    // Commits call the function of the first version, which does not know the column.
    register(&subject, "bob").await;
    subject.sql(
        "do $$ begin
            if (select count(distinct push.owner_no) from push join task using (task_no) join scope using (scope_no)
                 where push.owner_no = scope.owner_no) <> 2 then raise exception 'not filed'; end if;
         end $$",
    );
    assert_eq!(subject.store().claim_deliveries(10, 1_000).await.unwrap().len(), 2);
}

/// Servers of the version before go on while and after the schema is migrated, so all that they ask must still be understood.
#[test]
#[ignore = "starts PostgreSQL"]
fn everything_that_servers_of_schema_3_ask_is_still_understood() {
    let subject = OnSchema::new();
    let recorded = include_str!("statements_v3.sql");
    let statements = recorded.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    let statements: Vec<&str> = statements.split("\n;;\n").collect();
    assert!(statements.len() > 50, "{}", statements.len());
    for (number, statement) in statements.iter().enumerate() {
        subject.sql(&format!("prepare s{number} as {}", statement.trim().trim_end_matches(';')));
    }
}

/// A call that a server of schema 3 writes counts its bytes, too: a trigger fills in the column that the server does not know.
#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn calls_of_servers_of_schema_3_count_their_bytes() {
    let subject = OnSchema::new();
    let parent = RecordWriter::completed(&subject, "t1").await;
    let before = subject.store().stats().stored_bytes.unwrap();
    let recorded = include_str!("statements_v3.sql");
    let open = recorded.split("\n;;\n").find(|statement| statement.starts_with("insert into call")).unwrap();
    let record = format!("{{\"turn\":1,\"agent\":\"mail\",\"created_at\":0,\"outcome\":\"{}\"}}", "ä".repeat(100));
    let task_no = parent.key().0;
    subject.sql(&format!(
        "prepare open as {open}; execute open('c1', {task_no}, 'completed', null, '{record}', 0, null);
         execute open('c2', {task_no}, 'completed', null, 'not JSON', 0, null)"
    ));
    let first = subject.first.as_ref().unwrap();
    prune::count(&first.shared).await.unwrap();
    let more = subject.store().stats().stored_bytes.unwrap() - before;
    assert_eq!(more, (CALL_BYTES + 200) + (CALL_BYTES + 8));
}
