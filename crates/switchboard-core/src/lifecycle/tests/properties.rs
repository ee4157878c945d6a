//! What holds after any sequence of commands. A sequence is a list of small choices that are read against the record as
//! it stands, so that most of them are legal and every kind of refusal is met too.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::Index;

use crate::model::{Artifact, ArtifactId, Json, Part, Role, TaskState, TaskStatus, Timestamp};

use super::super::{
    ArtifactWrite, Command, Event, Folded, Head, Phase, Refusal, RunCommand, StatusWrite, WriteMode, decide,
    is_needed_to_fold, updates,
};
use super::{BOUNDS, Record, failed, inbound, open, returned, run_under, says};

/// One choice: what to do, a detail of it, and whether a run writes under the newest fence or an old one.
type Choice = (u8, u8, u8);

fn choices() -> impl Strategy<Value = (bool, Vec<Choice>)> {
    (any::<bool>(), vec((0u8..24, any::<u8>(), 0u8..10), 0..40))
}

fn command(record: &Record, (what, detail, age): Choice) -> Command {
    let fence = if age == 0 { record.head.fence.saturating_sub(1) } else { record.head.fence };
    let text = format!("{what}-{detail}");
    let message = (detail % 3 == 0).then(|| says(Role::Agent, &text));
    let run = |command| run_under(fence, command);
    match what {
        0..=3 => record.message(&text),
        4 => Command::RequestCancel { metadata: None },
        5..=6 => Command::Claim { interrupted: detail % 2 == 0 },
        7 if detail % 2 == 0 => Command::Revoke { inbound: inbound(1, "first"), state: TaskState::Failed, message },
        7 => Command::Birth { inbound: inbound(1, "first") },
        8..=14 => {
            let state = TaskState::ALL[usize::from(detail) % 8];
            // Ends are rarer than steps, or every history would be short.
            let state = if state.is_terminal() && what > 9 { TaskState::Working } else { state };
            run(RunCommand::Status(StatusWrite { state, message, metadata: None, checkpoint: None }))
        }
        15..=19 => {
            let parts = vec![Part::text("x".repeat(usize::from(detail % 40))); usize::from(detail % 3)];
            let artifact = Arc::new(Artifact::new(format!("a-{}", detail % 5), parts));
            let mode = match what {
                15..=16 => WriteMode::Replace,
                17..=18 => WriteMode::Append,
                _ => WriteMode::Resume,
            };
            let checkpoint = (detail % 7 == 0).then(|| Json::from_trusted(detail.to_string()));
            run(RunCommand::Artifact(ArtifactWrite {
                artifact,
                mode,
                last_chunk: detail % 2 == 0,
                metadata: None,
                checkpoint,
                completes: detail % 11 == 0,
            }))
        }
        20 => run(RunCommand::Reply { message: says(Role::Agent, &text) }),
        21 => run(RunCommand::Checkpoint { value: Json::from_trusted(detail.to_string()) }),
        22 if detail % 2 == 0 => {
            let Command::Run { command: first, .. } = command(record, (15 + detail % 5, detail, 1)) else {
                unreachable!()
            };
            let Command::Run { command: second, .. } = command(record, (8 + detail % 12, detail / 2, 1)) else {
                unreachable!()
            };
            run(RunCommand::Several(vec![first, second]))
        }
        22 => run(returned()),
        _ if detail % 4 == 0 => run(failed()),
        _ => run(returned()),
    }
}

/// Plays the choices and checks every step.
fn play(born: bool, choices: &[Choice]) -> Record {
    let mut record = Record::unopened();
    record.does(open(born));
    for choice in choices {
        let command = command(&record, *choice);
        let before = record.head.clone();
        let history = record.folded.task.history.len();
        let outcome = record.tries(command.clone());
        let again = decide(&before, command, &BOUNDS, Timestamp::from_ms(record.now_ms));
        assert_eq!(again, outcome, "same head, command and time, same events");
        if before.is_closed() {
            assert!(outcome.is_err() || outcome == Ok(Vec::new()), "{outcome:?}");
        }
        match outcome {
            Ok(events) if !events.is_empty() => check_step(&record, &before, history, &events),
            Ok(_) | Err(_) => assert_eq!(record.head, before, "what is refused changes nothing"),
        }
        check_bounds(&record);
    }
    record
}

