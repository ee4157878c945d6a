//! For operators and for people who open the root in a browser.

use http::{HeaderValue, Response, StatusCode, header};
use switchboard_engine::Readiness;

use crate::server::exchange::respond::{ReplyBody, text};
use crate::server::operator::exposition;
use crate::server::ports::Operations;
use crate::server::shared::{Shared, Site};

/// The process is there.
pub(crate) fn health() -> Response<ReplyBody> {
    text(StatusCode::OK, "ok\n")
}

/// The process should be given work.
pub(crate) fn ready(shared: &Shared) -> Response<ReplyBody> {
    let operations = shared.operations.as_deref();
    let ours = if shared.supervisor.is_draining() { Readiness::Draining } else { Readiness::Ready };
    let (status, word) = match operations.map_or(ours, Operations::readiness) {
        Readiness::Ready => (StatusCode::OK, "ready\n".to_owned()),
        Readiness::Recovering => {
            (StatusCode::SERVICE_UNAVAILABLE, "recovering: taking up interrupted runs\n".to_owned())
        }
        Readiness::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining: shutting down\n".to_owned()),
        Readiness::StoreFailed { reason } => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("the store does not take commits: {reason}\n"))
        }
    };
    // What an operator should know all the same: one line each.
    let notices = operations.map(Operations::notices).unwrap_or_default();
    let page = notices.into_iter().fold(word, |page, notice| page + &notice + "\n");
    text(status, page)
}

pub(crate) async fn metrics(shared: &Shared, with_endpoints: bool) -> Response<ReplyBody> {
    let mut response = text(StatusCode::OK, exposition::render(shared, with_endpoints).await);
    let prometheus = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, prometheus);
    response
}

/// What is here, for a person.
pub(crate) fn welcome(site: &Site) -> Response<ReplyBody> {
    let mut page =
        String::from("This is Switchboard. Agents here speak A2A 1.0 and 0.3; their cards say how to call them:\n\n");
    for agent in &site.agents {
        page.push_str(&format!("  {}: {}/.well-known/agent-card.json\n", agent.name, agent.url));
    }
    text(StatusCode::OK, page)
}
