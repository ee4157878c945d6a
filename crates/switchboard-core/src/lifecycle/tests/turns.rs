//! Messages, turns and the inbox.

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{Artifact, Json, Part, Role, TaskState};

use super::super::{ArtifactWrite, Command, Event, Phase, Refusal, RunCommand, WriteMode};
use super::{Record, failed, inbound, is_agent_error, returned, says, status, status_saying};

#[test]
fn accepting_a_message_opens_a_submitted_task() {
    let record = Record::opened();
    assert_eq!((record.head.phase, record.state()), (Phase::Live, TaskState::Submitted));
    assert_eq!((record.head.version, record.head.seq), (1, 1));
    assert_eq!((record.head.turns, record.head.turn, record.head.attempt), (1, 1, 1));
    assert!(record.head.running);
    assert_eq!(record.history(), ["first"]);
    assert_eq!(record.folded.task.metadata, Some(Json::from_trusted(r#"{"from":"first"}"#)));
}

#[test]
fn a_run_that_returns_completes_its_task() {
    let mut record = Record::opened();
    record.runs(status(TaskState::Working));
    record.runs(returned());
    assert_eq!(record.state(), TaskState::Completed);
    assert!(record.head.is_closed() && record.head.is_settled() && !record.head.running);
}

/// An artifact that is meant to complete its task.
fn answer(text: &str) -> RunCommand {
    let artifact = Arc::new(Artifact::new("answer", vec![Part::text(text)]));
    RunCommand::Artifact(ArtifactWrite {
        artifact,
        mode: WriteMode::Replace,
        last_chunk: true,
        metadata: None,
        checkpoint: None,
        completes: true,
    })
}

#[test]
fn an_answer_completes_its_task_exactly_when_returning_would() {
    let last_state = |events: &[Event]| match events.last() {
        Some(Event::StatusChanged { state, .. }) => Some(*state),
        _ => None,
    };
    type Prepare = fn(&mut Record);
    let cases: [(&str, Prepare); 4] = [
        ("plain", |_| {}),
        ("a message waits", |record| drop(record.hears("second"))),
        ("a cancel was asked for", |record| drop(record.does(Command::RequestCancel { metadata: None }))),
        ("paused", |record| drop(record.runs(status(TaskState::AuthRequired)))),
    ];
    for (case, prepare) in cases {
        let mut answers = Record::opened();
        prepare(&mut answers);
        let mut returns = Record::opened();
        prepare(&mut returns);
        let completes = last_state(&returns.runs(returned())) == Some(TaskState::Completed);
        let answered = answers.runs(answer("done"));
        assert_eq!(last_state(&answered) == Some(TaskState::Completed), completes, "{case}");
        assert_eq!(answers.head.artifacts.len(), 1, "{case}");
        answers.runs(returned());
        assert_eq!(answers.state(), returns.state(), "{case}");
    }
}

#[test]
fn a_message_to_a_working_task_waits_for_its_turn() {
    let mut record = Record::opened();
    record.runs(status(TaskState::Working));
    let events = record.hears("second");
    assert_eq!(events, [Event::MessageAdded { inbound: inbound(2, "second") }]);
    assert_eq!((record.head.inbox(), record.head.turn), (1, 1));
    assert_eq!(record.folded.open_turns.len(), 2);
    assert_eq!(record.history(), ["first", "second"]);
}

#[test]
fn completed_is_written_only_with_an_empty_inbox() {
    let mut record = Record::opened();
    record.hears("second");
    record.runs(status_saying(TaskState::Completed, "done with the first"));
    assert_eq!(record.state(), TaskState::Working);
    let events = record.runs(returned());
    assert_eq!(events, [Event::TurnBegan { turn: 2, fence: 2 }]);
    assert_eq!((record.head.inbox(), record.head.turn, record.head.fence), (0, 2, 2));
    assert!(record.head.running && !record.head.is_settled());
    record.runs(status(TaskState::Completed));
    assert_eq!(record.state(), TaskState::Completed);
}

#[test]
fn failing_ends_the_task_whatever_waits() {
    let mut record = Record::opened();
    record.hears("second");
    record.runs(failed());
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(record.folded.task.status.message, Some(says(Role::Agent, "broken")));
}

#[test]
fn a_question_pauses_the_task_and_moves_into_history_when_it_is_answered() {
    let mut record = Record::opened();
    record.runs(status_saying(TaskState::InputRequired, "which city?"));
    assert!(record.head.is_settled() && !record.head.running);
    assert_eq!(record.history(), ["first"]);
    assert_eq!(record.runs(returned()), []);
    let events = record.hears("Oslo");
    assert!(matches!(
        events[..],
        [
            Event::StatusChanged { state: TaskState::Submitted, .. },
            Event::MessageAdded { .. },
            Event::TurnBegan { turn: 2, fence: 2 }
        ]
    ));
    assert_eq!(record.history(), ["first", "which city?", "Oslo"]);
    assert_eq!((record.state(), record.folded.task.status.message.is_none()), (TaskState::Submitted, true));
    assert!(record.head.running && !record.head.is_settled());
}

#[test]
fn a_progress_note_does_not_move_into_history() {
    let mut record = Record::opened();
    record.runs(status_saying(TaskState::Working, "reading"));
    record.hears("second");
    record.runs(status_saying(TaskState::Working, "still reading"));
    assert_eq!(record.history(), ["first", "second"]);
}

#[test]
fn a_task_that_asks_while_a_message_waits_is_not_settled_and_goes_on() {
    let mut record = Record::opened();
    record.hears("second");
    record.runs(status_saying(TaskState::InputRequired, "which city?"));
    assert!(!record.head.is_settled());
    let events = record.runs(returned());
    assert!(matches!(
        events[..],
        [Event::StatusChanged { state: TaskState::Submitted, .. }, Event::TurnBegan { turn: 2, .. }]
    ));
    assert_eq!(record.history(), ["first", "second", "which city?"]);
}

#[test]
fn a_task_that_asks_while_a_message_waits_still_has_work_that_a_dead_run_leaves_behind() {
    let mut record = Record::opened();
    record.hears("second");
    record.runs(status_saying(TaskState::InputRequired, "which city?"));
    assert!(record.head.running, "another worker must take the waiting message up if the run dies here");
    assert!(matches!(record.does(Command::Claim { interrupted: true })[..], [Event::Claimed { attempt: 2, .. }]));
    assert!(matches!(record.hears("third")[..], [Event::MessageAdded { .. }]));
    let open: Vec<_> = record.folded.open_turns.iter().map(|open| open.turn).collect();
    assert_eq!((open, record.head.inbox()), (vec![1, 2, 3], 2));
}

#[test]
fn a_full_inbox_asks_the_client_to_come_back() {
    let mut record = Record::opened();
    for text in ["second", "third", "fourth"] {
        record.hears(text);
    }
    let command = record.message("fifth");
    let refusal = record.is_refused(command);
    assert!(matches!(refusal, Refusal::Protocol(ProtocolError::Unavailable { retry_after_s: 1.., .. })), "{refusal:?}");
}

#[test]
fn a_task_that_waits_for_authorization_keeps_its_run() {
    let mut record = Record::opened();
    record.runs(status_saying(TaskState::AuthRequired, "please approve"));
    assert!(record.head.is_settled() && record.head.running);
    record.runs(status(TaskState::Working));
    assert_eq!(record.history(), ["first", "please approve"]);
    record.runs(returned());
    assert_eq!(record.state(), TaskState::Completed);
}

#[test]
fn a_run_that_returns_while_authorization_is_missing_leaves_the_task_paused() {
    let mut record = Record::opened();
    record.runs(status_saying(TaskState::AuthRequired, "please approve"));
    assert_eq!(record.runs(returned()), [Event::TurnEnded]);
    assert_eq!(record.state(), TaskState::AuthRequired);
    assert!(!record.head.running && record.head.is_settled());
    let late = record.by_run(status(TaskState::Working));
    assert!(is_agent_error(&record.is_refused(late)));
    record.hears("approved");
    assert_eq!((record.state(), record.head.turn), (TaskState::Submitted, 2));
}

#[test]
fn a_run_cannot_write_after_it_asked_nor_set_its_task_back() {
    let mut record = Record::opened();
    let submitted = record.by_run(status(TaskState::Submitted));
    assert!(is_agent_error(&record.is_refused(submitted)));
    record.runs(status(TaskState::InputRequired));
    let working = record.by_run(status(TaskState::Working));
    assert!(is_agent_error(&record.is_refused(working)));
}

#[test]
fn a_direct_reply_closes_a_record_that_never_was_a_task() {
    let mut record = Record::received();
    assert_eq!((record.head.phase, record.head.seq, record.head.version), (Phase::Unborn, 0, 1));
    assert!(record.head.running && !record.head.is_settled());
    let reply = says(Role::Agent, "hello");
    record.runs(RunCommand::Reply { message: reply.clone() });
    assert_eq!((record.head.phase, record.head.seq), (Phase::Replied, 0));
    assert!(record.head.is_closed() && record.head.is_settled());
    assert_eq!(record.folded.reply, Some(reply));
    assert_eq!(record.runs(returned()), []);
}

#[test]
fn what_is_not_a_task_yet_cannot_be_found() {
    let mut record = Record::received();
    for command in [record.message("second"), Command::RequestCancel { metadata: None }] {
        let refusal = record.is_refused(command);
        assert!(matches!(refusal, Refusal::Protocol(ProtocolError::TaskNotFound { .. })), "{refusal:?}");
    }
}

#[test]
fn the_first_write_makes_a_task_of_a_record() {
    for command in [status(TaskState::Working), returned(), failed()] {
        let mut record = Record::received();
        let events = record.runs(command);
        assert!(matches!(events[..], [Event::Opened { .. }, Event::StatusChanged { .. }]), "{events:?}");
        assert_eq!((record.head.phase, record.head.seq, record.head.fence), (Phase::Live, 2, 1));
        assert_eq!(record.history(), ["first"]);
    }
    let mut record = Record::received();
    record.does(Command::Birth { inbound: inbound(1, "first") });
    assert_eq!((record.head.phase, record.head.seq), (Phase::Live, 1));
    assert_eq!(record.does(Command::Birth { inbound: inbound(1, "first") }), []);
}

#[test]
fn a_task_cannot_be_answered_directly() {
    let mut record = Record::opened();
    let reply = record.by_run(RunCommand::Reply { message: says(Role::Agent, "hello") });
    assert!(is_agent_error(&record.is_refused(reply)));
}

#[test]
fn a_checkpoint_lasts_until_the_turn_is_over() {
    let mut record = Record::opened();
    let value = Json::from_trusted("{\"page\":3}");
    record.runs(RunCommand::Checkpoint { value: value.clone() });
    record.does(Command::Claim { interrupted: true });
    assert_eq!(record.folded.checkpoint, Some(value));
    record.hears("second");
    record.runs(returned());
    assert_eq!(record.folded.checkpoint, None);
}
