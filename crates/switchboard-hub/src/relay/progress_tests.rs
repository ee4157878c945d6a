//! What a relay keeps, and which part of a snapshot is new.

use std::sync::Arc;

use switchboard::call::Owner;
use switchboard::model::{
    Artifact, ArtifactUpdate, Dialect, Json, Part, PartContent, Task, TaskState, TaskStatus, Timestamp,
};

use super::{Progress, unseen, upstream_context};

fn task(parts: Vec<Part>) -> Task {
    Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: Timestamp::default() },
        artifacts: vec![Arc::new(Artifact::new("a", parts))],
        history: Vec::new(),
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::V1_0,
    }
}

/// What is written of an artifact of which so much is held: whether it is appended, and the texts.
fn written(parts: &[&str], held: Option<(u64, u64)>) -> Option<(bool, Vec<String>)> {
    let task = task(parts.iter().map(|text| Part::text(*text)).collect());
    let update: ArtifactUpdate = unseen(&task, &task.artifacts[0], held)?;
    assert_eq!((update.task_id.as_str(), update.artifact.artifact_id.as_str()), ("t", "a"));
    let texts = update.artifact.parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    });
    Some((update.append, texts.collect()))
}

#[test]
fn only_what_is_behind_the_held_part_of_an_artifact_is_new() {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(written(&["ab", "cd"], None), Some((false, texts(&["ab", "cd"]))));
    assert_eq!(written(&["ab", "cd", "ef"], Some((1, 2))), Some((true, texts(&["cd", "ef"]))));
    assert_eq!(written(&["ab", "cd"], Some((2, 4))), None, "nothing is new");
    assert_eq!(written(&["abcd"], Some((2, 3))), Some((true, texts(&["d"]))), "the upstream put the chunks together");
    assert_eq!(written(&["abcd"], Some((2, 4))), None);
    assert_eq!(written(&["a"], Some((2, 4))), Some((false, texts(&["a"]))), "it was replaced by something shorter");
    assert_eq!(
        written(&["äb"], Some((2, 1))),
        Some((false, texts(&["äb"]))),
        "not at a letter: something else was held"
    );
    assert_eq!(written(&[], None), None, "an artifact without parts cannot be written");
}

#[test]
fn an_artifact_that_is_not_text_is_written_anew_if_its_parts_do_not_fit() {
    let data = || Part::json(Json::from_trusted("{}"));
    let task = task(vec![data(), data()]);
    let appended = unseen(&task, &task.artifacts[0], Some((1, 2))).unwrap();
    assert_eq!((appended.append, appended.artifact.parts.len()), (true, 1));
    let replaced = unseen(&task, &task.artifacts[0], Some((1, 3))).unwrap();
    assert_eq!((replaced.append, replaced.artifact.parts.len()), (false, 2));
}

#[test]
fn a_context_is_another_one_for_each_owner_and_each_gateway_and_always_the_same() {
    let owner = |tenant: &str, principal: &str| Owner { tenant: tenant.into(), principal: principal.into() };
    let of = |namespace: &str, owner: &Owner, context: &str| upstream_context(namespace, owner, &context.into());
    let ada = of("gate", &owner("t", "ada"), "c");
    assert_eq!(ada, "86317567-67c1-80c2-ade8-9b9e979a8cb0");
    let others = [
        of("gate", &owner("t", "bob"), "c"),
        of("gate", &owner("", "ada"), "c"),
        of("gate2", &owner("t", "ada"), "c"),
        of("gate", &owner("t", "ada"), "d"),
        of("gate", &owner("ta", "da"), "c"),
    ];
    assert!(others.iter().all(|other| *other != ada && other.len() == 36));
}

#[test]
fn progress_is_small_and_reads_what_older_versions_wrote() {
    let progress = Progress { task: Some("t".to_owned()), cursor: Some(7), ..Progress::default() };
    let json = Json::from_serialize(&progress).unwrap();
    assert_eq!(json.as_str(), r#"{"task":"t","cursor":7}"#);
    assert_eq!(json.deserialize::<Progress>().unwrap(), progress);
    assert_eq!(Json::from_trusted("{}").deserialize::<Progress>().unwrap(), Progress::default());
}
