//! Accepts messages: whether the agent can read the message, whether it was sent before, and which task it opens or
//! continues. Acceptance is one commit, and a run starts only after it. An agent that declares no effects may run
//! before it, so that acceptance and answer are one commit.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, Owner, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Command, Event, Folded, Head, Inbound, Opening, Refusal, decide, decide_onto};
use switchboard_core::model::{
    AgentCard, AgentName, Dialect, Json, Message, PushConfig, TaskId, Timestamp, Vocabulary,
};

use crate::commit::{AppendError, Extras, Stage, Step, WriteError, contended};
use crate::ports::audit::{AuditEntry, AuditEvent, Decision};
use crate::ports::store::{Accept, Accepted, PushChange, Scope, StoredHead, StoredTask};
use crate::push::put_config;
use crate::runs::{
    AgentFuture, Background, Begun, Registered, Run, RunHold, RunSlot, RunStart, Turn, TurnStart, admitted, poll_once,
};
use crate::sha256::sha256;
use crate::state::EngineState;
use crate::state::record::Record;
use crate::state::runs::{AttachedRun, Effects, Idempotency, Replies, RunEnd};
use crate::supervisor::Unbroken;

/// The result of offering a message.
pub(crate) enum Acceptance {
    /// It was accepted.
    New(AcceptedMessage),
    /// It had been accepted before.
    Repeated(Accepted),
}

/// A message that was just accepted.
pub(crate) struct AcceptedMessage {
    pub(crate) record: Arc<Record>,
    /// The record after the accepting commit.
    pub(crate) stored: StoredTask,
    /// The events of the accepting commit.
    pub(crate) events: Arc<[Event]>,
    /// Whether the message opened the record.
    pub(crate) opened: bool,
    /// The run that the message started, for a caller that waits for its outcome. Dropping this does not stop the run:
    /// it continues in the background.
    pub(crate) run: Option<AttachedRun>,
}

impl AcceptedMessage {
    /// The number of the first visible event of the accepting commit.
    pub(crate) fn first_seq(&self) -> u64 {
        let visible = self.events.iter().filter(|event| event.is_visible()).count() as u64;
        self.stored.head.seq + 1 - visible
    }
}

/// Accepts a message. If the caller disconnects meanwhile, acceptance is still completed, so that no stored message is
/// left without a run.
pub(crate) fn accept(
    engine: &Arc<EngineState>,
    agent: &Arc<Registered>,
    caller: &Caller,
    mut send: Box<SendMessage>,
) -> Unbroken<Result<Acceptance, ProtocolError>> {
    let (own, agent, caller) = (engine.clone(), agent.clone(), caller.clone());
    engine.supervisor.unbroken(Box::pin(async move {
        let (engine, agent, caller) = (&own, &agent, &caller);
        let identity = identify(agent, caller, &send.message);
        // Clients of protocol versions before 1.0 may leave the message id out.
        if send.message.message_id.is_empty() {
            send.message.message_id = caller.dialect.rules().own_id(engine.uuid()).into();
        }
        let scope = engine.scope(caller, agent);
        let held = engine.hold_message(&scope.owner, &send.message)?;
        let fires = engine.self_fire.is_some() && send.return_immediately;
        let acceptor = Acceptor { engine, agent, caller, scope, identity, fires };
        match send.message.task_id.clone() {
            None => acceptor.open(send, held).await,
            Some(id) => Box::pin(acceptor.go_on(id, send, held)).await,
        }
    }))
}

struct Acceptor<'a> {
    engine: &'a Arc<EngineState>,
    agent: &'a Arc<Registered>,
    caller: &'a Caller,
    scope: Scope,
    identity: Option<Identity>,
    /// Whether the run is started by a post of the server to itself.
    fires: bool,
}

