//! Agents that call each other over A2A, and never lose the call.
//!
#![cfg_attr(feature = "server", doc = include_str!("docs/tour.md"))]
#![cfg_attr(not(feature = "server"), doc = "The model and call vocabulary of A2A; the feature `server` has the rest.")]
#![warn(missing_docs, missing_debug_implementations)]

#[cfg(feature = "server")]
mod agent;
#[cfg(any(feature = "client", feature = "server"))]
mod agent_client;
#[cfg(feature = "server")]
mod agent_settings;
#[cfg(feature = "sqlite")]
pub mod audit_log;
#[cfg(any(feature = "client", feature = "server"))]
mod call_agent;
#[cfg(any(feature = "client", feature = "server"))]
mod call_error;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "sqlite")]
pub mod database;
#[cfg(any(feature = "client", feature = "server"))]
mod idempotent_sends;
#[cfg(any(feature = "server", feature = "webhook-receiver"))]
mod jwt;
#[cfg(feature = "server")]
mod live_card;
#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod moving;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod offline_entry;
#[cfg(feature = "outbound")]
pub mod outbound;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "client", feature = "server"))]
mod protocol_binding;
#[cfg(any(feature = "client", feature = "server"))]
mod public_keys;
#[cfg(any(feature = "client", feature = "server"))]
mod random;
#[cfg(feature = "server")]
mod reloaded;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod signals;
#[cfg(any(feature = "client", feature = "server"))]
mod signed_card;
#[cfg(feature = "server")]
mod signing_keys;
#[cfg(any(feature = "server", feature = "webhook-receiver"))]
mod signing_secrets;
#[cfg(any(feature = "client", feature = "server"))]
mod task_stream;
#[cfg(feature = "server")]
mod webhooks;

pub use switchboard_core::call;
pub use switchboard_core::dialect::Dialect;
pub use switchboard_core::error::{ProtocolError, Violation};
pub use switchboard_core::model;
pub use switchboard_core::model::{
    Artifact, ArtifactDetails, Json, Message, Part, PartContent, PartDetails, Role, Task, TaskId, TaskState,
};

