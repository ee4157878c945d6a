//! Artifacts: appending, replacing, repeating after a crash, and bounds.

use crate::model::{Artifact, ArtifactDetails, Json, Part, Role, TaskState};

use super::super::{ArtifactWrite, AtCheckpoint, Command, Event, Restoration, RunCommand, WriteMode};
use super::{Record, is_agent_error, returned, says, status, status_saying};

fn write(id: &str, text: &str) -> RunCommand {
    artifact(Artifact::new(id, vec![Part::text(text)]), false)
}

fn append(id: &str, text: &str) -> RunCommand {
    artifact(Artifact::new(id, vec![Part::text(text)]), true)
}

fn resume(id: &str, text: &str) -> RunCommand {
    in_mode(Artifact::new(id, vec![Part::text(text)]), WriteMode::Resume, None)
}

fn artifact(artifact: Artifact, append: bool) -> RunCommand {
    in_mode(artifact, if append { WriteMode::Append } else { WriteMode::Replace }, None)
}

fn in_mode(artifact: Artifact, mode: WriteMode, checkpoint: Option<&str>) -> RunCommand {
    let checkpoint = checkpoint.map(Json::from_trusted);
    RunCommand::Artifact(ArtifactWrite {
        artifact: artifact.into(),
        mode,
        last_chunk: false,
        metadata: None,
        checkpoint,
        completes: false,
    })
}

