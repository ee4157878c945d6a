//! Records what the store accepted, from which node and under which fence. Promises about every single write are
//! checked here, the others when the world has come to rest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use switchboard_core::lifecycle::{Event, Head};
use switchboard_core::model::{ConfigId, TaskId, TaskState};
use switchboard_engine::ports::store::{Commit, LeaseChange, PushChange, Scope, Target, TaskKey};
use tokio::time::Instant;

use super::journal::{Journal, count};
use super::life::Life;

pub(super) struct Audit {
    journal: Arc<Journal>,
    books: Mutex<Books>,
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) tasks: BTreeMap<TaskKey, Book>,
    pub(super) keys: BTreeMap<TaskId, TaskKey>,
}

/// One record.
pub(super) struct Book {
    pub(super) scope: Scope,
    pub(super) head: Arc<Head>,
    /// Every commit, internal ones too, in order of versions from 1.
    pub(super) commits: Vec<Written>,
    /// The holder of the lease, while a run is under way or ought to be.
    pub(super) owner: Option<Arc<Life>>,
    /// The webhooks that are registered, and the number after which each is to be told.
    pub(super) hooks: BTreeMap<ConfigId, u64>,
}

pub(super) struct Written {
    at: Instant,
    pub(super) first_seq: u64,
    pub(super) events: Arc<[Event]>,
}

/// What is noted of a commit before it is handed on.
pub(super) struct Offer {
    scope: Option<Scope>,
    fence: Option<u64>,
    first_seq: u64,
    events: Arc<[Event]>,
    head: Arc<Head>,
    lease: LeaseChange,
    hooks: Vec<(ConfigId, Option<u64>)>,
}

impl Offer {
    pub(super) fn of(commit: &Commit) -> Self {
        let scope = match &commit.target {
            Target::New { scope } => Some(scope.clone()),
            Target::Existing { .. } => None,
        };
        let hook = |change: &PushChange| match change {
            PushChange::Put { config, after_seq, .. } => (config.id.clone(), Some(*after_seq)),
            PushChange::Delete { id } => (id.clone(), None),
        };
        Self {
            scope,
            fence: commit.fence,
            first_seq: commit.first_seq(),
            events: commit.events.clone(),
            head: commit.head.clone(),
            lease: commit.lease,
            hooks: commit.push.iter().map(hook).collect(),
        }
    }
}

impl Audit {
    pub(super) fn new(journal: Arc<Journal>) -> Self {
        Self { journal, books: Mutex::default() }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }

    /// The store has taken a commit.
    pub(super) fn took(&self, life: &Arc<Life>, key: TaskKey, offer: Offer) {
        let mut books = self.books();
        let Offer { scope, fence, first_seq, events, head, lease, hooks } = offer;
        let id = head.id.clone();
        self.journal
            .say(|| format!("{} wrote v{} of {id} under {fence:?}: {}", life.name, head.version, words(&events)));
        if let Some(scope) = scope {
            let unopened = Arc::new(Head::unopened(id.clone(), head.context_id.clone(), head.agent.clone()));
            let book = Book { scope, head: unopened, commits: Vec::new(), owner: None, hooks: BTreeMap::new() };
            books.keys.insert(id.clone(), key);
            if books.tasks.insert(key, book).is_some() {
                self.journal.broken(&format!("{id} was opened twice"));
            }
        }
        let Some(book) = books.tasks.get_mut(&key) else {
            return self.journal.broken(&format!("{id} was written to before it was opened"));
        };
        let before = &book.head;
        if fence.is_some_and(|fence| fence != before.fence) {
            let (fence, now) = (fence.unwrap_or(0), before.fence);
            self.journal.broken(&format!("{id}: a run wrote under fence {fence}, the fence is {now}"));
        }
        if let LeaseChange::Claim { .. } = lease {
            count(&self.journal.counts.runs_claimed);
            if head.fence != before.fence + 1 {
                self.journal.broken(&format!("{id} was claimed under fence {}, not a new one", head.fence));
            }
            if !life.serves.contains(&book.scope.agent.as_str()) {
                let agent = &book.scope.agent;
                self.journal.broken(&format!("{id} was claimed by {}, which does not serve {agent}", life.name));
            }
        }
        let is_owner = book.owner.as_ref().is_none_or(|owner| Arc::ptr_eq(owner, life));
        if fence.is_none() && before.running && head.state == TaskState::Failed && !is_owner {
            self.journal.broken(&format!("{id} was failed by {}, which does not run it", life.name));
        }
        if head.version != before.version + 1 {
            self.journal.broken(&format!("{id}: v{} was written onto v{}", head.version, before.version));
        }
        if first_seq != before.seq + 1 {
            self.journal.broken(&format!("{id}: update {first_seq} follows update {}", before.seq));
        }
        if before.is_closed() && !events.is_empty() {
            self.journal.broken(&format!("{id} is closed, and took {}", words(&events)));
        }
        for (config, after_seq) in hooks {
            match after_seq {
                Some(after_seq) => book.hooks.insert(config, after_seq),
                None => book.hooks.remove(&config),
            };
        }
        match (head.running, lease) {
            (false, _) => book.owner = None,
            (true, LeaseChange::Take { .. } | LeaseChange::Claim { .. }) => book.owner = Some(life.clone()),
            (true, LeaseChange::Keep) => {}
        }
        book.head = head;
        book.commits.push(Written { at: Instant::now(), first_seq, events });
    }

    /// Whether an update that a client was shown has been committed.
    pub(super) fn has_committed(&self, id: &TaskId, seq: u64) -> bool {
        self.age(id, seq).is_some()
    }

    /// How long ago an update was committed, if it was.
    pub(super) fn age(&self, id: &TaskId, seq: u64) -> Option<Duration> {
        let books = self.books();
        let book = books.tasks.get(books.keys.get(id)?)?;
        let last = book.commits.iter().rev().find(|commit| commit.first_seq <= seq)?;
        (book.head.seq >= seq).then(|| last.at.elapsed())
    }

    /// After which number a webhook is to be told, if it is registered.
    pub(super) fn hook(&self, id: &TaskId, config: &ConfigId) -> Option<u64> {
        let books = self.books();
        books.keys.get(id).and_then(|key| books.tasks.get(key)?.hooks.get(config)).copied()
    }
}

/// Events in a word each.
fn words(events: &[Event]) -> String {
    let word = |event: &Event| match event {
        Event::Received { .. } => "received".to_owned(),
        Event::Opened { .. } => "opened".to_owned(),
        Event::MessageAdded { inbound } => format!("message for turn {}", inbound.turn),
        Event::TurnBegan { turn, fence } => format!("turn {turn} under {fence}"),
        Event::TurnEnded => "turn ended".to_owned(),
        Event::StatusChanged { state, .. } => state.word().to_owned(),
        Event::ArtifactWritten { artifact, append, .. } => {
            format!("{} {}{}", artifact.artifact_id, if *append { "+" } else { "=" }, artifact.text())
        }
        Event::Noted { .. } => "noted".to_owned(),
        Event::Replied { .. } => "replied".to_owned(),
        Event::CancelRequested { .. } => "cancel requested".to_owned(),
        Event::Claimed { fence, attempt, .. } => format!("attempt {attempt} under {fence}"),
        Event::Checkpoint { value } => format!("checkpoint {}", value.as_str()),
    };
    events.iter().map(word).collect::<Vec<_>>().join(", ")
}
