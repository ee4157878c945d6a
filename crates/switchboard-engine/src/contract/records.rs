//! Behaviours of single records: what was written is read back, only by its owner, and commits are applied only in
//! order.

use std::sync::Arc;

use bytes::Bytes;
use switchboard_core::lifecycle::{Event, Folded, Inbound};
use switchboard_core::model::{Artifact, ArtifactDetails, Dialect, Json, Message, Part, Role, TaskState, Timestamp};

use super::Subject;
use super::given::{RecordWriter, TAKEN, anyone, chunk, inbound, message, now, scope, status, trace, write_parts};
use crate::ports::store::{CommitError, ListQuery, Target, TaskKey};

pub async fn a_new_task_is_read_back_whole(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(scope("acme", "ann", "echo"), "t1", "c1");
    let events = vec![
        writer.opening(subject, "hello"),
        status(subject, TaskState::Working, Some("on it")),
        chunk("a1", "hello", false),
        status(subject, TaskState::Completed, None),
    ];
    writer.append(subject, events).await;
    writer.check(subject).await;
    assert_eq!(subject.store().stats().commits, 1);
}

pub async fn an_id_that_is_taken_is_a_conflict(subject: &mut dyn Subject) {
    let first = RecordWriter::opened(subject, "t1").await;
    let mut second = RecordWriter::new(scope("other", "", "echo"), "t1", "c2");
    let opening = second.opening(subject, "mine");
    let commit = second.commit(subject, vec![opening]);
    let refused = second.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    first.check(subject).await;
}

pub async fn a_commit_on_an_old_version_is_a_conflict_and_changes_nothing(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut stale = writer.clone();
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    let commit = stale.commit(subject, vec![status(subject, TaskState::Failed, Some("late"))]);
    let refused = stale.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
    assert_eq!(subject.store().stats().conflicts, 1);
    writer.check(subject).await;
}

pub async fn a_commit_to_a_record_that_is_not_there_is_a_conflict(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut commit = writer.commit(subject, vec![status(subject, TaskState::Working, None)]);
    commit.target = Target::Existing { key: TaskKey(writer.key().0 + 1000), expected_version: 1 };
    let refused = writer.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Conflict)), "{refused:?}");
}

pub async fn a_fence_that_was_replaced_is_refused_inside_the_commit(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut old_run = writer.clone();
    let claimed = Event::Claimed { fence: writer.head.fence + 1, attempt: 2, at: now(subject) };
    writer.append(subject, vec![claimed]).await;

    // Even with the right version, the old run may not write.
    let mut commit = writer.commit(subject, vec![status(subject, TaskState::Completed, None)]);
    commit.fence = Some(old_run.head.fence);
    let refused = old_run.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    // If both are wrong, the store must report the fence, because that error stops the run.
    let mut commit = old_run.commit(subject, vec![status(subject, TaskState::Completed, None)]);
    commit.fence = Some(old_run.head.fence);
    let refused = old_run.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Fenced)), "{refused:?}");
    writer.check(subject).await;

    let mut commit = writer.commit(subject, vec![status(subject, TaskState::Completed, None)]);
    commit.fence = Some(writer.head.fence);
    writer.write(subject, commit).await;
    writer.check(subject).await;
}

pub async fn a_foreign_task_is_a_missing_task(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(scope("acme", "ann", "echo"), "t1", "c1");
    let opening = writer.opening(subject, "hello");
    writer.append(subject, vec![opening]).await;
    let foreign = [
        scope("acme", "bob", "echo"),
        scope("other", "ann", "echo"),
        scope("acme", "ann", "other"),
        scope("", "", "echo"),
        scope("acm", "eann", "echo"),
    ];
    for scope in &foreign {
        let store = subject.store();
        assert!(store.head(scope, &writer.head.id).await.expect("answers").is_none(), "{scope:?}");
        assert!(store.task(scope, &writer.head.id, u64::MAX).await.expect("answers").is_none(), "{scope:?}");
        assert!(store.task_since(scope, &writer.head.id, 1, u64::MAX).await.expect("answers").is_none(), "{scope:?}");
        let page = store.list(scope, &everything()).await.expect("answers");
        assert_eq!((page.tasks.len(), page.total), (0, 0), "{scope:?}");
    }
    writer.check(subject).await;
}

