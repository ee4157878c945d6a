//! One reader of one task: a cursor that reads the store first and then the shared tail, and ends where its kind of
//! stream ends.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use switchboard_core::call::{BoxFuture, Frame, SharedUpdate};
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{Event, StreamEnd, StreamKind, after_state, updates};
use switchboard_core::model::{ContextId, Task, TaskId, TaskView, Update};

use crate::ports::store::{LogPage, Scope, StoreError, StoredTask, TaskKey};
use crate::state::record::Record;
use crate::state::runs::{AttachedRun, StreamedRun};
use crate::state::tail::{Tail, TailRead};
use crate::state::{Counters, EngineState};

/// The frames of commits that the caller already holds.
pub(crate) fn frames(task_id: &TaskId, context_id: &ContextId, first_seq: u64, events: &[Event]) -> VecDeque<Frame> {
    updates(task_id, context_id, first_seq, events)
        .map(|(seq, update)| Frame { seq: Some(seq), truncated: false, update: SharedUpdate::new(update) })
        .collect()
}

/// The frame of a task in its present state.
pub(crate) fn snapshot(engine: &EngineState, scope: &Scope, stored: &StoredTask, history_length: Option<u32>) -> Frame {
    snapshot_at(engine, scope, stored.folded.task.clone(), stored.head.seq, history_length)
}

/// The frame of a task as it was after its event `seq`.
pub(crate) fn snapshot_at(
    engine: &EngineState,
    scope: &Scope,
    task: Arc<Task>,
    seq: u64,
    history_length: Option<u32>,
) -> Frame {
    let view = TaskView { history_length, ..TaskView::whole(task) };
    let view = engine.fitted(scope, view, engine.frame_bytes_max());
    Frame { seq: Some(seq), truncated: false, update: SharedUpdate::new(Update::Task(view)) }
}

/// What a subscription follows.
pub(crate) struct Following {
    pub(crate) scope: Scope,
    pub(crate) key: TaskKey,
    pub(crate) id: TaskId,
    pub(crate) context_id: ContextId,
    /// Whether the message of this stream had to wait behind another one. A question in the turn before it does not end
    /// the stream then.
    pub(crate) waits: bool,
    /// The last event that the client has. It is not shown again, but it may be the event that ends the stream.
    pub(crate) shown: u64,
}

impl Following {
    pub(crate) fn of(scope: Scope, stored: &StoredTask) -> Self {
        let (id, context_id) = (stored.head.id.clone(), stored.head.context_id.clone());
        Self { scope, key: stored.key, id, context_id, waits: false, shown: 0 }
    }
}

pub(crate) struct Subscription {
    engine: Arc<EngineState>,
    following: Following,
    kind: StreamKind,
    ready: VecDeque<Frame>,
    /// The number of the last update in `ready` or already shown.
    cursor: u64,
    tail: Arc<Tail>,
    reader: u64,
    reading: Option<BoxFuture<'static, Result<Step, StoreError>>>,
    ended: bool,
    /// The run of the message that this stream was opened with, as long as the stream polls it.
    run: Option<StreamedRun>,
}

/// The result of reading the store.
enum Step {
    Page(LogPage),
    /// The log is no longer kept back to the cursor. The present task replaces the removed events.
    Snapshot(Option<StoredTask>),
    /// Whether the question just shown ends the turn of the message that this stream is about.
    Asked {
        settled: bool,
    },
}

impl Subscription {
    /// Shows `ready` first, then everything after `cursor`.
    pub(crate) async fn open(
        engine: Arc<EngineState>,
        following: Following,
        kind: StreamKind,
        ready: VecDeque<Frame>,
        cursor: u64,
    ) -> Result<Self, ProtocolError> {
        let tail = engine.tails.follow(&following.scope, &following.id, cursor);
        // The tail is followed before the store is read, so that commits between the two are not missed.
        let stored = engine.store.head(&following.scope, &following.id).await;
        let head = stored.map_err(|error| engine.store_failed(&error))?.map(|stored| stored.head);
        let Some(head) = head else { return Err(ProtocolError::task_not_found(&following.id)) };
        tail.joins(head.seq);
        if engine.supervisor.is_draining() {
            // Shutdown may have closed the tails before this one was created.
            tail.close();
        }
        let closes = after_state(kind, head.state) == StreamEnd::Close;
        let ended = cursor >= head.seq && closes && (head.is_settled() || !following.waits);
        let reader = tail.reader(cursor);
        Counters::add(&engine.counters.streams_opened);
        Ok(Self { engine, following, kind, ready, cursor, tail, reader, reading: None, ended, run: None })
    }

    /// From now on the stream also polls this run of the record that it follows.
    pub(crate) fn drive(&mut self, record: &Record, run: AttachedRun) {
        record.is_followed_at(&self.tail);
        self.run = StreamedRun::begin(run, &self.engine.streamed_runs);
    }

