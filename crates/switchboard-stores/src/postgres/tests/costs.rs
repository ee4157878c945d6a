//! What an event costs: rows as PostgreSQL counts them, and statements as the store does. Neither depends on how long the task is.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use switchboard_core::call::BoxFuture;
use switchboard_core::model::{Dialect, TaskState, Timestamp};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, anyone, chunk, status, webhook};
use switchboard_engine::ports::store::{Accept, CommitError, PushChange, Statements, TaskKey};

use super::{OnSchema, server};

/// Rows that were inserted, updated and deleted in one table.
type Rows = [i64; 3];

/// How long PostgreSQL may take to say what a connection did that has ended.
const TOLD_TRIES: u32 = 600;
const TOLD_PAUSE: Duration = Duration::from_millis(50);

/// The tables that a commit may write to, in the order of the results.
const TABLES: [&str; 6] = ["accepted", "audit", "chunk", "log", "push", "task"];

/// What was written to the tables of a schema, once PostgreSQL has counted so many rows of the log.
async fn written(schema: &str, log_rows: i64) -> [Rows; TABLES.len()] {
    let mut told = String::new();
    for _ in 0..TOLD_TRIES {
        let sql = format!(
            "select string_agg(relname || ' ' || n_tup_ins || ' ' || n_tup_upd || ' ' || n_tup_del, ',' order by relname)
               from pg_stat_user_tables where schemaname = '{schema}' and relname in ('{}')",
            TABLES.join("', '")
        );
        told = server().sql(&sql).trim().to_owned();
        let rows: Vec<Rows> = told.split(',').map(of_table).collect();
        if let Ok(rows) = <[Rows; TABLES.len()]>::try_from(rows)
            && rows[3][0] >= log_rows
        {
            return rows;
        }
        tokio::time::sleep(TOLD_PAUSE).await;
    }
    panic!("PostgreSQL has not counted {log_rows} commits: {told}");
}

fn of_table(told: &str) -> Rows {
    let mut numbers = told.split(' ').skip(1).map(|number| number.parse().unwrap());
    std::array::from_fn(|_| numbers.next().unwrap_or_default())
}

/// The cost of a task with so many events after its first commit.
async fn cost_of_task(events: u64) -> ([Rows; TABLES.len()], Statements, u64) {
    let mut subject = OnSchema::new();
    let before = subject.store().stats();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    for number in 0..events {
        let event = match number % 2 {
            0 => chunk("a", "word", number > 0),
            _ => status(&subject, TaskState::Working, Some("busy")),
        };
        writer.append(&subject, vec![event]).await;
    }
    let after = subject.store().stats();
    let sent = Statements {
        commits: after.statements.commits - before.statements.commits,
        reads: after.statements.reads - before.statements.reads,
        ..Statements::default()
    };
    // A connection tells what it did when it ends.
    subject.first = None;
    let rows = written(&subject.options.schema, i64::try_from(events).unwrap() + 1).await;
    (rows, sent, after.batches - before.batches)
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn an_event_costs_two_rows_and_one_statement_however_long_its_task_is() {
    let (short, short_sent, short_batches) = cost_of_task(10).await;
    let (long, long_sent, long_batches) = cost_of_task(1_000).await;
    println!("10 events: {short:?} in {TABLES:?}, {short_sent:?}; 1,000 events: {long:?}, {long_sent:?}");
    // One at a time, so each is a transaction and a statement of its own, like the commit that opens the task.
    assert_eq!((short_batches, short_sent.commits), (11, 11));
    assert_eq!((long_batches, long_sent.commits), (1_001, 1_001));
    assert_eq!(long_sent.reads, short_sent.reads, "nothing is read for an event");
    let grown: Vec<Rows> =
        long.iter().zip(short).map(|(long, short)| std::array::from_fn(|of| long[of] - short[of])).collect();
    let nothing = [0; 3];
    assert_eq!(grown, [nothing, nothing, nothing, [990, 0, 0], nothing, [0, 990, 0]], "in {TABLES:?}");
    assert_eq!((short[3], short[5]), ([11, 0, 0], [1, 10, 0]), "a row of the log for each, and the row of the task");
}

/// Waits for all of them at once.
async fn all(mut writing: Vec<BoxFuture<'_, Result<TaskKey, CommitError>>>) {
    poll_fn(|cx| {
        writing.retain_mut(|commit| match commit.as_mut().poll(cx) {
            Poll::Ready(written) => written.map(|_| false).expect("the store takes the commit"),
            Poll::Pending => true,
        });
        if writing.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn commits_of_many_tasks_share_statements_and_cost_the_same_rows() {
    const TASKS: usize = 64;
    const EVENTS: i64 = 20;
    let mut subject = OnSchema::new();
    let mut writers = Vec::new();
    for number in 0..TASKS {
        writers.push(RecordWriter::opened(&subject, &format!("t{number}")).await);
    }
    let before = subject.store().stats();
    for _ in 0..EVENTS {
        let mut writing = Vec::new();
        for writer in &mut writers {
            let commit = writer.commit(&subject, vec![status(&subject, TaskState::Working, None)]);
            writer.head = commit.head.clone();
            writing.push(subject.store().commit(commit));
        }
        all(writing).await;
    }
    let after = subject.store().stats();
    let (batches, sent) = (after.batches - before.batches, after.statements.commits - before.statements.commits);
    let events = TASKS as u64 * u64::try_from(EVENTS).unwrap();
    println!("{events} events of {TASKS} tasks in {sent} statements");
    assert_eq!(sent, batches, "a batch is one statement");
    assert!(sent <= events / 8, "{sent} statements for {events} events");
    assert_eq!(after.rows_written - before.rows_written, 2 * events);
    subject.first = None;
    let commits = i64::try_from(TASKS).unwrap() * (EVENTS + 1);
    let rows = written(&subject.options.schema, commits).await;
    let tasks = i64::try_from(TASKS).unwrap();
    assert_eq!((rows[3], rows[5]), ([commits, 0, 0], [tasks, commits - tasks, 0]));
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn a_key_and_a_webhook_cost_a_row_each() {
    let mut subject = OnSchema::new();
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opened = writer.opening(&subject, "hello");
    let mut commit = writer.commit(&subject, vec![opened]);
    let expires = Timestamp::from_ms(i64::MAX);
    commit.accept = Some(Accept { key: [1; 32], digest: [2; 32], turn: 1, after_seq: 0, expires });
    let before = subject.store().stats();
    writer.write(&subject, commit).await;
    let config = webhook(&writer, "c");
    let mut commit = writer.commit(&subject, Vec::new());
    commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 1 }];
    Arc::make_mut(&mut commit.head).push_configs = 1;
    writer.write(&subject, commit).await;
    let sent = subject.store().stats().statements.commits - before.statements.commits;
    assert_eq!(sent, 2);
    subject.first = None;
    let rows = written(&subject.options.schema, 2).await;
    let [accepted, audit, chunk, log, push, task] = rows;
    assert_eq!((accepted, audit, chunk, log, task), ([1, 0, 0], [0; 3], [0; 3], [2, 0, 0], [1, 1, 0]));
    assert_eq!(push[0], 1, "{push:?}");
}
