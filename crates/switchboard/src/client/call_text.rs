//! Text in, text out: the shortest way to ask an agent something.

use std::time::Duration;

use switchboard_core::call::SendMessage;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{Message, Part, Role, TaskState};
use tokio::time::{Instant, timeout_at};

use super::Client;
use super::asking::{Asking, Looks};
use super::credentials::Credentials;
use super::negotiation::Form;
use super::task_result::{said, status_text};
use crate::agent_client::AgentClient;
use crate::call_agent::Sent;
use crate::call_error::{CallError, CallErrorKind};
use crate::random;

/// Defaults of [`CallTextOptions`]: how long a call may take, and the pause between looks at a task of agent-native.
const CALL_TEXT_DEFAULT: Duration = Duration::from_secs(300);
const CALL_TEXT_POLL: Duration = Duration::from_secs(2);
/// How long one look at a task may take.
const CALL_TEXT_LOOK_MAX: Duration = Duration::from_secs(15);

/// How [`Client::call_text_with`] asks.
///
/// ```
/// use std::time::Duration;
/// use switchboard::client::CallTextOptions;
///
/// let options = CallTextOptions::default().timeout(Duration::from_secs(60)).strict_addresses(true);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTextOptions {
    timeout: Duration,
    one_request: bool,
    asking: Asking,
}

impl Default for CallTextOptions {
    fn default() -> Self {
        Self { timeout: CALL_TEXT_DEFAULT, one_request: false, asking: Asking::default() }
    }
}

impl CallTextOptions {
    /// How long the whole call may take; five minutes by default.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Whether the message is sent in one request that the agent answers when it is done. It is neither attempted again nor asked about
    /// later.
    #[must_use]
    pub fn one_request(self, one_request: bool) -> Self {
        Self { one_request, ..self }
    }

    /// Whether the address that was named must be one that the client's policy allows, as every other address must:
    /// [`Client::strict_addresses`].
    #[must_use]
    pub fn strict_addresses(mut self, strict_addresses: bool) -> Self {
        self.asking.strict_addresses = strict_addresses;
        self
    }

    /// Credentials in place of the client's.
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.asking.credentials = Some(credentials);
        self
    }
}

impl Client {
    /// Asks an agent something and gives its answer as a text. The agent is named as for [`Client::agent`]; one without a card is called as
    /// an agent of agent-native.
    ///
    /// The message is sent, and the task followed to its end: by its stream where the agent has one, else by asking for it. To
    /// agents of agent-native, which have neither, it is sent asynchronously, and the task is asked for every two seconds.
    #[cfg_attr(
        feature = "server",
        doc = r#"
```
use switchboard::client::Client;
use switchboard::{AgentBuilder, Server, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
# let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
# let bound = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
# let url = format!("http://{}", bound.local_addr());
# tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
let client = Client::builder().build().unwrap();
assert_eq!(client.call_text(&url, "hello").await.unwrap(), "hello");
# });
```
"#
    )]
    ///
    /// # Errors
    /// As [`AgentClient::send_and_wait`]. If the task does not complete, the kind is [`CallErrorKind::NotCompleted`], and the
    /// error has the id of the task and what the agent said.
    pub async fn call_text(&self, url: &str, text: &str) -> Result<String, CallError> {
        self.call_text_with(url, text, &CallTextOptions::default()).await
    }

    /// As [`Client::call_text`], with anything about it changed.
    ///
    /// # Errors
    /// As of [`Client::call_text`].
    pub async fn call_text_with(&self, url: &str, text: &str, options: &CallTextOptions) -> Result<String, CallError> {
        let (limit, until) = (options.timeout, Instant::now() + options.timeout);
        let opening = options.asking.agent(self, url, agent_native_card);
        let (agent, form) = timeout_at(until, opening).await.map_err(|_| CallError::timed_out(limit))??;
        let agent = agent.with_deadline(until.saturating_duration_since(Instant::now()));
        let is_agent_native = form == Form::JsonRpc(Dialect::AgentNative);
        let message = Message::new(Role::User, random::uuid(), vec![Part::text(text)]);
        let sent = match (options.one_request, is_agent_native) {
            (true, _) => agent.with_attempts(1).send(message).await?,
            (false, true) => ask_later(&agent, message, until, limit).await?,
            (false, false) => agent.send_and_wait(message).await?,
        };
        answer(&sent, is_agent_native)
    }
}

/// The card of an agent of agent-native that shows none.
fn agent_native_card(base: &str) -> String {
    let base = ["/_agent-native/a2a", "/a2a"].iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base);
    let card = serde_json::json!({
        "name": "Agent", "version": "1.0.0", "protocolVersion": "0.3", "url": format!("{base}/_agent-native/a2a"),
    });
    card.to_string()
}

/// Sends a message without waiting for its end, and asks for the task until it has ended.
async fn ask_later(agent: &AgentClient, message: Message, until: Instant, limit: Duration) -> Result<Sent, CallError> {
    let send = SendMessage { return_immediately: true, ..SendMessage::new(message) };
    let sent = agent.send_with(send).await?;
    let id = match &sent {
        Sent::Task(task) if !task.state().is_settled() => task.id.clone(),
        Sent::Task(_) | Sent::Message(_) => return Ok(sent),
    };
    let first = Instant::now() + CALL_TEXT_POLL;
    let looks = Looks { first, pause: CALL_TEXT_POLL, look_max: CALL_TEXT_LOOK_MAX, until };
    match looks.settled(agent, &id, |error| !error.is_retryable()).await {
        Ok(Some(task)) => Ok(Sent::Task(task)),
        Ok(None) => Err(CallError::timed_out(limit).about_task(Some(&id))),
        Err(error) => Err(error.about_task(Some(&id))),
    }
}

/// The text of an answer. Agents of agent-native give theirs in the status, others in artifacts.
fn answer(sent: &Sent, is_agent_native: bool) -> Result<String, CallError> {
    let text = match sent {
        Sent::Task(task) if is_agent_native => status_text(task).unwrap_or_else(|| said(sent)),
        Sent::Task(_) | Sent::Message(_) => said(sent),
    };
    let result = sent.result();
    let id = result.task_id.as_ref();
    let why = match result.state {
        TaskState::Completed if text.is_empty() => {
            return Err(CallError::invalid_answer("the agent answered without a text").about_task(id));
        }
        TaskState::Completed => return Ok(text),
        TaskState::InputRequired => "the agent asks back",
        TaskState::AuthRequired => "the agent asks for an authorization",
        TaskState::Submitted | TaskState::Working | TaskState::Unspecified => "the agent answered before it was done",
        TaskState::Failed => "the task failed",
        TaskState::Rejected => "the task was rejected",
        TaskState::Canceled => "the task was canceled",
    };
    let said = result.error.unwrap_or(text);
    let why = if said.is_empty() || said == why { why.to_owned() } else { format!("{why}: {said}") };
    Err(CallError::new(CallErrorKind::NotCompleted, why).about_task(id))
}
