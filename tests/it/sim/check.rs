//! What must hold when everything has come to rest.

use std::collections::BTreeMap;

use switchboard_core::call::Owner;
use switchboard_core::dialect::v1_0;
use switchboard_core::lifecycle::{Folded, updates};
use switchboard_core::model::TaskState;
use switchboard_engine::ports::store::Scope;
use switchboard_engine::ports::{Room, Store};

use super::agent::answer;
use super::client::{Known, Ledger};
use super::world::{AGENT, World};

/// What a run saw, so that a simulation that saw nothing can be told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) acknowledged: u64,
    pub(super) updates: u64,
    pub(super) resumed: u64,
    pub(super) crashes: u64,
    pub(super) faults: u64,
}

impl Totals {
    pub(super) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.updates += other.updates;
        self.resumed += other.resumed;
        self.crashes += other.crashes;
        self.faults += other.faults;
    }
}

pub(super) async fn promises(world: &World, ledgers: &[Ledger], crashes: u64) -> Totals {
    let mut totals = Totals { crashes, faults: world.faults(), ..Totals::default() };
    for (number, ledger) in ledgers.iter().enumerate() {
        assert_eq!(ledger.doubled, 0, "one message, one task");
        totals.resumed += ledger.resumed;
        let owner = Owner { tenant: "".into(), principal: format!("client-{number}").into() };
        let scope = Scope { owner, agent: AGENT.into() };
        for (id, known) in &ledger.tasks {
            totals.acknowledged += 1;
            totals.updates += known.seen.len() as u64;
            let stored = world.store().task(&scope, id, &Room::unlimited()).await.unwrap();
            let stored = stored.unwrap_or_else(|| panic!("task {id} was acknowledged and is gone"));
            let state = stored.head.state;
            assert!(state.is_terminal() || state == TaskState::InputRequired, "{id} is stuck in {state:?}: {known:?}");
            assert!(known.terminal.is_none_or(|said| said == state), "{id}: said {known:?}, is {state:?}");
            let log = log(world, &stored).await;
            assert_eq!(log.keys().copied().collect::<Vec<_>>(), (1..=stored.head.seq).collect::<Vec<_>>(), "dense");
            for (seq, seen) in &known.seen {
                assert_eq!(log.get(seq), Some(seen), "{id}: update {seq} is not what was shown");
            }
            check_content(known, state, &stored.folded);
        }
    }
    totals
}

/// Every visible update of a task as it would be on the wire, and the log folded anew.
async fn log(world: &World, stored: &switchboard_engine::ports::store::StoredTask) -> BTreeMap<u64, String> {
    let head = &stored.head;
    let mut shown = BTreeMap::new();
    let mut folded = Folded::empty(head.id.clone(), head.context_id.clone());
    let mut terminals = 0;
    let page = world.store().log(stored.key, 0, usize::MAX).await.unwrap();
    for commit in page.commits {
        folded.apply_all(&commit.events);
        for (seq, update) in updates(&head.id, &head.context_id, commit.first_seq, &commit.events) {
            let mut bytes = Vec::new();
            v1_0::encode_update(&update, &mut bytes);
            if let switchboard_core::model::Update::Status(update) = &update {
                assert_eq!(terminals, 0, "nothing is said after a terminal state");
                terminals += u64::from(update.status.state.is_terminal());
            }
            assert!(shown.insert(seq, String::from_utf8(bytes).unwrap()).is_none(), "one update per number");
        }
    }
    assert_eq!(folded.task, stored.folded.task, "the stored task is the fold of its log");
    shown
}

/// A completed answer is whole, and nothing in it is doubled, however often its run died.
fn check_content(known: &Known, state: TaskState, folded: &Folded) {
    let text: String = folded.task.artifacts.iter().map(|artifact| artifact.text()).collect();
    let mut words = known.command.split(' ');
    let (verb, number) = (words.next().unwrap_or_default(), words.next().and_then(|n| n.parse().ok()));
    match (verb, state) {
        ("chunks", TaskState::Completed) => assert_eq!(text, answer(number.unwrap())),
        ("slow", TaskState::Completed) => assert_eq!(text, "slow done"),
        ("hello", TaskState::Completed) => assert_eq!(text, "hello"),
        ("fail" | "panic", state) => assert!(matches!(state, TaskState::Failed | TaskState::Canceled)),
        ("stubborn", TaskState::Canceled) => assert_eq!(text, "", "a fenced run wrote"),
        _ => {}
    }
    if known.canceled {
        assert_eq!(state, TaskState::Canceled, "a cancel that was confirmed stands");
    }
}
