//! Flips single bits of the file. Every read then returns the same as before or an error, but never other contents. And
//! `verify` reports a fault whenever a stored value has changed.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use switchboard_core::model::ArtifactId;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::RecordWriter;
use switchboard_engine::memory::ManualClock;
use switchboard_engine::ports::Clock as _;
use switchboard_engine::ports::store::{ListQuery, Store, StoreError};

use super::power_cut::Dice;
use super::verifying::compacted;
use super::{make, quick, sample};
use crate::sqlite::{SqliteOptions, SqliteStore, backup, verify};

/// Everything that can be read of some tasks, as text: each query and its result.
async fn answers(store: &dyn Store, writers: &[RecordWriter]) -> Vec<(String, Result<String, StoreError>)> {
    let mut answers = Vec::new();
    let mut note = |question: String, answer: Result<String, StoreError>| answers.push((question, answer));
    for writer in writers {
        let (scope, id) = (&writer.scope, &writer.head.id);
        let head = store.head(scope, id).await;
        note(format!("head of {id}"), head.map(|found| format!("{:?}", found.map(|stored| stored.head))));
        let task = store.task(scope, id, u64::MAX).await;
        note(format!("task {id}"), task.map(|found| format!("{:?}", found.map(|stored| stored.folded))));
        let log = store.log(writer.key(), 0, 100).await;
        note(format!("log of {id}"), log.map(|page| format!("{:?}", page.commits)));
        let configs = store.push_configs(writer.key()).await;
        note(format!("webhooks of {id}"), configs.map(|found| format!("{found:?}")));
        for artifact in ["file", "text", "a"] {
            let question = format!("artifact {artifact} of {id}");
            note(question, read_artifact(store, writer, &artifact.into()).await);
        }
    }
    let mut scopes: Vec<_> = writers.iter().map(|writer| &writer.scope).collect();
    scopes.dedup();
    for scope in scopes {
        let page = store.list(scope, &everything()).await;
        // Each task is a separate result.
        match page {
            Ok(page) => {
                for stored in page.tasks {
                    let answer = format!("{:?}", (&stored.head, &stored.folded));
                    note(format!("{} as listed", stored.head.id), Ok(answer));
                }
            }
            Err(error) => note(format!("list of {scope:?}"), Err(error)),
        }
    }
    answers
}

fn everything() -> ListQuery {
    ListQuery {
        context_id: None,
        state: None,
        status_since: None,
        after: None,
        page_size: 100,
        artifacts: true,
        bytes_max: u64::MAX,
        history_max: None,
    }
}

async fn read_artifact(store: &dyn Store, writer: &RecordWriter, artifact: &ArtifactId) -> Result<String, StoreError> {
    let Some(found) = store.artifact(&writer.scope, &writer.head.id, artifact, None).await? else {
        return Ok("none".to_owned());
    };
    let mut bytes = Vec::new();
    let mut cursor = found.cursor(found.range.clone());
    while !cursor.is_at_end() {
        let piece = store.read_artifact(cursor, 10_000).await?;
        bytes.extend_from_slice(&piece.bytes);
        cursor = piece.next;
    }
    Ok(format!("{bytes:?}"))
}

/// Every stored value; none if the file cannot be read.
fn dump(path: &Path) -> Option<Vec<String>> {
    let connection = Connection::open(path).ok()?;
    let mut dump = Vec::new();
    for table in ["meta", "scope", "task", "log", "chunk", "push", "accepted", "removal", "audit_chain", "audit"] {
        let mut select =
            connection.prepare(&format!("SELECT * FROM {table} NOT INDEXED ORDER BY 1 LIMIT 1000")).ok()?;
        let count = select.column_count();
        let mut rows = select.query([]).ok()?;
        while let Some(row) = rows.next().ok()? {
            for at in 0..count {
                dump.push(format!("{:?}", row.get_ref(at).ok()?));
            }
        }
    }
    Some(dump)
}

fn is_in_order(path: &Path, clock: &ManualClock) -> bool {
    verify(path, clock.now(), &mut |_| {}).is_ok_and(|checked| checked.faults == 0)
}

#[tokio::test]
async fn a_flipped_bit_never_makes_another_answer() {
    let is_long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let (seed, flips) = (7, if is_long { 3_000 } else { 100 });
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let subject = make();
    let compacted = compacted(&subject).await;
    let mut writers = sample::write(&subject).await.writers;
    writers.push(compacted);
    let folder = tempfile::tempdir().unwrap();
    let (whole, path) = (folder.path().join("whole.db"), folder.path().join("flipped.db"));
    backup(&subject.path(), &whole).unwrap();
    let bytes = std::fs::read(&whole).unwrap();
    let stored = dump(&whole).expect("it is whole");
    let options = SqliteOptions { cache_records_max: 0, readers: 1, ..quick() };
    let open = |path: &Path| SqliteStore::open(path, subject.clock.clone() as Arc<ManualClock>, options.clone());
    let expected = answers(subject.store(), &writers).await;
    let known = |answer: &Result<String, StoreError>| matches!(answer, Ok(_) | Err(StoreError::Pruned));
    assert!(expected.iter().all(|(_, answer)| known(answer)), "{expected:?}");

    let (mut noticed, mut refused) = (0, 0);
    for _ in 0..flips {
        let at = dice.below(bytes.len());
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << dice.below(8);
        for side in ["", "-wal", "-shm", "-journal"] {
            let _ = std::fs::remove_file(format!("{}{side}", path.display()));
        }
        std::fs::write(&path, &flipped).unwrap();
        let what = format!("byte {at} (page {}, byte {} of it)", at / 4096 + 1, at % 4096);
        let in_order = is_in_order(&path, &subject.clock);
        let same = dump(&path).is_some_and(|found| found == stored);
        assert!(same || !in_order, "{what}: a stored value is another one, and verify finds nothing");
        noticed += usize::from(!in_order);
        let Ok(store) = open(&path) else {
            assert!(!in_order, "{what}: it does not open, and verify finds nothing");
            refused += 1;
            continue;
        };
        for (question, answer) in answers(&store, &writers).await {
            let before = expected.iter().find(|(asked, _)| *asked == question).map(|(_, answer)| answer);
            if before == Some(&answer) {
                continue;
            }
            match answer {
                Err(_) => {
                    refused += 1;
                    assert!(!in_order, "{what}: {question} is not answered, and verify finds nothing");
                }
                Ok(answer) => {
                    // A task that is no longer found counts as an error, too, because an index has no checksum.
                    let is_missing = answer == "None" || answer == "none";
                    assert!(is_missing && !in_order, "{what}: {question} is answered otherwise: {answer}");
                }
            }
        }
    }
    println!("{flips} flips: {noticed} noticed by verify, {refused} questions refused");
    assert!(noticed > 0 && refused > 0, "some flips changed stored values");
}
