//! What a check works with: an interface of the agent, calls to it, and what checks share so that they need not each make a task of
//! their own.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::card::Card;
use super::receiver::{Delivery, Receiver};
use super::wire::forms::{Form, Payload, State};
use super::wire::{
    Binding, Events, Interface, Meaning, Operation, Options, Raw, Refused, Reply, StreamEnd, StreamEvent, Streamed,
    Version, Wire, shown,
};

/// Between two tasks whose times must differ.
const SHELF_PAUSE: Duration = Duration::from_millis(20);

/// How long the cancellation of a task that is no longer needed is waited for.
const DROP_WAIT_MAX: Duration = Duration::from_secs(2);

/// How long the first webhook is waited for. The specification has no limit; agents post when a task changes.
const DELIVERY_WAIT_MAX: Duration = Duration::from_secs(10);

/// What came of a webhook that was registered with a task.
#[derive(Clone, Debug)]
pub(crate) struct Delivered {
    /// The id of the task.
    pub(crate) task: String,
    /// What the webhook must show.
    pub(crate) authorization: String,
    pub(crate) all: Vec<Delivery>,
}

/// What a check has to say unless all is well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Fault {
        expected: String,
        came: String,
    },
    /// Why it could not be checked.
    Skip(String),
}

pub(crate) type Checked = Result<(), Finding>;

pub(crate) fn fault(expected: impl Into<String>, came: impl Into<String>) -> Finding {
    Finding::Fault { expected: expected.into(), came: came.into() }
}

pub(crate) fn skip(reason: impl Into<String>) -> Finding {
    Finding::Skip(reason.into())
}

/// A fault unless the condition holds. What came is worked out only then.
pub(crate) fn hold(condition: bool, expected: &str, came: impl FnOnce() -> String) -> Checked {
    if condition { Ok(()) } else { Err(fault(expected, came())) }
}

/// What the agent under test is told.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// It answers this.
    pub(crate) plain: String,
    /// It works on this for some seconds.
    pub(crate) slow: Option<String>,
    /// It asks back.
    pub(crate) question: Option<String>,
}

/// An error of the specification, as each binding numbers it.
pub(crate) struct Expected {
    pub(crate) name: &'static str,
    jsonrpc: i64,
    http: i64,
    grpc: i64,
    reason: &'static str,
}

const fn expected(name: &'static str, jsonrpc: i64, http: i64, grpc: i64, reason: &'static str) -> Expected {
    Expected { name, jsonrpc, http, grpc, reason }
}

const NOT_FOUND: i64 = 5;
const FAILED_PRECONDITION: i64 = 9;
const INVALID_ARGUMENT: i64 = 3;
const UNIMPLEMENTED: i64 = 12;

pub(crate) const TASK_NOT_FOUND: Expected = expected("TaskNotFoundError", -32001, 404, NOT_FOUND, "TASK_NOT_FOUND");
pub(crate) const NOT_CANCELABLE: Expected =
    expected("TaskNotCancelableError", -32002, 400, FAILED_PRECONDITION, "TASK_NOT_CANCELABLE");
pub(crate) const PUSH_NOT_SUPPORTED: Expected =
    expected("PushNotificationNotSupportedError", -32003, 400, FAILED_PRECONDITION, "PUSH_NOTIFICATION_NOT_SUPPORTED");
pub(crate) const UNSUPPORTED_OPERATION: Expected =
    expected("UnsupportedOperationError", -32004, 400, FAILED_PRECONDITION, "UNSUPPORTED_OPERATION");