#[cfg(feature = "server")]
pub use agent::{AgentBuilder, Skill};
#[cfg(any(feature = "client", feature = "server"))]
pub use agent_client::AgentClient;
#[cfg(feature = "server")]
pub use agent_settings::{CardForm, Compat, CorvidOptions, SelectoolsOptions};
#[cfg(any(feature = "client", feature = "server"))]
pub use call_agent::Sent;
#[cfg(any(feature = "client", feature = "server"))]
pub use call_error::{CallError, CallErrorKind};
#[cfg(any(feature = "client", feature = "server"))]
pub use idempotent_sends::IDEMPOTENT_SENDS;
#[cfg(feature = "server")]
pub use live_card::LiveCard;
#[cfg(any(feature = "client", feature = "server"))]
pub use protocol_binding::ProtocolBinding;
#[cfg(feature = "server")]
pub use public_keys::KeyError;
#[cfg(feature = "server")]
pub use reloaded::ListError;
#[cfg(feature = "server")]
pub use serve::{Serve, serve};
#[cfg(feature = "sqlite")]
pub use server::OfflineOutbox;
#[cfg(feature = "server")]
pub use server::{
    A2aService, AccessLog, Authenticator, Banner, Bound, CallDoor, ClientCertificate, Cors, DoorPass, Identity,
    IdentityFromExtensions, Issuer, OrgPeers, OrgSecretPush, OrgSecretPushed, Otlp, RESERVED, Rules, ServeError,
    ServeErrorKind, Server, ServerBuilder, ServerHandle, ServerLimits, SharedSecret, Tls, TlsError, Tokens,
};
#[cfg(feature = "server")]
pub use signals::{Hangups, StopSignals, hangups, stop_signal};
#[cfg(feature = "server")]
pub use signing_keys::{KeyAlgorithm, KeyFolder, SigningKeyInfo, SigningKeys, SigningKeysError};
#[cfg(any(feature = "server", feature = "webhook-receiver"))]
pub use signing_secrets::{SigningSecrets, SigningSecretsError};
#[cfg(feature = "server")]
pub use switchboard_engine::AuditLevel;
#[cfg(feature = "server")]
pub use switchboard_engine::Engine;
#[cfg(feature = "server")]
pub use switchboard_engine::hops;
#[cfg(feature = "server")]
pub use switchboard_engine::limits::Limits;
#[cfg(feature = "server")]
pub use switchboard_engine::ports::{Callee, CalleeError, Callees};
/// A type of yours with state, rather than a function:
///
/// ```
/// use switchboard::{Agent, AgentBuilder, AgentError, Server, Traits, Turn};
///
/// struct Greeter {
///     greeting: String,
/// }
///
/// impl Agent for Greeter {
///     async fn run(&self, turn: Turn) -> Result<(), AgentError> {
///         turn.answer(format!("{}, {}", self.greeting, turn.text())).await?;
///         Ok(())
///     }
///
///     fn traits(&self) -> Traits {
///         Traits::pure()
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let agent = AgentBuilder::new("Greeter", Greeter { greeting: "Hello".to_owned() });
/// let server = Server::builder().agent(agent).build().unwrap();
/// let task = server.local("greeter").unwrap().send_text("Ada").await.unwrap().into_task().unwrap();
/// assert_eq!(task.artifacts[0].text(), "Hello, Ada");
/// # });
/// ```
#[cfg(feature = "server")]
pub use switchboard_engine::runs::Agent;
/// Asking back: the answer comes as the next turn of the same task.
///
/// ```
/// use switchboard::{AgentBuilder, AgentError, Server, TaskState, Turn};
///
/// async fn paint(turn: Turn) -> Result<(), AgentError> {
///     match turn.number() {
///         1 => turn.ask("Which colour?").await?,
///         _ => turn.answer(format!("Painted it {}", turn.text())).await?,
///     }
///     Ok(())
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder().agent(AgentBuilder::from_fn("Painter", paint)).build().unwrap();
/// let task = server.local("painter").unwrap().send_text("the fence").await.unwrap().into_task().unwrap();
/// assert_eq!(task.state(), TaskState::InputRequired);
/// # });
/// ```
///
/// Keeping how far it came with [`Turn::checkpoint`], so that the next attempt after a crash goes on from there:
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use switchboard::{AgentBuilder, AgentError, Server, Turn};
///
/// #[derive(Default, Serialize, Deserialize)]
/// struct Progress {
///     pages: u32,
///     words: usize,
/// }
///
/// async fn count_words(turn: Turn) -> Result<(), AgentError> {
///     let mut done: Progress = turn.checkpoint_as()?.unwrap_or_default();
///     for page in turn.text().lines().skip(done.pages as usize) {
///         done = Progress { pages: done.pages + 1, words: done.words + page.split_whitespace().count() };
///         turn.checkpoint(&done).await?;
///     }
///     turn.answer(format!("{} words on {} pages", done.words, done.pages)).await?;
///     Ok(())
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder().agent(AgentBuilder::from_fn("Counter", count_words)).build().unwrap();
/// let task = server.local("counter").unwrap().send_text("one two\nthree").await.unwrap().into_task().unwrap();
/// assert_eq!(task.artifacts[0].text(), "3 words on 2 pages");
/// # });
/// ```
///
/// Calling another agent, of the same server or of its directory: the call is found again after a crash, and is canceled with the
/// task.
///
/// ```
/// use switchboard::{AgentBuilder, AgentError, Server, Turn};
///
/// async fn translate(turn: Turn) -> Result<(), AgentError> {
///     turn.answer(if turn.text() == "Good morning" { "Bom dia" } else { "Não sei" }).await?;
///     Ok(())
/// }
///
/// async fn greet(turn: Turn) -> Result<(), AgentError> {
///     let translated = turn.call_and_wait("translator", turn.text()).await?;
///     turn.answer(format!("They say: {}", translated.text())).await?;
///     Ok(())
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let server = Server::builder()
///     .agent(AgentBuilder::from_fn("Concierge", greet))
///     .agent(AgentBuilder::from_fn("Translator", translate))
///     .build()
///     .unwrap();
/// let answer = server.local("concierge").unwrap().send_text("Good morning").await.unwrap();
/// assert_eq!(answer.text(), "They say: Bom dia");
/// # });
/// ```
#[cfg(feature = "server")]
pub use switchboard_engine::runs::Turn;
#[cfg(feature = "server")]
pub use switchboard_engine::runs::{
    AgentCallError, AgentError, ArtifactWriter, Backoff, Call, CallAnswer, CallMessage, CalledBack, Effects,
    ErrorDetails, Idempotency, LeftOver, PassedOn, Recovery, Replies, Traits, TurnError,
};
#[cfg(all(feature = "postgres", not(feature = "sqlite")))]
pub use switchboard_stores::postgres::{SecretKeys, SecretKeysError};
#[cfg(feature = "sqlite")]
pub use switchboard_stores::sqlite::{SecretKeySource, SecretKeys, SecretKeysError, SqliteOptions, Synchronous};
#[cfg(feature = "postgres")]
pub use switchboard_stores::{
    nats::{NatsError, NatsOptions},
    postgres::PostgresOptions,
};
#[cfg(any(feature = "client", feature = "server"))]
pub use task_stream::TaskStream;

/// The model as A2A 1.0 JSON, for programs that pass it on.
pub mod json {
    use switchboard_core::dialect::v1_0;
    use switchboard_core::model::{Message, Task, TaskView};

    /// One message.
    #[must_use]
    pub fn message(message: &Message) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        v1_0::encode_message(message, &mut out);
        out
    }

    /// One task, whole.
    #[must_use]
    pub fn task(task: &std::sync::Arc<Task>) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        v1_0::encode_task(&TaskView::whole(task.clone()), &mut out);
        out
    }
}
