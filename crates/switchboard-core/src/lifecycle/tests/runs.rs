//! Fences, claims and the end of a task: who may still write.

use std::sync::Arc;

use crate::error::ProtocolError;
use crate::model::{Artifact, Json, Part, Role, TaskState};

use super::super::{ArtifactWrite, Command, Event, Phase, Refusal, RunCommand, StatusWrite, WriteMode};
use super::{Record, failed, inbound, returned, run_under, says, status};

fn ended(state: TaskState) -> Record {
    let mut record = Record::opened();
    match state {
        TaskState::Canceled => {
            record.does(Command::RequestCancel { metadata: None });
            record.runs(returned());
        }
        _ => {
            record.runs(status(state));
        }
    }
    assert_eq!(record.state(), state);
    record
}

#[test]
fn a_terminal_state_is_final() {
    for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
        let mut record = ended(state);
        let before = record.head.clone();
        let closed = Refusal::Closed { state };
        for command in [
            status(TaskState::Working),
            RunCommand::Checkpoint { value: Json::from_trusted("1") },
            RunCommand::Reply { message: says(Role::Agent, "late") },
        ] {
            let command = record.by_run(command);
            assert_eq!(record.is_refused(command), closed);
        }
        assert_eq!(record.is_refused(Command::Claim { interrupted: true }), closed);
        assert_eq!(
            record.is_refused(Command::Revoke {
                inbound: inbound(1, "first"),
                state: TaskState::Failed,
                message: None
            }),
            closed
        );
        let message = record.message("more");
        let refusal = record.is_refused(message);
        assert!(matches!(refusal, Refusal::Protocol(ProtocolError::UnsupportedOperation { .. })), "{refusal:?}");
        // The run that ended the task comes back in its own time; that is no error.
        assert_eq!(record.runs(returned()), []);
        assert_eq!(record.runs(failed()), []);
        assert_eq!(record.head, before);
    }
}

#[test]
fn only_the_newest_fence_may_write() {
    let mut record = Record::opened();
    assert_eq!(record.is_refused(run_under(2, status(TaskState::Working))), Refusal::Fenced);
    assert_eq!(record.is_refused(run_under(0, returned())), Refusal::Fenced);
    assert!(matches!(
        record.does(Command::Claim { interrupted: true })[..],
        [Event::Claimed { fence: 2, attempt: 2, .. }]
    ));
    assert_eq!(record.is_refused(run_under(1, status(TaskState::Completed))), Refusal::Fenced);
    assert_eq!(record.is_refused(run_under(1, returned())), Refusal::Fenced);
    record.does(run_under(2, status(TaskState::Completed)));
    // Being replaced weighs more than being late.
    assert_eq!(record.is_refused(run_under(1, returned())), Refusal::Fenced);
}

#[test]
fn a_turn_that_was_given_back_is_claimed_without_another_attempt() {
    let mut record = Record::opened();
    for (interrupted, fence, attempt) in [(false, 2, 1), (true, 3, 2), (false, 4, 2)] {
        record.does(Command::Claim { interrupted });
        assert_eq!((record.head.fence, record.head.attempt), (fence, attempt));
        assert_eq!(record.is_refused(run_under(fence - 1, returned())), Refusal::Fenced);
    }
}

#[test]
fn a_new_turn_has_a_new_fence_and_starts_counting_attempts_again() {
    let mut record = Record::opened();
    record.does(Command::Claim { interrupted: true });
    record.hears("second");
    record.runs(returned());
    assert_eq!((record.head.turn, record.head.fence, record.head.attempt), (2, 3, 1));
    assert_eq!(record.is_refused(run_under(2, status(TaskState::Working))), Refusal::Fenced);
}

#[test]
fn a_revoked_run_is_fenced_off_and_its_task_ends() {
    let mut record = Record::opened();
    let fence = record.head.fence;
    record.does(Command::Revoke {
        inbound: inbound(1, "first"),
        state: TaskState::Failed,
        message: Some(says(Role::Agent, "too slow")),
    });
    assert_eq!(record.state(), TaskState::Failed);
    assert_eq!(record.folded.task.status.message, Some(says(Role::Agent, "too slow")));
    assert_eq!(record.is_refused(run_under(fence, status(TaskState::Completed))), Refusal::Fenced);
}