pub async fn a_record_that_is_not_born_has_a_head_but_is_not_listed(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    writer.append(subject, vec![Event::Received { inbound: inbound(1, "hello"), context_id: "c1".into() }]).await;
    writer.check(subject).await;
    assert_eq!(subject.store().list(&writer.scope, &everything()).await.expect("answers").total, 0);

    let opening = writer.opening(subject, "hello");
    writer.append(subject, vec![opening, status(subject, TaskState::Working, None)]).await;
    writer.check(subject).await;
    assert_eq!(subject.store().list(&writer.scope, &everything()).await.expect("answers").total, 1);
}

pub async fn a_direct_reply_closes_the_record_and_is_kept(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    let received = Event::Received { inbound: inbound(1, "hello"), context_id: "c1".into() };
    let replied = Event::Replied { message: message(Role::Agent, "r", "hello yourself") };
    writer.append(subject, vec![received, replied]).await;
    writer.check(subject).await;
    assert!(writer.head.is_closed());
    assert_eq!(subject.store().list(&writer.scope, &everything()).await.expect("answers").total, 0);
}

pub async fn many_turns_fold_to_the_same_task_with_and_without_the_hint(subject: &mut dyn Subject) {
    for hints in [false, true] {
        let mut writer = RecordWriter::new(anyone(), &format!("t-{hints}"), "c1");
        writer.hints = hints;
        let opening = writer.opening(subject, "one");
        writer.append(subject, vec![opening]).await;
        for turn in 2..6 {
            writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
            writer.append(subject, vec![chunk("a", "x", turn > 2), chunk(&format!("b{turn}"), "y", false)]).await;
            writer
                .append(subject, vec![Event::Checkpoint { value: Json::from_trusted(format!("{{\"at\":{turn}}}")) }])
                .await;
            // A reader in between must not affect later commits, nor be affected by them.
            let before = subject.store().task(&writer.scope, &writer.head.id, u64::MAX).await.expect("answers");
            let seen = before.as_ref().map(|stored| stored.folded.as_ref().clone());
            writer.append(subject, vec![status(subject, TaskState::InputRequired, Some("and then?"))]).await;
            let fence = writer.head.fence + 1;
            let answer = vec![
                Event::MessageAdded { inbound: inbound(turn, "go on") },
                Event::TurnBegan { turn, fence },
                status(subject, TaskState::Submitted, None),
            ];
            writer.append(subject, answer).await;
            assert_eq!(
                before.map(|stored| stored.folded.as_ref().clone()),
                seen,
                "a value that was read does not change later"
            );
            writer.check(subject).await;
        }
        writer.append(subject, vec![Event::CancelRequested { metadata: None, at: now(subject) }]).await;
        writer.append(subject, vec![status(subject, TaskState::Canceled, None)]).await;
        writer.check(subject).await;
    }
}

pub async fn progress_that_leaves_no_trace_is_not_needed_to_read_the_task(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    for step in 0..40 {
        let text = format!("step {step}");
        writer.append(subject, vec![status(subject, TaskState::Working, Some(&text))]).await;
        if step % 10 == 3 {
            writer.append(subject, vec![chunk("a", &text, step > 3)]).await;
        }
    }
    // The last status is one that readers may skip in the fold, and it is still the task's status.
    writer.check(subject).await;
    subject.restart();
    writer.check(subject).await;
}

/// Only the last checkpoint of a turn counts, whatever else is written between them.
pub async fn the_last_checkpoint_is_read_back(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let checkpoint = |n: u32| Event::Checkpoint { value: Json::from_trusted(format!("{{\"page\":{n}}}")) };
    for n in 0..12 {
        writer.append(subject, vec![checkpoint(n)]).await;
        match n % 4 {
            1 => drop(writer.append(subject, vec![chunk("a", "x", n > 1)]).await),
            2 => drop(writer.append(subject, vec![status(subject, TaskState::Working, Some("on it"))]).await),
            3 => drop(writer.append(subject, vec![checkpoint(100 + n), chunk("b", "y", n > 3)]).await),
            _ => drop(writer.append(subject, vec![chunk("c", "z", n > 0), checkpoint(200 + n)]).await),
        }
        writer.check(subject).await;
    }
    // With the checkpoint, the head keeps the length of each artifact.
    let recorded = |id: &str| writer.head.artifact(id).and_then(|artifact| artifact.checkpoint);
    let unchanged = |id| recorded(id).map(|recorded| (recorded.parts, recorded.unchanged));
    assert_eq!((unchanged("a"), unchanged("b"), unchanged("c")), (Some((3, true)), Some((2, false)), Some((3, true))));
    subject.restart();
    writer.check(subject).await;
    let fence = writer.head.fence + 1;
    writer
        .append(subject, vec![Event::MessageAdded { inbound: inbound(2, "x") }, Event::TurnBegan { turn: 2, fence }])
        .await;
    assert_eq!(writer.folded.checkpoint, None);
    for n in [1, 2] {
        writer.append(subject, vec![checkpoint(n)]).await;
    }
    writer.check(subject).await;
    subject.restart();
    writer.check(subject).await;
}

