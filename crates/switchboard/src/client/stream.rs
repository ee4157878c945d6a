//! A stream of a remote agent that is followed to its end. When the connection is lost, it goes on where it was: by the id of the
//! last event where the agent numbers its events, else with a snapshot of the task, which is left out if it says nothing new. An
//! agent that cannot be subscribed to is asked for the task from time to time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Caller, Frame, Reply, Request, SharedUpdate};
use switchboard_core::model::{Task, TaskId, Update};
use tokio::time::sleep;

use super::bindings::{Answered, EventReader, ReceivedUpdate};
use super::credentials::Prover;
use super::remote::Remote;
use super::retry::Verdict;
use crate::call_agent::FrameStream;
use crate::call_error::{CallError, CallErrorKind};
use crate::random;
use crate::task_stream::Seen;

/// Follows what a streaming call was answered with.
pub(super) fn follow(
    remote: Arc<Remote>,
    request: Request,
    caller: Caller,
    prover: Prover,
    answered: Answered,
) -> Result<FrameStream, CallError> {
    let last_id = caller.last_event_id.clone();
    let is_reply = matches!(&request, Request::SendStreamingMessage(send) if send.message.task_id.is_some());
    let mut follower = Follower {
        remote,
        request,
        caller,
        prover,
        reader: None,
        received: VecDeque::new(),
        seen: Seen::default(),
        last_id,
        is_resumed: false,
        may_be_stale: is_reply,
        is_ended: false,
        attempts: 0,
        resumes: 0,
        is_over: false,
    };
    follower.take(answered)?;
    Ok(Box::pin(Frames { follower: Some(Box::new(follower)), step: None }))
}

type Step = BoxFuture<'static, (Box<Follower>, Option<Result<Frame, CallError>>)>;

/// The follower as a stream. Exactly one of the two is there until it is over.
struct Frames {
    follower: Option<Box<Follower>>,
    step: Option<Step>,
}

impl Stream for Frames {
    type Item = Result<Frame, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut step = match (self.step.take(), self.follower.take()) {
            (Some(step), _) => step,
            (None, Some(mut follower)) => Box::pin(async move {
                let item = follower.next().await;
                (follower, item)
            }),
            (None, None) => return Poll::Ready(None),
        };
        match step.as_mut().poll(cx) {
            Poll::Pending => {
                self.step = Some(step);
                Poll::Pending
            }
            Poll::Ready((follower, item)) => {
                self.follower = (!follower.is_over || !follower.received.is_empty()).then_some(follower);
                Poll::Ready(item)
            }
        }
    }
}

struct Follower {
    remote: Arc<Remote>,
    /// What began the stream.
    request: Request,
    caller: Caller,
    prover: Prover,
    reader: Option<EventReader>,
    /// What came outside the events of a stream.
    received: VecDeque<ReceivedUpdate>,
    seen: Seen,
    /// The id of the newest event.
    last_id: Option<String>,
    /// Whether the stream was lost before: then updates that were seen may come again.
    is_resumed: bool,
    /// Whether the state that is known may be from before the message: the stream of a reply may begin with a snapshot that still
    /// shows the question, and artifacts say nothing about the state.
    may_be_stale: bool,
    /// Whether the agent itself ended the newest stream.
    is_ended: bool,
    /// How often it was tried to go on since something came last: there is a limit.
    attempts: u32,
    /// How often it went on since something new came: pauses grow with it, because an agent may end each stream at once.
    resumes: u32,
    is_over: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<Frame, CallError>> {
        loop {
            if let Some(received) = self.received.pop_front() {
                match self.accept(received) {
                    Some(frame) => return Some(Ok(frame)),
                    None => continue,
                }
            }
            if self.is_over {
                return None;
            }
            let lost = match &mut self.reader {
                Some(reader) => match reader.next().await {
                    Ok(Some(received)) => {
                        self.received.push_back(received);
                        continue;
                    }
                    Ok(None) => {
                        self.is_ended = true;
                        CallError::new(CallErrorKind::Broken, "the agent ended the stream")
                    }
                    Err(error) => error,
                },
                None => CallError::new(CallErrorKind::Broken, "the agent answered without a stream"),
            };
            self.reader = None;
            if self.seen.is_settled() && !self.may_be_stale {
                self.is_over = true;
                return None;
            }
            // Boxed, because few streams need it, and their futures need not reserve memory for it.
            let going_on = match self.seen.is_settled() {
                true => Box::pin(self.confirm(lost)).await,
                false => Box::pin(self.resume(lost)).await,
            };
            if let Err(error) = going_on {
                self.is_over = true;
                return Some(Err(error.about_task(self.task_id().as_ref())));
            }
        }
    }

