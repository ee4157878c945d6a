//! Agents that call each other over A2A, and never lose the call.
//!
#![cfg_attr(feature = "server", doc = include_str!("docs/tour.md"))]
#![cfg_attr(not(feature = "server"), doc = "The model and call vocabulary of A2A; the feature `server` has the rest.")]
#![warn(missing_docs, missing_debug_implementations)]

#[cfg(feature = "server")]
mod agent;
#[cfg(feature = "sqlite")]
pub mod database;
#[cfg(feature = "server")]
mod local;
#[cfg(feature = "server")]
mod outbound;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod signals;

pub use switchboard_core::call;
pub use switchboard_core::dialect::Dialect;
pub use switchboard_core::error::{ProtocolError, Violation};
pub use switchboard_core::model;
pub use switchboard_core::model::{Artifact, Json, Message, Part, PartContent, Role, Task, TaskId, TaskState};

#[cfg(feature = "server")]
pub use agent::{AgentBuilder, Skill};
#[cfg(feature = "server")]
pub use local::{Local, Sent};
#[cfg(feature = "server")]
pub use outbound::{SigningSecrets, SigningSecretsError};
#[cfg(feature = "server")]
pub use serve::{Serve, serve};
#[cfg(feature = "sqlite")]
pub use server::OfflineOutbox;
#[cfg(feature = "server")]
pub use server::{
    A2aService, AccessLog, Banner, Bound, CardForm, Cors, CorvidOptions, ProtocolBinding, RESERVED, SelectoolsOptions,
    ServeError, ServeErrorKind, Server, ServerBuilder, ServerHandle, ServerLimits, Tls, TlsError, Tokens, TokensError,
};
#[cfg(feature = "server")]
pub use signals::{Hangups, StopSignals, hangups, stop_signal};
#[cfg(feature = "server")]
pub use switchboard_engine::Engine;
#[cfg(feature = "server")]
pub use switchboard_engine::limits::Limits;
#[cfg(feature = "server")]
pub use switchboard_engine::runs::{
    Agent, AgentError, ArtifactWriter, Backoff, Effects, ErrorDetails, Idempotency, Recovery, Replies, Traits, Turn,
    TurnError,
};
#[cfg(feature = "sqlite")]
pub use switchboard_stores::sqlite::{SqliteOptions, Synchronous};

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
