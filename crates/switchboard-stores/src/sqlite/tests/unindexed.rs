//! Tasks at work that the indexes do not have: they are found in every way, and enter the indexes in time.

use std::time::Duration;

use switchboard_core::model::{TaskState, Timestamp};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, TAKEN, anyone, chunk, claim, scope, status};
use switchboard_engine::ports::store::{ListQuery, Release};

use super::super::{SqliteOptions, backup};
use super::{OnFile, faults_of, make, quick};

fn count(subject: &OnFile, sql: &str) -> i64 {
    subject.connect().query_row(sql, [], |row| row.get(0)).unwrap()
}

fn unindexed(subject: &OnFile) -> i64 {
    count(subject, "SELECT count(*) FROM task WHERE running = 2")
}

fn query() -> ListQuery {
    ListQuery {
        context_id: None,
        state: None,
        status_since: None,
        page_size: 2,
        after: None,
        artifacts: false,
        bytes_max: 1 << 20,
        history_max: None,
    }
}

/// The ids of all listed tasks in their order, read in pages, and the total that every page says.
async fn listed(subject: &OnFile, mut query: ListQuery) -> (Vec<String>, u64) {
    let mut ids = Vec::new();
    loop {
        let page = subject.store().list(&anyone(), &query).await.unwrap();
        ids.extend(page.tasks.iter().map(|stored| stored.head.id.to_string()));
        query.after = page.next;
        if query.after.is_none() {
            return (ids, page.total);
        }
    }
}

#[tokio::test]
async fn a_task_enters_the_indexes_when_it_is_no_longer_at_work() {
    let subject = make();
    for (name, state) in [("done", TaskState::Completed), ("asks", TaskState::InputRequired)] {
        let mut writer = RecordWriter::opened(&subject, name).await;
        writer.append(&subject, vec![status(&subject, TaskState::Working, None)]).await;
        writer.append(&subject, vec![chunk("a", "word", false)]).await;
        assert_eq!(unindexed(&subject), 1, "it is at work");
        assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
        writer.append(&subject, vec![status(&subject, state, None)]).await;
        assert_eq!(unindexed(&subject), 0);
        writer.check(&subject).await;
    }
}

#[tokio::test]
async fn lists_and_totals_show_tasks_at_work() {
    for cache_records_max in [0, 100] {
        let subject = OnFile::new(SqliteOptions { cache_records_max, ..quick() });
        let mut writers = Vec::new();
        for (number, context) in ["one", "two", "one", "two", "one"].into_iter().enumerate() {
            subject.clock.advance_ms(1000);
            let mut writer = RecordWriter::new(anyone(), &format!("t{number}"), context);
            let opening = writer.opening(&subject, "hello");
            let mut commit = writer.commit(&subject, vec![opening]);
            commit.lease = TAKEN;
            writer.write(&subject, commit).await;
            writers.push(writer);
        }
        // A task of another owner, and two that have gone on.
        let mut foreign = RecordWriter::new(scope("", "bob", "echo"), "foreign", "one");
        let opening = foreign.opening(&subject, "hello");
        let mut commit = foreign.commit(&subject, vec![opening]);
        commit.lease = TAKEN;
        foreign.write(&subject, commit).await;
        subject.clock.advance_ms(1000);
        writers[1].append(&subject, vec![status(&subject, TaskState::Working, None)]).await;
        subject.clock.advance_ms(1000);
        writers[3].append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
        assert_eq!(unindexed(&subject), 5);

        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        assert_eq!(listed(&subject, query()).await, (ids(&["t3", "t1", "t4", "t2", "t0"]), 5));
        let of_context = ListQuery { context_id: Some("one".into()), ..query() };
        assert_eq!(listed(&subject, of_context.clone()).await, (ids(&["t4", "t2", "t0"]), 3));
        let submitted = ListQuery { state: Some(TaskState::Submitted), ..query() };
        assert_eq!(listed(&subject, submitted).await, (ids(&["t4", "t2", "t0"]), 3));
        let working = ListQuery { state: Some(TaskState::Working), context_id: Some("two".into()), ..query() };
        assert_eq!(listed(&subject, working).await, (ids(&["t1"]), 1));
        let since = Some(Timestamp::from_ms(super::BEGIN.as_ms() + 5000));
        assert_eq!(listed(&subject, ListQuery { status_since: since, ..query() }).await.1, 3);

        // The totals stay right when they end.
        for number in [0, 1, 2, 4] {
            writers[number].append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
        }
        let completed = ListQuery { state: Some(TaskState::Completed), ..query() };
        assert_eq!(listed(&subject, completed).await.1, 5);
        assert_eq!(listed(&subject, query()).await.1, 5);
    }
}

