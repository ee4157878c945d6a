//! The HTTP client for every call that leaves this process: webhooks, the operator's commands, and calls to other agents.
//!
//! A remote party that names a URL may want to reach, through this process, addresses that it cannot reach itself (SSRF). So
//! each address is checked when it is dialled, and the address that was checked is the one that is dialled. `target`
//! checks the text of a URL, `policy` checks an address, `connector` resolves, asks the policy, dials and does TLS under
//! `trust`, `pool` keeps connections for the next call, `client` sends, and `body` reads the answer within `limits`.
//!
//! ```no_run
//! use bytes::Bytes;
//! use switchboard::outbound::{Client, RequestLimits};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let client = Client::builder().build().unwrap();
//! let request = http::Request::get("https://agent.example/.well-known/agent-card.json").body(Bytes::new()).unwrap();
//! let answer = client.send(request, &RequestLimits::default()).await.unwrap();
//! let status = answer.status();
//! let card = answer.into_body().bytes().await.unwrap();
//! # let _ = (status, card);
//! # });
//! ```
//!
//! It speaks HTTP/1.1, sends each request once, follows no redirect unless [`RequestLimits::redirects_max`] asks for it, and starts no
//! tasks: a connection moves on while its answer is awaited or its body is read. For gRPC it speaks HTTP/2 (`http2`), where a
//! connection has a task.

mod body;
mod client;
mod connector;
mod error;
#[cfg(feature = "grpc")]
mod http2;
mod limits;
mod policy;
mod pool;
mod ranges;
mod redirect;
#[cfg(any(feature = "client", feature = "server"))]
mod retry_after;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod trust;

pub use body::Body;
#[cfg(feature = "client")]
pub(crate) use client::Repeat;
pub use client::{Client, ClientBuilder};
pub use error::{BuildError, Error, ErrorKind, TlsFault};
#[cfg(feature = "grpc")]
pub use http2::Http2Body;
pub use limits::RequestLimits;
pub use policy::AddressPolicy;
#[cfg(feature = "server")]
pub(crate) use ranges::AddressRange;
#[cfg(feature = "client")]
pub(crate) use redirect::{retarget, target as redirect_target};
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) use retry_after::retry_after_ms;
#[cfg(any(feature = "client", feature = "server"))]
pub(crate) use target::check_url;
pub use trust::{ShownCertificate, Trust};
