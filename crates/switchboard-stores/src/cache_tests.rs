//! Reads by others than the owner leave no trace in the cache.

use std::sync::Arc;

use switchboard_core::lifecycle::{Folded, Head};
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
