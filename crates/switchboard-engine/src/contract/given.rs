//! Helpers for behaviours: a writer that commits to one record and computes what must then be stored, and short
//! constructors for events.

use std::sync::Arc;

use switchboard_core::call::Owner;
use switchboard_core::lifecycle::{Bounds, Command, Event, Folded, Head, Inbound, decide, is_needed_to_fold};
use switchboard_core::model::{
    AgentName, Artifact, AuthenticationInfo, Dialect, Message, Part, PushConfig, Role, TaskState, Timestamp,
    TraceContext,
};

use super::Subject;
use crate::ports::calls::{CallRow, CallStatus};
use crate::ports::store::{
    Commit, CommitError, DueRun, LeaseChange, LoggedCommit, Scope, StorageLimits, Store, StoreError, StoredHead,
    Target, TaskKey,
};

pub const LEASE_MS: u32 = 30_000;

/// The agent of [`anyone`].
pub const AGENT: &str = "echo";

#[must_use]
pub fn scope(tenant: &str, principal: &str, agent: &str) -> Scope {
    Scope { owner: Owner { tenant: tenant.into(), principal: principal.into() }, agent: agent.into() }
}

#[must_use]
pub fn anyone() -> Scope {
    scope("", "", AGENT)
}

/// Writes to one record, and remembers what it wrote.
#[derive(Clone)]
pub struct RecordWriter {
    pub scope: Scope,
    pub key: Option<TaskKey>,
    pub head: Arc<Head>,
    pub folded: Folded,
    pub log: Vec<LoggedCommit>,
    /// Whether commits carry their fold, as the engine's commits do when the fold is known.
    pub hints: bool,
}

impl RecordWriter {
    #[must_use]
    pub fn new(scope: Scope, id: &str, context: &str) -> Self {
        let head = Arc::new(Head::unopened(id.into(), context.into(), scope.agent.clone()));
        let folded = Folded::empty(id.into(), context.into());
        Self { scope, key: None, head, folded, log: Vec::new(), hints: false }
    }

    /// A record whose task is opened and being worked on under a lease.
    pub async fn opened(subject: &dyn Subject, id: &str) -> Self {
        let mut writer = Self::new(anyone(), id, "ctx");
        let opened = writer.opening(subject, "hello");
        let mut commit = writer.commit(subject, vec![opened]);
        commit.lease = TAKEN;
        writer.write(subject, commit).await;
        writer
    }

    /// A task that is completed in its first commit.
    pub async fn completed(subject: &dyn Subject, id: &str) -> Self {
        let mut writer = Self::new(anyone(), id, "ctx");
        let events = vec![writer.opening(subject, "hello"), status(subject, TaskState::Completed, None)];
        writer.append(subject, events).await;
        writer
    }

    #[must_use]
    pub fn opening(&self, subject: &dyn Subject, text: &str) -> Event {
        let context_id = self.head.context_id.clone();
        Event::Opened { inbound: inbound(1, text), context_id, at: now(subject) }
    }

    /// The commit of these events on the record as the writer knows it.
    #[must_use]
    pub fn commit(&self, subject: &dyn Subject, events: Vec<Event>) -> Commit {
        let mut head = Head::clone(&self.head);
        head.apply_commit(&events);
        let mut folded = self.folded.clone();
        folded.apply_all(&events);
        let target = match self.key {
            None => Target::New { scope: self.scope.clone() },
            Some(key) => Target::Existing { key, expected_version: self.head.version },
        };
        Commit {
            target,
            fence: None,
            folds: is_needed_to_fold(self.head.state, &events),
            events: events.into(),
            head: Arc::new(head),
            lease: LeaseChange::Keep,
            push: Vec::new(),
            accept: None,
            audit: None,
            at: now(subject),
            storage: StorageLimits::NONE,
            folded: self.hints.then(|| Arc::new(folded)),
        }
    }

    /// Commits, and remembers the events if the store accepted them.
    ///
    /// # Errors
    /// The store's error.
    pub async fn try_write(&mut self, subject: &dyn Subject, commit: Commit) -> Result<TaskKey, CommitError> {
        let (head, events, first_seq) = (commit.head.clone(), commit.events.clone(), commit.first_seq());
        let key = subject.store().commit(commit).await?;
        assert!(self.key.is_none_or(|known| known == key), "a record keeps its key");
        self.key = Some(key);
        self.remember(head, events, first_seq);
        Ok(key)
    }

