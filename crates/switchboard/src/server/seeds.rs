//! The accents of single systems at the edge: on the mount that is a dialect's own, and wherever an agent claims its paths
//! for one, a request is treated in that system's ways from the first check on. On paths that nobody claims, a request
//! whose shape tells comes here once its envelope has been read.
//!
//! Adding one: a folder in core's `dialect/`, a row in `Dialect::SEEDS`, its places in `routes`, its card in `cards`, and
//! a file here with the two doors `serve` and `answer`.

mod agent_native;
mod corvid;
mod nexus;
pub(super) mod rate;
mod selectools;
pub(super) mod window;

use bytes::Bytes;
use http::{Method, Response};
use http_body::Body;
use switchboard_core::dialect::Dialect;

use super::auth::Identity;
use super::body::ReplyBody;
use super::context::{Head, Mounted, Shared};
use super::envelope::Envelope;

pub(crate) use corvid::{At as CorvidAt, serve as serve_corvid};

/// A request that is known from its path and headers to be in a dialect, one of [`Dialect::RPC_SEEDS`].
pub(crate) async fn serve<B>(
    shared: &Shared,
    agent: &Mounted,
    head: &Head<'_>,
    dialect: Dialect,
    method: &Method,
    body: B,
) -> Response<ReplyBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: std::fmt::Display,
{
    match dialect {
        Dialect::Selectools => Box::pin(selectools::serve(shared, agent, head, method, body)).await,
        Dialect::Nexus => Box::pin(nexus::serve(shared, agent, head, method, body)).await,
        _ => Box::pin(agent_native::serve(shared, agent, head, method, body)).await,
    }
}

/// A call whose message shows that it is in a dialect.
pub(crate) async fn answer(
    shared: &Shared,
    agent: &Mounted,
    identity: &Identity,
    head: &Head<'_>,
    dialect: Dialect,
    asked: &Envelope<'_>,
) -> Response<ReplyBody> {
    let (method, params, id) = (asked.method.as_ref(), asked.params, asked.id);
    let asked = Asked { method, params, id };
    match dialect {
        Dialect::Selectools => selectools::answer(shared, agent, identity, head, asked).await,
        Dialect::Nexus => nexus::answer(shared, agent, identity, head, asked).await,
        _ => agent_native::answer(shared, agent, identity, head, asked).await,
    }
}

/// A call out of its envelope.
#[derive(Clone, Copy)]
struct Asked<'a> {
    method: &'a str,
    params: Option<&'a str>,
    /// As it was written, `null` if there was none.
    id: &'a str,
}