pub(crate) const CONTENT_TYPE_NOT_SUPPORTED: Expected =
    expected("ContentTypeNotSupportedError", -32005, 400, INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED");
pub(crate) const NO_EXTENDED_CARD: Expected = expected(
    "ExtendedAgentCardNotConfiguredError",
    -32007,
    400,
    FAILED_PRECONDITION,
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
);
pub(crate) const EXTENSION_REQUIRED: Expected =
    expected("ExtensionSupportRequiredError", -32008, 400, FAILED_PRECONDITION, "EXTENSION_SUPPORT_REQUIRED");
pub(crate) const VERSION_NOT_SUPPORTED: Expected =
    expected("VersionNotSupportedError", -32009, 400, FAILED_PRECONDITION, "VERSION_NOT_SUPPORTED");
pub(crate) const PARSE_ERROR: Expected = expected("JSONParseError", -32700, 400, INVALID_ARGUMENT, "PARSE_ERROR");
pub(crate) const INVALID_REQUEST: Expected =
    expected("InvalidRequestError", -32600, 400, INVALID_ARGUMENT, "INVALID_REQUEST");
pub(crate) const METHOD_NOT_FOUND: Expected =
    expected("MethodNotFoundError", -32601, 404, UNIMPLEMENTED, "METHOD_NOT_FOUND");
pub(crate) const INVALID_PARAMS: Expected =
    expected("InvalidParamsError", -32602, 400, INVALID_ARGUMENT, "INVALID_PARAMS");

impl Expected {
    fn code(&self, binding: Binding) -> i64 {
        match binding {
            Binding::JsonRpc => self.jsonrpc,
            Binding::HttpJson => self.http,
            Binding::Grpc => self.grpc,
        }
    }

    /// Whether this is the error. The versions before 1.0 numbered errors over JSON-RPC alone.
    fn is(&self, to: &Interface, refused: &Refused) -> bool {
        let binding = to.binding;
        match (to.version, binding) {
            (Version::V1_0, _) => {
                // Several errors share one status; the reason tells them apart where there is one.
                let is_other = refused
                    .reason
                    .as_deref()
                    .is_some_and(|reason| binding != Binding::JsonRpc && self.is_a2a() && reason != self.reason);
                refused.code == self.code(binding) && !is_other
            }
            (Version::V0_3 | Version::V0_2, Binding::JsonRpc) => {
                refused.code == self.jsonrpc || self.jsonrpc == -32602 && refused.code == -32600
            }
            (Version::V0_3 | Version::V0_2, Binding::HttpJson) => (400..500).contains(&refused.code),
            (Version::V0_3 | Version::V0_2, Binding::Grpc) => true,
        }
    }

    /// Whether A2A defines it, and not JSON-RPC.
    fn is_a2a(&self) -> bool {
        (-32099..=-32001).contains(&self.jsonrpc)
    }
}

/// One interface under test.
pub(crate) struct Bench<'a> {
    pub(crate) wire: &'a Wire,
    pub(crate) to: &'a Interface,
    pub(crate) card: &'a Card,
    pub(crate) texts: &'a Texts,
    /// All interfaces, for checks that compare them.
    pub(crate) all: &'a [Interface],
    /// Where webhooks arrive.
    receiver: Option<&'a Receiver>,
    delivered: OnceCell<Result<Delivered, Finding>>,
    sent: OnceCell<Result<Reply, Finding>>,
    unknown: OnceCell<Result<Reply, Finding>>,
    streamed: OnceCell<Result<Streamed, Finding>>,
    shelf: OnceCell<Result<Value, Finding>>,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        wire: &'a Wire,
        to: &'a Interface,
        card: &'a Card,
        texts: &'a Texts,
        all: &'a [Interface],
        receiver: Option<&'a Receiver>,
    ) -> Self {
        Self {
            wire,
            to,
            card,
            texts,
            all,
            receiver,
            delivered: OnceCell::new(),
            sent: OnceCell::new(),
            unknown: OnceCell::new(),
            streamed: OnceCell::new(),
            shelf: OnceCell::new(),
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.to.form()
    }

    pub(crate) async fn call(&self, operation: Operation, params: Value) -> Result<Reply, Finding> {
        self.call_with(operation, params, &Options::default()).await
    }

    pub(crate) async fn call_with(
        &self,
        operation: Operation,
        params: Value,
        options: &Options,
    ) -> Result<Reply, Finding> {
        self.wire.call(self.to, operation, &params, options).await.map_err(|why| fault("an answer", why))
    }

    /// The result of a call that must succeed.
    pub(crate) async fn result(&self, operation: Operation, params: Value) -> Result<Value, Finding> {
        result_of(&self.call(operation, params).await?)
    }

    /// Checks that a call is refused with one of these errors.
    pub(crate) fn refused<'r>(&self, reply: &'r Reply, any: &[&Expected]) -> Result<&'r Refused, Finding> {
        let names: Vec<String> = any.iter().map(|it| format!("{} ({})", it.name, it.code(self.to.binding))).collect();
        match &reply.meaning {
            Meaning::Refused(refused) if any.iter().any(|it| it.is(self.to, refused)) => Ok(refused),
            Meaning::Refused(_) | Meaning::Result(_) | Meaning::Nothing(_) => {
                Err(fault(names.join(" or "), reply.shown()))
            }
        }
    }

    /// The answer to an ordinary text, sent so that the agent is waited for.
    pub(crate) async fn sent(&self) -> Result<&Reply, Finding> {
        let sending = async || self.call(Operation::Send, json!({ "message": message(&self.texts.plain) })).await;
        self.sent.get_or_init(sending).await.as_ref().map_err(Clone::clone)
    }

    /// The task of [`Bench::sent`].
    pub(crate) async fn task(&self) -> Result<&Value, Finding> {
        let reply = self.sent().await.map_err(|_| skip("the send had no answer: see send-answers"))?;
        match &reply.meaning {
            Meaning::Result(result) => match self.form().payload(result) {
                Payload::Task(task) => Ok(task),
                Payload::Message(_) => Err(skip("the agent answered with a message, so there is no task to look at")),
                Payload::Status(_) | Payload::Artifact(_) | Payload::Unknown => {
                    Err(skip("the send was answered with neither a task nor a message: see send-answers"))
                }
            },
            Meaning::Refused(_) | Meaning::Nothing(_) => Err(skip("the send was refused: see send-answers")),
        }
    }

    /// The same if it has ended.
    pub(crate) async fn finished(&self) -> Result<&Value, Finding> {
        let task = self.task().await?;
        match self.form().state(task) {
            Some(state) if state.is_terminal() => Ok(task),
            Some(_) | None => Err(skip("the task did not end; name a text with --text that the agent finishes")),
        }
    }

    /// The answer to a question about a task that does not exist.
    pub(crate) async fn unknown(&self) -> Result<&Reply, Finding> {
        let asking = async || self.call(Operation::Get, json!({ "id": super::fresh_id() })).await;
        self.unknown.get_or_init(asking).await.as_ref().map_err(Clone::clone)
    }

    /// A new task that is still at work.
    pub(crate) async fn running(&self) -> Result<Value, Finding> {
        let text = self.texts.slow.as_deref().unwrap_or(&self.texts.plain);
        let params = json!({ "message": message(text), "configuration": { "returnImmediately": true } });
        let result = self.result(Operation::Send, params).await.map_err(as_skip)?;
        let Payload::Task(task) = self.form().payload(&result) else {
            return Err(skip("the agent answered with a message, so there is no task at work"));
        };
        match self.form().state(task) {
            Some(state) if !state.is_settled() => Ok(task.clone()),
            Some(_) | None => {
                Err(skip("the agent was done at once; name a text with --slow-text on which it works for some seconds"))
            }
        }
    }

    /// A task that waits for the client.
    pub(crate) async fn waiting(&self) -> Result<Value, Finding> {
        let Some(text) = &self.texts.question else {
            return Err(skip("needs a text at which the agent asks back: name one with --question-text"));
        };
        let result = self.result(Operation::Send, json!({ "message": message(text) })).await.map_err(as_skip)?;
        match self.form().payload(&result) {
            Payload::Task(task) if self.form().state(task) == Some(State::InputRequired) => Ok(task.clone()),
            _ => Err(skip("the agent did not ask back at the text of --question-text")),
        }
    }

    pub(crate) fn receiver(&self) -> Result<&'a Receiver, Finding> {
        self.receiver.ok_or_else(|| skip("needs an address at which webhooks arrive: name one with --listen"))
    }

    /// Registers a webhook for a task. Agents should refuse private addresses, and that of the receiver may be one, so a refusal is no
    /// fault.
    pub(crate) async fn register(&self, task: &Value, mut config: Value) -> Result<Value, Finding> {
        config["taskId"] = task["id"].clone();
        config["id"] = json!(super::fresh_id());
        self.result(Operation::CreatePush, config).await.map_err(as_skip)
    }

    /// What the agent posted about a new task.
    pub(crate) async fn delivered(&self) -> Result<&Delivered, Finding> {
        let watching = async || {
            let receiver = self.receiver()?;
            let (name, credentials) = (super::fresh_id(), super::fresh_id());
            let mut config = json!({ "url": receiver.url(&name), "token": super::fresh_id() });
            if self.to.version == Version::V1_0 {
                config["authentication"] = json!({ "scheme": "Bearer", "credentials": credentials });
            }
            let task = match self.running().await {
                Ok(task) => {
                    self.register(&task, config).await?;
                    task
                }
                // The agent is done at once: the webhook has to be there before it begins.
                Err(_) => {
                    let configuration = json!({ "taskPushNotificationConfig": config });
                    let params = json!({ "message": message(&self.texts.plain), "configuration": configuration });
                    let sent = self.result(Operation::Send, params).await.map_err(as_skip)?;
                    match self.form().payload(&sent) {
                        Payload::Task(task) => task.clone(),
                        _ => return Err(skip("the agent answered with a message, so there is no task to tell about")),
                    }
                }
            };
            let all = receiver.first_delivered(&name, DELIVERY_WAIT_MAX.min(self.wire.timeout)).await;
            let authorization = format!("Bearer {credentials}");
            Ok(Delivered { task: text_of(&task, "id").to_owned(), authorization, all })
        };
        self.delivered.get_or_init(watching).await.as_ref().map_err(Clone::clone)
    }

    /// The contextId of three tasks, each made a moment after the other.
    pub(crate) async fn shelf(&self) -> Result<&Value, Finding> {
        let filling = async || {
            let context = self.task().await?["contextId"].clone();
            for _ in 0..2 {
                tokio::time::sleep(SHELF_PAUSE).await;
                let mut message = message(&self.texts.plain);
                message["contextId"] = context.clone();
                self.result(Operation::Send, json!({ "message": message })).await.map_err(as_skip)?;
            }
            Ok(context)
        };
        self.shelf.get_or_init(filling).await.as_ref().map_err(Clone::clone)
    }

    /// An ordinary text, sent as a stream and read to its end.
    pub(crate) async fn streamed(&self) -> Result<&Streamed, Finding> {
        let sending = async || {
            let params = json!({ "message": message(&self.texts.plain) });
            self.follow(Operation::Stream, params, &|_| false).await
        };
        self.streamed.get_or_init(sending).await.as_ref().map_err(Clone::clone)
    }

    /// The events of [`Bench::streamed`].
    pub(crate) async fn events(&self) -> Result<&Events, Finding> {
        match self.streamed().await.map_err(as_skip)? {
            Streamed::Events(events) if !events.all.is_empty() => Ok(events),
            Streamed::Events(_) | Streamed::Whole(_) => Err(skip("there is no stream: see stream-opens")),
        }
    }

    pub(crate) async fn follow(
        &self,
        operation: Operation,
        params: Value,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Streamed, Finding> {
        let streamed = self.wire.stream(self.to, operation, &params, &Options::default(), enough).await;
        streamed.map_err(|why| fault("a stream", why))
    }

    /// A stream of a task that is at work or waits.
    pub(crate) async fn subscribed(
        &self,
        task: &Value,
        enough: &(dyn Fn(&[StreamEvent]) -> bool + Sync),
    ) -> Result<Events, Finding> {
        match self.follow(Operation::Subscribe, json!({ "id": task["id"] }), enough).await? {
            Streamed::Events(events) => Ok(*events),
            Streamed::Whole(reply) => {
                let now = self.result(Operation::Get, json!({ "id": task["id"] })).await.map_err(as_skip)?;
                Err(match self.form().state(&now).is_some_and(State::is_terminal) {
                    true => skip("the task ended before it could be subscribed to; name a longer one with --slow-text"),
                    false => fault("a stream of the task", reply.shown()),
                })
            }
        }
    }

    /// Cancels a task that a check has no more use for.
    pub(crate) async fn drop_task(&self, task: &Value) {
        let canceling = self.call(Operation::Cancel, json!({ "id": task["id"] }));
        let _ = tokio::time::timeout(DROP_WAIT_MAX, canceling).await;
    }
}