fn check_step(record: &Record, before: &Head, history: usize, events: &[Event]) {
    let head = &record.head;
    assert_eq!(head.version, before.version + 1);
    assert_eq!(head.seq, before.seq + events.iter().filter(|event| event.is_visible()).count() as u64);
    assert!(head.fence >= before.fence && head.turns >= before.turns && head.turn >= before.turn);
    assert!(head.turn <= before.turn + 1, "no turn is left out");
    assert!(record.folded.task.history.len() >= history, "nothing said is forgotten");
    let numbers: Vec<_> = updates(&head.id, &head.context_id, before.seq + 1, events).map(|(seq, _)| seq).collect();
    assert_eq!(numbers, (before.seq + 1..=head.seq).collect::<Vec<_>>());
    if before.seq == 0 && head.seq > 0 {
        assert!(matches!(events[0], Event::Opened { .. }), "the first thing seen is the task");
    }
}

/// What the head says of the task is what the task is, and neither is larger than allowed.
fn check_bounds(record: &Record) {
    let (head, folded) = (&record.head, &record.folded);
    assert_eq!((head.state, head.phase == Phase::Replied), (folded.task.status.state, folded.reply.is_some()));
    if head.phase == Phase::Live {
        assert_eq!(head.status_at, folded.task.status.timestamp);
    }
    assert!(!(head.running && head.is_closed()));
    assert!(head.inbox() <= BOUNDS.inbox_messages_max);
    let open: Vec<_> = folded.open_turns.iter().map(|open| open.turn).collect();
    assert_eq!(open, (head.turn..=head.turns).collect::<Vec<_>>());
    let users = folded.task.history.iter().filter(|message| message.role == Role::User).count();
    assert_eq!(users, head.turns as usize, "every message that came in is in history once");
    assert!(head.artifacts.len() <= BOUNDS.artifacts_max);
    for artifact in &*head.artifacts {
        let Some(recorded) = artifact.checkpoint else { continue };
        assert!(folded.checkpoint.is_some(), "what a checkpoint recorded is there for as long as the checkpoint");
        assert!(recorded.seq <= head.seq);
        if recorded.unchanged {
            assert_eq!((recorded.parts, recorded.bytes), (artifact.parts, artifact.bytes));
        }
    }
    let summary: Vec<_> = head.artifacts.iter().map(|a| (a.id.clone(), a.parts, a.bytes)).collect();
    let truth: Vec<_> = folded.task.artifacts.iter().map(|made| measure(made)).collect();
    assert_eq!(summary, truth);
    assert!(summary.iter().all(|(_, _, bytes)| *bytes <= BOUNDS.artifact_bytes_max));
}

fn measure(artifact: &Artifact) -> (ArtifactId, u64, u64) {
    let bytes: usize = artifact.parts.iter().map(Part::content_bytes).sum();
    (artifact.artifact_id.clone(), artifact.parts.len() as u64, bytes as u64)
}

/// What happens to an agent that writes the numbers from 1 on, each as a chunk of one artifact, and remembers in its
/// checkpoints how far it has come.
#[derive(Clone, Copy, Debug)]
enum Stroke {
    Chunk,
    ChunkWithCheckpoint,
    /// A checkpoint apart from any chunk.
    Checkpoint,
    /// A chunk of another artifact, which is not gone on with.
    Other,
    /// The run dies, or is given back by an orderly stop, and another begins.
    Dies {
        counts: bool,
    },
    /// The run dies in the middle of taking back what the run before it wrote too much.
    DiesRestoring,
}

fn strokes() -> impl Strategy<Value = Vec<Stroke>> {
    let stroke = prop_oneof![
        5 => Just(Stroke::Chunk),
        3 => Just(Stroke::ChunkWithCheckpoint),
        2 => Just(Stroke::Checkpoint),
        1 => Just(Stroke::Other),
        2 => any::<bool>().prop_map(|counts| Stroke::Dies { counts }),
        1 => Just(Stroke::DiesRestoring),
    ];
    vec(stroke, 0..40)
}