#[tokio::test]
async fn a_task_that_a_dead_process_left_is_indexed_and_its_run_is_due() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "one").await;
    writer.append(&subject, vec![chunk("a", "word", false)]).await;
    assert_eq!(unindexed(&subject), 1);
    let mut next = make();
    next.close();
    std::fs::remove_file(next.path()).unwrap();
    backup(&subject.path(), &next.path()).unwrap();
    next.restart();
    assert_eq!(unindexed(&next), 0);
    assert_eq!(faults_of(&next.path()), [] as [String; 0]);
    assert_eq!(listed(&next, query()).await.1, 1);
    assert_eq!(next.store().stats().tasks.unwrap().iter().sum::<u64>(), 1);
    let due = claim(&next, 10).await;
    assert_eq!(due[0].stored.head.id, writer.head.id);
}

#[tokio::test]
async fn a_released_run_is_found_when_it_is_due() {
    let subject = make();
    let writer = RecordWriter::opened(&subject, "one").await;
    let released = Release { key: writer.key(), fence: writer.head.fence, pause_ms: 1000 };
    subject.store().release_leases(vec![released]).await.unwrap();
    assert_eq!(unindexed(&subject), 0);
    subject.clock.advance_ms(1000);
    assert_eq!(claim(&subject, 10).await.len(), 1);
}

#[tokio::test]
async fn an_expired_run_is_found() {
    let subject = make();
    RecordWriter::opened(&subject, "one").await;
    subject.clock.advance_ms(60_000);
    assert_eq!(unindexed(&subject), 1);
    assert_eq!(claim(&subject, 10).await.len(), 1);
    assert_eq!(unindexed(&subject), 0, "a run that was taken over waits to begin");
}

#[tokio::test]
async fn an_idle_writer_indexes_tasks_at_work() {
    let subject = OnFile::new(SqliteOptions { idle: Duration::from_millis(1), ..quick() });
    let writer = RecordWriter::opened(&subject, "one").await;
    while unindexed(&subject) > 0 {
        tokio::task::yield_now().await;
    }
    writer.check(&subject).await;
}

#[tokio::test]
async fn a_closed_file_has_every_task_in_its_indexes() {
    let mut subject = make();
    RecordWriter::opened(&subject, "one").await;
    subject.close();
    assert_eq!(unindexed(&subject), 0);
    assert_eq!(count(&subject, "SELECT count(*) FROM task INDEXED BY task_by_run WHERE running = 1"), 1);
    subject.restart();
}

#[tokio::test]
async fn only_the_newest_tasks_are_left_out() {
    let subject = make();
    let long = RecordWriter::opened(&subject, "long").await;
    for number in 0..1100 {
        RecordWriter::completed(&subject, &format!("t{number}")).await;
    }
    assert_eq!(unindexed(&subject), 0);
    long.check(&subject).await;
    assert_eq!(listed(&subject, ListQuery { page_size: 1000, ..query() }).await.1, 1101);
}

#[tokio::test]
async fn verify_reports_a_task_that_the_indexes_would_never_get() {
    let mut subject = make();
    RecordWriter::opened(&subject, "one").await;
    RecordWriter::completed(&subject, "two").await;
    subject.close();
    subject.is_damaged = true;
    let connection = subject.connect();
    connection
        .execute_batch("UPDATE task SET running = 2 WHERE id = 'one'; UPDATE task SET task_no = 9000 WHERE id = 'two'")
        .unwrap();
    super::super::fill::renew_checksums(&connection).unwrap();
    drop(connection);
    let faults = faults_of(&subject.path());
    let told = "task one: it is not in the indexes of lists and runs, and should be";
    assert!(faults.iter().any(|fault| fault == told), "{faults:#?}");
}

#[tokio::test]
async fn the_view_shows_tasks_at_work() {
    let subject = make();
    RecordWriter::opened(&subject, "one").await;
    assert_eq!(unindexed(&subject), 1);
    let shown: (String, i64) = subject
        .connect()
        .query_row("SELECT state, running FROM a2a_tasks", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(shown, ("submitted".to_owned(), 1));
}

#[tokio::test]
async fn a_damaged_task_that_a_dead_process_left_costs_only_itself_and_is_reported() {
    let subject = make();
    RecordWriter::opened(&subject, "good").await;
    RecordWriter::opened(&subject, "bad").await;
    let mut next = make();
    next.close();
    std::fs::remove_file(next.path()).unwrap();
    backup(&subject.path(), &next.path()).unwrap();
    next.connect().execute_batch("UPDATE task SET artifacts = 'x' WHERE id = 'bad'").unwrap();
    next.is_damaged = true;
    next.restart();
    let due = claim(&next, 10).await;
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].stored.head.id.as_str(), "good");
    assert_eq!(next.store().quarantine().rows, 1);
    let faults = faults_of(&next.path());
    assert!(faults.len() == 1 && faults[0].starts_with("task bad: its row"), "{faults:#?}");
}