    fn read_store(&self) -> BoxFuture<'static, Result<Step, StoreError>> {
        let (engine, key, cursor) = (self.engine.clone(), self.following.key, self.cursor);
        let (scope, id) = (self.following.scope.clone(), self.following.id.clone());
        Box::pin(async move {
            match engine.store.log(key, cursor, engine.limits.log_page_commits).await {
                Ok(page) => Ok(Step::Page(page)),
                Err(StoreError::Pruned) => Ok(Step::Snapshot(engine.stored_task(&scope, &id).await?)),
                Err(error) => Err(error),
            }
        })
    }

    /// Whether the question just shown was asked before the turn of this stream's own message.
    fn read_past_question(&self, question: u64) -> BoxFuture<'static, Result<Step, StoreError>> {
        let (engine, key) = (self.engine.clone(), self.following.key);
        let (scope, id) = (self.following.scope.clone(), self.following.id.clone());
        Box::pin(async move {
            let Some(stored) = engine.store.head(&scope, &id).await? else { return Ok(Step::Asked { settled: true }) };
            if stored.head.seq <= question {
                return Ok(Step::Asked { settled: stored.head.is_settled() });
            }
            let next = match engine.store.log(key, question, 1).await {
                Ok(page) => page.commits,
                Err(StoreError::Pruned) => Vec::new(),
                Err(error) => return Err(error),
            };
            Ok(Step::Asked { settled: next.first().is_some_and(|commit| ends_a_pause(&commit.events)) })
        })
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Asked { settled: true } => self.end(),
            Step::Asked { settled: false } => {}
            Step::Page(page) => {
                for commit in page.commits {
                    let (id, context_id) = (&self.following.id, &self.following.context_id);
                    for frame in frames(id, context_id, commit.first_seq, &commit.events) {
                        self.offer(frame);
                    }
                }
            }
            Step::Snapshot(Some(stored)) => {
                self.cursor = stored.head.seq;
                self.ready.push_back(Frame {
                    truncated: true,
                    ..snapshot(&self.engine, &self.following.scope, &stored, None)
                });
            }
            // The task was pruned while it was followed, so the stream ends.
            Step::Snapshot(None) => self.ended = true,
        }
    }

    /// Queues a frame unless it has been shown before.
    fn offer(&mut self, frame: Frame) {
        if frame.seq.is_some_and(|seq| seq > self.cursor) {
            self.cursor = frame.seq.unwrap_or(self.cursor);
            self.ready.push_back(frame);
        }
    }

    /// Ends the stream, and drops frames that were not shown yet.
    fn end(&mut self) {
        self.ended = true;
        self.ready.clear();
    }

    fn ends_after(&self, frame: &Frame) -> bool {
        let state = match &frame.update.update {
            Update::Status(update) => update.status.state,
            // A task frame ends a stream only if nothing can follow it; the first frame of a send is often followed.
            Update::Task(view) if view.task.state().is_terminal() => view.task.state(),
            Update::Task(_) | Update::Message(_) | Update::Artifact(_) => return false,
        };
        after_state(self.kind, state) == StreamEnd::Close
    }
}

/// Whether the event after a question came from a caller, because the task was waiting for input. If another message
/// was waiting, the run continues without a caller.
fn ends_a_pause(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::MessageAdded { .. } | Event::CancelRequested { .. }))
}

fn is_terminal(frame: &Frame) -> bool {
    match &frame.update.update {
        Update::Status(update) => update.status.state.is_terminal(),
        Update::Task(view) => view.task.state().is_terminal(),
        Update::Message(_) | Update::Artifact(_) => false,
    }
}

impl Stream for Subscription {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let Some(run) = &mut this.run else { return this.poll_frame(cx) };
        if run.is_woken() {
            // What the run commits now is read below, so it need not wake this task.
            this.tail.awake(this.reader);
            if run.poll().is_ready() {
                this.run = None;
            }
        }
        let polled = this.poll_frame(cx);
        match &mut this.run {
            Some(run) if polled.is_pending() => run.wait(cx),
            Some(run) => run.leave(),
            None => {}
        }
        polled
    }
}

impl Subscription {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame, ProtocolError>>> {
        let this = self;
        loop {
            if let Some(reading) = &mut this.reading {
                let step = ready!(reading.as_mut().poll(cx));
                this.reading = None;
                match step {
                    Ok(step) => {
                        let before = this.cursor;
                        let reads_on = matches!(step, Step::Asked { .. });
                        this.take_step(step);
                        if !reads_on && this.cursor == before && this.ready.is_empty() {
                            // The tail has updates that the store does not return. Ending the stream lets the client
                            // resume; skipping the updates would lose them.
                            this.ended = true;
                        }
                    }
                    Err(error) => {
                        this.end();
                        return Poll::Ready(Some(Err(this.engine.store_failed(&error))));
                    }
                }
                continue;
            }
            if let Some(frame) = this.ready.pop_front() {
                if this.ready.is_empty() {
                    // So that the next frame is put where this one was, and not into memory that is in no cache of the processor.
                    this.ready.clear();
                }
                if this.ends_after(&frame) {
                    match frame.seq {
                        Some(seq) if this.following.waits && !is_terminal(&frame) => {
                            this.reading = Some(this.read_past_question(seq));
                        }
                        _ => this.end(),
                    }
                }
                if frame.seq.is_some_and(|seq| seq <= this.following.shown) {
                    continue;
                }
                return Poll::Ready(Some(Ok(this.engine.fitted_frame(&this.following.scope, frame))));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            let Self { tail, ready, cursor, reader, .. } = &mut *this;
            let give = |seq, update| ready.push_back(Frame { seq: Some(seq), truncated: false, update });
            match ready!(tail.poll_after(*cursor, *reader, cx, give)) {
                TailRead::Updates => this.cursor = this.ready.back().and_then(|frame| frame.seq).unwrap_or(this.cursor),
                TailRead::Behind => this.reading = Some(this.read_store()),
                TailRead::Closing => this.ended = true,
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.tail.forget(self.reader);
        Counters::add(&self.engine.counters.streams_closed);
    }
}

/// A stream whose frames are all known, so that nothing is followed.
pub(crate) struct Finished(pub(crate) VecDeque<Frame>);

impl Stream for Finished {
    type Item = Result<Frame, ProtocolError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
