//! Behaviours of listing.

use switchboard_core::lifecycle::Event;
use switchboard_core::model::TaskState;

use super::Subject;
use super::given::{RecordWriter, anyone, chunk, inbound, now, scope, status};
use crate::ports::store::{ListPage, ListQuery, Retention, Scope};

/// No filter at all.
#[must_use]
pub fn everything(page_size: usize) -> ListQuery {
    ListQuery {
        context_id: None,
        state: None,
        status_since: None,
        page_size,
        after: None,
        artifacts: true,
        bytes_max: u64::MAX,
        history_max: None,
    }
}

async fn ids(subject: &dyn Subject, scope: &Scope, query: &ListQuery) -> Vec<String> {
    let page = subject.store().list(scope, query).await.expect("lists are read");
    names(&page)
}

fn names(page: &ListPage) -> Vec<String> {
    page.tasks.iter().map(|task| task.head.id.to_string()).collect()
}

async fn open(subject: &dyn Subject, scope: Scope, id: &str, context: &str, state: TaskState) -> RecordWriter {
    let mut writer = RecordWriter::new(scope, id, context);
    let events = vec![writer.opening(subject, "hello"), status(subject, state, None)];
    writer.append(subject, events).await;
    subject.clock().advance_ms(10);
    writer
}

pub async fn a_scope_lists_its_own_tasks_newest_status_first(subject: &mut dyn Subject) {
    let mut first = open(subject, anyone(), "t1", "c1", TaskState::Working).await;
    open(subject, scope("other", "", "echo"), "t2", "c1", TaskState::Working).await;
    let third = open(subject, anyone(), "t3", "c2", TaskState::Completed).await;
    assert_eq!(ids(subject, &anyone(), &everything(10)).await, ["t3", "t1"]);
    // A new status moves a task to the front; a chunk does not.
    first.append(subject, vec![status(subject, TaskState::Working, Some("again"))]).await;
    assert_eq!(ids(subject, &anyone(), &everything(10)).await, ["t1", "t3"]);
    subject.clock().advance_ms(10);
    let fourth = open(subject, anyone(), "t4", "c2", TaskState::Working).await;
    first.append(subject, vec![chunk("a", "x", false)]).await;
    assert_eq!(ids(subject, &anyone(), &everything(10)).await, ["t4", "t1", "t3"]);
    let page = subject.store().list(&anyone(), &everything(10)).await.expect("lists are read");
    let listed: Vec<_> = page.tasks.iter().map(|task| (task.key, &task.head, &*task.folded)).collect();
    assert_eq!(listed, [&fourth, &first, &third].map(|writer| (writer.key(), &writer.head, &writer.folded)));
}

pub async fn filters_by_context_state_and_time_combine(subject: &mut dyn Subject) {
    let states = [TaskState::Working, TaskState::Completed, TaskState::InputRequired, TaskState::Completed];
    let mut since = None;
    for (number, state) in states.into_iter().enumerate() {
        if number == 2 {
            since = Some(now(subject));
        }
        for context in ["c1", "c2"] {
            open(subject, anyone(), &format!("{context}-{number}"), context, state).await;
        }
    }
    let query = |context: Option<&str>, state, status_since| ListQuery {
        context_id: context.map(Into::into),
        state,
        status_since,
        ..everything(10)
    };
    let completed = Some(TaskState::Completed);
    let cases = [
        (query(Some("c1"), None, None), vec!["c1-3", "c1-2", "c1-1", "c1-0"]),
        (query(None, completed, None), vec!["c2-3", "c1-3", "c2-1", "c1-1"]),
        (query(None, None, since), vec!["c2-3", "c1-3", "c2-2", "c1-2"]),
        (query(Some("c2"), completed, None), vec!["c2-3", "c2-1"]),
        (query(Some("c1"), None, since), vec!["c1-3", "c1-2"]),
        (query(None, completed, since), vec!["c2-3", "c1-3"]),
        (query(Some("c2"), completed, since), vec!["c2-3"]),
        (query(Some("c3"), None, None), vec![]),
        (query(None, Some(TaskState::Failed), None), vec![]),
    ];
    for (query, expected) in cases {
        let page = subject.store().list(&anyone(), &query).await.expect("lists are read");
        assert_eq!(names(&page), expected, "{query:?}");
        assert_eq!(page.total, expected.len() as u64, "{query:?}");
        let small = ListQuery { page_size: 1, ..query };
        assert_eq!(page_through(subject, &small).await, expected, "{small:?}");
    }
}

pub async fn pages_join_up_and_the_total_counts_all(subject: &mut dyn Subject) {
    for number in 0..23 {
        let state = TaskState::ALL[number % 8];
        open(subject, anyone(), &format!("t{number:02}"), "c1", state).await;
    }
    let expected: Vec<_> = (0..23).rev().map(|number| format!("t{number:02}")).collect();
    for page_size in [1, 2, 5, 22, 23, 24] {
        assert_eq!(page_through(subject, &everything(page_size)).await, expected, "pages of {page_size}");
    }
}

