//! Artifacts: appending, replacing, repeating after a crash, and bounds.

use std::sync::Arc;

use crate::model::{Artifact, Json, Part, Role, TaskState};

use super::super::{Command, Event, RunCommand};
use super::{Record, is_agent_error, returned, says, status, status_saying};

fn write(id: &str, text: &str) -> RunCommand {
    artifact(Artifact::new(id, vec![Part::text(text)]), false)
}

fn append(id: &str, text: &str) -> RunCommand {
    artifact(Artifact::new(id, vec![Part::text(text)]), true)
}

fn artifact(artifact: Artifact, append: bool) -> RunCommand {
    RunCommand::Artifact { artifact: Arc::new(artifact), append, last_chunk: false, metadata: None }
}

fn is_refused_as_agent_error(record: &mut Record, command: RunCommand) -> bool {
    let command = record.by_run(command);
    is_agent_error(&record.is_refused(command))
}

#[test]
fn chunks_extend_and_a_write_replaces() {
    let mut record = Record::opened();
    record.runs(write("a", "one "));
    record.runs(append("a", "two"));
    assert_eq!(record.artifact("a"), "one two");
    record.runs(write("a", "new"));
    record.runs(write("b", "other"));
    assert_eq!((record.artifact("a"), record.artifact("b")), ("new".to_owned(), "other".to_owned()));
    assert_eq!(record.head.seq, 5);
}

#[test]
fn a_chunk_adds_what_it_names() {
    let mut record = Record::opened();
    let mut first = Artifact::new("a", vec![Part::text("x")]);
    first.metadata = Some(Json::from_trusted(r#"{"k":1,"l":1}"#));
    first.name = Some("old".to_owned());
    first.extensions.push("https://e.example/1".to_owned());
    record.runs(artifact(first, false));
    let mut chunk = Artifact::new("a", vec![Part::text("y")]);
    chunk.metadata = Some(Json::from_trusted(r#"{"k":2}"#));
    chunk.description = Some("said later".to_owned());
    chunk.extensions.extend(["https://e.example/1".to_owned(), "https://e.example/2".to_owned()]);
    record.runs(artifact(chunk, true));
    let mut expected = Artifact::new("a", vec![Part::text("x"), Part::text("y")]);
    expected.metadata = Some(Json::from_trusted(r#"{"k":2,"l":1}"#));
    expected.name = Some("old".to_owned());
    expected.description = Some("said later".to_owned());
    expected.extensions = vec!["https://e.example/1".to_owned(), "https://e.example/2".to_owned()];
    assert_eq!(record.folded.task.artifacts, [expected.into()]);
}

#[test]
fn a_chunk_of_nothing_is_the_agents_mistake() {
    let mut record = Record::opened();
    assert!(is_refused_as_agent_error(&mut record, append("a", "two")));
    assert!(is_refused_as_agent_error(&mut record, artifact(Artifact::new("a", Vec::new()), false)));
}

#[test]
fn the_first_write_of_a_later_attempt_replaces() {
    let mut record = Record::opened();
    record.runs(write("a", "half "));
    record.runs(append("a", "of it"));
    record.does(Command::Claim);
    // The new attempt does not know how far the old one came: its first chunk starts afresh, the next ones follow.
    let events = record.runs(append("a", "all "));
    assert!(matches!(events[..], [Event::ArtifactWritten { append: false, attempt: 2, .. }]), "{events:?}");
    record.runs(append("a", "of it"));
    assert_eq!(record.artifact("a"), "all of it");
    // What the dead attempt never began may be begun by a chunk as well.
    record.runs(append("b", "x"));
    assert_eq!(record.artifact("b"), "x");
}

#[test]
fn a_later_turn_appends_to_what_an_earlier_one_wrote() {
    let mut record = Record::opened();
    record.runs(write("a", "one "));
    record.hears("second");
    record.runs(returned());
    record.runs(append("a", "two"));
    assert_eq!(record.artifact("a"), "one two");
}

#[test]
fn an_artifact_makes_a_task_of_a_record() {
    let mut record = Record::received();
    let events = record.runs(write("a", "x"));
    assert!(matches!(events[..], [Event::Opened { .. }, Event::ArtifactWritten { .. }]), "{events:?}");
    assert_eq!(record.artifact("a"), "x");
}

#[test]
fn a_task_holds_a_bounded_number_of_bounded_artifacts() {
    let mut record = Record::opened();
    for id in ["a", "b", "c"] {
        record.runs(write(id, "x"));
    }
    assert!(is_refused_as_agent_error(&mut record, write("d", "x")));
    record.runs(append("a", &"x".repeat(99)));
    assert!(is_refused_as_agent_error(&mut record, append("a", "x")));
    assert!(is_refused_as_agent_error(&mut record, write("b", &"x".repeat(101))));
    record.runs(write("a", &"x".repeat(100)));
}

#[test]
fn an_artifact_comes_before_the_turn_ends() {
    let mut record = Record::opened();
    record.runs(status(TaskState::InputRequired));
    assert!(is_refused_as_agent_error(&mut record, write("a", "x")));
}

#[test]
fn one_write_is_no_larger_than_one_update_may_be() {
    let mut record = Record::opened();
    // Fifteen characters that take six each in JSON, and what stands around them, six times.
    let parts = vec![Part::text("\u{1}".repeat(15)); 6];
    assert!(is_refused_as_agent_error(&mut record, artifact(Artifact::new("a", parts.clone()), false)));
    record.runs(artifact(Artifact::new("a", parts[..5].to_vec()), false));
    assert!(is_refused_as_agent_error(&mut record, status_saying(TaskState::Working, &"x".repeat(1_000))));
    record.runs(status_saying(TaskState::Working, &"x".repeat(900)));

    let mut record = Record::received();
    let reply = |text: String| RunCommand::Reply { message: says(Role::Agent, &text) };
    assert!(is_refused_as_agent_error(&mut record, reply("x".repeat(1_000))));
    record.runs(reply("x".repeat(900)));
}
