//! Behaviours of tasks as they were when a message was accepted.

use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Json, Part, Task, TaskState};

use super::Subject;
use super::artifacts::linked;
use super::given::{RecordWriter, chunk, inbound, scope, status, write_parts};
use super::retention::{DAY_MS, prune, retention};
use crate::ports::store::{Accepted, AcceptedTask, StoreError};

/// An accepted message, and the task at that moment.
struct Moment {
    accepted: Accepted,
    then: AcceptedTask,
}

/// A message to a task that is being worked on.
async fn waits(subject: &dyn Subject, writer: &mut RecordWriter, text: &str) -> Moment {
    let turn = writer.head.turns + 1;
    accept(subject, writer, turn, vec![Event::MessageAdded { inbound: inbound(turn, text) }], true).await
}

/// A message to a task that waits for input.
async fn ends_pause(subject: &dyn Subject, writer: &mut RecordWriter, text: &str) -> Moment {
    let turn = writer.head.turns + 1;
    let began = Event::TurnBegan { turn, fence: writer.head.fence + 1 };
    let added = Event::MessageAdded { inbound: inbound(turn, text) };
    let events = vec![status(subject, TaskState::Submitted, None), added, began];
    accept(subject, writer, turn, events, false).await
}

async fn accept(
    subject: &dyn Subject,
    writer: &mut RecordWriter,
    turn: u32,
    events: Vec<Event>,
    waited: bool,
) -> Moment {
    let after_seq = writer.head.seq;
    writer.append(subject, events).await;
    let accepted = Accepted { task_id: writer.head.id.clone(), digest: [0; 32], turn, after_seq };
    let then = AcceptedTask { task: writer.folded.task.clone(), outlined: Vec::new(), seq: writer.head.seq, waited };
    Moment { accepted, then }
}

fn note() -> Event {
    Event::Checkpoint { value: Json::from_trusted("1") }
}

pub async fn a_task_is_shown_as_it_stood_when_a_message_was_accepted(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let mut moments = vec![waits(subject, &mut writer, "at once").await];
    for round in 0..4 {
        writer.append(subject, vec![note()]).await;
        writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
        subject.clock().advance_ms(1);
        moments.push(waits(subject, &mut writer, "while it works").await);
        writer.append(subject, vec![note()]).await;
        moments.push(waits(subject, &mut writer, "behind the other").await);
        writer.append(subject, vec![chunk("a", "x", round % 2 == 1)]).await;
        writer.append(subject, vec![chunk("b", "y", round > 0), status(subject, TaskState::Working, None)]).await;
        writer.append(subject, vec![write_parts("c", vec![Part::raw(vec![round; 50_000])], round > 0)]).await;
        moments.push(waits(subject, &mut writer, "after artifacts").await);
        let turn = writer.head.turns;
        writer.append(subject, vec![Event::TurnBegan { turn, fence: writer.head.fence + 1 }]).await;
        writer.append(subject, vec![status(subject, TaskState::InputRequired, Some("which?"))]).await;
        moments.push(ends_pause(subject, &mut writer, "this one").await);
    }
    moments.push(waits(subject, &mut writer, "the last word").await);
    for (restarted, ended) in [(false, false), (true, false), (true, true)] {
        if restarted {
            subject.restart();
        }
        if ended {
            writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
        }
        for Moment { accepted, then } in &moments {
            let found = subject.store().task_as_accepted(&writer.scope, accepted, u64::MAX).await;
            assert_eq!(found.expect("the log is kept").as_ref(), Some(then), "turn {}", accepted.turn);
        }
    }
    let stranger = scope("", "somebody else", "echo");
    let found = subject.store().task_as_accepted(&stranger, &moments[0].accepted, u64::MAX).await;
    assert_eq!(found.expect("answers"), None);
}

pub async fn what_is_too_large_now_was_outlined_then(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer
        .append(subject, vec![write_parts("file", vec![Part::raw(vec![1; 100])], false), chunk("a", "x", false)])
        .await;
    let early = waits(subject, &mut writer, "early").await;
    writer.append(subject, vec![write_parts("file", vec![Part::raw(vec![2; 200_000])], true)]).await;
    writer.append(subject, vec![chunk("a", "y", true), chunk("b", "z", false)]).await;
    let late = waits(subject, &mut writer, "late").await;
    let link = Part::url("here:file").with_media_type("application/octet-stream");
    for Moment { accepted, then } in [early, late] {
        let found = subject.store().task_as_accepted(&writer.scope, &accepted, 64 << 10).await;
        let found = found.expect("the log is kept").expect("it is there");
        let bare = |mut task: Arc<Task>| {
            Arc::make_mut(&mut Arc::make_mut(&mut task).artifacts[0]).parts.clear();
            task
        };
        assert_eq!(linked(&found.outlined, "file").parts, std::slice::from_ref(&link));
        let outlined = found.outlined.clone();
        assert_eq!(found, AcceptedTask { task: bare(then.task), outlined, ..then });
    }
}

pub async fn a_compacted_task_no_longer_knows_how_it_stood(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    writer.append(subject, vec![status(subject, TaskState::InputRequired, Some("which?"))]).await;
    let moment = ends_pause(subject, &mut writer, "this one").await;
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    subject.clock().advance_ms(7 * DAY_MS);
    assert!(prune(subject, retention(subject)).await > 0);
    let found = subject.store().task_as_accepted(&writer.scope, &moment.accepted, u64::MAX).await;
    assert!(matches!(found, Err(StoreError::Pruned)), "{found:?}");
}