    /// The frame of an update, unless it was seen before.
    fn accept(&mut self, received: ReceivedUpdate) -> Option<Frame> {
        let ReceivedUpdate { id, update } = received;
        let seq = id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let last = self.last_id.as_deref().and_then(|id| id.parse::<u64>().ok());
        let is_snapshot = matches!(update, Update::Task(_));
        // An event that has no id of its own has that of the one before.
        if self.is_resumed && !is_snapshot && seq.zip(last).is_some_and(|(seq, last)| seq <= last) {
            return None;
        }
        let is_known = self.is_resumed
            && matches!((&update, self.seen.task()), (Update::Task(view), Some(task)) if is_same(&view.task, task));
        let truncated = self.is_resumed && is_snapshot && self.last_id.is_some();
        self.seen.take(&update);
        let tells_state = matches!(update, Update::Status(_) | Update::Message(_));
        self.may_be_stale &= !tells_state && !self.is_resumed;
        self.last_id = id.or(self.last_id.take());
        self.attempts = 0;
        if !is_known {
            self.resumes = 0;
        }
        if self.seen.has_ended() {
            self.is_over = true;
            self.reader.take().into_iter().for_each(EventReader::release);
        }
        (!is_known).then(|| Frame { seq, truncated, update: SharedUpdate::new(update) })
    }

    fn task_id(&self) -> Option<TaskId> {
        match (&self.request, self.seen.task()) {
            (_, Some(task)) => Some(task.id.clone()),
            (Request::SubscribeToTask { id }, None) => Some(id.clone()),
            (Request::SendMessage(send) | Request::SendStreamingMessage(send), None) => send.message.task_id.clone(),
            (_, None) => None,
        }
    }

