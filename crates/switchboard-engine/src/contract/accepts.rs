//! Behaviours of idempotency keys.

use futures_util::future::join_all;
use switchboard_core::lifecycle::Event;
use switchboard_core::model::TaskState;

use super::Subject;
use super::given::{RecordWriter, anyone, inbound, now, status};
use crate::ports::store::{Accept, Accepted, CommitError};

const WINDOW_MS: i64 = 86_400_000;

fn accept(subject: &dyn Subject, key: u8, turn: u32, after_seq: u64) -> Accept {
    let expires = now(subject).plus_ms(WINDOW_MS);
    Accept { key: [key; 32], digest: [key + 100; 32], turn, after_seq, expires }
}

async fn accepted_task(subject: &dyn Subject, id: &str, key: u8) -> Result<RecordWriter, CommitError> {
    let mut writer = RecordWriter::new(anyone(), id, "c1");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    commit.accept = Some(accept(subject, key, 1, 0));
    writer.try_write(subject, commit).await.map(|_| writer)
}

pub async fn a_used_key_is_a_duplicate_and_says_of_what(subject: &mut dyn Subject) {
    let mut writer = accepted_task(subject, "t1", 1).await.expect("the key is free");
    let mut commit = writer.commit(subject, vec![Event::MessageAdded { inbound: inbound(2, "more") }]);
    commit.accept = Some(accept(subject, 2, 2, 1));
    writer.write(subject, commit).await;

    let first = Accepted { task_id: "t1".into(), digest: [101; 32], turn: 1, after_seq: 0 };
    let second = Accepted { task_id: "t1".into(), digest: [102; 32], turn: 2, after_seq: 1 };
    for _ in 0..2 {
        let store = subject.store();
        assert_eq!(store.find_accepted([1; 32]).await.expect("answers"), Some(first.clone()));
        assert_eq!(store.find_accepted([2; 32]).await.expect("answers"), Some(second.clone()));
        assert_eq!(store.find_accepted([3; 32]).await.expect("answers"), None);
        let refused = accepted_task(subject, "t2", 1).await.map(|_| ());
        assert!(matches!(&refused, Err(CommitError::Duplicate(known)) if *known == first), "{refused:?}");
        // This also holds if the task's id exists already: in some dialects a client sends the id again with the
        // message.
        let refused = accepted_task(subject, "t1", 1).await.map(|_| ());
        assert!(matches!(&refused, Err(CommitError::Duplicate(known)) if *known == first), "{refused:?}");
        let refused = accepted_task(subject, "t1", 3).await.map(|_| ());
        assert!(matches!(&refused, Err(CommitError::Conflict)), "{refused:?}");
        subject.restart();
    }
}

pub async fn a_refused_duplicate_changes_nothing(subject: &mut dyn Subject) {
    let mut writer = accepted_task(subject, "t1", 1).await.expect("the key is free");
    let mut again = writer.clone();
    let mut commit = again.commit(subject, vec![Event::MessageAdded { inbound: inbound(2, "again") }]);
    commit.accept = Some(accept(subject, 1, 2, 1));
    let refused = again.try_write(subject, commit).await;
    assert!(matches!(refused, Err(CommitError::Duplicate(_))), "{refused:?}");
    assert!(accepted_task(subject, "t2", 1).await.is_err());
    assert!(subject.store().head(&anyone(), &"t2".into()).await.expect("answers").is_none());
    writer.check(subject).await;
    writer.append(subject, vec![status(subject, TaskState::Working, None)]).await;
    writer.check(subject).await;
}

pub async fn a_key_is_free_again_after_its_window(subject: &mut dyn Subject) {
    accepted_task(subject, "t1", 1).await.expect("the key is free");
    subject.clock().advance_ms(WINDOW_MS - 1);
    assert!(accepted_task(subject, "t2", 1).await.is_err());
    subject.clock().advance_ms(1);
    assert_eq!(subject.store().find_accepted([1; 32]).await.expect("answers"), None);
    accepted_task(subject, "t2", 1).await.expect("the key is free again");
    let found = subject.store().find_accepted([1; 32]).await.expect("answers").expect("the key is taken");
    assert_eq!(found.task_id, "t2".into());
}

pub async fn a_key_far_in_the_future_is_found(subject: &mut dyn Subject) {
    let mut writer = RecordWriter::new(anyone(), "t1", "c1");
    let opening = writer.opening(subject, "hello");
    let mut commit = writer.commit(subject, vec![opening]);
    let expires = now(subject).plus_ms(30 * WINDOW_MS);
    commit.accept = Some(Accept { expires, ..accept(subject, 9, 1, 0) });
    writer.write(subject, commit).await;
    subject.clock().advance_ms(29 * WINDOW_MS);
    assert!(subject.store().find_accepted([9; 32]).await.expect("answers").is_some());
    assert!(accepted_task(subject, "t2", 9).await.is_err());
}

/// An adapter may write them in one transaction: what is wrong with one of them is no matter to the others.
pub async fn commits_that_come_together_are_judged_one_by_one(subject: &mut dyn Subject) {
    let subject = &*subject;
    accepted_task(subject, "there", 1).await.expect("the key is free");
    let mut writers = Vec::new();
    for number in 0..12 {
        writers.push(accepted_task(subject, &format!("old {number}"), 100 + number).await.expect("the key is free"));
    }
    // Later ids and keys come first, so that an adapter that orders them has something to do.
    let opening = async |number: u8, id: String, key: u8| (number, accepted_task(subject, &id, key).await);
    let opened = (0..40).rev().map(|number| match number % 4 {
        1 => opening(number, format!("taken {number}"), 1),
        2 => opening(number, "there".to_owned(), 10 + number),
        _ => opening(number, format!("new {number}"), 10 + number),
    });
    let going_on = writers.iter_mut().enumerate().rev().map(async |(place, writer)| {
        let mut commit = writer.commit(subject, vec![status(subject, TaskState::Working, None)]);
        match place % 3 {
            1 => commit.fence = Some(writer.head.fence + 1),
            2 => commit.accept = Some(accept(subject, 1, 2, 1)),
            _ => {}
        }
        (place, writer.try_write(subject, commit).await)
    });
    let (opened, went_on) = tokio::join!(join_all(opened), join_all(going_on));
    for (number, outcome) in opened {
        match (number % 4, outcome) {
            (1, Err(CommitError::Duplicate(known))) => assert_eq!(known.task_id, "there".into()),
            (2, Err(CommitError::Conflict)) => {
                let key = [10 + number; 32];
                assert!(subject.store().find_accepted(key).await.expect("answers").is_none(), "its key is free");
            }
            (0 | 3, Ok(writer)) => writer.check(subject).await,
            (_, outcome) => panic!("{number}: {:?}", outcome.map(|writer| writer.head)),
        }
    }
    for (place, outcome) in went_on {
        match (place % 3, outcome) {
            (0, Ok(_)) | (1, Err(CommitError::Fenced)) | (2, Err(CommitError::Duplicate(_))) => {}
            (_, outcome) => panic!("{place}: {outcome:?}"),
        }
    }
    for writer in &writers {
        writer.check(subject).await;
    }
}
