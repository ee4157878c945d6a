//! What readers see of a commit, how it is numbered, and where their streams end.

use std::sync::Arc;

use crate::model::{Artifact, Json, Part, Role, TaskState, Update};

use super::super::{
    ArtifactWrite, Command, RunCommand, StatusWrite, StreamEnd, StreamKind, WriteMode, after_state, is_needed_to_fold,
    updates,
};
use super::{Record, open, returned, says, status, status_saying};

/// All updates of a record, numbered as they would be on a stream.
fn seen(record: &Record) -> Vec<(u64, Update)> {
    let (task_id, context_id) = (&record.head.id, &record.head.context_id);
    let log = record.log.iter();
    log.flat_map(|(before, events)| updates(task_id, context_id, before.seq + 1, events).collect::<Vec<_>>()).collect()
}

#[test]
fn the_first_update_is_the_task_and_the_others_are_its_steps() {
    let mut record = Record::opened();
    record.does(Command::Claim { interrupted: true });
    let metadata = Some(Json::from_trusted(r#"{"n":1}"#));
    let note = Some(says(Role::Agent, "reading"));
    record.runs(RunCommand::Status(StatusWrite {
        state: TaskState::Working,
        message: note.clone(),
        metadata: metadata.clone(),
        checkpoint: None,
    }));
    record.hears("second");
    let artifact = Arc::new(Artifact::new("a", vec![Part::text("x")]));
    record.runs(RunCommand::Artifact(ArtifactWrite {
        artifact,
        mode: WriteMode::Replace,
        last_chunk: true,
        metadata: metadata.clone(),
        checkpoint: None,
        completes: false,
    }));
    record.does(Command::RequestCancel { metadata: None });
    record.runs(returned());
    let seen = seen(&record);
    assert_eq!(seen.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    match &seen[0].1 {
        Update::Task(view) => {
            assert_eq!(view.task.status.state, TaskState::Submitted);
            assert_eq!(view.history().len(), 1);
        }
        other => panic!("{other:?}"),
    }
    match &seen[1].1 {
        Update::Status(update) => {
            assert_eq!((&update.status.message, &update.metadata), (&note, &metadata));
        }
        other => panic!("{other:?}"),
    }
    match &seen[2].1 {
        Update::Artifact(update) => assert_eq!((update.append, update.last_chunk), (false, true)),
        other => panic!("{other:?}"),
    }
    match &seen[3].1 {
        Update::Status(update) => assert_eq!(update.status.state, TaskState::Canceled),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_direct_reply_shows_no_task() {
    let mut record = Record::unopened();
    record.does(open(false));
    record.runs(RunCommand::Reply { message: says(Role::Agent, "hello") });
    assert_eq!(seen(&record), []);
}

#[test]
fn streams_end_where_nothing_more_can_come() {
    use StreamEnd::{Close, Follow};
    for (state, send, subscribe) in [
        (TaskState::Submitted, Follow, Follow),
        (TaskState::Working, Follow, Follow),
        (TaskState::InputRequired, Close, Follow),
        (TaskState::AuthRequired, Follow, Follow),
        (TaskState::Completed, Close, Close),
        (TaskState::Failed, Close, Close),
        (TaskState::Canceled, Close, Close),
        (TaskState::Rejected, Close, Close),
    ] {
        assert_eq!(after_state(StreamKind::Send, state), send, "{state:?}");
        assert_eq!(after_state(StreamKind::Subscribe, state), subscribe, "{state:?}");
    }
}

#[test]
fn mere_progress_can_be_skipped_and_questions_cannot() {
    let mut record = Record::opened();
    record.runs(status_saying(TaskState::Working, "reading"));
    record.runs(status(TaskState::AuthRequired));
    record.runs(status(TaskState::Working));
    record.runs(status_saying(TaskState::AuthRequired, "approve?"));
    record.runs(status_saying(TaskState::Working, "thanks"));
    record.runs(status_saying(TaskState::Working, "nearly"));
    record.does(Command::Claim { interrupted: true });
    record.does(Command::RequestCancel { metadata: None });
    record.runs(returned());
    let needed: Vec<_> = record.log.iter().map(|(before, events)| is_needed_to_fold(before.state, events)).collect();
    assert_eq!(needed, [true, false, false, true, true, true, false, false, false, false]);
}

#[test]
fn an_answer_of_the_server_stays_in_the_metadata_of_its_task_and_the_first_one_wins() {
    let mut record = Record::opened();
    let says = |value: u32| {
        let metadata = Some(Json::from_trusted(format!(r#"{{"n":{value},"switchboard.dispatch":{value}}}"#)));
        RunCommand::Status(StatusWrite { state: TaskState::Working, message: None, metadata, checkpoint: None })
    };
    record.runs(says(1));
    record.runs(says(2));
    let kept = record.folded.task.metadata.clone().map(|metadata| metadata.as_str().to_owned());
    assert_eq!(kept.as_deref(), Some(r#"{"from":"first","switchboard.dispatch":1}"#));
    let needed: Vec<bool> = record.log.iter().map(|(before, events)| is_needed_to_fold(before.state, events)).collect();
    assert_eq!(needed, [true, true, true], "a store must not skip them");
}