    /// Goes on after the stream was lost.
    async fn resume(&mut self, lost: CallError) -> Result<(), CallError> {
        if !is_loss(&lost) {
            return Err(lost);
        }
        let policy = &self.remote.shared.retry;
        (self.attempts, self.resumes) = (self.attempts + 1, self.resumes.saturating_add(1));
        let known = self.seen.task().map(|task| task.id.clone());
        let known = known.or(match &self.request {
            Request::SubscribeToTask { id } => Some(id.clone()),
            _ => None,
        });
        if self.attempts > policy.attempts_max {
            return Err(if known.is_some() { lost.ended_early() } else { lost.outcome_unknown() });
        }
        let Some(id) = known else {
            // Nothing has come yet, so the message itself would have to be sent again.
            let lost = match policy.judge(&self.request, lost.having_arrived(), self.remote.recognises_repeats) {
                Verdict::Again(lost) => lost,
                Verdict::Fail(error) => return Err(error),
            };
            sleep(self.pause_after(&lost)).await;
            let limit = self.remote.shared.http.limits.call;
            let answered = self.remote.answered(&self.request, &self.caller, &self.prover, limit).await?;
            return self.take(answered);
        };
        // The first attempt is made at once: most connections are lost for no reason that lasts.
        if self.resumes > 1 {
            sleep(self.pause_after(&lost)).await;
        }
        self.is_resumed = true;
        let subscribe = Request::SubscribeToTask { id: id.clone() };
        let mut caller = Caller { last_event_id: self.last_id.clone(), ..self.caller.clone() };
        caller.idempotency_key = None;
        let limit = self.remote.shared.http.limits.call;
        match self.remote.answered(&subscribe, &caller, &self.prover, limit).await {
            Ok(answered) => self.take(answered),
            // Ended, or not an agent that can be subscribed to: the task says which.
            Err(error) if error.protocol_error().is_some() && !error.is_retryable() => {
                // An id that the agent does not take is not shown again.
                self.last_id = None;
                self.look(&id, error).await
            }
            // There is no reader, so the next round tries again.
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks whether a question that the first snapshot of a reply showed is the one that the message answers, or a new one. If the agent
    /// itself ended the stream there, it is what became of the message; if the connection broke, it is not, until it changes.
    async fn confirm(&mut self, lost: CallError) -> Result<(), CallError> {
        if !is_loss(&lost) {
            return Err(lost);
        }
        let Some(id) = self.task_id() else { return Err(lost.ended_early()) };
        (self.attempts, self.resumes) = (self.attempts + 1, self.resumes.saturating_add(1));
        if self.attempts > self.remote.shared.retry.attempts_max {
            return Err(lost.ended_early());
        }
        if self.resumes > 1 {
            sleep(self.pause_after(&lost)).await;
        }
        let status = self.seen.task().map(|task| task.status.clone());
        self.look(&id, lost).await?;
        let is_same = match self.received.back().map(|received| &received.update) {
            Some(Update::Task(view)) => status.as_ref() == Some(&view.task.status),
            _ => true,
        };
        if is_same && !self.is_ended {
            self.received.clear();
            self.is_over = false;
        } else {
            self.is_resumed = true;
        }
        Ok(())
    }

    /// Asks for the task itself.
    async fn look(&mut self, id: &TaskId, refused: CallError) -> Result<(), CallError> {
        let get = Request::GetTask { id: id.clone(), history_length: None };
        let caller = Caller { last_event_id: None, idempotency_key: None, ..self.caller.clone() };
        let limit = self.remote.shared.http.limits.call;
        match self.remote.answered(&get, &caller, &self.prover, limit).await {
            Ok(Answered::Reply(Reply::Task(view))) => {
                let is_over = view.task.state().is_settled();
                self.received.push_back(ReceivedUpdate { id: None, update: Update::Task(view) });
                self.is_over = is_over;
                Ok(())
            }
            Ok(_) => Err(refused.ended_early()),
            Err(error) if error.is_retryable() => Ok(()),
            Err(error) => Err(error.ended_early()),
        }
    }

    fn pause_after(&self, error: &CallError) -> Duration {
        self.remote.shared.retry.pause(self.resumes, error.retry_after(), random::number())
    }

    /// Takes what a call was answered with: events to read, or the answer itself.
    fn take(&mut self, answered: Answered) -> Result<(), CallError> {
        let update = match answered {
            Answered::Events(reader) => {
                (self.reader, self.is_ended) = (Some(reader), false);
                return Ok(());
            }
            Answered::Reply(Reply::SentTask(view) | Reply::Task(view)) => Update::Task(view),
            Answered::Reply(Reply::SentMessage(message)) => Update::Message(message),
            Answered::Reply(_) => {
                return Err(CallError::invalid_answer("an answer of another kind than was asked for"));
            }
        };
        // It is the answer to the call, so it is not from before the message.
        self.may_be_stale = false;
        self.received.push_back(ReceivedUpdate { id: None, update });
        Ok(())
    }
}

/// Whether the connection was lost. Otherwise the agent said why the stream ends, or sends what cannot be read.
fn is_loss(error: &CallError) -> bool {
    matches!(error.kind(), CallErrorKind::Broken | CallErrorKind::TimedOut | CallErrorKind::Unreachable)
}

/// Whether a snapshot says nothing that was not seen. Agents may leave the history out of either.
fn is_same(snapshot: &Task, seen: &Task) -> bool {
    snapshot.status == seen.status && snapshot.artifacts == seen.artifacts
}
