//! One turn of a relay: sends the message, follows the upstream's task to its end (`follow`), and passes a cancellation on.
//!
//! Only waits are given up when the task is canceled, never a write of our own: what was passed on is always known.

mod follow;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use switchboard::call::SendMessage;
use switchboard::client::Credentials;
use switchboard::model::redact::redact_message;
use switchboard::model::{Message, MessageId, Task, TaskId, TaskStatus};
use switchboard::{
    AgentClient, AgentError, CallError, CallErrorKind, Json, ProtocolError, Role, Sent, TaskState, TaskStream, Turn,
    TurnError,
};
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, timeout};

use self::follow::TakenUpdates;
use super::progress::{Progress, upstream_context};
use super::upstream::{Admission, Upstream, is_failure_of_the_way, recognises_repeats};
use crate::hops::{HopError, Hops};

/// How long the upstream has to end a task that was canceled. Within the engine's own patience with a canceled run.
const CANCEL_MAX: Duration = Duration::from_secs(4);
/// The pause between looks at a task that is being canceled.
const CANCEL_LOOK: Duration = Duration::from_millis(200);

/// Why a turn stops where it is.
pub(super) enum Fault {
    /// The task was canceled.
    Canceled,
    /// Our own task could not be written.
    Turn(TurnError),
    /// The task fails.
    Failed(AgentError),
    /// The message cannot be passed on as it is.
    Rejected(String),
}

impl From<TurnError> for Fault {
    fn from(error: TurnError) -> Self {
        Self::Turn(error)
    }
}

fn failed(reason: impl Into<String>) -> Fault {
    Fault::Failed(AgentError::told(reason))
}

/// What a send was answered with.
enum Begun {
    /// The turn is over.
    Over,
    /// The upstream is at work; what it does comes here, if it streams.
    Following(Option<TaskStream>),
}

/// Whether there is more to wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    GoesOn,
    Over,
}

/// What the caller's request said beside the message, without what was meant for this server alone, and with one hop more.
fn passed_on(turn: &Turn) -> Result<Json, HopError> {
    let mut carrier = Message::new(Role::User, "", Vec::new());
    carrier.metadata = turn.metadata().cloned();
    let said = Arc::unwrap_or_clone(redact_message(Arc::new(carrier))).metadata;
    Hops::read(turn.metadata()).relayed(turn.agent().as_str(), said.as_ref())
}

/// An upstream that was chosen for one turn.
pub(crate) struct ChosenUpstream<'c> {
    /// The name that it was chosen by.
    pub(crate) target: &'c str,
    /// What the request to it says beside the message.
    pub(crate) metadata: Json,
    /// What it is called with, if not with the credentials of the relay.
    pub(crate) credentials: Option<Credentials>,
}

pub(super) struct Session<'a> {
    upstream: &'a Upstream,
    turn: &'a Turn,
    /// What the request to the upstream says beside the message.
    metadata: Json,
    progress: Progress,
    /// In place of those of the relay.
    credentials: Option<Credentials>,
    /// Whether `progress` differs from what was stored last.
    is_unsaved: bool,
    /// What was taken from the upstream and is not passed on yet. Nothing is waited for while there is any.
    taken: TakenUpdates,
    /// The task at the upstream that the message goes on with.
    goes_on_with: Option<String>,
    /// The context that the upstream gave an earlier turn of this task.
    known_context: Option<String>,
    /// Whether the upstream refused the context that it was given.
    without_context: bool,
    /// What was passed on last: the state, and the message with it.
    shown: (TaskState, Option<MessageId>),
    /// Whether the upstream has said anything since the message was sent. Before that, a question it shows may be the one that the
    /// message answers.
    has_answered: bool,
    /// The tasks that the message refers to, as the upstream knows them.
    references: Vec<TaskId>,
    /// Whether this run has sent the message.
    has_sent: bool,
    /// The right to the stream that is open.
    stream_permit: Option<SemaphorePermit<'a>>,
    can_subscribe: bool,
    /// When the upstream was last heard of.
    heard_at: Instant,
    began_at: Instant,
}