impl Acceptor<'_> {
    /// Opens a new record.
    async fn open(&self, send: Box<SendMessage>, mut held: RunHold) -> Result<Acceptance, ProtocolError> {
        let is_chosen = send.open_as.is_some();
        let is_told_first = send.return_immediately && self.caller.dialect.rules().answers_before_the_run;
        // Only a context that the caller named can have earlier messages; a new context has none.
        let has_background = !send.message.reference_task_ids.is_empty()
            || (self.agent.source.traits().context_messages_max > 0 && send.message.context_id.is_some());
        let may_ask_first = self.agent.source.traits().effects == Effects::Never && !is_told_first && !self.fires;
        // An agent that runs before its message is stored occupies a slot from then on, so the slot is taken first.
        let is_limited = self.agent.source.slots().is_some();
        let slot = if may_ask_first && is_limited { self.engine.free_slot(self.agent) } else { None };
        match may_ask_first && (!is_limited || slot.is_some()) {
            true => {
                // This is a block of its own, so that the prepared values are dropped before the answer is committed.
                let asked = {
                    let opening = self.prepare(send)?;
                    let background = match has_background {
                        true => Box::pin(self.background(&opening)).await,
                        false => Background::default(),
                    };
                    self.ask(opening, background)?
                };
                self.commit_asked(asked, slot, held, is_chosen).await
            }
            false => {
                let NewRecord { record, before, events, extras, .. } = self.prepare(send)?;
                let mut folded = Folded::empty(record.id.clone(), record.context_id.clone());
                folded.apply_all(&events);
                let id = record.id.clone();
                let acceptor = self.commit_and_run(record, &before, events, Arc::new(folded), extras, true, &mut held);
                // Boxed, because the future for a message to an agent without effects would otherwise reserve memory
                // for this one.
                let acceptance = Box::pin(acceptor).await?;
                acceptance.ok_or_else(|| not_opened(&id, is_chosen))
            }
        }
    }

    async fn background(&self, opening: &NewRecord) -> Background {
        self.engine.background_of(self.agent, &self.scope, &opening.record.id, &opening.inbound.message).await
    }

    /// Computes everything about a new record that needs no `await`.
    fn prepare(&self, send: Box<SendMessage>) -> Result<NewRecord, ProtocolError> {
        let (engine, now) = (self.engine, self.engine.now());
        let fresh = || self.caller.dialect.rules().own_id(engine.ids.uuid(now));
        let id = send.open_as.clone().unwrap_or_else(|| TaskId::from(fresh()));
        let context_id = send.message.context_id.clone().unwrap_or_else(|| fresh().into());
        let born = self.agent.source.traits().replies == Replies::Task
            || send.return_immediately
            || send.open_as.is_some()
            || send.push_config.is_some();
        let record = Arc::new(Record::unopened(self.scope.clone(), id.clone(), context_id.clone(), now));
        let push = self.push_change(&send, &id, 0, &[])?;
        let SendMessage { message, metadata, accepted_output_modes, .. } = *send;
        let message = Message { task_id: Some(id), context_id: Some(context_id.clone()), ..message };
        let inbound = self.inbound(1, message, metadata, accepted_output_modes);
        record.trace.set(inbound.trace.as_ref());
        let command = Command::Open(Opening { inbound: inbound.clone(), context_id, born });
        let before = record.head();
        // Reserves capacity for the events that a short answer adds.
        let mut events = Vec::with_capacity(4);
        decide_onto(&mut events, &before, command, &engine.bounds(), now).map_err(refused)?;
        let audit = self.audit(now, &record.id);
        let extras = Extras { push, accept: self.accept(now, 1, 0), audit, ..Extras::default() };
        Ok(NewRecord { record, inbound, before, events, extras, now })
    }

    /// Runs an agent without effects before anything is stored. If the agent finishes at its first poll, the message
    /// and the answer are one commit; if it has to wait, the message and what the agent has written so far are.
    fn ask(&self, opening: NewRecord, background: Background) -> Result<StagedRecord, ProtocolError> {
        let NewRecord { record, inbound, before, events, mut extras, now } = opening;
        let engine = self.engine;
        let folded = Folded::empty(record.id.clone(), record.context_id.clone());
        let stage = Stage::begin(&before, folded, events, now);
        let run_max = engine.run_max(self.agent.source.traits(), inbound.metadata.as_ref(), None);
        let start = TurnStart::first(record.clone(), inbound, &stage.head, run_max, background, now);
        let turn = Turn::staged(engine.clone(), start, stage);
        let mut future = self.agent.source.start(turn.clone());
        let mut ended = None;
        let stage = match poll_once(&mut future) {
            Some(outcome) => {
                let (end, how) = outcome.into_end(engine, self.agent, &turn);
                turn.end_in_stage(end);
                ended = Some((how, turn.work_time().elapsed()));
                turn.finish_stage()
            }
            None => turn.unstage(),
        };
        let Some(Stage { before, head, events, folded, at, .. }) = stage else {
            return Err(ProtocolError::Internal { incident: engine.uuid().to_string() });
        };
        let folded = Arc::new(folded);
        extras.folded = Some(folded.clone());
        let run = head.running.then_some(future);
        let step = Step::of(before, head, events.into(), at);
        Ok(StagedRecord { record, step, folded, extras: Box::new(extras), turn, run, ended })
    }

    /// Commits the message to an agent without effects together with what the agent has written so far.
    async fn commit_asked(
        &self,
        asked: StagedRecord,
        slot: Option<RunSlot>,
        held: RunHold,
        is_chosen: bool,
    ) -> Result<Acceptance, ProtocolError> {
        let StagedRecord { record, step, folded, extras, turn, run, ended } = asked;
        let events = step.events.clone();
        let run = run.map(|future| (future, self.engine.now()));
        if let Err(error) = self.engine.append(&record, step, None, *extras).await {
            // Another request won the race. Cancel this run: its agent declared no effects, so nothing has to be undone.
            turn.cancel_token().cancel();
            return self.not_accepted(error)?.ok_or_else(|| not_opened(&record.id, is_chosen));
        }
        if let Some((how, worked)) = ended {
            let shown = record.with_head(|head| RunEnd::shown_by(head, turn.number()));
            let runs = self.agent.source.runs();
            runs.start();
            // The task records only that it failed, so the reason is taken from the run.
            let how = if shown == RunEnd::Failed && how != RunEnd::Completed { how } else { shown };
            runs.end(how, worked);
            turn.end_span(how);
        }
        if let Some((future, leased_at)) = run {
            let (engine, agent, begun) = (self.engine.clone(), self.agent.clone(), Begun::Already(slot));
            Run::new(engine, agent, turn, future, begun, leased_at, held).spawn();
        }
        self.engine.note_opened();
        Ok(Acceptance::New(accepted_message(record, folded, events, true)))
    }

    /// Commits the acceptance, then starts the run if this message begins one. Returns none if another commit to the
    /// task came first.
    #[expect(clippy::too_many_arguments, reason = "each is another part of the one commit")]
    async fn commit_and_run(
        &self,
        record: Arc<Record>,
        before: &Head,
        events: Vec<Event>,
        folded: Arc<Folded>,
        mut extras: Extras,
        opened: bool,
        held: &mut RunHold,
    ) -> Result<Option<Acceptance>, ProtocolError> {
        let begins = opened || !before.running;
        // A run that gets no slot now has not begun, and the commit records that.
        let enqueues = begins && self.fires;
        let slot = if begins && !enqueues { self.engine.free_slot(self.agent) } else { None };
        extras.waits = begins && slot.is_none();
        extras.enqueues = enqueues;
        if begins && !opened {
            self.engine.hold_task(&self.scope.owner, &folded.task, held)?;
        }
        if extras.waits {
            self.engine.hold_queue_place(&self.scope.owner, held)?;
        }
        extras.folded = Some(folded.clone());
        let leased_at = self.engine.now();
        let step = Step::from(before, events.into(), leased_at);
        let events = step.events.clone();
        if let Err(error) = self.engine.append(&record, step, None, extras).await {
            return self.not_accepted(error);
        }
        if opened {
            self.engine.note_opened();
        }
        let mut message = accepted_message(record, folded, events, opened);
        if let Some(self_fire) = self.engine.self_fire.as_ref().filter(|_| enqueues) {
            self_fire.fire(&self.engine.supervisor, &message.record, self.engine.now()).await;
        } else if begins {
            let stored = &message.stored;
            let background = self.engine.background(self.agent, &self.scope, stored).await;
            let (engine, agent) = (self.engine.clone(), self.agent.clone());
            let record = message.record.clone();
            let begun = slot.map_or(Begun::NotYet, |slot| Begun::Already(Some(slot)));
            let from = RunStart { begun, leased_at, interrupted: false, held: std::mem::take(held) };
            message.run = Run::begin(engine, agent, record, stored, background, from).map(Run::attach);
        }
        Ok(Some(Acceptance::New(message)))
    }

    /// Why a message was not accepted by this commit: another commit came first (none), or it had been accepted before.
    fn not_accepted(&self, error: AppendError) -> Result<Option<Acceptance>, ProtocolError> {
        match error {
            AppendError::Conflict => Ok(None),
            AppendError::Write(WriteError::Duplicate(accepted)) => {
                if let Some(identity) = &self.identity {
                    identity.check(&accepted, self.caller.dialect)?;
                }
                Ok(Some(Acceptance::Repeated(accepted)))
            }
            AppendError::Write(error) => Err(error.into_protocol()),
        }
    }

    /// Continues a task.
    async fn go_on(&self, id: TaskId, send: Box<SendMessage>, mut held: RunHold) -> Result<Acceptance, ProtocolError> {
        let engine = self.engine;
        if let Some(identity) = &self.identity {
            // A repeat of the message that ended its task gets the stored answer, where a new message would be refused.
            let known = engine.store.find_accepted(identity.key).await.map_err(|error| engine.store_failed(&error))?;
            if let Some(accepted) = known {
                identity.check(&accepted, self.caller.dialect)?;
                return Ok(Acceptance::Repeated(accepted));
            }
        }
        for _ in 0..engine.limits.commit_attempts_max {
            let stored = engine.live_task(&self.scope, &id).await?;
            if send.message.context_id.as_ref().is_some_and(|context| *context != stored.head.context_id) {
                let description =
                    format!("does not match the context of task {id}; leave it out to use the task's own");
                return Err(ProtocolError::invalid(self.caller.dialect.rules().words.context_id, description));
            }
            let turn = stored.head.turns + 1;
            let context_id = Some(stored.head.context_id.clone());
            let message = Message { context_id, ..send.message.clone() };
            let inbound = self.inbound(turn, message, send.metadata.clone(), send.accepted_output_modes.clone());
            let command = Command::AddMessage { inbound };
            let now = engine.now();
            let events = decide(&stored.head, command, &engine.bounds(), now).map_err(refused)?;
            let mut folded = Arc::unwrap_or_clone(stored.folded);
            folded.apply_all(&events);
            let after_seq = stored.head.seq;
            let configs = match &send.push_config {
                Some(_) => engine.store.push_configs(stored.key).await.map_err(|error| engine.store_failed(&error))?,
                None => Vec::new(),
            };
            let push = self.push_change(&send, &id, after_seq, &configs)?;
            let (accept, audit) = (self.accept(now, turn, after_seq), self.audit(now, &id));
            let extras = Extras { push, accept, audit, ..Extras::default() };
            let head = StoredHead { key: stored.key, scope: self.scope.clone(), head: stored.head.clone() };
            let record = Arc::new(Record::stored(head));
            record.trace.set(self.caller.trace.as_ref());
            let folded = Arc::new(folded);
            let acceptance =
                self.commit_and_run(record, &stored.head, events, folded, extras, false, &mut held).await?;
            if let Some(acceptance) = acceptance {
                return Ok(acceptance);
            }
        }
        Err(contended(&id))
    }

    fn inbound(
        &self,
        turn: u32,
        message: Message,
        metadata: Option<Json>,
        accepted_output_modes: Vec<String>,
    ) -> Arc<Inbound> {
        Arc::new(Inbound {
            turn,
            message: Arc::new(message),
            dialect: self.caller.dialect,
            metadata,
            accepted_output_modes,
            extensions: self.caller.extensions.clone(),
            trace: self.caller.trace.clone(),
        })
    }

    /// Registers the webhook that came with a message, in addition to the task's `configs`.
    fn push_change(
        &self,
        send: &SendMessage,
        id: &TaskId,
        after_seq: u64,
        configs: &[PushConfig],
    ) -> Result<Vec<PushChange>, ProtocolError> {
        let Some(config) = &send.push_config else { return Ok(Vec::new()) };
        let mut config = config.clone();
        config.task_id = id.clone();
        if config.id.is_empty() {
            config.id = self.engine.uuid().into();
        }
        let put = PushChange::Put { config, dialect: self.caller.dialect, after_seq };
        put_config(configs, put, self.engine.limits.push_configs_max)
            .map_err(|full| ProtocolError::invalid(self.caller.dialect.rules().words.push_config_of_send, full))
    }

    fn accept(&self, now: Timestamp, turn: u32, after_seq: u64) -> Option<Accept> {
        let Identity { key, digest, .. } = self.identity.clone()?;
        let expires = now.plus_ms(i64::from(self.engine.limits.idempotency_window_s) * 1000);
        Some(Accept { key, digest, turn, after_seq, expires })
    }

    /// The entry of the audit log for this message, if accepted messages have one.
    fn audit(&self, now: Timestamp, id: &TaskId) -> Option<Box<AuditEntry>> {
        self.engine.audit.has_sends().then(|| {
            let Owner { tenant, principal } = &self.caller.owner;
            Box::new(AuditEntry {
                tenant: tenant.as_str().to_owned(),
                principal: principal.as_str().to_owned(),
                address: self.caller.address,
                agent: Some(self.agent.name.clone()),
                task: Some(id.clone()),
                ..AuditEntry::new(now, AuditEvent::Send, Decision::Allowed, "SendMessage")
            })
        })
    }
}

