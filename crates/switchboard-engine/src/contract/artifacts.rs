//! Behaviours of large artifacts: contents that do not fit are left out of tasks, and their bytes are read in pieces.

use std::ops::Range;
use std::sync::Arc;

use switchboard_core::lifecycle::Event;
use switchboard_core::model::{Artifact, Json, Part, PartContent, TaskState};

use super::Subject;
use super::given::{RecordWriter, anyone, chunk, now, scope, status, write_parts};
use super::lists::everything;
use crate::ports::download::StoredArtifact;
use crate::ports::outline::Outline;
use crate::ports::store::{ListQuery, Retention, Scope, Store, StoreError};

/// The artifact with links, as a reader gets it, with made-up addresses.
pub(super) fn linked(outlines: &[Outline], id: &str) -> Artifact {
    let outline = outlines.iter().find(|outline| outline.bare().artifact_id.as_str() == id);
    let outline = outline.expect("it was left out").clone();
    outline.linked_by(|part| format!("here:{id}{}", part.map(|part| format!("#{part}")).unwrap_or_default()))
}

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31 + seed * 7) % 251) as u8).collect()
}

async fn opened(subject: &dyn Subject, writer: &RecordWriter, artifact: &str, part: Option<u64>) -> StoredArtifact {
    let found = subject.store().artifact(&writer.scope, &writer.head.id, &artifact.into(), part).await;
    found.expect("artifacts are read").expect("the artifact is there")
}

/// Reads a range in pieces of `piece` bytes.
async fn read(
    store: &dyn Store,
    artifact: &StoredArtifact,
    wanted: Range<u64>,
    piece: usize,
) -> Result<Vec<u8>, StoreError> {
    let mut cursor = artifact.cursor(wanted);
    let mut all = Vec::new();
    while !cursor.is_at_end() {
        let found = store.read_artifact(cursor, piece).await?;
        assert!(found.bytes.len() <= piece, "a piece is no larger than was asked for");
        all.extend_from_slice(&found.bytes);
        cursor = found.next;
    }
    Ok(all)
}

/// All bytes of the parts of an artifact.
fn content(artifact: &Artifact) -> Vec<u8> {
    let of = |part: &Part| match &part.content {
        PartContent::Text(text) | PartContent::Url(text) => text.as_bytes().to_vec(),
        PartContent::Raw(bytes) => bytes.to_vec(),
        PartContent::Data(json) => json.as_str().as_bytes().to_vec(),
    };
    artifact.parts.iter().flat_map(of).collect()
}

/// A task with an artifact in pieces of all sizes, written between other events.
async fn pieces(subject: &dyn Subject, id: &str) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, id).await;
    writer.append(subject, vec![write_parts("big", vec![Part::raw(bytes(50_000, 9)); 2], false)]).await;
    // The artifact is replaced, so that its earlier content must not be found again, and written twice in the same
    // commit.
    let begin = vec![
        chunk("big", "never seen", true),
        write_parts("big", vec![Part::text("nor this")], false),
        write_parts("big", vec![Part::raw(bytes(10, 1)), Part::raw(bytes(70_000, 2))], false),
        chunk("big", "", true),
        chunk("other", "x", false),
        write_parts("big", vec![Part::text("é漢🦀\0")], true),
    ];
    writer.append(subject, begin).await;
    for (number, length) in [40_000, 1, 32_768, 300_000, 5, 600_000, 100].into_iter().enumerate() {
        writer.append(subject, vec![status(subject, TaskState::Working, Some("busy"))]).await;
        writer.append(subject, vec![chunk("other", "y", true)]).await;
        writer.append(subject, vec![write_parts("big", vec![Part::raw(bytes(length, number))], true)]).await;
    }
    writer.append(subject, vec![write_parts("big", vec![Part::json(Json::from_trusted("[1]"))], true)]).await;
    writer
}

