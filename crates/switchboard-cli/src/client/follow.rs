//! Waiting for a task: over a stream where there is one, else by asking again and again. A stream that breaks and cannot be resumed
//! becomes asking, so the end is reached in any case.

use std::sync::Arc;
use std::time::Duration;

use switchboard::model::{TaskView, Update};
use switchboard::{CallErrorKind, Message, Sent, Task, TaskId, TaskStream};
use switchboard_core::call::Reply;
use switchboard_core::dialect::v1_0;

use super::error::ClientError;
use super::render::{self, Detail, Lines};
use super::session::{Agent, CALL_MAX, Session};

/// Pauses between two looks grow by half, up to this many times the first.
const PAUSE_GROWTH_MAX: u32 = 5;
/// So many looks in a row may fail.
const FAILURES_MAX: u32 = 10;

/// What a task or a message came to.
pub(crate) enum Outcome {
    Task(Arc<Task>),
    Message(Arc<Message>),
}

impl From<Sent> for Outcome {
    fn from(sent: Sent) -> Self {
        match sent {
            Sent::Message(message) => Self::Message(message),
            sent => match sent.into_task() {
                Some(task) => Self::Task(task),
                None => Self::Message(Arc::new(Message::new(switchboard::Role::Agent, "", Vec::new()))),
            },
        }
    }
}

/// Follows one task.
pub(crate) struct Follower<'a> {
    pub(crate) session: &'a Session,
    pub(crate) agent: &'a Agent,
    /// Whether each event is printed.
    pub(crate) is_live: bool,
}