/// The result of a reply that must be one.
pub(crate) fn result_of(reply: &Reply) -> Result<Value, Finding> {
    match &reply.meaning {
        Meaning::Result(result) => Ok(result.clone()),
        Meaning::Refused(_) | Meaning::Nothing(_) => Err(fault("a result", reply.shown())),
    }
}

/// What another check is about is no fault of this one.
pub(crate) fn as_skip(finding: Finding) -> Finding {
    match finding {
        Finding::Fault { came, .. } => skip(format!("what it needs could not be had: {came}")),
        Finding::Skip(_) => finding,
    }
}

/// A message of a user, in the form of 1.0.
pub(crate) fn message(text: &str) -> Value {
    json!({ "messageId": super::fresh_id(), "role": "ROLE_USER", "parts": [{ "text": text }] })
}

pub(crate) fn text_of<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

pub(crate) fn shown_json(value: &Value) -> String {
    shown(&value.to_string())
}

pub(crate) fn shown_end(events: &Events) -> String {
    let end = match &events.end {
        StreamEnd::Closed => "the stream was closed".to_owned(),
        StreamEnd::Left => "the stream was left".to_owned(),
        StreamEnd::TimedOut => "the stream was still open when the time was over".to_owned(),
        StreamEnd::Broken(why) => format!("the stream broke: {}", shown(why)),
    };
    let last = events.all.last().map(|event| format!(" after {}", shown_json(&event.payload)));
    format!("{end}{}", last.unwrap_or_else(|| ", without an event".to_owned()))
}

pub(crate) fn shown_head(raw: &Raw) -> String {
    format!("HTTP {} with the content type {:?}", raw.status, shown(raw.header("content-type")))
}