/// A record that is about to be created.
struct NewRecord {
    record: Arc<Record>,
    inbound: Arc<Inbound>,
    before: Arc<Head>,
    events: Vec<Event>,
    extras: Extras,
    now: Timestamp,
}

/// A record whose agent ran before the record was stored.
struct StagedRecord {
    record: Arc<Record>,
    step: Step,
    folded: Arc<Folded>,
    extras: Box<Extras>,
    turn: Turn,
    /// The agent's future, if it has not finished.
    run: Option<AgentFuture>,
    /// How its run ended and how long that took, if it has ended.
    ended: Option<(RunEnd, Duration)>,
}

fn accepted_message(record: Arc<Record>, folded: Arc<Folded>, events: Arc<[Event]>, opened: bool) -> AcceptedMessage {
    let key = record.key().expect("a committed record has a key");
    let head = record.head();
    AcceptedMessage {
        record,
        stored: StoredTask { key, head, folded, outlined: Vec::new() },
        events,
        opened,
        run: None,
    }
}

/// Why a record was not created: its id is taken. An id made by this server is never taken, unless the store wrote the
/// record and then failed to report that.
fn not_opened(id: &TaskId, is_chosen: bool) -> ProtocolError {
    if is_chosen {
        return ProtocolError::invalid("id", "is taken; choose another, or leave it out");
    }
    contended(id)
}