pub async fn an_artifact_comes_back_whole_and_in_ranges(subject: &mut dyn Subject) {
    let mut writer = pieces(subject, "t1").await;
    let expected = content(writer.folded.task.artifact("big").expect("it was written"));
    for stage in ["fresh", "restarted", "ended", "compacted"] {
        match stage {
            "restarted" => subject.restart(),
            "ended" => {
                writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
            }
            "compacted" => {
                subject.clock().advance_ms(8 * 86_400_000);
                let retention = Retention {
                    now: now(subject),
                    events_ms: 7 * 86_400_000,
                    tasks_ms: i64::MAX,
                    replies_ms: i64::MAX,
                    tasks_max: u64::MAX,
                    tasks_batch: 0,
                };
                assert!(subject.store().prune(retention, 10).await.expect("pruning works") > 0);
            }
            _ => {}
        }
        let found = opened(subject, &writer, "big", None).await;
        assert_eq!((found.bytes(), found.media_type.as_str()), (expected.len() as u64, "application/octet-stream"));
        let all = read(subject.store(), &found, 0..found.bytes(), 100_000).await.expect("it is kept");
        assert!(all == expected, "{stage}: {} bytes differ from {}", all.len(), expected.len());
        for (from, until) in
            [(0, 1), (9, 11), (10, 70_010), (70_005, 70_030), (110_000, 500_000), (1_000_000, 1_043_000)]
        {
            let some = read(subject.store(), &found, from..until, 65_537).await.expect("it is kept");
            let (from, until) = (from as usize, (until as usize).min(expected.len()));
            assert!(some == expected[from..until], "{stage}: bytes {from} to {until}");
        }
        for from in [found.bytes() - 1, found.bytes(), u64::MAX] {
            let end = read(subject.store(), &found, from..u64::MAX, 10).await.expect("it is kept");
            assert_eq!(end, expected[(from.min(expected.len() as u64)) as usize..], "{stage}: from {from}");
        }
    }
}

pub async fn a_part_can_be_had_alone(subject: &mut dyn Subject) {
    let writer = pieces(subject, "t1").await;
    let artifact = writer.folded.task.artifact("big").expect("it was written");
    for (number, part) in (0..).zip(&artifact.parts) {
        let found = opened(subject, &writer, "big", Some(number)).await;
        let expected = content(&Artifact::new("big", vec![part.clone()]));
        let all = read(subject.store(), &found, 0..u64::MAX, 100_000).await.expect("it is kept");
        assert!(all == expected, "part {number}: {} bytes, not {}", all.len(), expected.len());
    }
    let mut writer = RecordWriter::opened(subject, "t2").await;
    let named = Part::text("<p>").with_media_type("text/html").with_filename("a.html");
    writer.append(subject, vec![write_parts("a", vec![Part::json(Json::from_trusted("1")), named], false)]).await;
    let types: [(Option<u64>, &str, Option<&str>, u64); 3] = [
        (None, "application/json", None, 4),
        (Some(0), "application/json", None, 1),
        (Some(1), "text/html", Some("a.html"), 3),
    ];
    for (part, media_type, filename, length) in types {
        let found = opened(subject, &writer, "a", part).await;
        let said = (found.media_type.as_str(), found.filename.as_deref(), found.bytes());
        assert_eq!(said, (media_type, filename, length), "{part:?}");
    }
}

pub async fn only_the_owner_finds_an_artifact(subject: &mut dyn Subject) {
    let writer = pieces(subject, "t1").await;
    let find = async |scope: &Scope, task: &str, artifact: &str, part| {
        let found = subject.store().artifact(scope, &task.into(), &artifact.into(), part).await;
        found.expect("artifacts are read").is_some()
    };
    assert!(find(&writer.scope, "t1", "big", None).await);
    assert!(!find(&scope("other", "", "echo"), "t1", "big", None).await);
    assert!(!find(&Scope { agent: "another".into(), ..anyone() }, "t1", "big", None).await);
    assert!(!find(&writer.scope, "t2", "big", None).await);
    assert!(!find(&writer.scope, "t1", "small", None).await);
    assert!(!find(&writer.scope, "t1", "", None).await);
    assert!(!find(&writer.scope, "t1", "other", Some(30)).await);
}

pub async fn a_reader_sees_the_artifact_as_it_was_when_it_came(subject: &mut dyn Subject) {
    let mut writer = pieces(subject, "t1").await;
    let early = content(writer.folded.task.artifact("big").expect("it was written"));
    let before = opened(subject, &writer, "big", None).await;
    writer.append(subject, vec![write_parts("big", vec![Part::raw(bytes(80_000, 3))], true)]).await;
    let grown = opened(subject, &writer, "big", None).await;
    assert_eq!((grown.begun, grown.bytes()), (before.begun, before.bytes() + 80_000));
    let read_early = read(subject.store(), &before, 0..u64::MAX, 1 << 20).await.expect("it is kept");
    assert!(read_early == early, "later events are not part of it");

    writer.append(subject, vec![write_parts("big", vec![Part::raw(bytes(2_000_000, 4))], false)]).await;
    let replaced = opened(subject, &writer, "big", None).await;
    assert_ne!(replaced.begun, before.begun);
    // A reader gets the old content or an error, never a mixture.
    match read(subject.store(), &before, 0..u64::MAX, 1 << 20).await {
        Ok(bytes) => assert!(bytes == early, "a mixture"),
        Err(error) => assert_eq!(error, StoreError::Pruned),
    }
    writer.append(subject, vec![status(subject, TaskState::Completed, None)]).await;
    subject.clock().advance_ms(100 * 86_400_000);
    let retention =
        Retention { now: now(subject), events_ms: 0, tasks_ms: 0, replies_ms: 0, tasks_max: 0, tasks_batch: 0 };
    while subject.store().prune(retention, 100).await.expect("pruning works") > 0 {}
    let gone = read(subject.store(), &replaced, 0..u64::MAX, 1 << 20).await;
    assert!(matches!(gone, Err(StoreError::Pruned)), "the task is gone");
}

