//! A client of the simulation: sends, streams, loses its connection, resumes, answers, cancels, repeats itself, and
//! writes down everything it was told. What it is told must never contradict itself; the rest is for `check`.

mod hearing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::call::{Caller, ListTasks, Owner, Reply, Request, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{ConfigId, Message, MessageId, Part, PushConfig, Role, Task, TaskId, TaskState};
use tokio::time::timeout;

use super::agent::{EITHER, FRAIL, PUPPET, PURE};
use super::dice::Dice;
use super::journal::count;
use super::life::Life;
use super::world::World;

/// How often a client tries to get through before it gives up.
const TRIES: u64 = 12;
/// How long it waits for an answer, or for the next update.
const PATIENCE: Duration = Duration::from_secs(25);

/// What a client knows of one task.
#[derive(Debug, Default)]
pub(super) struct Known {
    agent: &'static str,
    /// The end it was told of.
    pub(super) terminal: Option<TaskState>,
    /// Every update seen, by number, as the bytes that would be on the wire.
    pub(super) seen: BTreeMap<u64, String>,
    /// Whole tasks seen on streams, by the number they were taken at: their state, and the text of their artifacts.
    pub(super) snapshots: BTreeMap<u64, (TaskState, String)>,
    /// Messages that were accepted.
    pub(super) messages: Vec<MessageId>,
    pub(super) hooks: Vec<ConfigId>,
}

#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<TaskId, Known>,
}

pub(super) struct Client {
    name: String,
    agent: &'static str,
    world: World,
    dice: Dice,
    ledger: Ledger,
    messages: u64,
    /// How much it does.
    patience: u64,
}

impl Client {
    pub(super) fn new(number: u64, patience: u64, world: World, dice: Dice) -> Self {
        let ledger = Ledger { tasks: BTreeMap::new() };
        Self { name: format!("client-{number}"), agent: PUPPET, world, dice, ledger, messages: 0, patience }
    }

    pub(super) async fn live(mut self) -> Ledger {
        for _ in 0..self.dice.between(2, 2 + 2 * self.patience) {
            if self.world.journal().is_broken() {
                break;
            }
            self.pause(600).await;
            self.agent = [PUPPET, PUPPET, PUPPET, PURE, EITHER, FRAIL][self.dice.pick(6)];
            let text = self.command();
            match self.dice.below(6) {
                0 => self.send(&text).await,
                1 | 2 => self.stream(&text).await,
                3 => self.send_and_cancel(&text).await,
                4 => self.send_more(&text).await,
                _ => self.send_and_watch(&text).await,
            }
        }
        self.ledger
    }

    fn command(&mut self) -> String {
        match self.dice.below(12) {
            0..=1 => format!("chunks {}", self.dice.between(1, 12)),
            2..=3 => format!("resume {}", self.dice.between(1, 12)),
            4 => format!("slow {}", self.dice.between(1, 5)),
            5 => format!("remember {}", self.dice.between(1, 30)),
            6 => "ask me".to_owned(),
            7 => "fail".to_owned(),
            8 => "panic".to_owned(),
            9 => ["stubborn", "lost"][self.dice.pick(2)].to_owned(),
            10 => if self.agent == EITHER { "reply" } else { "hello" }.to_owned(),
            _ => "hello".to_owned(),
        }
    }

    /// Sends until it is answered, and sometimes again.
    async fn send(&mut self, text: &str) {
        let send = self.message(text, None);
        if let Some(task) = self.deliver(&send).await
            && task.state() == TaskState::InputRequired
        {
            self.answer(&task.id).await;
        }
    }

    /// A question is answered until the answer is accepted.
    async fn answer(&mut self, id: &TaskId) {
        let send = self.message("an answer", Some(id));
        if self.deliver(&send).await.is_some() {
            count(&self.world.journal().counts.answers_to_questions);
        }
    }

