//! One question to one agent, with a result that is never an error: what `invokeRemoteAgent` of corvid gives, for agents of every
//! version. A task is submitted and asked for until it ends.

use std::time::Duration;

use switchboard_core::call::SendMessage;
use switchboard_core::dialect::Dialect;
use switchboard_core::model::{Json, Message, Part, Role, TaskId, TaskState};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Client;
use super::asking::{Asking, Looks};
use super::credentials::Credentials;
use super::negotiation::Form;
use super::task_result::said;
use crate::agent_client::AgentClient;
use crate::call_agent::Sent;
use crate::call_error::CallError;
use crate::random;

/// Default of [`InvokeOptions::timeout`].
const INVOKE_DEFAULT: Duration = Duration::from_secs(300);
/// The pause between looks at a task, and the time that one look and the submission may take.
const INVOKE_POLL: Duration = Duration::from_secs(3);
const INVOKE_LOOK_MAX: Duration = Duration::from_secs(10);
const INVOKE_SUBMIT_MAX: Duration = Duration::from_secs(30);
/// What a peer of corvid takes for the timeout of a task, in seconds.
const CORVID_TIMEOUT_S: std::ops::RangeInclusive<u64> = 1..=600;

/// How [`Client::invoke`] asks.
///
/// ```
/// use std::time::Duration;
/// use switchboard::client::InvokeOptions;
///
/// let options = InvokeOptions::default().skill("summarize").timeout(Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvokeOptions {
    skill: Option<String>,
    timeout: Duration,
    asking: Asking,
}

impl Default for InvokeOptions {
    fn default() -> Self {
        Self { skill: None, timeout: INVOKE_DEFAULT, asking: Asking::default() }
    }
}

impl InvokeOptions {
    /// The skill that is asked for, by its id.
    #[must_use]
    pub fn skill(self, skill: impl Into<String>) -> Self {
        Self { skill: Some(skill.into()), ..self }
    }

    /// How long the whole invocation may take; five minutes by default.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
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

/// What came of [`Client::invoke`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Invocation {
    /// Whether the task completed.
    pub success: bool,
    /// The task, once the agent has named it.
    pub task_id: Option<TaskId>,
    /// What the agent said.
    pub response_text: Option<String>,
    /// Why there is no success.
    pub error: Option<String>,
}

impl Client {
    /// Asks an agent something and waits for the end of the task. It never fails: what went wrong is in the result. The agent is
    /// named as for [`Client::agent`]; one without a card is called as an agent of corvid.
    ///
    /// The task is asked for at once and then every three seconds; a look that fails is repeated until the time is over.
    #[cfg_attr(
        feature = "server",
        doc = r#"
```
use switchboard::client::{Client, InvokeOptions};
use switchboard::{AgentBuilder, Server, Turn};

# tokio::runtime::Runtime::new().unwrap().block_on(async {
# let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
# let bound = Server::builder().agent(echo).build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
# let url = format!("http://{}", bound.local_addr());
# tokio::spawn(bound.run_until(std::future::pending(), std::time::Duration::ZERO));
let client = Client::builder().build().unwrap();
let result = client.invoke(&url, "hello", &InvokeOptions::default()).await;
assert_eq!((result.success, result.response_text.as_deref(), result.error), (true, Some("hello"), None));
# });
```
"#
    )]
    pub async fn invoke(&self, url: &str, text: &str, options: &InvokeOptions) -> Invocation {
        let until = Instant::now() + options.timeout;
        let timed_out =
            |task_id| Invocation::failed(task_id, format!("Timed out after {}ms", options.timeout.as_millis()));
        let submitting = self.submit(url, text, options);
        let (agent, sent) = match timeout_at(until, submitting).await {
            Ok(Ok(submitted)) => submitted,
            Ok(Err(error)) => return Invocation::failed(None, submit_failed(&error)),
            Err(_) => return timed_out(None),
        };
        let id = match &sent {
            Sent::Task(task) if !task.state().is_settled() => task.id.clone(),
            Sent::Task(_) | Sent::Message(_) => return Invocation::of(&sent),
        };
        // What goes wrong on the way may be right the next time, so no failure is final.
        let looks = Looks { first: Instant::now(), pause: INVOKE_POLL, look_max: INVOKE_LOOK_MAX, until };
        match looks.settled(&agent.with_attempts(1), &id, |_| false).await {
            Ok(Some(task)) => Invocation::of(&Sent::Task(task)),
            Ok(None) | Err(_) => {
                sleep_until(until).await;
                timed_out(Some(id))
            }
        }
    }

    async fn submit(&self, url: &str, text: &str, options: &InvokeOptions) -> Result<(AgentClient, Sent), CallError> {
        let (agent, form) = options.asking.agent(self, url, corvid_card).await?;
        let message = Message::new(Role::User, random::uuid(), vec![Part::text(text)]);
        let mut metadata = serde_json::Map::new();
        if let Some(skill) = &options.skill {
            metadata.insert("skill".to_owned(), skill.as_str().into());
        }
        if form == Form::Http(Dialect::Corvid) {
            let seconds = options.timeout.as_secs().clamp(*CORVID_TIMEOUT_S.start(), *CORVID_TIMEOUT_S.end());
            metadata.insert("switchboard.runTimeoutSeconds".to_owned(), seconds.into());
        }
        let metadata =
            (!metadata.is_empty()).then(|| Json::from_trusted(serde_json::Value::Object(metadata).to_string()));
        let send = SendMessage { return_immediately: true, metadata, ..SendMessage::new(message) };
        let sent = agent.clone().with_deadline(INVOKE_SUBMIT_MAX).send_with(send).await?;
        Ok((agent, sent))
    }
}

/// The card of an agent of corvid that shows none.
fn corvid_card(base: &str) -> String {
    serde_json::json!({"name": "Agent", "version": "1.0.0", "url": base, "supportedProtocols": []}).to_string()
}

/// Why a task was not submitted, as corvid puts it.
fn submit_failed(error: &CallError) -> String {
    match (error.http_status(), error.wire_text()) {
        (Some(status), Some(text)) if status >= 300 => format!("Submit failed: HTTP {status} \u{2014} {text}"),
        (Some(status), None) if status >= 300 => format!("Submit failed: HTTP {status}"),
        (_, _) => format!("Submit failed: {error}"),
    }
}

impl Invocation {
    fn failed(task_id: Option<TaskId>, error: String) -> Self {
        Self { success: false, task_id, response_text: None, error: Some(error) }
    }

    fn of(sent: &Sent) -> Self {
        let result = sent.result();
        let said = Some(said(sent)).filter(|said| !said.is_empty());
        let (success, error) = match result.state {
            TaskState::Completed => (true, None),
            TaskState::InputRequired | TaskState::AuthRequired => {
                (false, Some(said.clone().unwrap_or_else(|| "Task needs input".to_owned())))
            }
            TaskState::Submitted
            | TaskState::Working
            | TaskState::Failed
            | TaskState::Rejected
            | TaskState::Canceled
            | TaskState::Unspecified => (false, Some(said.clone().unwrap_or_else(|| "Task failed".to_owned()))),
        };
        Self { success, task_id: result.task_id, response_text: said, error }
    }
}