impl Follower<'_> {
    /// Reads a stream to its end, or to the first state in which there is nothing more to wait for. `answers` says that the message
    /// which began the stream answers a question, so that the first picture of the task may still show the question.
    ///
    /// # Errors
    /// What the agent refuses with, or when the output is closed.
    pub(crate) async fn stream(&self, mut stream: TaskStream, answers: bool) -> Result<Outcome, ClientError> {
        while let Some(next) = stream.next().await {
            let frame = match next {
                Ok(frame) => frame,
                Err(error) => {
                    let known = stream.task().cloned();
                    return match known {
                        Some(task) if may_ask(&error) => {
                            self.session
                                .printer
                                .note(format!("Note: the stream broke ({error}); asking for the task instead"));
                            self.poll(task).await.map(Outcome::Task)
                        }
                        _ => Err(self.agent.error(&error)),
                    };
                }
            };
            let update = &frame.update.update;
            self.session.learn_update(update);
            if self.is_live {
                self.print(update)?;
            }
            let is_first_picture = answers && matches!(update, Update::Task(_));
            let has_ended = stream.task().is_none_or(|task| task.state().is_terminal());
            if stream.is_settled() && (!is_first_picture || has_ended) {
                break;
            }
        }
        let sent = stream.take_sent().map(Outcome::from);
        sent.ok_or_else(|| {
            ClientError::protocol("InvalidAgentResponseError", "the stream ended before it said anything")
        })
    }

    /// Asks for a task until there is nothing more to wait for.
    ///
    /// # Errors
    /// When the agent refuses, or cannot be reached for a long time.
    pub(crate) async fn poll(&self, mut task: Arc<Task>) -> Result<Arc<Task>, ClientError> {
        let mut pauses = Pauses::new(self.session);
        let mut failures = 0;
        while !task.state().is_settled() {
            tokio::time::sleep(pauses.next()).await;
            match self.agent.client.clone().with_deadline(CALL_MAX).task(&task.id).await {
                Ok(newer) => {
                    failures = 0;
                    let is_news = newer.status != task.status || newer.artifacts.len() != task.artifacts.len();
                    task = newer;
                    if self.is_live && is_news {
                        self.print(&Update::Task(TaskView::whole(task.clone())))?;
                    }
                }
                // The task goes on whatever becomes of one look at it.
                Err(error) if error.is_retryable() && failures < FAILURES_MAX => failures += 1,
                Err(error) => return Err(self.agent.error(&error)),
            }
        }
        Ok(task)
    }

    /// The task as the agent has it now; what is known of it if it cannot be had.
    pub(crate) async fn whole(&self, known: Arc<Task>) -> Arc<Task> {
        let id: &TaskId = &known.id;
        self.agent.client.clone().with_deadline(CALL_MAX).task(id).await.unwrap_or(known)
    }

    pub(crate) fn print(&self, update: &Update) -> Result<(), ClientError> {
        let printer = &self.session.printer;
        if printer.is_json() {
            let mut json = Vec::new();
            v1_0::encode_update(update, &mut json);
            return printer.json(json);
        }
        let mut lines = Lines::default();
        render::update(&mut lines, update, self.detail(false));
        lines.blank();
        printer.text(lines.into_text())
    }

    pub(crate) fn detail(&self, history: bool) -> Detail {
        let metadata = self.session.printer.is_verbose;
        Detail { history: history || metadata, metadata }
    }

    /// Prints what a message came to, and how to go on.
    ///
    /// # Errors
    /// When the output is closed.
    pub(crate) fn print_outcome(&self, outcome: &Outcome) -> Result<(), ClientError> {
        let printer = &self.session.printer;
        if printer.is_json() {
            if !self.is_live {
                let reply = match outcome {
                    Outcome::Task(task) => Reply::SentTask(TaskView::whole(task.clone())),
                    Outcome::Message(message) => Reply::SentMessage(message.clone()),
                };
                printer.json(encoded(&reply))?;
            }
        } else if !self.is_live {
            let mut lines = Lines::default();
            match outcome {
                Outcome::Task(task) => render::task(&mut lines, task, self.detail(false)),
                Outcome::Message(message) => render::message(&mut lines, message, self.detail(false)),
            }
            printer.text(lines.into_text())?;
        }
        match outcome {
            Outcome::Task(task) => self.tell_way_on(task, self.is_live),
            Outcome::Message(_) => Ok(()),
        }
    }

    /// Says how to go on with a task, and warns of a state that is no success. `restate` repeats the ids and the state, which the
    /// last event of a stream may not have shown together.
    ///
    /// # Errors
    /// When the output is closed.
    pub(crate) fn tell_way_on(&self, task: &Task, restate: bool) -> Result<(), ClientError> {
        let printer = &self.session.printer;
        let state = task.state();
        if state.is_settled() && state != switchboard::TaskState::Completed {
            printer.warn(format!("the task is in state {}", render::state_name(state)));
        }
        let line = self.way_on(task);
        if printer.is_json() {
            printer.note(format!("Resume: {line}"));
            return Ok(());
        }
        let mut lines = Lines::default();
        if restate {
            lines.field("Task", task.id.as_str()).field("Context", task.context_id.as_str());
            lines.field("State", render::state_name(state));
        }
        lines.field("Resume", line);
        printer.text(lines.into_text())
    }

    fn way_on(&self, task: &Task) -> String {
        let state = task.state();
        if state.is_interrupted() {
            self.session.command_line("send", &["--task-id", task.id.as_str(), "<reply>"])
        } else if state.is_terminal() {
            self.session.command_line("send", &["--context-id", task.context_id.as_str(), "<message>"])
        } else {
            self.session.command_line("task get", &["--wait", task.id.as_str()])
        }
    }
}

/// Whether a task can still be asked for after its stream failed so.
fn may_ask(error: &switchboard::CallError) -> bool {
    error.is_retryable()
        || matches!(
            error.kind(),
            CallErrorKind::StreamEndedEarly
                | CallErrorKind::Broken
                | CallErrorKind::TimedOut
                | CallErrorKind::InvalidAnswer
        )
}

/// A reply as JSON of 1.0.
pub(crate) fn encoded(reply: &Reply) -> Vec<u8> {
    let mut json = Vec::new();
    v1_0::encode_reply(reply, &mut json);
    json
}

/// The pauses between two looks at a task.
struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    fn new(session: &Session) -> Self {
        // Not a busy loop, whatever was asked for.
        let first = session.settings.duration("poll-interval").unwrap_or_default().max(Duration::from_millis(10));
        Self { next: first, longest: first * PAUSE_GROWTH_MAX }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 3 / 2).min(self.longest);
        pause
    }
}
