//! Follows the task of the upstream: passes its updates on one by one, and goes on where it was when the stream breaks.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use switchboard::call::{Frame, Reply, Request};
use switchboard::model::{ArtifactUpdate, ContextId, Part, StatusUpdate, Task, TaskId, Update};
use switchboard::{AgentClient, AgentError, CallError, PassedOn, ProtocolError, TaskState, TaskStream, TurnError};
use tokio::time::{Instant, sleep};

use super::super::pieces::pieces;
use super::super::progress::unseen;
use super::super::upstream::is_failure_of_the_way;
use super::{Fault, Session, Step, failed, is_away, message_id_of, refused};

/// The pauses between looks at a task that cannot be followed, and between attempts to go on with a stream: the first, each
/// twice the one before, and the longest.
const LOOK_FIRST: Duration = Duration::from_millis(250);
const LOOK_MAX: Duration = Duration::from_secs(5);
/// How long a question that the message may have answered already is taken for the old one.
const STALE_MAX: Duration = Duration::from_secs(10);
/// How often a turn that waits for an authorization looks for the next message.
const NEXT_MESSAGE_LOOK: Duration = Duration::from_secs(1);

/// How a stream ended.
pub(super) enum Read {
    /// The turn is over.
    Over,
    /// The stream was lost before the task was settled.
    Lost(CallError),
}

/// What a frame was to the turn.
enum Taken {
    Step(Step),
    /// Events are missing before it: the stream did not begin with a snapshot, nor where the last one broke.
    HasGap,
}

/// How many updates one commit takes, and how many bytes of content, about: so many may arrive together.
const TAKEN_MAX: usize = 64;
const TAKEN_BYTES_MAX: usize = 256 << 10;

/// Updates that were taken from the upstream and are not passed on yet.
#[derive(Default)]
pub(super) struct TakenUpdates {
    updates: Vec<PassedOn>,
    bytes: usize,
}

impl TakenUpdates {
    fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    fn has_room(&self) -> bool {
        self.updates.len() < TAKEN_MAX && self.bytes < TAKEN_BYTES_MAX
    }

    fn add(&mut self, update: PassedOn) {
        let parts = match &update {
            PassedOn::Status(update) => update.status.message.as_ref().map_or(&[][..], |message| &message.parts),
            PassedOn::Artifact(update) => &update.artifact.parts,
        };
        self.bytes += parts.iter().map(Part::content_bytes).sum::<usize>();
        self.updates.push(update);
    }

    fn take(&mut self) -> Vec<PassedOn> {
        self.bytes = 0;
        std::mem::take(&mut self.updates)
    }
}

/// How a stream begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// It answers the message: everything is new.
    New,
    /// It goes on with an earlier one.
    Resumed,
    /// Its first frame was taken.
    Past,
}