fn write_with_interruptions(strokes: &[Stroke]) {
    const ID: &str = "numbers";
    let text = |numbers: u32| (1..=numbers).map(|n| format!("{n},")).collect::<String>();
    let mut record = Record::opened();
    // How many numbers the agent has written, as it knows itself; whether this run has written yet.
    let (mut written, mut begun) = (0u32, false);
    for stroke in strokes {
        match *stroke {
            Stroke::Chunk | Stroke::ChunkWithCheckpoint => {
                let known = record.head.artifact(ID).and_then(|artifact| artifact.checkpoint);
                let mode = match known {
                    _ if begun => WriteMode::Append,
                    Some(recorded) if !recorded.unchanged => {
                        record.restores(ID);
                        WriteMode::Append
                    }
                    Some(_) | None => WriteMode::Resume,
                };
                written += 1;
                let with_checkpoint = matches!(stroke, Stroke::ChunkWithCheckpoint);
                let write = ArtifactWrite {
                    artifact: Artifact::new(ID, vec![Part::text(format!("{written},"))]).into(),
                    mode,
                    last_chunk: false,
                    metadata: None,
                    checkpoint: with_checkpoint.then(|| Json::from_trusted(written.to_string())),
                    completes: false,
                };
                if (text(written).len() as u64) > BOUNDS.artifact_bytes_max {
                    return;
                }
                record.runs(RunCommand::Artifact(write));
                begun = true;
                assert_eq!(record.artifact(ID), text(written), "after {strokes:?}");
            }
            Stroke::Checkpoint => {
                record.runs(RunCommand::Checkpoint { value: Json::from_trusted(written.to_string()) });
            }
            Stroke::Other => {
                let artifact = Artifact::new("other", vec![Part::text("x")]).into();
                let mode = WriteMode::Replace;
                let write = ArtifactWrite {
                    artifact,
                    mode,
                    last_chunk: true,
                    metadata: None,
                    checkpoint: None,
                    completes: false,
                };
                record.runs(RunCommand::Artifact(write));
            }
            Stroke::Dies { .. } | Stroke::DiesRestoring => {
                let counts = !matches!(stroke, Stroke::Dies { counts: false });
                record.does(Command::Claim { interrupted: counts });
                let checkpoint = record.folded.checkpoint.as_ref();
                written = checkpoint.map_or(0, |value| value.as_str().parse().expect("a number"));
                begun = false;
                if matches!(stroke, Stroke::DiesRestoring) && record.head.artifact(ID).is_some() {
                    let artifact = Artifact::new(ID, vec![Part::text("1,")]).into();
                    let mode = WriteMode::Replace;
                    let write = ArtifactWrite {
                        artifact,
                        mode,
                        last_chunk: false,
                        metadata: None,
                        checkpoint: None,
                        completes: false,
                    };
                    record.runs(RunCommand::Artifact(write));
                    record.does(Command::Claim { interrupted: true });
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_history_keeps_the_rules((born, choices) in choices()) {
        play(born, &choices);
    }

    #[test]
    fn an_agent_that_goes_on_from_its_checkpoints_doubles_and_loses_nothing(strokes in strokes()) {
        write_with_interruptions(&strokes);
    }

    #[test]
    fn folding_may_stop_anywhere_and_go_on_later((born, choices) in choices(), cut in any::<Index>()) {
        let record = play(born, &choices);
        let cut = cut.index(record.log.len() + 1);
        let empty = || Folded::empty("t-1".into(), "c-1".into());
        let mut snapshot = empty();
        record.log[..cut].iter().for_each(|(_, events)| snapshot.apply_all(events));
        let mut continued = snapshot.clone();
        record.log[cut..].iter().for_each(|(_, events)| continued.apply_all(events));
        assert_eq!(continued, record.folded);
        let head_at_cut = record.log.get(cut).map_or(&record.head, |(before, _)| before);
        assert_eq!(head_at_cut.state, snapshot.task.status.state);
    }

    #[test]
    fn skipping_mere_progress_gives_the_same_task((born, choices) in choices()) {
        let record = play(born, &choices);
        let mut sparse = Folded::empty("t-1".into(), "c-1".into());
        let mut newest_was_skipped = None;
        for (before, events) in &record.log {
            let status = events.iter().rev().find_map(|event| match event {
                Event::StatusChanged { state, message, at, .. } => {
                    Some(TaskStatus { state: *state, message: message.clone(), timestamp: *at })
                }
                _ => None,
            });
            if is_needed_to_fold(before.state, events) {
                sparse.apply_all(events);
                newest_was_skipped = if status.is_some() { None } else { newest_was_skipped };
            } else {
                newest_was_skipped = status.or(newest_was_skipped);
            }
        }
        if let Some(newest) = newest_was_skipped {
            Arc::make_mut(&mut sparse.task).status = newest;
        }
        assert_eq!(sparse, record.folded);
    }
}

#[test]
fn the_choices_reach_every_corner() {
    let mut reached = std::collections::BTreeSet::new();
    for what in 0..24 {
        for detail in 0..=255 {
            for age in [0, 1] {
                for prelude in [&[][..], &[(15, 6, 1), (5, 0, 1)], &[(8, 5, 1)], &[(22, 0, 1)]] {
                    let mut record = play(detail % 2 == 0, prelude);
                    match record.tries(command(&record, (what, detail, age))) {
                        Ok(_) => drop(reached.insert("allowed")),
                        Err(Refusal::Fenced) => drop(reached.insert("fenced")),
                        Err(Refusal::Closed { .. }) => drop(reached.insert("closed")),
                        Err(Refusal::Protocol(_)) => drop(reached.insert("refused")),
                    }
                }
            }
        }
    }
    assert_eq!(reached.into_iter().collect::<Vec<_>>(), ["allowed", "closed", "fenced", "refused"]);
}