fn refused(refusal: Refusal) -> ProtocolError {
    WriteError::Refused(refusal).into_protocol()
}

pub(crate) fn check(
    engine: &EngineState,
    agent: &Registered,
    caller: &Caller,
    send: &SendMessage,
) -> Result<(), ProtocolError> {
    admitted(engine, agent)?;
    let (card, words) = (&agent.card.get(), &caller.dialect.rules().words);
    for extension in card.capabilities.extensions.iter().filter(|extension| extension.required) {
        if !caller.extensions.contains(&extension.uri) {
            let (uri, header) = (extension.uri.clone(), words.extensions);
            return Err(ProtocolError::ExtensionSupportRequired { uri, header: header.into() });
        }
    }
    if let Some(config) = &send.push_config {
        agent.require_push()?;
        let field = || format!("{}.url", words.push_config_of_send);
        engine.webhook.check(&config.url).map_err(|why| ProtocolError::invalid(field(), why))?;
    }
    if !caller.dialect.rules().asks_for_at_most {
        engine.check_asked_run_time(agent.source.traits(), send.metadata.as_ref())?;
    }
    if !caller.dialect.rules().tells_modes {
        return Ok(());
    }
    check_input(card, words, send)?;
    if agent.source.traits().strict_output_modes {
        check_output(card, &send.accepted_output_modes)?;
    }
    Ok(())
}

