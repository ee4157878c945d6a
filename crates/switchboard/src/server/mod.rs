//! The server: HTTP in, calls to the [`Endpoint`](crate::call::Endpoint) of an agent, HTTP out.
//!
//! `listener` is the port, over TLS and sockets of `transport`. `edge` takes each request through its stages: it is admitted, routed,
//! authenticated, read, and answered. `bindings` decode calls and encode replies, one per protocol binding. `cards`, `downloads`
//! and `operator` are what is served beside calls; `telemetry` sends traces and metrics to a collector. All of them work with an
//! `exchange` (a request and its answer) and with what is `shared` by all requests: the agents where they are mounted, and the
//! settings.

mod authentication;
mod banner;
mod bindings;
mod build;
mod builder;
mod cards;
mod compat_clients;
mod downloads;
mod edge;
mod exchange;
mod exposure;
mod host;
mod internal;
mod limits;
mod listener;
mod metrics;
mod operator;
mod organizations;
mod parts;
mod ports;
mod reloads;
mod serve_error;
mod serving;
mod shared;
mod telemetry;
mod transport;
mod uri;

pub use authentication::tokens::Tokens;
pub use authentication::{Authenticator, ClientCertificate, Identity, IdentityFromExtensions, Issuer, SharedSecret};
pub use banner::Banner;
pub use builder::ServerBuilder;
pub use edge::service::A2aService;
pub use exchange::access_log::AccessLog;
pub use exchange::authorize::Rules;
pub use exposure::origins::Cors;
pub use internal::door::{CallDoor, DoorPass};
pub use limits::ServerLimits;
pub use listener::Bound;
#[cfg(feature = "sqlite")]
pub use operator::offline::OfflineOutbox;
pub use organizations::{OrgPeers, OrgSecretPush, OrgSecretPushed};
pub use serve_error::{ServeError, ServeErrorKind};
pub use serving::{Server, ServerHandle};
pub use telemetry::Otlp;
pub use transport::tls::{Tls, TlsError};
pub use uri::RESERVED;

#[cfg(test)]
mod tests;
