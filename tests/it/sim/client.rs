//! A client of the simulation: sends, streams, loses its connection, resumes, cancels, repeats itself, and writes down
//! everything it was told.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::time::Duration;

use switchboard_core::call::{Caller, Frame, Reply, Request, SendMessage, UpdateStream};
use switchboard_core::dialect::v1_0;
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{Message, Part, Role, TaskId, TaskState, Update};

use super::dice::Dice;
use super::world::World;

/// What a client knows of one task.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) command: String,
    /// What the server acknowledged about it.
    pub(super) terminal: Option<TaskState>,
    /// Every update seen, by number, as the bytes that would be on the wire.
    pub(super) seen: BTreeMap<u64, String>,
    pub(super) canceled: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<TaskId, Known>,
    pub(super) resumed: u64,
    /// Two sends under one key that were answered with two tasks.
    pub(super) doubled: u64,
}

pub(super) struct Client {
    number: u64,
    world: World,
    dice: Dice,
    ledger: Ledger,
    messages: u64,
}

impl Client {
    pub(super) fn new(number: u64, world: World, dice: Dice) -> Self {
        Self { number, world, dice, ledger: Ledger::default(), messages: 0 }
    }

    pub(super) async fn live(mut self) -> Ledger {
        for _ in 0..self.dice.between(2, 6) {
            tokio::time::sleep(Duration::from_millis(self.dice.below(500))).await;
            let command = self.command();
            match self.dice.below(3) {
                0 => self.send(&command).await,
                1 => self.stream(&command).await,
                _ => self.send_and_cancel(&command).await,
            }
        }
        self.ledger
    }

    fn command(&mut self) -> String {
        match self.dice.below(10) {
            0..=3 => format!("chunks {}", self.dice.between(1, 30)),
            4 => format!("slow {}", self.dice.between(1, 5)),
            5 => "ask me".to_owned(),
            6 => "fail".to_owned(),
            7 => "panic".to_owned(),
            8 => "stubborn".to_owned(),
            _ => "hello".to_owned(),
        }
    }

    fn message(&mut self, text: &str, task: Option<&TaskId>) -> SendMessage {
        self.messages += 1;
        let id = format!("m-{}-{}", self.number, self.messages);
        let mut message = Message::new(Role::User, id, vec![Part::text(text)]);
        message.task_id = task.cloned();
        SendMessage {
            message,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: false,
            metadata: None,
        }
    }

    fn caller(&self) -> Caller {
        let mut caller = Caller::anonymous();
        caller.owner.principal = format!("client-{}", self.number).into();
        caller.authenticated = true;
        caller
    }

    /// Calls whatever process is alive; none if it died meanwhile.
    async fn call(&self, caller: Caller, request: Request) -> Option<Result<Reply, ProtocolError>> {
        let endpoint = self.world.endpoint().await;
        tokio::select! {
            biased;
            () = self.world.death() => None,
            reply = endpoint.call(caller, request) => Some(reply),
        }
    }