impl<'a> Session<'a> {
    /// `chosen` says what differs from the configuration and the request to us, where the upstream was chosen for this turn.
    pub(super) async fn run(
        upstream: &'a Upstream,
        turn: &'a Turn,
        chosen: Option<ChosenUpstream<'_>>,
    ) -> Result<(), AgentError> {
        let (metadata, target, credentials) = match chosen {
            Some(ChosenUpstream { target, metadata, credentials }) => (Ok(metadata), Some(target), credentials),
            None => (passed_on(turn), None, None),
        };
        let metadata = match metadata {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::warn!(task = %turn.task().id, %error, "message refused");
                return Ok(turn.reject(error.to_string()).await?);
            }
        };
        let mut session = Self::new(upstream, turn, metadata)?;
        session.progress.target = target.map(str::to_owned);
        session.credentials = credentials;
        let _permit = tokio::select! {
            biased;
            permit = upstream.call_permit() => permit,
            () = turn.cancelled() => {
                // An earlier attempt may have sent the message.
                Box::pin(session.cancel()).await;
                return Ok(());
            }
        };
        let _counted = upstream.begin_turn();
        match session.work().await {
            Ok(()) | Err(Fault::Turn(TurnError::Stopped)) => Ok(()),
            Err(Fault::Canceled) => {
                Box::pin(session.cancel()).await;
                Ok(())
            }
            Err(Fault::Turn(TurnError::Refused(error))) => {
                // What the upstream still does would be refused as well.
                Box::pin(session.cancel()).await;
                let told = format!("The answer of the agent behind this one could not be kept: {error}");
                Err(AgentError::told(told).caused_by(TurnError::Refused(error)))
            }
            Err(Fault::Turn(error)) => Err(error.into()),
            Err(Fault::Failed(error)) => Err(error),
            Err(Fault::Rejected(reason)) => match turn.reject(reason).await {
                Ok(()) | Err(TurnError::Stopped) => Ok(()),
                Err(error) => Err(error.into()),
            },
        }
    }

    fn new(upstream: &'a Upstream, turn: &'a Turn, metadata: Json) -> Result<Self, AgentError> {
        let progress: Progress = turn.checkpoint_as()?.unwrap_or_default();
        let earlier = turn.earlier_checkpoint().and_then(|json| json.deserialize::<Progress>().ok());
        let (goes_on_with, known_context) = match earlier {
            Some(Progress { ended: true, context, .. }) => (None, context),
            Some(Progress { task, context, .. }) => (task, context),
            None => (None, None),
        };
        let status = &turn.task().status;
        let shown = (status.state, status.message.as_ref().map(|message| message.message_id.clone()));
        let now = Instant::now();
        Ok(Self {
            upstream,
            turn,
            metadata,
            progress,
            credentials: None,
            is_unsaved: false,
            taken: TakenUpdates::default(),
            goes_on_with,
            known_context,
            without_context: false,
            shown,
            has_answered: false,
            references: Vec::new(),
            has_sent: false,
            stream_permit: None,
            can_subscribe: true,
            heard_at: now,
            began_at: now,
        })
    }

    /// The upstream, as this turn calls it.
    async fn agent(&self) -> Result<AgentClient, CallError> {
        let trace = self.turn.trace().cloned();
        let agent = with_credentials(self.upstream.agent().await?, self.credentials.as_ref());
        Ok(agent.with_caller(|caller| caller.trace = trace))
    }

    async fn work(&mut self) -> Result<(), Fault> {
        if self.progress.task.is_some() {
            // An earlier attempt has sent the message.
            self.upstream.counters().count_bridged();
            return Box::pin(self.follow(None)).await;
        }
        self.references = self.map_references()?;
        match self.send().await? {
            Begun::Over => Ok(()),
            Begun::Following(stream) => Box::pin(self.follow(stream)).await,
        }
    }

    /// Sends the message until the upstream has it, or it is known that it will not.
    async fn send(&mut self) -> Result<Begun, Fault> {
        let options = self.upstream.options();
        let (mut tries, mut down_since) = (0_u32, None);
        loop {
            self.wait_for_admission(&mut down_since).await?;
            let error = match self.send_once().await? {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            tries += 1;
            if self.has_refused_context(&error) {
                self.without_context = true;
                continue;
            }
            let since = *down_since.get_or_insert_with(Instant::now);
            let is_down = is_away(&error);
            let is_given_up = tries >= options.tries_max && since.elapsed() >= options.down_max;
            if !is_down || is_given_up {
                return Err(self.send_failed(&error));
            }
            self.upstream.counters().count_retry();
            let doubled = options.pause_first.saturating_mul(1 << tries.saturating_sub(1).min(16));
            let pause = doubled.min(options.pause_max).max(error.retry_after().unwrap_or_default());
            tracing::debug!(task = %self.turn.task().id, tries, %error, "upstream did not take a message");
            self.unless_canceled(sleep(pause)).await?;
        }
    }

    /// Waits until the upstream may be sent a message.
    async fn wait_for_admission(&self, down_since: &mut Option<Instant>) -> Result<(), Fault> {
        loop {
            let pause = match self.upstream.admit_send() {
                Ok(()) => return Ok(()),
                Err(Admission::Rate(pause)) => pause,
                Err(Admission::Down(pause)) => {
                    let since = *down_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= self.upstream.options().down_max {
                        return Err(failed("The agent behind this one cannot be reached at the moment"));
                    }
                    pause
                }
            };
            self.unless_canceled(sleep(pause)).await?;
        }
    }

    /// Sends the message once. The outer error ends the turn; the inner one may be tried again.
    async fn send_once(&mut self) -> Result<Result<Begun, CallError>, Fault> {
        if let Err(refused) = self.upstream.accepts_card() {
            return Ok(Err(refused.into()));
        }
        let found = self.unless_canceled(Box::pin(self.agent())).await?;
        let agent = match found {
            Ok(agent) => agent,
            Err(error) => {
                self.upstream.note::<()>(&Err(error.clone()));
                return Ok(Err(error));
            }
        };
        let may_resend = self.upstream.may_resend(&agent);
        if self.progress.sent && !may_resend {
            return Err(self.outcome_unknown("the gateway was interrupted while it sent the message"));
        }
        let must_record = !recognises_repeats(&agent) && !self.progress.sent;
        if must_record {
            self.progress.sent = true;
            self.turn.checkpoint(&self.progress).await?;
        }
        self.has_sent = true;
        let streams = agent.card().capabilities.streaming == Some(true) && self.take_stream();
        // Boxed, like all that a stream does not need while it is idle: the future of a run has room for the largest of its waits.
        let sent = self.unless_canceled(Box::pin(self.call(&agent, streams))).await?;
        self.upstream.note(&sent);
        let error = match sent {
            Ok(Answered::Stream(mut stream)) => match self.read(&mut stream).await? {
                follow::Read::Over => return Ok(Ok(Begun::Over)),
                follow::Read::Lost(_) if self.progress.task.is_some() => {
                    return Ok(Ok(Begun::Following(None)));
                }
                follow::Read::Lost(error) => error,
            },
            Ok(Answered::Task(task)) => {
                let step = self.take_snapshot(&task, None).await?;
                self.save().await?;
                return Ok(Ok(match step {
                    Step::Over => Begun::Over,
                    Step::GoesOn => Begun::Following(None),
                }));
            }
            Ok(Answered::Message(message)) => {
                self.turn.pass_on_reply(message).await?;
                return Ok(Ok(Begun::Over));
            }
            Err(error) => error,
        };
        if is_outcome_unknown(&error) {
            if !may_resend {
                self.upstream.counters().count_outcome_unknown();
                return Err(self.outcome_unknown(&error.to_string()));
            }
        } else if must_record {
            // The message has not arrived: a crash while the next try waits must not make its outcome unknown.
            self.progress.sent = false;
            self.turn.checkpoint(&self.progress).await?;
        }
        Ok(Err(error))
    }

    /// Takes the right to a stream, if there is one left.
    fn take_stream(&mut self) -> bool {
        // The one before is over.
        self.stream_permit = None;
        self.stream_permit = self.upstream.stream_permit();
        self.stream_permit.is_some()
    }

    /// The tasks that the message refers to, as the upstream knows them. One that it cannot know is refused: without it the message
    /// would mean something else.
    fn map_references(&self) -> Result<Vec<TaskId>, Fault> {
        let known = |id: &TaskId| {
            let progress = self.turn.referenced_checkpoint(id)?.deserialize::<Progress>().ok()?;
            progress.task_id()
        };
        let refuse = |id: &TaskId| {
            let id: String = id.as_str().chars().take(200).collect();
            Fault::Rejected(format!(
                "message.referenceTaskIds: the agent behind this one has no task {id:?} of yours; leave it out"
            ))
        };
        let ids = self.turn.message().reference_task_ids.iter();
        ids.map(|id| known(id).ok_or_else(|| refuse(id))).collect()
    }

    async fn call(&self, agent: &AgentClient, streams: bool) -> Result<Answered, CallError> {
        let card = agent.card();
        let key = self.message_id();
        let mut span = self.turn.call_span(&card.name);
        let trace = span.as_ref().map(|span| span.context()).or(self.turn.trace()).cloned();
        let supported = |uri: &&String| card.capabilities.extensions.iter().any(|own| own.uri == **uri);
        let extensions: Vec<String> = self.turn.extensions().iter().filter(supported).cloned().collect();
        let agent = agent.clone().with_caller(|caller| {
            caller.idempotency_key = Some(key);
            caller.trace = trace;
            caller.extensions = extensions;
        });
        let answered = self.call_as(&agent, streams).await;
        if let (Some(span), Err(error)) = (&mut span, &answered) {
            // Its text may quote the message.
            span.fails(format!("{:?}", error.kind()));
        }
        answered
    }

    async fn call_as(&self, agent: &AgentClient, streams: bool) -> Result<Answered, CallError> {
        let mut send = self.outgoing();
        if streams {
            match agent.stream_with(send.clone()).await {
                Ok(stream) => return Ok(Answered::Stream(stream)),
                // The card promises streams, and the agent has none. Nothing has happened yet.
                Err(error) if is_without_streams(&error) => {}
                Err(error) => return Err(error),
            }
        }
        send.return_immediately = true;
        Ok(match agent.send_with(send).await? {
            Sent::Task(task) => Answered::Task(task),
            Sent::Message(message) => Answered::Message(Arc::unwrap_or_clone(message)),
            _ => {
                let reason = "an answer that is neither a task nor a message".to_owned();
                return Err(ProtocolError::InvalidAgentResponse { reason }.into());
            }
        })
    }

    /// The same in every attempt.
    fn message_id(&self) -> String {
        format!("{}-{}", self.turn.task().id, self.turn.number())
    }

    /// The message as the upstream gets it: with its own ids, and without what the caller meant for this server alone, credentials
    /// above all.
    fn outgoing(&self) -> SendMessage {
        let mut message = Arc::unwrap_or_clone(redact_message(Arc::new(self.turn.message().clone())));
        message.message_id = self.message_id().into();
        message.task_id = self.goes_on_with.as_deref().map(TaskId::from);
        message.context_id = match (&self.known_context, self.without_context) {
            (Some(known), _) => Some(known.as_str().into()),
            (None, true) => None,
            (None, false) => {
                let namespace = &self.upstream.options().namespace;
                Some(upstream_context(namespace, self.turn.owner(), &self.turn.task().context_id).into())
            }
        };
        message.reference_task_ids.clone_from(&self.references);
        let mut send = SendMessage::new(message);
        send.accepted_output_modes = self.turn.accepted_output_modes().to_vec();
        send.history_length = Some(0);
        send.metadata = Some(self.metadata.clone());
        send
    }

    /// Whether the upstream takes no contexts that it did not make.
    fn has_refused_context(&self, error: &CallError) -> bool {
        let is_given = self.known_context.is_none() && self.goes_on_with.is_none() && !self.without_context;
        let is_invalid = matches!(error.protocol_error(), Some(ProtocolError::InvalidParams { .. }));
        let names_it = || error.wire_text().unwrap_or_default().to_ascii_lowercase().contains("context");
        is_given && is_invalid && names_it()
    }

    fn send_failed(&self, error: &CallError) -> Fault {
        if is_away(error) {
            let told = "The agent behind this one could not be reached";
            return Fault::Failed(AgentError::with_details(told, error.to_string()));
        }
        refused("The agent behind this one did not take the message", error)
    }

    fn outcome_unknown(&self, why: &str) -> Fault {
        let told = "The outcome is not known: the message may have reached the agent behind this one, and that agent \
                    might do the work twice if it were sent again";
        Fault::Failed(AgentError::told(told).caused_by(why.to_owned()))
    }

    /// Waits for something outside, unless the task is canceled meanwhile.
    async fn unless_canceled<T>(&self, wait: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = wait => Ok(done),
            () = self.turn.cancelled() => Err(Fault::Canceled),
        }
    }

    /// Passes the cancellation on, and what the upstream still has to say.
    async fn cancel(&mut self) {
        let canceling = async {
            loop {
                match self.cancel_and_settle().await {
                    // Each of its calls may be made again.
                    Err(error) if is_away(&error) => sleep(CANCEL_LOOK).await,
                    settled => return settled,
                }
            }
        };
        let canceled = timeout(CANCEL_MAX, canceling).await;
        let task = &self.turn.task().id;
        match canceled {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%task, %error, "upstream did not cancel a task"),
            Err(_) => tracing::warn!(%task, "upstream did not cancel a task in time"),
        }
    }

    async fn cancel_and_settle(&mut self) -> Result<(), CallError> {
        let agent = self.agent().await?;
        if self.progress.task.is_none() && self.has_sent && self.upstream.may_resend(&agent) {
            // The message was on its way: sent again, its stream begins with its task.
            let key = self.message_id();
            let agent = agent.clone().with_caller(|caller| caller.idempotency_key = Some(key));
            let mut stream = agent.stream_with(self.outgoing()).await?;
            stream.next().await.transpose()?;
            self.progress.task = stream.task().map(|task| task.id.as_str().to_owned());
        }
        let Some(id) = self.progress.task_id().filter(|_| !self.progress.ended) else { return Ok(()) };
        let mut task = match cancel_task(&agent, &id).await {
            Ok(task) => task,
            // It may have ended before; the task itself says how.
            Err(error) if error.protocol_error().is_some() => {
                let looked = agent.task(&id).await;
                looked.map_err(|looked| if is_away(&looked) { looked } else { error })?
            }
            Err(error) => return Err(error),
        };
        while !task.state().is_terminal() {
            sleep(CANCEL_LOOK).await;
            task = agent.task(&id).await?;
        }
        // A task that cannot be written has ended without us.
        if self.take_snapshot(&task, None).await.is_ok() {
            let _ = self.save().await;
        }
        Ok(())
    }
}