/// Asks the receiver of a webhook that comes with a message whether it wants it, where the server is set to ask.
pub(crate) async fn confirm_webhook(
    engine: &EngineState,
    caller: &Caller,
    send: &SendMessage,
) -> Result<(), ProtocolError> {
    let Some(config) = &send.push_config else { return Ok(()) };
    let Some(asked) = engine.webhook.challenge(&config.url) else { return Ok(()) };
    let field = || format!("{}.url", caller.dialect.rules().words.push_config_of_send);
    asked.await.map_err(|why| ProtocolError::invalid(field(), why))
}

/// Only media types that a part names are checked, because most clients send plain text or JSON without naming one.
fn check_input(card: &AgentCard, words: &Vocabulary, send: &SendMessage) -> Result<(), ProtocolError> {
    for (index, part) in send.message.parts.iter().enumerate() {
        let Some(named) = part.media_type().filter(|named| !card.reads(named)) else { continue };
        let modes = card.default_input_modes.join(", ");
        let field = format!("{}[{index}].{}", words.parts, words.media_type);
        let reason = format!("{field}: this agent does not read {named} (it reads {modes})");
        return Err(ProtocolError::ContentTypeNotSupported { reason });
    }
    Ok(())
}

/// Output modes are a preference (spec 3.2.2), and some clients name `application/json` whatever they read. So only an
/// agent that is declared strict refuses a client whose output modes it does not write.
fn check_output(card: &AgentCard, accepted: &[String]) -> Result<(), ProtocolError> {
    if card.writes_any(accepted) {
        return Ok(());
    }
    let (wanted, modes) = (accepted.join(", "), card.default_output_modes.join(", "));
    let reason = format!("configuration.acceptedOutputModes: this agent writes {modes}, none of {wanted}");
    Err(ProtocolError::ContentTypeNotSupported { reason })
}

