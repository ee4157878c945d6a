//! The server: HTTP in, calls to the [`Endpoint`](crate::call::Endpoint) of an agent, HTTP out.
//!
//! `transport` has the port and its connections. `edge` takes each request through its stages: it is admitted, routed,
//! authenticated, read, and answered. `bindings` decode calls and encode replies, one per protocol binding. `cards`, `downloads`
//! and `operator` are what is served beside calls.

mod api_key;
mod banner;
mod bindings;
mod builder;
mod cards;
mod downloads;
mod edge;
mod file_stamp;
mod handle;
mod limits;
mod operator;
mod serve_error;
mod transport;

pub use banner::Banner;
pub use bindings::compat::{Compat, CorvidOptions, SelectoolsOptions};
pub use builder::{Server, ServerBuilder};
pub use cards::CardForm;
pub(crate) use cards::agent_settings::AgentSettings;
pub use cards::interfaces::ProtocolBinding;
pub use edge::access_log::AccessLog;
pub use edge::authenticate::{Tokens, TokensError};
pub use edge::cors::Cors;
pub use edge::route::RESERVED;
pub use edge::service::A2aService;
pub use handle::ServerHandle;
pub use limits::ServerLimits;
#[cfg(feature = "sqlite")]
pub use operator::offline::OfflineOutbox;
pub use serve_error::{ServeError, ServeErrorKind};
pub use transport::listener::Bound;
pub use transport::tls::{Tls, TlsError};

#[cfg(test)]
mod tests;
