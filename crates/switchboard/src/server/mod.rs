//! The edge: HTTP in, calls to the waist, HTTP out. A request passes the gate (host, origin), is routed by its path,
//! authenticated from path and headers alone, read within bounds, decoded by its dialect, answered by the endpoint of
//! the agent it names, and encoded again. Bindings do not know stores, engines or each other.

mod access_log;
mod agent_settings;
mod api_key;
mod auth;
mod banner;
mod binding;
mod body;
mod builder;
mod cards;
mod compat;
mod context;
mod cors;
mod download;
mod download_body;
mod envelope;
mod exposition;
mod file_stamp;
mod filenames;
mod gate;
#[cfg(feature = "grpc")]
mod grpc;
mod handle;
mod http_json;
mod interfaces;
mod jsonrpc;
mod limits;
mod line_budget;
mod linger;
mod listener;
mod metrics;
mod mount;
mod names;
mod note;
#[cfg(feature = "sqlite")]
mod offline;
mod operator;
mod ops;
mod origins;
mod percent;
mod ranges;
mod rebased;
mod respond;
mod routes;
mod serve_error;
mod service;
mod sites;
mod socket;
mod sse;
mod tls;

pub use access_log::AccessLog;
pub(crate) use agent_settings::AgentSettings;
pub use auth::{Tokens, TokensError};
pub use banner::Banner;
pub use builder::{Server, ServerBuilder};
pub use cards::CardForm;
pub use compat::{Compat, CorvidOptions, SelectoolsOptions};
pub use cors::Cors;
pub use handle::ServerHandle;
pub use interfaces::ProtocolBinding;
pub use limits::ServerLimits;
pub use listener::Bound;
#[cfg(feature = "sqlite")]
pub use offline::OfflineOutbox;
pub use routes::RESERVED;
pub use serve_error::{ServeError, ServeErrorKind};
pub use service::A2aService;
pub use tls::{Tls, TlsError};

#[cfg(test)]
mod tests;