    /// Sends one message until it is answered: the same every time, so there must be one task. None without a task.
    async fn deliver(&mut self, send: &SendMessage) -> Option<Arc<Task>> {
        let caller = self.caller();
        let mut answers = Vec::new();
        for _ in 0..TRIES {
            let twice = self.dice.one_in(5);
            let (first, second) = (self.dice.pick(8), self.dice.pick(8));
            let request = || Request::SendMessage(send.clone().into());
            let one = call(&self.world, first, self.agent, caller.clone(), request());
            if twice {
                // Both at once, perhaps through two nodes.
                let two = call(&self.world, second, self.agent, caller.clone(), request());
                let (one, two) = tokio::join!(one, two);
                answers.extend([one, two].into_iter().flatten().map(|(_, answer)| answer));
            } else {
                answers.extend(one.await.map(|(_, answer)| answer));
            }
            let answered = answers.iter().any(|answer| !matches!(answer, Err(ProtocolError::Unavailable { .. })));
            if answered && !self.dice.one_in(4) {
                break;
            }
            self.pause(400).await;
        }
        self.compare(send, answers)
    }

    /// Sends without waiting, then asks for an end.
    async fn send_and_cancel(&mut self, text: &str) {
        let mut send = self.message(text, None);
        send.return_immediately = true;
        let Some(task) = self.deliver(&send).await else { return };
        self.pause(1_500).await;
        for _ in 0..self.dice.between(1, 3) {
            let cancel = Request::CancelTask { id: task.id.clone(), metadata: None };
            match self.call(cancel).await {
                Some((_, Ok(Reply::Task(view)))) => {
                    self.learn(&task.id, Some(view.task.state()));
                    if view.task.state() == TaskState::Canceled {
                        count(&self.world.journal().counts.cancels_confirmed);
                    }
                }
                Some((_, Ok(_))) => self.broken("a cancel was not answered with a task"),
                Some((_, Err(ProtocolError::TaskNotCancelable { state, .. }))) => {
                    self.learn(&task.id, Some(state));
                }
                Some((_, Err(error))) => self.refused(Some(&task.id), &error),
                None => {}
            }
        }
    }

    /// Sends, and sends more while the first is being worked on.
    async fn send_more(&mut self, text: &str) {
        let mut send = self.message(text, None);
        send.return_immediately = true;
        let Some(task) = self.deliver(&send).await else { return };
        for number in 0..self.dice.between(1, 2) {
            self.pause(500).await;
            let text = if self.dice.one_in(2) { format!("more {number}") } else { "slow 6".to_owned() };
            let send = self.message(&text, Some(&task.id));
            self.deliver(&send).await;
        }
    }

    /// Sends with a webhook, or registers one later, and looks at the task now and then.
    async fn send_and_watch(&mut self, text: &str) {
        let mut send = self.message(text, None);
        send.return_immediately = self.dice.one_in(2);
        if self.dice.one_in(2) {
            send.push_config = Some(hook(&TaskId::default()));
        }
        let Some(task) = self.deliver(&send).await else { return };
        self.pause(300).await;
        if self.dice.one_in(2)
            && let Some((_, Ok(Reply::PushConfig(config)))) =
                self.call(Request::CreatePushConfig(hook(&task.id).into())).await
        {
            self.known(&task.id).hooks.push(config.id);
        }
        if let Some((life, Ok(Reply::Stream(updates)))) =
            self.call(Request::SubscribeToTask { id: task.id.clone() }).await
        {
            self.read(&life, updates, From::Snapshot).await;
        }
        self.pause(3_000).await;
        match self.call(Request::GetTask { id: task.id.clone(), history_length: None }).await {
            Some((_, Ok(Reply::Task(view)))) => self.learn(&task.id, Some(view.task.state())),
            Some((_, Err(error))) => self.refused(Some(&task.id), &error),
            _ => {}
        }
        self.list().await;
    }

    /// Every task it was told of is listed.
    async fn list(&mut self) {
        let list = ListTasks { page_size: Some(100), ..ListTasks::default() };
        let Some((_, Ok(Reply::Tasks(page)))) = self.call(Request::ListTasks(list)).await else { return };
        for (id, known) in &self.ledger.tasks {
            if known.agent == self.agent && !page.tasks.iter().any(|view| view.task.id == *id) {
                self.broken(&format!("{id} was acknowledged and is not listed"));
            }
        }
    }