    pub async fn write(&mut self, subject: &dyn Subject, commit: Commit) -> TaskKey {
        self.try_write(subject, commit).await.expect("the store takes the commit")
    }

    pub async fn append(&mut self, subject: &dyn Subject, events: Vec<Event>) -> TaskKey {
        let commit = self.commit(subject, events);
        self.write(subject, commit).await
    }

    /// Remembers a commit that was not made through this writer.
    pub fn remember(&mut self, head: Arc<Head>, events: Arc<[Event]>, first_seq: u64) {
        self.folded.apply_all(&events);
        self.log.push(LoggedCommit { version: head.version, first_seq, events });
        self.head = head;
    }

    #[must_use]
    pub fn key(&self) -> TaskKey {
        self.key.expect("the record is written")
    }

    /// Checks that the store holds exactly what was written: head, task, log, and that the log folds to the task.
    pub async fn check(&self, subject: &dyn Subject) {
        self.check_whole(subject).await;
        let mut folded = Folded::empty(self.head.id.clone(), self.head.context_id.clone());
        for commit in &self.log {
            folded.apply_all(&commit.events);
        }
        assert_eq!(folded, self.folded, "the log folds to the task");
        let visible = |commit: &&LoggedCommit| commit.events.iter().any(Event::is_visible);
        let expected: Vec<_> = self.log.iter().filter(visible).map(flat).collect();
        let read = read_log(subject.store(), self.key(), 0, 3).await.expect("the log is kept");
        assert_eq!(read.iter().map(flat).collect::<Vec<_>>(), expected);
    }

    /// Checks only head and task, for a record whose log is no longer complete.
    pub async fn check_whole(&self, subject: &dyn Subject) {
        let (store, id) = (subject.store(), &self.head.id);
        let stored = store.head(&self.scope, id).await.expect("heads are read").expect("the record is there");
        assert_eq!((stored.key, &stored.scope, &stored.head), (self.key(), &self.scope, &self.head));
        let stored = store.task(&self.scope, id, u64::MAX).await.expect("tasks are read").expect("the record is there");
        assert_eq!((stored.key, &stored.head, &*stored.folded), (self.key(), &self.head, &self.folded));
        assert_eq!(stored.outlined, [], "everything fits");
        let since = store.task_since(&self.scope, id, self.head.version, u64::MAX).await.expect("tasks are read");
        let since = since.expect("the record is there");
        assert_eq!((since.key, &since.head, &*since.folded), (self.key(), &self.head, &self.folded));
    }
}

fn flat(commit: &LoggedCommit) -> (u64, u64, Vec<Event>) {
    (commit.version, commit.first_seq, commit.events.to_vec())
}

/// Everything above a cursor, read in pages.
///
/// # Errors
/// The store's error.
pub async fn read_log(
    store: &dyn Store,
    key: TaskKey,
    after_seq: u64,
    page: usize,
) -> Result<Vec<LoggedCommit>, StoreError> {
    let mut all: Vec<LoggedCommit> = Vec::new();
    let mut after = after_seq;
    loop {
        let commits = store.log(key, after, page).await?.commits;
        let Some(last) = commits.last() else { return Ok(all) };
        assert!(commits.len() <= page, "a page holds no more than was asked for");
        let visible = last.events.iter().filter(|event| event.is_visible()).count() as u64;
        after = last.first_seq + visible - 1;
        all.extend(commits);
    }
}

/// The lease of a run that begins with its commit.
pub const TAKEN: LeaseChange = LeaseChange::Take { lease_ms: LEASE_MS, waits: false };

/// The due runs of the agent of [`anyone`].
pub async fn due(store: &dyn Store, limit: usize) -> Vec<DueRun> {
    store.due_runs(&[AgentName::from(AGENT)], limit).await.expect("due runs are listed")
}