pub async fn a_question_moves_to_history_when_the_task_goes_on(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::AuthRequired, Some("who are you?"))]).await;
    // The run continues, so the message is added without a new status. A status after it must be folded, too.
    writer.append(subject, vec![Event::MessageAdded { inbound: inbound(2, "ann") }]).await;
    writer.check(subject).await;
    for text in ["thank you", "nearly there"] {
        writer.append(subject, vec![status(subject, TaskState::Working, Some(text))]).await;
    }
    assert_eq!(writer.folded.task.history.len(), 3);
    writer.check(subject).await;
    subject.restart();
    writer.check(subject).await;
}

pub async fn a_history_without_room_is_shortened_to_its_newest_messages(subject: &mut dyn Subject) {
    let large = |turn: u32| format!("{turn} {}", "x".repeat(50_000));
    let mut writer = RecordWriter::new(anyone(), "t1", "ctx");
    let opening = writer.opening(subject, &large(1));
    let mut commit = writer.commit(subject, vec![opening, status(subject, TaskState::Working, Some("on it"))]);
    commit.lease = TAKEN;
    writer.write(subject, commit).await;
    for turn in 2..=9 {
        writer.append(subject, vec![Event::MessageAdded { inbound: inbound(turn, &large(turn)) }]).await;
    }
    let noted = Event::Noted { message: message(Role::Agent, "n", "noted") };
    writer.append(subject, vec![noted, status(subject, TaskState::Working, Some("still on it"))]).await;
    for restarted in [false, true] {
        if restarted {
            subject.restart();
        }
        let (store, whole) = (subject.store(), &writer.folded);
        let id = &writer.head.id;
        for bytes_max in [0, 60_000, 120_000, u64::MAX] {
            let read = store.task(&writer.scope, id, bytes_max).await.expect("answers").expect("it is there");
            let (task, all) = (&read.folded.task, &whole.task.history);
            assert!(all.ends_with(&task.history), "the newest messages, whole");
            let shown: usize = task.history.iter().map(|message| message.text().len()).sum();
            assert!(!read.folded.is_shortened || shown as u64 <= bytes_max, "{shown} of {bytes_max} bytes");
            assert_eq!(read.folded.is_shortened, task.history.len() < all.len());
            assert_eq!(task.status, whole.task.status);
            assert_eq!(read.folded.open_turns[0], whole.open_turns[0], "the current turn is whole");
            assert_eq!(read.folded.open_turns.len(), 9);
            let turns = |folded: &Folded| folded.open_turns.iter().map(|open| open.turn).collect::<Vec<_>>();
            assert_eq!(turns(&read.folded), turns(whole));
        }
        for history_max in [0, 1, 3, 100] {
            let read = store.task_view(&writer.scope, id, u64::MAX, history_max).await.expect("answers");
            let task = read.expect("it is there").folded.task.clone();
            assert!(whole.task.history.ends_with(&task.history));
            assert!(task.history.len() >= (history_max as usize).min(whole.task.history.len()));
            assert_eq!(task.status, whole.task.status);
        }
        writer.check(subject).await;
    }
}

pub async fn contents_of_every_kind_and_size_come_back_byte_for_byte(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let sizes = [0, 1, 3, 1000, 32 * 1024, 32 * 1024 + 1, 300_000, 1_100_000];
    for (number, size) in sizes.into_iter().enumerate() {
        let bytes: Vec<u8> = (0..size).map(|at: usize| (at * 31 % 251) as u8).collect();
        let text: String = "aé漢🦀\0\"\\".chars().cycle().take(size / 2).collect();
        let parts = vec![
            Part::raw(Bytes::from(bytes)).with_media_type("application/x"),
            Part::text(text.clone()).with_filename(""),
            Part::url(format!("https://example.com/{text}")),
            Part::json(Json::from_trusted(format!("[\"{}\"]", "d".repeat(size)))),
        ];
        writer.append(subject, vec![write_parts("big", parts.clone(), number > 0)]).await;
        let message = Message::new(Role::Agent, "s", parts);
        let (state, message) = (TaskState::Working, Some(Arc::new(message)));
        let event = Event::StatusChanged { state, message, metadata: None, at: now(subject) };
        writer.append(subject, vec![event]).await;
    }
    writer.check(subject).await;
    let replacing = vec![write_parts("big", vec![Part::raw(vec![7; 70_000])], false), chunk("big", "end", true)];
    writer.append(subject, replacing).await;
    writer.check(subject).await;
    subject.restart();
    writer.check(subject).await;
}