    /// Streams a message to its end, however often the stream breaks.
    async fn stream(&mut self, text: &str) {
        let mut send = self.message(text, None);
        if self.dice.one_in(4) {
            send.push_config = Some(hook(&TaskId::default()));
        }
        let mut task = None;
        for _ in 0..TRIES {
            match self.call(Request::SendStreamingMessage(send.clone().into())).await {
                Some((life, Ok(Reply::Stream(updates)))) => task = self.read(&life, updates, From::Number(1)).await,
                Some((_, Ok(_))) => self.broken("a streaming send was not answered with a stream"),
                Some((_, Err(error))) => self.refused(None, &error),
                None => {}
            }
            if task.is_some() {
                break;
            }
            self.pause(400).await;
        }
        let Some(id) = task else { return };
        self.known(&id).messages.push(send.message.message_id.clone());
        let mut silent = 0;
        while silent < 3 && self.known(&id).terminal.is_none() {
            let last = self.last_seen(&id);
            self.pause(300).await;
            let mut caller = self.caller();
            caller.last_event_id = Some(last.to_string());
            // Both operations lead to the same stream.
            let request = match self.dice.one_in(3) {
                true => Request::SendStreamingMessage(send.clone().into()),
                false => Request::SubscribeToTask { id: id.clone() },
            };
            let pick = self.dice.pick(8);
            match call(&self.world, pick, self.agent, caller, request).await {
                Some((life, Ok(Reply::Stream(updates)))) => {
                    count(&self.world.journal().counts.streams_resumed);
                    self.read(&life, updates, From::Number(last + 1)).await;
                }
                Some((_, Err(error))) => self.refused(Some(&id), &error),
                Some((_, Ok(_))) => self.broken("a resumed stream was not a stream"),
                None => {}
            }
            silent = if self.last_seen(&id) == last { silent + 1 } else { 0 };
        }
    }

    fn message(&mut self, text: &str, task: Option<&TaskId>) -> SendMessage {
        self.messages += 1;
        let id = format!("{}-{}", self.name, self.messages);
        let mut message = Message::new(Role::User, id, vec![Part::text(text)]);
        message.task_id = task.cloned();
        SendMessage {
            open_as: None,
            message,
            accepted_output_modes: Vec::new(),
            push_config: None,
            history_length: None,
            return_immediately: false,
            metadata: None,
        }
    }

    /// Half of all messages are told apart by their own id, half by a key.
    fn caller(&self) -> Caller {
        let mut caller = Caller::anonymous();
        caller.owner = Owner { tenant: "".into(), principal: self.name.as_str().into() };
        caller.authenticated = true;
        caller.idempotency_key = self.messages.is_multiple_of(2).then(|| format!("key-{}", self.messages));
        caller
    }

    async fn call(&mut self, request: Request) -> Option<(Arc<Life>, Result<Reply, ProtocolError>)> {
        let (pick, caller) = (self.dice.pick(8), self.caller());
        call(&self.world, pick, self.agent, caller, request).await
    }

    async fn pause(&mut self, ms_max: u64) {
        tokio::time::sleep(Duration::from_millis(self.dice.below(ms_max))).await;
    }

    fn broken(&self, promise: &str) {
        self.world.journal().broken(promise);
    }
}

/// Where a stream is to begin.
#[derive(Clone, Copy)]
enum From {
    /// With the task as it is.
    Snapshot,
    Number(u64),
}

/// Calls one process; none if it dies or does not answer in time.
async fn call(
    world: &World,
    pick: usize,
    agent: &str,
    caller: Caller,
    request: Request,
) -> Option<(Arc<Life>, Result<Reply, ProtocolError>)> {
    let (life, endpoint) = world.process(pick, agent).await;
    let reply = timeout(PATIENCE, life.through(endpoint.call(caller, request))).await;
    let reply = reply.ok().flatten()?;
    Some((life, reply))
}

fn hook(task_id: &TaskId) -> PushConfig {
    let url = "https://receiver.example/".to_owned();
    PushConfig { id: ConfigId::default(), task_id: task_id.clone(), url, token: None, authentication: None }
}