/// What a send was answered with, as it came.
enum Answered {
    Stream(TaskStream),
    Task(Arc<Task>),
    Message(Message),
}

fn with_credentials(agent: AgentClient, credentials: Option<&Credentials>) -> AgentClient {
    match credentials {
        Some(credentials) => agent.with_credentials(credentials.clone()),
        None => agent,
    }
}

/// Cancels what a task that no run works on has left at the upstream.
pub(super) async fn cancel_left_over(upstream: &Upstream, progress: &Progress, credentials: Option<&Credentials>) {
    let Some(id) = progress.task_id().filter(|_| !progress.ended) else { return };
    let canceling = async {
        loop {
            let canceled = match upstream.agent().await {
                Ok(agent) => cancel_task(&with_credentials(agent, credentials), &id).await.map(drop),
                Err(error) => Err(error),
            };
            match canceled {
                Err(error) if is_away(&error) => sleep(CANCEL_LOOK).await,
                canceled => return canceled,
            }
        }
    };
    match timeout(CANCEL_MAX, canceling).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(upstream = upstream.url(), %error, "upstream did not cancel a task"),
        Err(_) => tracing::warn!(upstream = upstream.url(), "upstream did not cancel a task in time"),
    }
}

/// Asks for a task to be canceled, again if the upstream does not answer.
async fn cancel_task(agent: &AgentClient, id: &TaskId) -> Result<Arc<Task>, CallError> {
    loop {
        match agent.cancel(id).await {
            Err(error) if is_away(&error) => sleep(CANCEL_LOOK).await,
            answered => return answered,
        }
    }
}