#[test]
fn a_paused_task_is_not_claimed() {
    let mut record = Record::opened();
    record.runs(status(TaskState::InputRequired));
    assert_eq!(
        record.is_refused(Command::Claim { interrupted: true }),
        Refusal::Closed { state: TaskState::InputRequired }
    );
    record.hears("answer");
    assert!(record.tries(Command::Claim { interrupted: true }).is_ok());
}

#[test]
fn a_claim_is_not_visible_outside() {
    let mut record = Record::opened();
    let seq = record.head.seq;
    record.does(Command::Claim { interrupted: true });
    record.runs(RunCommand::Checkpoint { value: Json::from_trusted("1") });
    record.does(Command::RequestCancel { metadata: None });
    assert_eq!((record.head.seq, record.head.version), (seq, 4));
}

/// A status and a checkpoint in one commit, also if the status ends the turn; a later turn finds the checkpoint of the one before.
#[test]
fn a_checkpoint_that_comes_with_a_status_outlives_the_turn_that_the_status_ends() {
    let mut record = Record::opened();
    let value = |text: &str| Some(Json::from_trusted(text.to_owned()));
    let asks = |checkpoint: &str| {
        let (state, checkpoint) = (TaskState::InputRequired, value(checkpoint));
        RunCommand::Status(StatusWrite { state, message: None, metadata: None, checkpoint })
    };
    let events = record.runs(asks("1"));
    assert!(matches!(events[..], [Event::Checkpoint { .. }, Event::StatusChanged { .. }]), "{events:?}");
    assert_eq!((record.folded.checkpoint.clone(), record.folded.earlier_checkpoint.clone()), (value("1"), None));
    record.hears("second");
    assert_eq!((record.folded.checkpoint.clone(), record.folded.earlier_checkpoint.clone()), (None, value("1")));
    // A turn that leaves none keeps that of the turn before it.
    record.runs(status(TaskState::InputRequired));
    record.hears("third");
    assert_eq!((record.folded.checkpoint.clone(), record.folded.earlier_checkpoint.clone()), (None, value("1")));
    record.runs(asks("3"));
    record.hears("fourth");
    assert_eq!(record.folded.earlier_checkpoint, value("3"));
}

/// What arrives together from another agent is one commit, and each write is decided on what those before it leave.
#[test]
fn several_writes_of_a_run_are_one_commit() {
    let write = |text: &str, mode, checkpoint: Option<Json>| {
        let artifact = Arc::new(Artifact::new("a", vec![Part::text(text)]));
        let (last_chunk, metadata, completes) = (false, None, false);
        RunCommand::Artifact(ArtifactWrite { artifact, mode, last_chunk, metadata, checkpoint, completes })
    };
    let mut record = Record::opened();
    let version = record.head.version;
    let (state, checkpoint) = (TaskState::Completed, Some(Json::from_trusted("7")));
    let events = record.runs(RunCommand::Several(vec![
        status(TaskState::Working),
        write("one ", WriteMode::Replace, None),
        write("two", WriteMode::Append, None),
        RunCommand::Status(StatusWrite { state, message: None, metadata: None, checkpoint }),
    ]));
    assert_eq!(events.iter().filter(|event| event.is_visible()).count(), 4);
    assert_eq!((record.head.version, record.state()), (version + 1, TaskState::Completed));
    assert_eq!(record.artifact("a"), "one two");
}

#[test]
fn several_writes_are_refused_together() {
    let mut record = Record::opened();
    let version = record.head.version;
    let states = [TaskState::Working, TaskState::Submitted, TaskState::Completed];
    let refused = record.is_refused(record.by_run(RunCommand::Several(states.map(status).to_vec())));
    assert!(matches!(refused, Refusal::Protocol(_)), "{refused:?}");
    let after_the_end = [TaskState::Failed, TaskState::Working].map(status).to_vec();
    let refused = record.is_refused(record.by_run(RunCommand::Several(after_the_end)));
    assert_eq!(refused, Refusal::Closed { state: TaskState::Failed });
    assert_eq!((record.head.version, record.state()), (version, TaskState::Submitted));
}

#[test]
fn a_record_becomes_a_task_when_its_run_says_so() {
    let mut record = Record::received();
    let value = Json::from_trusted("1");
    record.runs(RunCommand::Several(vec![RunCommand::BecomeTask, RunCommand::Checkpoint { value }]));
    assert_eq!((record.head.phase, record.head.seq, record.state()), (Phase::Live, 1, TaskState::Submitted));
    assert!(record.does(record.by_run(RunCommand::BecomeTask)).is_empty());
}
