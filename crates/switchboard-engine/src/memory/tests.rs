//! Runs the store contract on the memory store, and tests its bound on the number of records.

use switchboard_core::model::Timestamp;

use super::{CountingIds, ManualClock};
use crate::ports::{Clock, Ids};

#[test]
fn a_manual_clock_moves_when_told() {
    let clock = ManualClock::new(Timestamp::from_ms(5));
    clock.advance_ms(10);
    assert_eq!(clock.now(), Timestamp::from_ms(15));
    clock.set(Timestamp::from_ms(-1));
    assert_eq!(clock.now(), Timestamp::from_ms(-1));
}

#[test]
fn counted_ids_are_told_apart_and_look_like_uuids() {
    let ids = CountingIds::default();
    assert_eq!(&*ids.uuid(Timestamp::default()), "00000000-0000-4000-8000-000000000001");
    assert_eq!(&*ids.uuid(Timestamp::default()), "00000000-0000-4000-8000-000000000002");
}

#[cfg(feature = "contract")]
mod contract {
    use std::sync::Arc;

    use switchboard_core::model::TaskState;

    use super::super::MemoryStore;
    use super::{ManualClock, Timestamp};
    use crate::contract::given::{RecordWriter, anyone, now, status};
    use crate::contract::{SharedSubject, Subject};
    use crate::ports::store::{Accept, CommitError, OverStorage, StorageLimits};
    use crate::ports::{Store, TaskLog, Upkeep};

    struct InMemory {
        clock: Arc<ManualClock>,
        store: MemoryStore,
        second: MemoryStore,
    }

    impl InMemory {
        fn holding(tasks_max: usize) -> Self {
            let clock = Arc::new(ManualClock::new(Timestamp::from_ms(1_700_000_000_000)));
            let store = MemoryStore::new(clock.clone(), tasks_max);
            Self { second: store.second_handle(), store, clock }
        }
    }

    impl Subject for InMemory {
        fn store(&self) -> &dyn Store {
            &self.store
        }

        fn clock(&self) -> &ManualClock {
            &self.clock
        }

        fn restart(&mut self) {
            self.store.void_leases();
        }
    }

    impl SharedSubject for InMemory {
        fn second(&self) -> &dyn Store {
            &self.second
        }
    }

    fn make() -> InMemory {
        InMemory::holding(10_000)
    }

    crate::store_contract!(make);
    crate::storage_contract!(make);
    crate::calls_contract!(make);
    crate::counted_calls_contract!(make);
    crate::shared_store_contract!(make);

    #[tokio::test]
    async fn a_full_store_lets_the_oldest_closed_task_go() {
        let subject = InMemory::holding(3);
        let active = RecordWriter::opened(&subject, "t1").await;
        let first = RecordWriter::completed(&subject, "t2").await;
        subject.clock.advance_ms(1);
        let second = RecordWriter::completed(&subject, "t3").await;
        let third = RecordWriter::completed(&subject, "t4").await;
        assert!(subject.store.head(&anyone(), &first.head.id).await.unwrap().is_none());
        for writer in [&active, &second, &third] {
            writer.check(&subject).await;
        }
    }

    #[tokio::test]
    async fn the_oldest_closed_task_goes_when_all_have_too_many_bytes() {
        let subject = InMemory::holding(100);
        let active = RecordWriter::opened(&subject, "t1").await;
        let first = RecordWriter::completed(&subject, "t2").await;
        subject.clock.advance_ms(1);
        let second = RecordWriter::completed(&subject, "t3").await;
        let bytes_max = subject.store.stats().stored_bytes.unwrap() + 500;
        let mut third = RecordWriter::new(anyone(), "t4", "c1");
        let opening = |text: &str| {
            let mut commit = third.commit(&subject, vec![third.opening(&subject, text)]);
            commit.storage = StorageLimits { bytes_max, ..StorageLimits::NONE };
            commit
        };
        // One that would fit into no store removes nothing.
        let (too_large, small) = (opening(&"x".repeat(100_000)), opening("hello"));
        let refused = third.try_write(&subject, too_large).await;
        assert!(matches!(refused, Err(CommitError::OverStorage(OverStorage::All(_)))), "{refused:?}");
        first.check(&subject).await;
        third.write(&subject, small).await;
        assert!(subject.store.head(&anyone(), &first.head.id).await.unwrap().is_none());
        for writer in [&active, &second, &third] {
            writer.check(&subject).await;
        }
    }

    #[tokio::test]
    async fn a_key_that_was_used_again_outlives_the_task_that_used_it_first() {
        let subject = InMemory::holding(2);
        let key = [1; 32];
        for id in ["t1", "t2"] {
            let mut writer = RecordWriter::new(anyone(), id, "c1");
            let mut commit = writer.commit(&subject, vec![writer.opening(&subject, "hello")]);
            let expires = now(&subject).plus_ms(1);
            commit.accept = Some(Accept { key, digest: key, turn: 1, after_seq: 0, expires });
            writer.write(&subject, commit).await;
            writer.append(&subject, vec![status(&subject, TaskState::Completed, None)]).await;
            if id == "t1" {
                subject.clock.advance_ms(1);
            }
        }
        RecordWriter::opened(&subject, "t3").await;
        assert!(subject.store.head(&anyone(), &"t1".into()).await.unwrap().is_none(), "it went for the third");
        let found = subject.store.find_accepted(key).await.unwrap().expect("the key is taken");
        assert_eq!(found.task_id, "t2".into());
    }

    #[tokio::test]
    async fn a_store_full_of_active_tasks_takes_no_more() {
        let subject = InMemory::holding(2);
        let writers = [RecordWriter::opened(&subject, "t1").await, RecordWriter::opened(&subject, "t2").await];
        let mut third = RecordWriter::new(anyone(), "t3", "c1");
        let opening = third.opening(&subject, "hello");
        let commit = third.commit(&subject, vec![opening]);
        let refused = third.try_write(&subject, commit).await;
        assert!(matches!(refused, Err(CommitError::Full)), "{refused:?}");
        for writer in &writers {
            writer.check(&subject).await;
        }
    }
}

#[cfg(feature = "contract")]
mod hints {
    use std::sync::Arc;

    use super::super::LocalHints;
    use crate::contract::hints::HintSubject;
    use crate::ports::Hints;

    struct TwoEngines(LocalHints, LocalHints);

    impl HintSubject for TwoEngines {
        fn first(&self) -> Arc<dyn Hints> {
            Arc::new(self.0.clone())
        }

        fn second(&self) -> Arc<dyn Hints> {
            Arc::new(self.1.clone())
        }

        // There is no connection that could be lost.
        fn cut(&self) {}
    }

    fn make() -> TwoEngines {
        let first = LocalHints::default();
        TwoEngines(first.for_another(), first.for_another())
    }

    crate::hints_contract!(make);
}