/// Whether the upstream cannot be asked at the moment, and may be later.
fn is_away(error: &CallError) -> bool {
    is_failure_of_the_way(error) || error.is_retryable()
}

/// Whether the message may have arrived although no answer came.
fn is_outcome_unknown(error: &CallError) -> bool {
    match error.kind() {
        CallErrorKind::OutcomeUnknown => true,
        CallErrorKind::TimedOut | CallErrorKind::Broken | CallErrorKind::StreamEndedEarly => error.may_have_arrived(),
        _ => false,
    }
}

fn is_without_streams(error: &CallError) -> bool {
    matches!(
        error.protocol_error(),
        Some(ProtocolError::UnsupportedOperation { .. } | ProtocolError::MethodNotFound { .. })
    )
}

/// The failure of a task about which the upstream said no. What it says about the credentials of this gateway is for its operator.
pub(super) fn refused(what: &str, error: &CallError) -> Fault {
    let is_about_credentials = matches!(error.http_status(), Some(401 | 403))
        || error.kind() == CallErrorKind::NotAuthorized
        || matches!(error.protocol_error(), Some(ProtocolError::Unauthenticated { .. }));
    let is_refusal = error.kind() == CallErrorKind::Refused && error.protocol_error().is_some();
    if is_refusal && !is_about_credentials {
        return failed(format!("{what}: {error}"));
    }
    Fault::Failed(AgentError::with_details(what, error.to_string()))
}

fn message_id_of(status: &TaskStatus) -> Option<MessageId> {
    status.message.as_ref().map(|message| message.message_id.clone())
}
