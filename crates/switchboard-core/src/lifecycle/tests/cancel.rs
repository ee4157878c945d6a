//! Canceling, as a table: what it does in each state.

use crate::error::ProtocolError;
use crate::model::{Json, TaskState};

use super::super::{Command, Event, Refusal};
use super::{Record, failed, returned, status};

const CANCEL: Command = Command::RequestCancel { metadata: None };

#[test]
fn a_running_task_is_asked_to_stop_and_canceled_when_its_run_comes_back() {
    for state in [None, Some(TaskState::Working), Some(TaskState::AuthRequired)] {
        for end in [returned(), failed()] {
            let mut record = Record::opened();
            if let Some(state) = state {
                record.runs(status(state));
            }
            let metadata = Some(Json::from_trusted(r#"{"why":"late"}"#));
            let events = record.does(Command::RequestCancel { metadata: metadata.clone() });
            assert!(matches!(&events[..], [Event::CancelRequested { metadata: kept, .. }] if *kept == metadata));
            assert!(record.head.cancel_requested && !record.head.is_closed());
            record.runs(end);
            assert_eq!(record.state(), TaskState::Canceled);
        }
    }
}

#[test]
fn a_paused_task_is_canceled_at_once() {
    let mut record = Record::opened();
    record.runs(status(TaskState::InputRequired));
    let events = record.does(CANCEL);
    assert!(matches!(
        events[..],
        [Event::CancelRequested { .. }, Event::StatusChanged { state: TaskState::Canceled, .. }]
    ));
    let mut record = Record::opened();
    record.runs(status(TaskState::AuthRequired));
    record.runs(returned());
    record.does(CANCEL);
    assert_eq!(record.state(), TaskState::Canceled);
}

#[test]
fn asking_again_changes_nothing() {
    let mut record = Record::opened();
    record.does(CANCEL);
    assert_eq!(record.does(CANCEL), []);
    record.runs(returned());
    assert_eq!(record.does(CANCEL), []);
    assert_eq!(record.state(), TaskState::Canceled);
}

#[test]
fn a_task_that_ended_otherwise_cannot_be_canceled() {
    for state in [TaskState::Completed, TaskState::Failed, TaskState::Rejected] {
        let mut record = Record::opened();
        record.runs(status(state));
        let expected = ProtocolError::TaskNotCancelable { id: "t-1".into(), state };
        assert_eq!(record.is_refused(CANCEL), Refusal::Protocol(expected));
    }
}

#[test]
fn a_run_may_still_finish_after_it_was_asked_to_stop() {
    let mut record = Record::opened();
    record.does(CANCEL);
    record.runs(status(TaskState::Completed));
    assert_eq!(record.state(), TaskState::Completed);
    assert_eq!(record.runs(returned()), []);
}

#[test]
fn canceling_weighs_more_than_a_waiting_message() {
    let mut record = Record::opened();
    record.hears("second");
    record.does(CANCEL);
    record.runs(returned());
    assert_eq!(record.state(), TaskState::Canceled);
}

#[test]
fn a_run_that_asks_after_it_was_asked_to_stop_is_canceled_when_it_returns() {
    let mut record = Record::opened();
    record.does(CANCEL);
    record.runs(status(TaskState::InputRequired));
    record.runs(returned());
    assert_eq!(record.state(), TaskState::Canceled);
}
