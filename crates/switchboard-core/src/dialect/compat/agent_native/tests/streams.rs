//! A stream is told in whole tasks, and no event is without a status.

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{
    Artifact, ArtifactUpdate, Part, Role, StatusUpdate, TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::super::{WholeTaskStream, ends_stream, with_answer_in_status};
use super::{says, task, written};
use crate::dialect::compat::StreamEvent;

fn opened() -> Update {
    Update::Task(TaskView::whole(Arc::new(task(TaskState::Submitted))))
}

fn status(state: TaskState, text: Option<&str>) -> Update {
    Update::Status(StatusUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus {
            state,
            message: text.map(|text| says(Role::Agent, text)),
            timestamp: Timestamp::from_ms(2),
        },
        metadata: None,
    })
}

fn chunk(text: &str, append: bool) -> Update {
    piece(text, append, false)
}

fn piece(text: &str, append: bool, last_chunk: bool) -> Update {
    Update::Artifact(ArtifactUpdate {
        task_id: "t".into(),
        context_id: "c".into(),
        artifact: Arc::new(Artifact::new("a", vec![Part::text(text)])),
        append,
        last_chunk,
        metadata: None,
    })
}

/// What is told of some updates, one after the other: state and text of the status.
fn told(updates: &[Update]) -> Vec<String> {
    let mut whole_task_stream = WholeTaskStream::default();
    let tell = |whole_task_stream: &WholeTaskStream, mark: &str| {
        let task = written(&whole_task_stream.view().unwrap().task);
        let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap_or("-").to_owned();
        format!("{}{mark} {text}", task["status"]["state"].as_str().unwrap())
    };
    updates
        .iter()
        .map(|update| match whole_task_stream.take(update) {
            StreamEvent::Nothing => "nothing".to_owned(),
            StreamEvent::Task => tell(&whole_task_stream, ""),
            StreamEvent::TaskIfNothingFollows => tell(&whole_task_stream, "?"),
            StreamEvent::Failed(error) => format!("error {error}"),
        })
        .collect()
}

#[test]
fn nothing_is_told_before_the_agent_speaks_and_the_answer_grows() {
    let updates = [
        opened(),
        status(TaskState::Working, Some("looking")),
        status(TaskState::Working, None),
        chunk("There ", false),
        chunk("were 3", true),
        status(TaskState::Completed, None),
    ];
    let expected = [
        "nothing",
        "working looking",
        "working -",
        "working? There ",
        "working? There were 3",
        "completed There were 3",
    ];
    assert_eq!(told(&updates), expected);
    let ends: Vec<bool> = updates.iter().map(ends_stream).collect();
    assert_eq!(ends, [false, false, false, false, false, true]);
}

#[test]
fn a_note_is_told_once_and_so_is_an_answer_in_one_piece() {
    let updates = [
        opened(),
        status(TaskState::Working, Some("looking")),
        piece("There were 3", false, true),
        status(TaskState::Completed, None),
    ];
    assert_eq!(told(&updates), ["nothing", "working looking", "nothing", "completed There were 3"]);
    // A note in the status is replaced when the answer begins to grow.
    let updates = [opened(), status(TaskState::Working, Some("looking")), chunk("There ", false), chunk("were", true)];
    assert_eq!(told(&updates), ["nothing", "working looking", "working? There ", "working? There were"]);
}

#[test]
fn an_artifact_alone_makes_a_task_working() {
    assert_eq!(told(&[opened(), chunk("x", false)]), ["nothing", "working? x"]);
}

#[test]
fn a_failure_is_an_error_and_a_question_is_a_task() {
    assert_eq!(told(&[opened(), status(TaskState::Failed, Some("no disk"))]), ["nothing", "error no disk"]);
    assert_eq!(told(&[opened(), status(TaskState::Rejected, None)]), ["nothing", "error The agent failed"]);
    assert_eq!(
        told(&[opened(), status(TaskState::InputRequired, Some("which?"))]),
        ["nothing", "input-required which?"]
    );
    assert!(ends_stream(&status(TaskState::InputRequired, None)));
}

#[test]
fn a_large_artifact_is_told_once_at_its_end() {
    let large = "x".repeat(300 << 10);
    let mut whole_task_stream = WholeTaskStream::default();
    whole_task_stream.take(&opened());
    assert_eq!(whole_task_stream.take(&chunk(&large, false)), StreamEvent::Nothing);
    assert_eq!(whole_task_stream.take(&chunk("y", true)), StreamEvent::Nothing);
    assert_eq!(whole_task_stream.take(&status(TaskState::Completed, None)), StreamEvent::Task);
    let task = written(&whole_task_stream.view().unwrap().task);
    assert_eq!(task["status"]["message"]["parts"][0]["text"].as_str().unwrap().len(), large.len() + 1);
}

#[test]
fn what_comes_without_a_task_is_not_told() {
    assert_eq!(told(&[]), Vec::<String>::new());
    let mut whole_task_stream = WholeTaskStream::default();
    assert_eq!(whole_task_stream.take(&status(TaskState::Completed, None)), StreamEvent::Nothing);
    assert_eq!(whole_task_stream.view(), None);
}

#[test]
fn a_reader_who_could_be_anybody_finds_the_answer_in_both_places() {
    let mut done = task(TaskState::Completed);
    done.artifacts = vec![Artifact::new("a", vec![Part::text("3")]).into()];
    let shown = with_answer_in_status(TaskView::whole(Arc::new(done))).task;
    assert_eq!(shown.status.message.as_ref().unwrap().text(), "3");
    assert_eq!(shown.artifacts.len(), 1);
    // What has no answer yet, or says something already, is shown as it is.
    for other in [task(TaskState::Working), task(TaskState::Completed)] {
        let other = Arc::new(other);
        assert_eq!(with_answer_in_status(TaskView::whole(other.clone())).task, other);
    }
    let failed = super::super::failed(&task(TaskState::Failed));
    assert_eq!(failed, ProtocolError::AgentFailed { reason: "The agent failed".to_owned() });
}
