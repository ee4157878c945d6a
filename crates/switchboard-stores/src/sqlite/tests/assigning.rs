//! Tasks that are handed over are those of their new owner, and the file is whole.

use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::model::{Dialect, TaskId};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, now, scope, webhook};
use switchboard_engine::ports::store::PushChange;

use super::{faults_of, make};
use crate::sqlite::offline::assign_owner::{Assigned, assign_owner};

fn owner(tenant: &str, principal: &str) -> Owner {
    Owner { tenant: tenant.into(), principal: principal.into() }
}

#[tokio::test]
async fn tasks_are_handed_over_whether_the_new_owner_has_some_or_not() {
    let mut subject = make();
    for (principal, agent, id) in [("", "echo", "t1"), ("", "echo", "t2"), ("", "other", "t3"), ("alice", "echo", "t4")]
    {
        let mut writer = RecordWriter::new(scope("", principal, agent), id, "ctx");
        let opening = writer.opening(&subject, "hello");
        let mut commit = writer.commit(&subject, vec![opening]);
        let config = webhook(&writer, "p");
        commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
        Arc::make_mut(&mut commit.head).push_configs = 1;
        writer.write(&subject, commit).await;
    }
    let at = now(&subject);
    subject.close();
    let path = subject.path();
    let alice = owner("acme", "alice");
    let both = Assigned { tasks: 3, agents: vec!["echo".to_owned(), "other".to_owned()], damaged: 0 };
    assert_eq!(assign_owner(&path, at, &owner("", ""), &alice, None).unwrap(), both);
    // A second time there is nothing left; and now to an owner that has tasks.
    assert_eq!(assign_owner(&path, at, &owner("", ""), &alice, None).unwrap(), Assigned::default());
    let one = Assigned { tasks: 1, agents: vec!["echo".to_owned()], damaged: 0 };
    assert_eq!(assign_owner(&path, at, &owner("", "alice"), &alice, Some("echo")).unwrap(), one);
    assert_eq!(faults_of(&path), Vec::<String>::new());
    subject.restart();
    let store = subject.store();
    for (agent, id) in [("echo", "t1"), ("echo", "t2"), ("other", "t3"), ("echo", "t4")] {
        let id = TaskId::from(id);
        assert!(store.head(&scope("acme", "alice", agent), &id).await.unwrap().is_some(), "{id}");
        assert!(store.head(&scope("", "", agent), &id).await.unwrap().is_none(), "{id}");
    }
}