/// All pages, checking that each but the last is full and says how many there are in all.
async fn page_through(subject: &dyn Subject, query: &ListQuery) -> Vec<String> {
    let mut query = query.clone();
    let mut all = Vec::new();
    let mut total = None;
    loop {
        let page = subject.store().list(&anyone(), &query).await.expect("lists are read");
        assert!(total.is_none_or(|total| total == page.total), "the total is the same on every page");
        total = Some(page.total);
        all.extend(names(&page));
        let Some(next) = page.next else { break };
        assert_eq!(page.tasks.len(), query.page_size, "only the last page may be short");
        query.after = Some(next);
    }
    assert_eq!(total, Some(all.len() as u64));
    all
}

pub async fn tasks_of_the_same_millisecond_are_each_listed_once(subject: &mut dyn Subject) {
    for number in 0..20 {
        RecordWriter::completed(subject, &format!("t{number}")).await;
    }
    let mut listed = page_through(subject, &everything(3)).await;
    listed.sort();
    listed.dedup();
    assert_eq!(listed.len(), 20);
}

pub async fn a_task_that_moves_between_pages_shifts_nothing(subject: &mut dyn Subject) {
    let mut writers = Vec::new();
    for number in 0..6 {
        writers.push(open(subject, anyone(), &format!("t{number}"), "c1", TaskState::Working).await);
    }
    let first = subject.store().list(&anyone(), &everything(2)).await.expect("lists are read");
    assert_eq!(names(&first), ["t5", "t4"]);
    writers[1].append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    writers[5].append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    let rest = ListQuery { after: first.next, ..everything(10) };
    // A task with a newer status than the first page is not repeated; it is at the front of a new listing.
    assert_eq!(ids(subject, &anyone(), &rest).await, ["t3", "t2", "t0"]);
    assert_eq!(ids(subject, &anyone(), &everything(2)).await, ["t5", "t1"]);
}

pub async fn a_list_without_artifacts_has_the_rest(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![chunk("a", "x", false)]).await;
    writer.append(subject, vec![chunk("a", "y", true), status(subject, TaskState::InputRequired, Some("and?"))]).await;
    let query = ListQuery { artifacts: false, ..everything(10) };
    let page = subject.store().list(&anyone(), &query).await.expect("lists are read");
    let mut folded = page.tasks[0].folded.as_ref().clone();
    std::sync::Arc::make_mut(&mut folded.task).artifacts.clone_from(&writer.folded.task.artifacts);
    assert_eq!((&page.tasks[0].head, &folded), (&writer.head, &writer.folded));
    // Such a list does not affect later reads.
    writer.check(subject).await;
}

/// All tasks, then those of each state that has any.
async fn totals(subject: &dyn Subject) -> (u64, Vec<(TaskState, u64)>) {
    let mut by_state = Vec::new();
    for state in TaskState::ALL {
        let query = ListQuery { state: Some(state), ..everything(1) };
        let total = subject.store().list(&anyone(), &query).await.expect("lists are read").total;
        by_state.extend((total > 0).then_some((state, total)));
    }
    (subject.store().list(&anyone(), &everything(1)).await.expect("lists are read").total, by_state)
}

pub async fn the_total_follows_every_change(subject: &mut dyn Subject) {
    use TaskState::{Completed, Failed, InputRequired, Working};
    let mut writers = Vec::new();
    for state in [Working, Working, Completed, InputRequired] {
        let id = format!("t{}", writers.len());
        writers.push(open(subject, anyone(), &id, "c1", state).await);
    }
    assert_eq!(totals(subject).await, (4, vec![(Working, 2), (Completed, 1), (InputRequired, 1)]));
    let mut unborn = RecordWriter::new(anyone(), "unborn", "c1");
    unborn.append(subject, vec![Event::Received { inbound: inbound(1, "x"), context_id: "c1".into() }]).await;
    open(subject, scope("other", "", "echo"), "foreign", "c1", Working).await;
    assert_eq!(totals(subject).await.0, 4, "records that are not tasks, and other owners' tasks, are not counted");
    let opening = unborn.opening(subject, "x");
    unborn.append(subject, vec![opening, status(subject, Working, None)]).await;
    writers[0].append(subject, vec![status(subject, Failed, None)]).await;
    writers[1].append(subject, vec![status(subject, Working, Some("again"))]).await;
    let mut refused = writers[1].clone();
    std::sync::Arc::make_mut(&mut refused.head).version -= 1;
    let commit = refused.commit(subject, vec![status(subject, Failed, None)]);
    assert!(refused.try_write(subject, commit).await.is_err());
    let expected = (5, vec![(Working, 2), (Completed, 1), (Failed, 1), (InputRequired, 1)]);
    assert_eq!(totals(subject).await, expected);
    subject.restart();
    assert_eq!(totals(subject).await, expected);
    let retention =
        Retention { now: now(subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 100, tasks_batch: 0 };
    assert_eq!(subject.store().prune(retention, 10).await.expect("pruning works"), 2);
    assert_eq!(totals(subject).await, (3, vec![(Working, 2), (InputRequired, 1)]));
}
