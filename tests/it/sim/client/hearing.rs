//! What a client makes of what it is told: it is written down, and must not contradict what was told before.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Frame, Reply, SendMessage, UpdateStream};
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Task, TaskId, TaskState, Update};
use tokio::time::{Instant, timeout};

use super::{Client, From, Known, PATIENCE};
use crate::sim::journal::count;
use crate::sim::life::Life;

/// How long after its commit an update is shown at the latest to a reader that waits for it, while nothing goes wrong.
const PROMPT: Duration = Duration::from_millis(100);

impl Client {
    /// However often one message was answered, it was the same answer.
    pub(super) fn compare(
        &mut self,
        send: &SendMessage,
        answers: Vec<Result<Reply, ProtocolError>>,
    ) -> Option<Arc<Task>> {
        let mut task: Option<Arc<Task>> = None;
        let mut message: Option<Arc<Message>> = None;
        let id = &send.message.message_id;
        for answer in answers {
            match answer {
                Ok(Reply::SentTask(view)) => {
                    if task.is_some() || message.is_some() {
                        count(&self.world.journal().counts.sends_repeated);
                    }
                    if task.as_ref().is_some_and(|task| task.id != view.task.id) {
                        self.broken(&format!("message {id} was answered with two tasks"));
                    }
                    self.learn(&view.task.id, Some(view.task.state()));
                    task = Some(view.task);
                }
                Ok(Reply::SentMessage(reply)) => {
                    if message.as_ref().is_some_and(|message| *message != reply) {
                        self.broken(&format!("message {id} was answered with two messages"));
                    }
                    message = Some(reply);
                }
                Ok(_) => self.broken("a send was answered with neither task nor message"),
                Err(error) => self.refused(send.message.task_id.as_ref(), &error),
            }
        }
        if task.is_some() && message.is_some() {
            self.broken(&format!("message {id} was answered with a task and a message"));
        }
        if let Some(task) = &task {
            self.known(&task.id).messages.push(id.clone());
        }
        task
    }

    /// Reads until the stream ends, the process dies, or the client has had enough; gives back the task's id.
    pub(super) async fn read(&mut self, life: &Life, mut updates: UpdateStream, mut from: From) -> Option<TaskId> {
        let most = if self.dice.one_in(2) { self.dice.between(1, 8) } else { u64::MAX };
        let mut id = None;
        for _ in 0..most {
            let waits_since = Instant::now();
            let next = life.through(poll_fn(|cx| updates.as_mut().poll_next(cx)));
            let Ok(next) = timeout(PATIENCE, next).await else {
                self.silence(life, id.as_ref(), from);
                break;
            };
            let Some(Some(frame)) = next else { break };
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    self.refused(id.as_ref(), &error);
                    break;
                }
            };
            let Some(task) = self.note(&frame, &mut from) else { break };
            self.check_prompt(&task, frame.seq, waits_since);
            id = Some(task);
        }
        id
    }

    /// While nothing goes wrong, a reader that waits for an update sees it at once, whichever process committed it: no
    /// reader waits for the look that makes up for lost hints.
    fn check_prompt(&self, id: &TaskId, seq: Option<u64>, waits_since: Instant) {
        let age = seq.and_then(|seq| self.world.audit().age(id, seq));
        let Some(age) = age.filter(|age| *age <= waits_since.elapsed() && self.world.is_fair()) else { return };
        if age > PROMPT {
            self.broken(&format!("{id}: update {seq:?} was shown {} ms after its commit", age.as_millis()));
        }
    }

    /// A hint may get lost, but then the reader polls: a stream that stays silent has nothing to show.
    pub(super) fn silence(&self, life: &Life, id: Option<&TaskId>, from: From) {
        let (Some(id), From::Number(next)) = (id, from) else { return };
        let shown_by = Duration::from_secs(10);
        if life.awake_for() > shown_by && self.world.audit().age(id, next).is_some_and(|age| age > shown_by) {
            self.broken(&format!("{id}: update {next} was not shown to a stream that waits for it"));
        }
    }

    /// Writes a frame down; none for a direct reply, which has no task.
    pub(super) fn note(&mut self, frame: &Frame, from: &mut From) -> Option<TaskId> {
        let seq = frame.seq?;
        let (id, state) = match &frame.update.update {
            Update::Task(view) => (view.task.id.clone(), view.task.state()),
            Update::Status(update) => (update.task_id.clone(), update.status.state),
            Update::Artifact(update) => (update.task_id.clone(), TaskState::Working),
            Update::Message(_) => return None,
        };
        count(&self.world.journal().counts.updates_seen);
        self.world.journal().say(|| format!("{} sees update {seq} of {id}", self.name));
        self.learn(&id, Some(state));
        if !self.world.audit().has_committed(&id, seq) {
            self.broken(&format!("{id}: update {seq} was shown before it was committed"));
        }
        match (*from, &frame.update.update) {
            (From::Snapshot, Update::Task(view)) => {
                let text = view.task.artifacts.iter().map(|artifact| artifact.text()).collect();
                self.known(&id).snapshots.insert(seq, (state, text));
            }
            (From::Snapshot, _) => self.broken(&format!("{id}: a subscription did not begin with the task")),
            (From::Number(expected), update) => {
                if seq != expected {
                    self.broken(&format!("{id}: update {seq} was shown where {expected} was due"));
                }
                let mut bytes = Vec::new();
                v1_0::encode_update(update, &mut bytes);
                let text = String::from_utf8(bytes).unwrap();
                let before = self.known(&id).seen.insert(seq, text.clone());
                if before.is_some_and(|before| before != text) {
                    self.broken(&format!("{id}: update {seq} was shown in two ways"));
                }
            }
        }
        *from = From::Number(seq + 1);
        Some(id)
    }

    /// A refusal that no client should have met.
    pub(super) fn refused(&self, task: Option<&TaskId>, error: &ProtocolError) {
        let fine = match error {
            ProtocolError::Unavailable { .. } => true,
            // Some agents answer in a way that the protocol forbids. The caller that waits is told so; the task has failed.
            ProtocolError::InvalidAgentResponse { .. } => true,
            // A task that ended takes no more messages and no new followers, and a run may end while a call is made.
            ProtocolError::UnsupportedOperation { .. } => task.is_some(),
            _ => false,
        };
        if !fine {
            self.broken(&format!("{} was refused about {task:?}: {error}", self.name));
        }
    }

    pub(super) fn learn(&mut self, id: &TaskId, state: Option<TaskState>) {
        let known = self.known(id);
        let Some(state) = state.filter(|state| state.is_terminal()) else { return };
        if known.terminal.is_some_and(|before| before != state) {
            let before = known.terminal;
            self.broken(&format!("{id} ended as {before:?} and then as {state:?}"));
            return;
        }
        known.terminal = Some(state);
    }

    pub(super) fn known(&mut self, id: &TaskId) -> &mut Known {
        self.ledger.tasks.entry(id.clone()).or_insert_with(|| {
            count(&self.world.journal().counts.acknowledged);
            Known { agent: self.agent, ..Known::default() }
        })
    }

    pub(super) fn last_seen(&mut self, id: &TaskId) -> u64 {
        self.known(id).seen.keys().next_back().copied().unwrap_or(0)
    }
}