impl Session<'_> {
    /// Passes on what comes over the stream that answers the message.
    pub(super) async fn read(&mut self, stream: &mut TaskStream) -> Result<Read, Fault> {
        self.read_from(stream, Beginning::New).await
    }

    /// Passes on what comes over a stream. What has arrived together is one commit.
    async fn read_from(&mut self, stream: &mut TaskStream, mut beginning: Beginning) -> Result<Read, Fault> {
        loop {
            let here = if self.taken.has_room() { stream.next().now_or_never() } else { None };
            let next = match here {
                Some(next) => next,
                None => {
                    // What is known of the upstream's task is stored before anything is waited for.
                    self.save().await?;
                    match self.next_frame(stream).await? {
                        Some(next) => next,
                        None => return Ok(Read::Over),
                    }
                }
            };
            let lost = match next {
                Some(Ok(frame)) => {
                    self.heard_at = Instant::now();
                    let taken = self.take(frame, beginning).await;
                    if taken.is_err() {
                        // What came before the faulty frame is shown.
                        self.save().await?;
                    }
                    match taken? {
                        Taken::Step(Step::Over) => {
                            self.save().await?;
                            return Ok(Read::Over);
                        }
                        Taken::Step(Step::GoesOn) => {
                            beginning = Beginning::Past;
                            continue;
                        }
                        Taken::HasGap => {
                            self.can_subscribe = false;
                            lost()
                        }
                    }
                }
                Some(Err(error)) => error,
                None => lost(),
            };
            self.save().await?;
            return Ok(Read::Lost(lost));
        }
    }

    /// Waits for the next item of a stream. None if the turn is over, because a message came that ends the wait for an authorization.
    async fn next_frame(&self, stream: &mut TaskStream) -> Result<Option<Option<Result<Frame, CallError>>>, Fault> {
        if self.shown.0 != TaskState::AuthRequired {
            return self.unless_canceled(stream.next()).await.map(Some);
        }
        loop {
            let look = sleep(NEXT_MESSAGE_LOOK);
            let waited = self.unless_canceled(async {
                tokio::select! {
                    biased;
                    next = stream.next() => Some(next),
                    () = look => None,
                }
            });
            match waited.await? {
                Some(next) => return Ok(Some(next)),
                None if self.turn.has_next_message().await? => return Ok(None),
                None => {}
            }
        }
    }

    /// Follows the task to its end. `stream` is what is open already.
    pub(super) async fn follow(&mut self, mut stream: Option<TaskStream>) -> Result<(), Fault> {
        let mut pause = LOOK_FIRST;
        loop {
            if let Some(mut open) = stream.take() {
                let before = self.heard_at;
                match self.read_from(&mut open, Beginning::Resumed).await? {
                    Read::Over => return Ok(()),
                    Read::Lost(error) => {
                        if is_failure_of_the_way(&error) && self.heard_at == before {
                            self.upstream.note::<()>(&Err(error));
                        }
                        if self.heard_at > before {
                            pause = LOOK_FIRST;
                        }
                    }
                }
                self.unless_canceled(sleep(pause)).await?;
            }
            if let Err(wait) = self.upstream.admit() {
                self.check_lost(None)?;
                self.unless_canceled(sleep(wait)).await?;
                continue;
            }
            let found = self.unless_canceled(self.agent()).await?;
            let looked = match found {
                Ok(agent) => self.go_on(&agent).await?,
                Err(error) => Err(error),
            };
            self.upstream.note(&looked);
            match looked {
                Ok(Looked::Stream(open)) => {
                    self.upstream.counters().count_bridged();
                    stream = Some(open);
                    pause = (pause * 2).min(LOOK_MAX);
                    continue;
                }
                Ok(Looked::Task(task)) => {
                    self.heard_at = Instant::now();
                    let before = self.shown.clone();
                    let step = self.take_snapshot(&task, None).await?;
                    self.save().await?;
                    if step == Step::Over {
                        return Ok(());
                    }
                    if self.shown.0 == TaskState::AuthRequired && self.turn.has_next_message().await? {
                        return Ok(());
                    }
                    if self.shown != before {
                        pause = LOOK_FIRST;
                    }
                }
                Err(error) if matches!(error.protocol_error(), Some(ProtocolError::TaskNotFound { .. })) => {
                    return Err(failed(format!("The agent behind this one does not know the task any more: {error}")));
                }
                Err(error) if is_away(&error) => self.check_lost(Some(&error))?,
                Err(error) => return Err(refused("The agent behind this one does not tell about the task", &error)),
            }
            self.unless_canceled(sleep(pause)).await?;
            pause = (pause * 2).min(LOOK_MAX);
        }
    }

    /// Goes on with the task: by a stream where the upstream has them, else by asking for it.
    async fn go_on(&mut self, agent: &AgentClient) -> Result<Result<Looked, CallError>, Fault> {
        let Some(id) = self.progress.task_id() else {
            return Err(failed("The task at the agent behind this one has no id"));
        };
        if self.can_subscribe && agent.card().capabilities.streaming == Some(true) && self.take_stream() {
            let cursor = self.progress.cursor.map(|cursor| cursor.to_string());
            let agent = agent.clone().with_caller(|caller| caller.last_event_id = cursor);
            match self.unless_canceled(agent.subscribe(&id)).await? {
                Ok(stream) => return Ok(Ok(Looked::Stream(stream))),
                Err(error) if is_away(&error) => return Ok(Err(error)),
                // Ended, or not an agent that can be subscribed to: the task says which.
                Err(_) => self.can_subscribe = false,
            }
        }
        self.stream_permit = None;
        let get = Request::GetTask { id, history_length: Some(0) };
        let answered = self.unless_canceled(agent.call(get)).await?;
        Ok(answered.and_then(|reply| match reply {
            Reply::Task(view) => Ok(Looked::Task(view.task)),
            _ => Err(lost()),
        }))
    }

    /// Fails the task if the upstream has been away for too long.
    fn check_lost(&self, error: Option<&CallError>) -> Result<(), Fault> {
        let lost_max = self.upstream.options().lost_max;
        if self.heard_at.elapsed() < lost_max {
            return Ok(());
        }
        let told = format!("The agent behind this one could not be reached for {} s", lost_max.as_secs());
        let details = error.map_or_else(|| "the circuit breaker is open".to_owned(), ToString::to_string);
        Err(Fault::Failed(AgentError::with_details(told, details)))
    }

    async fn take(&mut self, frame: Frame, beginning: Beginning) -> Result<Taken, Fault> {
        let Frame { seq, update, .. } = frame;
        let is_snapshot = matches!(update.update, Update::Task(_));
        if beginning == Beginning::Resumed && !is_snapshot && (self.progress.cursor.is_none() || seq.is_none()) {
            return Ok(Taken::HasGap);
        }
        let is_known = seq.zip(self.progress.cursor).is_some_and(|(seq, cursor)| seq <= cursor);
        if is_known && !is_snapshot {
            return Ok(Taken::Step(Step::GoesOn));
        }
        let step = match &update.update {
            Update::Task(view) => self.take_snapshot(&view.task, seq).await?,
            Update::Message(message) => {
                self.save().await?;
                self.turn.pass_on_reply((**message).clone()).await?;
                Step::Over
            }
            Update::Status(update) => {
                self.note_task(&update.task_id, &update.context_id)?;
                self.note_cursor(seq);
                self.has_answered = true;
                self.take_status(update.clone())
            }
            Update::Artifact(update) => {
                self.note_task(&update.task_id, &update.context_id)?;
                self.take_artifact(update.clone()).await?;
                self.note_cursor(seq);
                Step::GoesOn
            }
        };
        Ok(Taken::Step(step))
    }

    /// Takes what is new in a snapshot of the task.
    pub(super) async fn take_snapshot(&mut self, task: &Arc<Task>, seq: Option<u64>) -> Result<Step, Fault> {
        self.note_task(&task.id, &task.context_id)?;
        if !self.taken.is_empty() {
            // A snapshot is compared with what our task holds.
            self.save().await?;
        }
        // While some of it is written, no number says how far: the next attempt would have to compare snapshots, too.
        for artifact in &task.artifacts {
            let held = self.turn.artifact_size(&artifact.artifact_id);
            if let Some(update) = unseen(task, artifact, held) {
                self.is_unsaved |= self.progress.cursor.is_some();
                self.progress.cursor = None;
                self.take_artifact(update).await?;
            }
        }
        self.note_cursor(seq);
        let (state, message) = (task.status.state, message_id_of(&task.status));
        let may_be_stale = self.goes_on_with.is_some() && !self.has_answered && self.began_at.elapsed() < STALE_MAX;
        if state.is_interrupted() && may_be_stale {
            return Ok(Step::GoesOn);
        }
        self.has_answered = true;
        if self.shown == (state, message) {
            return Ok(Step::GoesOn);
        }
        let (task_id, context_id, status) = (task.id.clone(), task.context_id.clone(), task.status.clone());
        Ok(self.take_status(StatusUpdate { task_id, context_id, status, metadata: None }))
    }

    fn take_status(&mut self, update: StatusUpdate) -> Step {
        let (state, message) = (update.status.state, message_id_of(&update.status));
        match state {
            // Our own task has been submitted since it was accepted.
            TaskState::Submitted | TaskState::Unspecified => return Step::GoesOn,
            TaskState::Working
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Canceled
            | TaskState::Rejected
            | TaskState::InputRequired
            | TaskState::AuthRequired => {}
        }
        self.progress.ended = state.is_terminal();
        self.taken.add(PassedOn::Status(update));
        self.shown = (state, message);
        let is_over = state.is_terminal() || state == TaskState::InputRequired;
        if is_over { Step::Over } else { Step::GoesOn }
    }

    async fn take_artifact(&mut self, update: ArtifactUpdate) -> Result<(), Fault> {
        // Some agents mark the end of an artifact with a chunk of nothing.
        if update.artifact.parts.is_empty() {
            return Ok(());
        }
        let mut pieces = pieces(update, self.turn.write_bytes_max());
        let last = pieces.pop();
        if !pieces.is_empty() {
            self.save().await?;
            // While some of it is written, no number says how far: the next attempt would have to compare snapshots.
            self.progress.cursor = None;
        }
        for piece in pieces {
            self.taken.add(PassedOn::Artifact(piece));
            self.save().await?;
        }
        last.into_iter().for_each(|last| self.taken.add(PassedOn::Artifact(last)));
        Ok(())
    }

    /// Passes on what was taken, and stores what is known of the upstream's task, in one commit.
    pub(super) async fn save(&mut self) -> Result<(), Fault> {
        if !self.is_unsaved && self.taken.is_empty() {
            return Ok(());
        }
        let updates = self.taken.take();
        let again = if updates.len() > 1 { updates.clone() } else { Vec::new() };
        match self.turn.pass_on(updates, &self.progress).await {
            // The ones before the refused one are shown, as they would be if they had come alone.
            Err(TurnError::Refused(_)) if !again.is_empty() => {
                self.progress.cursor = None;
                for update in again {
                    self.turn.pass_on(vec![update], &self.progress).await?;
                }
            }
            passed_on => passed_on?,
        }
        self.is_unsaved = false;
        Ok(())
    }

    fn note_cursor(&mut self, seq: Option<u64>) {
        if seq.is_some() && seq != self.progress.cursor {
            self.progress.cursor = seq;
            self.is_unsaved = true;
        }
    }

    /// Notes which task the upstream speaks of, and refuses another one.
    fn note_task(&mut self, id: &TaskId, context_id: &ContextId) -> Result<(), Fault> {
        let expected = self.progress.task.as_deref().or(self.goes_on_with.as_deref());
        if expected.is_some_and(|expected| expected != id.as_str()) {
            return Err(failed("The agent behind this one answered about another task"));
        }
        if self.progress.task.is_none() {
            self.progress.task = Some(id.as_str().to_owned());
            self.progress.context = Some(context_id.as_str().to_owned());
            self.is_unsaved = true;
        }
        Ok(())
    }
}

/// What became of an attempt to go on.
enum Looked {
    Stream(TaskStream),
    Task(Arc<Task>),
}

/// A stream that ended too soon, for which there is no error of the client.
fn lost() -> CallError {
    CallError::from(ProtocolError::Unavailable { reason: "the stream ended early".to_owned(), retry_after_s: 0 })
}