/// Takes a run over as the engine does, and returns its head after that.
///
/// # Errors
/// The store's error.
pub async fn try_claim(store: &dyn Store, at: Timestamp, run: &DueRun) -> Result<StoredHead, CommitError> {
    let StoredHead { key, scope, head: before } = &run.stored;
    let bounds = Bounds { inbox_messages_max: 1, artifacts_max: 1, artifact_bytes_max: 1, write_bytes_max: 1 };
    let interrupted = run.interrupted;
    let events = decide(before, Command::Claim { interrupted }, &bounds, at).expect("the run can be claimed");
    let mut head = Head::clone(before);
    head.apply_commit(&events);
    let head = Arc::new(head);
    let commit = Commit {
        target: Target::Existing { key: *key, expected_version: before.version },
        fence: None,
        folds: is_needed_to_fold(before.state, &events),
        events: events.into(),
        head: head.clone(),
        lease: LeaseChange::Claim { lease_ms: LEASE_MS, interrupted },
        push: Vec::new(),
        accept: None,
        audit: None,
        at,
        storage: StorageLimits::NONE,
        folded: None,
    };
    store.commit(commit).await?;
    Ok(StoredHead { key: *key, scope: scope.clone(), head })
}

/// Claims every run that is due, at most `limit`, and returns them. Runs that cannot be read are left out.
pub async fn claim(subject: &dyn Subject, limit: usize) -> Vec<DueRun> {
    let mut claimed = Vec::new();
    for run in due(subject.store(), limit).await {
        match try_claim(subject.store(), now(subject), &run).await {
            Ok(stored) => claimed.push(DueRun { stored, ..run }),
            Err(CommitError::Store(StoreError::Damaged(_))) => {}
            Err(error) => panic!("a run that is due was not claimed: {error:?}"),
        }
    }
    claimed
}

#[must_use]
pub fn now(subject: &dyn Subject) -> Timestamp {
    crate::ports::Clock::now(subject.clock())
}

#[must_use]
pub fn message(role: Role, id: &str, text: &str) -> Arc<Message> {
    Arc::new(Message::new(role, id, vec![Part::text(text)]))
}

/// A place in a trace.
#[must_use]
pub fn trace() -> Arc<TraceContext> {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    Arc::new(TraceContext::of_texts(Some(parent), Some("congo=t61rcWkgMzE")).expect("it follows the grammar"))
}

#[must_use]
pub fn inbound(turn: u32, text: &str) -> Arc<Inbound> {
    Arc::new(Inbound {
        turn,
        message: message(Role::User, &format!("m{turn}"), text),
        dialect: Dialect::V1_0,
        metadata: None,
        accepted_output_modes: Vec::new(),
        extensions: Vec::new(),
        trace: None,
    })
}

#[must_use]
pub fn status(subject: &dyn Subject, state: TaskState, text: Option<&str>) -> Event {
    let message = text.map(|text| message(Role::Agent, "s", text));
    Event::StatusChanged { state, message, metadata: None, at: now(subject) }
}

#[must_use]
pub fn chunk(id: &str, text: &str, append: bool) -> Event {
    write_parts(id, vec![Part::text(text)], append)
}

#[must_use]
pub fn write_parts(id: &str, parts: Vec<Part>, append: bool) -> Event {
    let artifact = Arc::new(Artifact::new(id, parts));
    Event::ArtifactWritten { artifact, append, last_chunk: false, metadata: None, attempt: 1 }
}

#[must_use]
pub fn webhook(writer: &RecordWriter, id: &str) -> PushConfig {
    PushConfig {
        id: id.into(),
        task_id: writer.head.id.clone(),
        url: format!("https://example.com/{id}"),
        token: Some("token".to_owned()),
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("c".to_owned()) }),
    }
}

/// A call to `mail` by the run of a task, as it is when it is opened; nothing checks yet whether the run is at work.
#[must_use]
pub fn call(subject: &dyn Subject, parent: &RecordWriter, id: &str) -> CallRow {
    CallRow {
        id: id.to_owned(),
        parent: parent.key(),
        parent_id: parent.head.id.clone(),
        scope: parent.scope.clone(),
        turn: 1,
        agent: "mail".to_owned(),
        status: CallStatus::Inline,
        has_left: false,
        remote_task: None,
        remote_context: None,
        attempts: 0,
        due_at: None,
        claimed_until: None,
        give_up_at: None,
        deliver_to: None,
        outcome: None,
        receipt: None,
        error: None,
        trace: Some(trace()),
        created_at: now(subject),
        ended_at: None,
    }
}