pub async fn what_there_is_no_room_for_is_outlined(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::opened(subject, "t1").await;
    let file = Part::raw(bytes(40_000, 1)).with_media_type("a/b").with_filename("f");
    let first = Artifact::new("file", vec![file])
        .with_name("first")
        .with_description("a file")
        .with_metadata(Json::from_trusted("{\"a\":1}"));
    let written = |artifact: Artifact, append| {
        let artifact = Arc::new(artifact);
        Event::ArtifactWritten { artifact, append, last_chunk: false, metadata: None, attempt: 1 }
    };
    writer.append(subject, vec![chunk("note", "before", false), written(first, false)]).await;
    for number in 0..50 {
        let mut more = Artifact::new("file", vec![Part::raw(bytes(if number % 2 == 0 { 40_000 } else { 900 }, 2))]);
        if number == 20 {
            more = more.with_name("second").with_metadata(Json::from_trusted("{\"b\":2}"));
        }
        writer.append(subject, vec![written(more, true), chunk("note", ".", true)]).await;
    }
    let parts = vec![Part::text("look:"), Part::raw(bytes(200_000, 5)).with_media_type("image/png")];
    writer.append(subject, vec![write_parts("page", parts, false), chunk("last", "after", false)]).await;
    for restarted in [false, true] {
        if restarted {
            subject.restart();
        }
        let store = subject.store();
        let stored = store.task(&writer.scope, &writer.head.id, 64 << 10).await.expect("answers").expect("it is there");
        assert_eq!((&stored.head, &stored.folded.open_turns), (&writer.head, &writer.folded.open_turns));
        let (task, whole) = (&stored.folded.task, &writer.folded.task);
        assert_eq!((&task.history, &task.status), (&whole.history, &whole.status));
        let shown: Vec<_> = task.artifacts.iter().map(|artifact| artifact.artifact_id.as_str()).collect();
        assert_eq!(shown, ["note", "file", "page", "last"]);
        assert_eq!(task.artifact("note"), whole.artifact("note"));
        assert_eq!(task.artifact("last"), whole.artifact("last"));
        let file = whole.artifact("file").expect("written");
        assert_eq!(task.artifact("file"), Some(&file.copy_with_parts(Vec::new())));
        let link = Part::url("here:file").with_media_type("a/b").with_filename("f");
        assert_eq!(linked(&stored.outlined, "file"), file.copy_with_parts(vec![link]));
        let expected = vec![Part::text("look:"), Part::url("here:page#1").with_media_type("image/png")];
        assert_eq!(linked(&stored.outlined, "page").parts, expected);
        assert_eq!(stored.outlined.len(), 2);
        // If everything fits, nothing is left out.
        writer.check(subject).await;
    }
}

pub async fn a_page_that_has_no_room_ends_early(subject: &mut dyn Subject) {
    for number in 0..6 {
        let mut writer = RecordWriter::opened(subject, &format!("t{number}")).await;
        writer.append(subject, vec![write_parts("a", vec![Part::raw(bytes(20_000, number))], false)]).await;
        subject.clock().advance_ms(10);
    }
    let mut query = ListQuery { bytes_max: 50_000, ..everything(100) };
    let mut pages = Vec::new();
    loop {
        let page = subject.store().list(&anyone(), &query).await.expect("lists are read");
        assert_eq!(page.total, 6);
        let linked = |stored: &crate::ports::store::StoredTask| stored.folded.task.artifacts[0].text();
        assert!(page.tasks.iter().all(|stored| linked(stored).is_empty()));
        pages.push(page.tasks.len());
        query.after = page.next;
        if query.after.is_none() {
            break;
        }
    }
    assert_eq!(pages, [2, 2, 2]);
    let tight = ListQuery { bytes_max: 1_000, ..everything(100) };
    let page = subject.store().list(&anyone(), &tight).await.expect("lists are read");
    assert_eq!(page.tasks[0].folded.task.artifacts[0].parts, []);
    assert_eq!(linked(&page.tasks[0].outlined, "a").parts[0].content, PartContent::Url("here:a".to_owned()));
    let bare = ListQuery { artifacts: false, ..tight };
    assert!(subject.store().list(&anyone(), &bare).await.expect("lists are read").next.is_some());
}
