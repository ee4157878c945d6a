//! A read by somebody who does not own the task goes the way of a read of a task that does not exist, also if the task is cached or at
//! work: the time of the answer cannot tell them apart.

use std::pin::Pin;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};

use switchboard_core::call::BoxFuture;
use switchboard_core::model::TaskId;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{AGENT, RecordWriter, TAKEN, chunk, scope};
use switchboard_engine::ports::store::{StoreError, StoredHead, StoredTask};

use super::{OnFile, SqliteOptions, quick};

type Read<'a> = BoxFuture<'a, Result<bool, StoreError>>;

fn is_waiting(read: &mut Read<'_>) -> bool {
    let polled = Pin::new(read).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Pending => true,
        Poll::Ready(found) => {
            assert!(found.unwrap(), "what is answered at once is there");
            false
        }
    }
}

#[tokio::test]
async fn a_foreign_task_is_looked_up_in_the_file_as_one_that_does_not_exist() {
    // One thread reads, so that what waits for it does not overtake.
    let subject = OnFile::new(SqliteOptions { readers: 1, ..quick() });
    let (ann, bob) = (scope("", "ann", AGENT), scope("", "bob", AGENT));
    for id in ["cached", "at-work"] {
        let mut writer = RecordWriter::new(ann.clone(), id, "ctx");
        let opening = writer.opening(&subject, "hello");
        let mut commit = writer.commit(&subject, vec![opening]);
        commit.lease = TAKEN;
        writer.write(&subject, commit).await;
        if id == "at-work" {
            // It is not filed yet.
            writer.append(&subject, vec![chunk("text", "half", false)]).await;
        }
    }
    let store = subject.store.as_ref().unwrap();
    // The owner has read it, so that it is in the cache.
    assert!(subject.store().task(&ann, &"cached".into(), u64::MAX).await.unwrap().is_some());

    let ids: Vec<TaskId> = ["cached", "at-work", "missing"].map(TaskId::from).into();
    let (go_on, stopped) = channel::<()>();
    let mut stopping: BoxFuture<'_, Result<(), StoreError>> = Box::pin(store.readers_for_tests().run(move |_| {
        let _ = stopped.recv();
        Ok(())
    }));
    assert!(Pin::new(&mut stopping).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    let head = |found: Result<Option<StoredHead>, StoreError>| found.map(|found| found.is_some());
    let task = |found: Result<Option<StoredTask>, StoreError>| found.map(|found| found.is_some());
    let of_owner = || -> [Read<'_>; 2] {
        [
            Box::pin(async { head(subject.store().head(&ann, &ids[0]).await) }),
            Box::pin(async { task(subject.store().task(&ann, &ids[0], u64::MAX).await) }),
        ]
    };
    assert!(of_owner().iter_mut().all(|read| !is_waiting(read)), "its owner reads it from the cache");
    let mut reads: Vec<Read<'_>> = Vec::new();
    for id in &ids {
        reads.push(Box::pin(async { head(subject.store().head(&bob, id).await) }));
        reads.push(Box::pin(async { task(subject.store().task(&bob, id, u64::MAX).await) }));
    }
    for (number, read) in reads.iter_mut().enumerate() {
        assert!(is_waiting(read), "read {number} waits for the file");
    }
    go_on.send(()).unwrap();
    stopping.await.unwrap();
    for read in reads {
        assert!(!read.await.unwrap(), "and nothing is found");
    }
    // What the owner has in the cache stays there.
    assert!(of_owner().iter_mut().all(|read| !is_waiting(read)));
}