    /// Sends until it is answered: the same message every time, so there must be one task.
    async fn send(&mut self, command: &str) {
        let send = self.message(command, None);
        let mut first: Option<TaskId> = None;
        for _ in 0..20 {
            let reply = self.call(self.caller(), Request::SendMessage(send.clone().into())).await;
            if let Some(Ok(Reply::SentTask(view))) = reply {
                let task = view.task;
                self.learn(command, &task.id, Some(task.state()));
                if first.as_ref().is_some_and(|first| *first != task.id) {
                    self.ledger.doubled += 1;
                }
                if task.state() == TaskState::InputRequired {
                    self.answer(&task.id).await;
                    return;
                }
                if first.is_some() || !self.dice.one_in(3) {
                    return;
                }
                first = Some(task.id.clone());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn answer(&mut self, id: &TaskId) {
        let send = self.message("an answer", Some(id));
        for _ in 0..20 {
            if let Some(Ok(Reply::SentTask(view))) = self.call(self.caller(), Request::SendMessage(send.clone().into())).await
            {
                self.learn("answer", &view.task.id, Some(view.task.state()));
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn send_and_cancel(&mut self, command: &str) {
        let mut send = self.message(command, None);
        send.return_immediately = true;
        let Some(Ok(Reply::SentTask(view))) = self.call(self.caller(), Request::SendMessage(send.into())).await else {
            return;
        };
        let id = view.task.id.clone();
        self.learn(command, &id, None);
        tokio::time::sleep(Duration::from_millis(self.dice.below(400))).await;
        let cancel = Request::CancelTask { id: id.clone(), metadata: None };
        if let Some(Ok(Reply::Task(view))) = self.call(self.caller(), cancel).await {
            let state = view.task.state();
            if state == TaskState::Canceled {
                self.learn(command, &id, Some(state));
                self.ledger.tasks.entry(id).or_default().canceled = true;
            }
        }
    }

    /// Streams a task to its end, however often the stream breaks.
    async fn stream(&mut self, command: &str) {
        let send = self.message(command, None);
        let reply = self.call(self.caller(), Request::SendStreamingMessage(send.into())).await;
        let Some(Ok(Reply::Stream(updates))) = reply else { return };
        let Some(id) = self.read(command, updates, None).await else { return };
        for _ in 0..30 {
            let known = &self.ledger.tasks[&id];
            if known.terminal.is_some() {
                return;
            }
            let last = known.seen.keys().next_back().copied().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(300)).await;
            let mut caller = self.caller();
            caller.last_event_id = Some(last.to_string());
            let reply = self.call(caller, Request::SubscribeToTask { id: id.clone() }).await;
            if let Some(Ok(Reply::Stream(updates))) = reply {
                self.ledger.resumed += 1;
                self.read(command, updates, Some(last)).await;
            }
        }
    }

    /// Reads until the stream ends, the process dies, or the client has had enough; gives back the task's id.
    async fn read(&mut self, command: &str, mut updates: UpdateStream, after: Option<u64>) -> Option<TaskId> {
        let patience = if self.dice.one_in(2) { self.dice.between(1, 8) } else { u64::MAX };
        let mut id = None;
        let numbers = after.map_or(1, |after| after + 1)..;
        for (expected, _) in numbers.zip(0..patience) {
            let frame = tokio::select! {
                biased;
                () = self.world.death() => return id,
                () = tokio::time::sleep(Duration::from_secs(40)) => return id,
                frame = poll_fn(|cx| updates.as_mut().poll_next(cx)) => frame,
            };
            let Some(Ok(frame)) = frame else { return id };
            assert_eq!(frame.seq, Some(expected), "updates are numbered without gap or repeat");
            id = Some(self.note(command, &frame));
        }
        id
    }

    fn note(&mut self, command: &str, frame: &Frame) -> TaskId {
        let (id, state) = match &frame.update.update {
            Update::Task(view) => (view.task.id.clone(), view.task.state()),
            Update::Status(update) => (update.task_id.clone(), update.status.state),
            Update::Artifact(update) => (update.task_id.clone(), TaskState::Working),
            Update::Message(_) => panic!("the puppet never answers directly"),
        };
        let mut bytes = Vec::new();
        v1_0::encode_update(&frame.update.update, &mut bytes);
        self.learn(command, &id, Some(state));
        let known = self.ledger.tasks.entry(id.clone()).or_default();
        let text = String::from_utf8(bytes).unwrap();
        let before = known.seen.insert(frame.seq.unwrap(), text.clone());
        assert!(before.is_none_or(|before| before == text), "an update never changes");
        id
    }

    fn learn(&mut self, command: &str, id: &TaskId, state: Option<TaskState>) {
        let known = self.ledger.tasks.entry(id.clone()).or_default();
        if known.command.is_empty() {
            command.clone_into(&mut known.command);
        }
        if let Some(state) = state.filter(|state| state.is_terminal()) {
            assert!(known.terminal.is_none_or(|before| before == state), "a terminal state is final");
            known.terminal = Some(state);
        }
    }
}