pub async fn odd_texts_and_numbers_come_back_as_they_were(subject: &mut dyn Subject) {
    let odd = ["", "\0", "a\0b", "'\"\\", "🦀 漢字 é", "line\nbreak\r\ttab\u{1}\u{7f}\u{2028}", "null", "{\"a\":1}"];
    for (number, text) in odd.into_iter().enumerate() {
        let json = Json::from_trusted(format!("{{\"k\":[null,{number},-1.5e300,\"\\u0000\"]}}"));
        let mut writer = RecordWriter::new(scope(text, text, text), &format!("t{number}{text}"), &format!("c{text}"));
        let mut message = Message::new(Role::User, text, vec![Part::text(text).with_metadata(json.clone())]);
        message.context_id = Some(text.into());
        message.task_id = Some(text.into());
        message.metadata = Some(json.clone());
        message.extensions = vec![text.to_owned(), String::new()];
        message.reference_task_ids = vec![text.into()];
        message.parts.push(Part::json(Json::from_trusted("null")));
        let inbound = Arc::new(Inbound {
            turn: 1,
            message: Arc::new(message.clone()),
            dialect: Dialect::AgentNative,
            metadata: Some(json.clone()),
            accepted_output_modes: vec![text.to_owned()],
            extensions: vec![text.to_owned()],
            trace: Some(trace()),
        });
        let part = Part::text(text).with_filename(text).with_media_type(text);
        let artifact = Artifact::new(text, vec![part]).with_details(ArtifactDetails {
            name: Some(text.to_owned()),
            description: Some(text.to_owned()),
            metadata: Some(json.clone()),
            extensions: vec![text.to_owned()],
        });
        let (artifact, metadata) = (Arc::new(artifact), Some(json.clone()));
        let context_id = writer.head.context_id.clone();
        let (early, late) = (Timestamp::from_ms(i64::MIN), Timestamp::from_ms(i64::MAX));
        let events = vec![
            Event::Opened { inbound, context_id, at: early },
            Event::ArtifactWritten { artifact, append: false, last_chunk: true, metadata, attempt: u32::MAX },
            Event::StatusChanged {
                state: TaskState::Working,
                message: Some(Arc::new(message)),
                metadata: Some(json.clone()),
                at: late,
            },
            Event::CancelRequested { metadata: Some(json.clone()), at: early },
            Event::Claimed { fence: (1 << 62) + number as u64, attempt: u32::MAX, at: late },
            Event::Checkpoint { value: Json::from_trusted("null") },
        ];
        let mut commit = writer.commit(subject, events);
        Arc::make_mut(&mut commit.head).deadline = Some(late);
        commit.at = early;
        writer.write(subject, commit).await;
        writer.check(subject).await;
        let listed = subject.store().list(&writer.scope, &everything()).await.expect("answers");
        assert_eq!(listed.tasks.iter().map(|task| &*task.folded).collect::<Vec<_>>(), [&writer.folded]);
    }
}

pub async fn everything_is_there_after_a_restart(subject: &mut dyn Subject) {
    let mut writers = Vec::new();
    for number in 0..20 {
        let mut writer = RecordWriter::opened(subject, &format!("t{number}")).await;
        for step in 0..number {
            writer.append(subject, vec![chunk("a", &format!("{step}"), step > 0)]).await;
        }
        if number % 2 == 0 {
            writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
        }
        writers.push(writer);
    }
    subject.restart();
    for writer in &mut writers {
        writer.check(subject).await;
        if !writer.head.is_closed() {
            writer.append(subject, vec![status(subject, TaskState::Failed, Some("enough"))]).await;
            writer.check(subject).await;
        }
    }
    assert_eq!(subject.store().list(&anyone(), &everything()).await.expect("answers").total, 20);
}

pub async fn a_commit_without_events_is_a_step_of_the_version(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::completed(subject, "t1").await;
    writer.append(subject, Vec::new()).await;
    assert_eq!(writer.head.version, 2);
    writer.check(subject).await;
    subject.restart();
    writer.check(subject).await;
}

fn everything() -> ListQuery {
    super::lists::everything(100)
}
