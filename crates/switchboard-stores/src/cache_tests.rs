//! Which records stay: what others than the owner read leaves no trace, and an answer is not kept.

use std::sync::Arc;

use switchboard_core::lifecycle::{Folded, Head, Phase};
use switchboard_core::model::{ContextId, TaskId};
use switchboard_engine::contract::given::{anyone, scope};
use switchboard_engine::ports::store::TaskKey;

use super::{Cache, Committed};

fn commit(cache: &Cache, id: &str, key: i64) {
    let (id, context) = (TaskId::from(id), ContextId::from("c"));
    let head = Arc::new(Head::unopened(id.clone(), context.clone(), "echo".into()));
    let folded = Some(Arc::new(Folded::empty(id, context)));
    let commit = Committed { key: TaskKey(key), scope: Some(anyone()), head, events: &[], folded };
    cache.update(|updates| updates.committed(commit));
}

#[test]
fn a_record_stays_for_its_owner_and_not_for_strangers() {
    for (reader, stays) in [(anyone(), true), (scope("", "eve", "agent"), false)] {
        let cache = Cache::new(1, 1 << 20);
        commit(&cache, "t1", 1);
        assert_eq!(cache.head(&reader, &"t1".into()).is_some(), stays, "only its owner is told of it");
        assert_eq!(cache.task(&reader, &"t1".into()).is_some(), stays);
        commit(&cache, "t2", 2);
        assert_eq!(cache.head(&anyone(), &"t1".into()).is_some(), stays);
    }
}

/// Closes a record that was committed with [`commit`].
fn close(cache: &Cache, id: &str) {
    let mut head = Head::unopened(TaskId::from(id), ContextId::from("c"), "echo".into());
    (head.version, head.phase) = (1, Phase::Replied);
    let commit = Committed { key: TaskKey(1), scope: None, head: Arc::new(head), events: &[], folded: None };
    cache.update(|updates| updates.committed(commit));
}

#[test]
fn a_closed_record_of_which_only_the_answer_was_read_is_not_kept() {
    let (cache, id) = (Cache::new(8, 1 << 20), TaskId::from("t1"));
    commit(&cache, "t1", 1);
    close(&cache, "t1");
    assert!(cache.task_since(&scope("", "eve", "agent"), &id, 1).is_none(), "only its owner is told of it");
    assert!(cache.task_since(&anyone(), &id, 2).is_none(), "the entry is older than what was waited for");
    assert_eq!(cache.task_since(&anyone(), &id, 1).expect("cached").head.version, 1);
    assert!(cache.task(&anyone(), &id).is_none(), "the answer was all that was read of it");
}

#[test]
fn a_record_that_was_read_before_it_was_closed_is_kept() {
    let (cache, id) = (Cache::new(8, 1 << 20), TaskId::from("t1"));
    commit(&cache, "t1", 1);
    assert_eq!(cache.task_since(&anyone(), &id, 0).expect("cached").head.version, 0);
    close(&cache, "t1");
    assert!(cache.task_since(&anyone(), &id, 1).is_some());
    assert!(cache.task(&anyone(), &id).is_some());
}
