//! Compacting a file that is not in use frees the space that retention left, and loses nothing else.

use switchboard_core::model::{Part, TaskState};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, now, status, write_parts};
use switchboard_engine::ports::store::Retention;

use super::super::{Compacted, FileError, compact};
use super::{OnFile, make};

const DAY_MS: i64 = 86_400_000;

fn compacted(subject: &OnFile) -> Result<Compacted, FileError> {
    let retention = Retention {
        now: now(subject),
        events_ms: 7 * DAY_MS,
        tasks_ms: 30 * DAY_MS,
        replies_ms: DAY_MS,
        tasks_max: 1_000_000,
        tasks_batch: 0,
    };
    compact(&subject.path(), subject.clock.clone(), &retention)
}

#[tokio::test]
async fn what_is_over_goes_and_the_file_shrinks() {
    let mut subject = make();
    // More than one batch, and content that takes several slices.
    for number in 0..700 {
        RecordWriter::completed(&subject, &format!("old-{number}")).await;
    }
    let mut large = RecordWriter::opened(&subject, "old-large").await;
    large.append(&subject, vec![write_parts("a", vec![Part::raw(vec![1; 20 << 20])], false)]).await;
    large.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
    let active = RecordWriter::opened(&subject, "active").await;
    subject.clock().advance_ms(25 * DAY_MS);
    let mut later = RecordWriter::opened(&subject, "later").await;
    for _ in 0..5000 {
        let commit = later.commit(&subject, vec![status(&subject, TaskState::Working, None)]);
        later.write(&subject, commit).await;
    }
    later.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
    subject.clock().advance_ms(8 * DAY_MS);
    let young = RecordWriter::completed(&subject, "young").await;

    subject.close();
    let Compacted { before, after } = compacted(&subject).unwrap();
    assert_eq!((before.tasks, after.tasks), (704, 3));
    assert_eq!((before.commits, after.commits), (700 + 3 + 1 + 5002 + 1, 1 + 2 + 1));
    assert!(before.bytes > 20 << 20 && after.bytes < 1 << 20, "{before:?} {after:?}");
    assert_eq!(after.bytes, subject.path().metadata().unwrap().len(), "and nothing is left beside it");

    let again = compacted(&subject).unwrap();
    assert_eq!((again.before, again.after), (after, after));
    subject.restart();
    active.check(&subject).await;
    young.check(&subject).await;
    later.check_whole(&subject).await;
}

#[tokio::test]
async fn a_file_in_use_is_left_alone() {
    let subject = make();
    let refused = compacted(&subject).unwrap_err();
    assert!(matches!(refused, FileError::InUse { .. }), "{refused}");
}

#[test]
fn a_file_that_is_not_there_is_not_made() {
    let mut subject = make();
    subject.close();
    super::super::reset(&subject.path()).unwrap();
    assert!(matches!(compacted(&subject), Err(FileError::Missing { .. })));
    assert!(!subject.path().exists());
    subject.restart();
}
