//! Tasks that are handed over are those of their new owner, their webhooks too, and no row is damaged by it.

use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::model::{Dialect, TaskId};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, now, scope, webhook};
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::ports::store::PushChange;

use super::super::{Assigned, PostgresError, assign_owner, read_audit, verify};
use super::OnSchema;

fn owner(tenant: &str, principal: &str) -> Owner {
    Owner { tenant: tenant.into(), principal: principal.into() }
}

/// The command waits on a runtime of its own, which cannot be done on a thread that has one.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn tasks_are_handed_over_whether_the_new_owner_has_some_or_not() {
    let mut subject = OnSchema::new();
    for (principal, agent, id) in
        [("", "echo", "t1"), ("", "echo", "t2"), ("", "other", "t3"), ("alice", "echo", "t4"), ("bob", "echo", "t5")]
    {
        let mut writer = RecordWriter::new(scope("", principal, agent), id, "ctx");
        let opening = writer.opening(&subject, "hello");
        let mut commit = writer.commit(&subject, vec![opening]);
        let config = webhook(&writer, "p");
        commit.push = vec![PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 }];
        Arc::make_mut(&mut commit.head).push_configs = 1;
        writer.write(&subject, commit).await;
    }
    let entry = AuditEntry::new(now(&subject), AuditEvent::Offline, Decision::Allowed, "db assign-owner".to_owned());
    let options = subject.options.clone();
    let assign = |from: Owner, agent: Option<&str>| -> Result<Assigned, PostgresError> {
        apart(|| assign_owner(&options, &from, &owner("acme", "alice"), agent, &entry))
    };
    let refused = assign(owner("", ""), None).unwrap_err().to_string();
    assert!(refused.contains("servers use the database (first)"), "{refused}");
    subject.first = None;

    let both = Assigned { tasks: 3, agents: vec!["echo".to_owned(), "other".to_owned()], damaged: 0 };
    assert_eq!(assign(owner("", ""), None).unwrap(), both);
    // A second time there is nothing left; and now to an owner that has tasks, of which one is damaged.
    assert_eq!(assign(owner("", ""), None).unwrap(), Assigned::default());
    let one = Assigned { tasks: 1, agents: vec!["echo".to_owned()], damaged: 0 };
    assert_eq!(assign(owner("", "alice"), Some("echo")).unwrap(), one);
    subject.sql("update task set seq = seq + 1 where id = 't5'");
    assert_eq!(assign(owner("", "bob"), None).unwrap(), Assigned { damaged: 1, ..Assigned::default() });
    subject.sql("update task set seq = seq - 1 where id = 't5'");

    let mut faults = Vec::new();
    let checked = apart(|| verify(&options, &mut |fault| faults.push(fault.to_string())).unwrap());
    assert_eq!((faults, checked.tasks), (Vec::new(), 5));
    let chains = apart(|| read_audit(&options, &mut |_, _| {}).unwrap());
    assert_eq!((chains.len(), chains[0].last.no, &chains[0].broken), (1, 4, &None), "each was recorded");
    subject.sql(
        "do $$ begin
            if exists (select 1 from push join task using (task_no) join scope using (scope_no)
                        where push.owner_no <> scope.owner_no) then raise exception 'filed under another owner'; end if;
         end $$",
    );
    subject.restart();
    let store = subject.store();
    for (agent, id) in [("echo", "t1"), ("echo", "t2"), ("other", "t3"), ("echo", "t4")] {
        let id = TaskId::from(id);
        assert!(store.head(&scope("acme", "alice", agent), &id).await.unwrap().is_some(), "{id}");
        assert!(store.head(&scope("", "", agent), &id).await.unwrap().is_none(), "{id}");
    }
    assert!(store.head(&scope("", "bob", "echo"), &TaskId::from("t5")).await.unwrap().is_some());
}