/// The key by which a repeated send is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) key: [u8; 32],
    pub(crate) digest: [u8; 32],
    /// Set if the key came from an `Idempotency-Key` header. The same key with another message is then an error of the
    /// client, not a new message.
    strict: bool,
}

/// The identity of a send; none if repeats of it are not recognised.
pub(crate) fn identify(agent: &Registered, caller: &Caller, message: &Message) -> Option<Identity> {
    let default = if caller.authenticated { Idempotency::MessageId } else { Idempotency::Key };
    let mode = agent.source.traits().idempotency.unwrap_or(default);
    let header = caller.idempotency_key.as_deref().filter(|key| !key.is_empty());
    // A message without an id cannot be recognised.
    let by_message = mode == Idempotency::MessageId && !message.message_id.is_empty();
    if header.is_none() && !by_message {
        return None;
    }
    Some(Identity::of(&caller.owner, &agent.name, header, message))
}

impl Identity {
    /// Stores keep the key and the digest, so what they are made of cannot change.
    fn of(owner: &Owner, agent: &AgentName, header: Option<&str>, message: &Message) -> Self {
        let mut bytes = message.canonical();
        let digest = sha256(&bytes);
        bytes.clear();
        let named = header.unwrap_or(message.message_id.as_str());
        let kind = if header.is_some() { "key" } else { "message" };
        for part in [owner.tenant.as_str(), owner.principal.as_str(), agent.as_str(), kind, named] {
            // Each part is preceded by its length, so that different parts cannot hash as the same bytes.
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part.as_bytes());
        }
        if header.is_none() {
            // The same message id with another body is another message, because simple clients reuse ids.
            bytes.extend(digest);
        }
        Self { key: sha256(&bytes), digest, strict: header.is_some() }
    }

    /// Refuses a key that was used for another message.
    pub(crate) fn check(&self, accepted: &Accepted, dialect: Dialect) -> Result<(), ProtocolError> {
        if self.strict && accepted.digest != self.digest {
            let description = "was used before for another message; use a new key for a new message";
            return Err(ProtocolError::invalid(dialect.rules().words.idempotency_key, description));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "accepting_tests.rs"]
mod tests;