fn checkpoint(value: u32) -> RunCommand {
    RunCommand::Checkpoint { value: Json::from_trusted(value.to_string()) }
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
    let [one, two] = ["https://e.example/1", "https://e.example/2"].map(str::to_owned);
    let first = Artifact::new("a", vec![Part::text("x")]).with_details(ArtifactDetails {
        name: Some("old".to_owned()),
        metadata: Some(Json::from_trusted(r#"{"k":1,"l":1}"#)),
        extensions: vec![one.clone()],
        ..ArtifactDetails::default()
    });
    record.runs(artifact(first, false));
    let chunk = Artifact::new("a", vec![Part::text("y")]).with_details(ArtifactDetails {
        name: None,
        description: Some("said later".to_owned()),
        metadata: Some(Json::from_trusted(r#"{"k":2}"#)),
        extensions: vec![one.clone(), two.clone()],
    });
    record.runs(artifact(chunk, true));
    let expected = Artifact::new("a", vec![Part::text("x"), Part::text("y")]).with_details(ArtifactDetails {
        name: Some("old".to_owned()),
        description: Some("said later".to_owned()),
        metadata: Some(Json::from_trusted(r#"{"k":2,"l":1}"#)),
        extensions: vec![one, two],
    });
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
    record.does(Command::Claim { interrupted: true });
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
fn a_later_attempt_goes_on_from_the_checkpoint() {
    let mut record = Record::opened();
    record.runs(write("a", "one "));
    let two = Artifact::new("a", vec![Part::text("two ")]);
    let events = record.runs(in_mode(two, WriteMode::Append, Some("2")));
    assert!(
        matches!(events[..], [Event::ArtifactWritten { append: true, .. }, Event::Checkpoint { .. }]),
        "{events:?}"
    );
    record.does(Command::Claim { interrupted: true });
    let events = record.runs(resume("a", "three "));
    assert!(matches!(events[..], [Event::ArtifactWritten { append: true, attempt: 2, .. }]), "{events:?}");
    record.runs(append("a", "four"));
    assert_eq!(record.artifact("a"), "one two three four");
}

#[test]
fn without_a_checkpoint_of_the_artifact_going_on_begins_anew() {
    let mut record = Record::opened();
    record.runs(checkpoint(0));
    record.runs(write("a", "half "));
    record.does(Command::Claim { interrupted: true });
    let events = record.runs(resume("a", "all"));
    assert!(matches!(events[..], [Event::ArtifactWritten { append: false, .. }]), "{events:?}");
    assert_eq!(record.artifact("a"), "all");
}

#[test]
fn what_was_written_after_the_checkpoint_must_be_taken_back_first() {
    let at_checkpoint = |record: &Record| record.head.artifact("a").unwrap().checkpoint;
    for excess in [append("a", "excess"), write("a", "one ")] {
        let mut record = Record::opened();
        record.runs(write("a", "one "));
        record.runs(checkpoint(1));
        record.runs(excess);
        record.does(Command::Claim { interrupted: true });
        assert!(is_refused_as_agent_error(&mut record, resume("a", "two")));
        // The new run may note something of its own first. What the dead run wrote does not become part of that.
        record.runs(checkpoint(11));
        assert_eq!(at_checkpoint(&record), Some(AtCheckpoint { parts: 1, bytes: 4, seq: 2, unchanged: false }));
        record.restores("a");
        record.runs(append("a", "two"));
        assert_eq!(record.artifact("a"), "one two");
        record.runs(checkpoint(2));
        assert_eq!(at_checkpoint(&record), Some(AtCheckpoint { parts: 2, bytes: 7, seq: 5, unchanged: true }));
    }
}

#[test]
fn a_checkpoint_is_forgotten_with_its_turn() {
    let mut record = Record::opened();
    record.runs(write("a", "one "));
    record.runs(checkpoint(1));
    record.hears("second");
    record.runs(returned());
    assert_eq!(record.head.artifact("a").unwrap().checkpoint, None);
    // What an earlier turn wrote is there when this one begins, so a checkpoint of this one records it.
    record.runs(checkpoint(2));
    record.runs(append("a", "lost"));
    record.does(Command::Claim { interrupted: true });
    record.restores("a");
    record.runs(append("a", "two"));
    assert_eq!(record.artifact("a"), "one two");
}

#[test]
fn a_run_that_was_given_back_is_followed_by_another_as_if_it_had_died() {
    let mut record = Record::opened();
    record.runs(write("a", "one "));
    record.runs(checkpoint(1));
    record.runs(append("a", "excess"));
    record.does(Command::Claim { interrupted: false });
    assert!(is_refused_as_agent_error(&mut record, resume("a", "two")));
    let events = record.runs(append("a", "anew"));
    assert!(matches!(events[..], [Event::ArtifactWritten { append: false, attempt: 1, .. }]), "{events:?}");
}

#[test]
fn pieces_of_a_restoration_fold_to_what_was_written() {
    let metadata = Json::from_trusted(r#"{"k":1,"l":1}"#);
    let first = Artifact::new("a", vec![Part::text("one ")]).with_name("first").with_metadata(metadata);
    let second = Artifact::new("a", vec![Part::text("two "), Part::text("three ")]).with_details(ArtifactDetails {
        metadata: Some(Json::from_trusted(r#"{"k":2}"#)),
        extensions: vec!["https://e.example/1".to_owned()],
        ..ArtifactDetails::default()
    });
    let third = Artifact::new("a", vec![Part::text("four")]);
    let other = Artifact::new("b", vec![Part::text("other")]);
    let mut whole = first.clone();
    whole.append(&second);
    whole.append(&third);
    for (piece_bytes_max, pieces) in [(u64::MAX, 1), (0, 3)] {
        let mut restoration = Restoration::new("a".into(), piece_bytes_max);
        let writes = [(&other, false), (&third, false), (&first, false), (&second, true), (&third, true)];
        let full: Vec<_> = writes.into_iter().filter_map(|(write, append)| restoration.take(write, append)).collect();
        let all: Vec<_> = full.into_iter().chain(restoration.finish()).collect();
        let mut record = Record::opened();
        assert_eq!(all.len(), pieces);
        for piece in all {
            record.runs(in_mode(piece.artifact, piece.mode, None));
        }
        assert_eq!(record.folded.task.artifacts, [whole.clone().into()]);
    }
    assert!(Restoration::new("a".into(), 0).finish().is_none());
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
