//! Which dialect a request is in: the one place that reads the version a request names and hands it, with path and method, to `detect`.
//! The bindings are told the outcome.

use std::borrow::Cow;

use http::HeaderMap;
use switchboard_core::dialect::Dialect;
use switchboard_core::dialect::detect::{self, Clues, DetectError, Detected, Ingress, Mount};

use crate::server::exchange::headers::A2A_VERSION;
use crate::server::exchange::request::Head;
use crate::server::shared::Incoming;

/// A call whose method is not known yet.
const NO_METHOD: Ingress<'static> = Ingress::JsonRpc { method: "", params: None };

/// Which dialect a request is in.
pub(crate) fn decide(request: &Incoming<'_, '_>, ingress: Ingress<'_>) -> Result<Detected, DetectError> {
    with_clues(&request.head, ingress, request.mount, default_of(request), detect::dialect)
}

/// The dialect to refuse a request in before it is known what it asks for.
pub(crate) fn spelling(request: &Incoming<'_, '_>, ingress: Option<Ingress<'_>>) -> Dialect {
    with_clues(&request.head, ingress.unwrap_or(NO_METHOD), request.mount, default_of(request), detect::spelling)
}

fn default_of(request: &Incoming<'_, '_>) -> Option<Dialect> {
    request.agent.compat.default.or(request.shared.default_version)
}

/// The compat dialect whose rules apply to a request from the first check on, if the path belongs to one or is claimed
/// by one.
pub(crate) fn claimed(head: &Head<'_>, mount: Mount) -> Option<Dialect> {
    // Most paths are claimed by no compat dialect, and then there is nothing to look for.
    if mount == Mount::FREE { None } else { with_clues(head, NO_METHOD, mount, None, detect::claimed) }
}

/// The dialect of a client that reads a card, from the version it names. The default version does not apply: it is
/// about calls, and cards are for all clients.
pub(crate) fn card_dialect(head: &Head<'_>) -> Dialect {
    with_clues(head, NO_METHOD, Mount::FREE, None, detect::spelling)
}

fn with_clues<T>(
    head: &Head<'_>,
    ingress: Ingress<'_>,
    mount: Mount,
    default: Option<Dialect>,
    decide: impl FnOnce(&Clues<'_>) -> T,
) -> T {
    let header = if head.present.version { named_version(head.headers) } else { None };
    let query = if header.is_some() { None } else { head.query("A2A-Version") };
    decide(&Clues { header: header.as_deref(), query: query.as_deref(), default, mount, ingress })
}

/// The version that the headers name. A proxy or a client may send the line twice: lines that say the same count once,
/// and lines that differ are read together, so that the request is refused rather than taken for either version.
fn named_version(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    // Nearly every request has each of its headers once, and then there is nothing to compare.
    if headers.len() == headers.keys_len() {
        let line = headers.get(A2A_VERSION)?.to_str().unwrap_or("?").trim();
        return (!line.is_empty()).then_some(Cow::Borrowed(line));
    }
    let lines = headers.get_all(A2A_VERSION).iter().map(|line| line.to_str().unwrap_or("?").trim());
    let mut lines = lines.filter(|line| !line.is_empty());
    let first = lines.next()?;
    match lines.find(|line| *line != first) {
        None => Some(Cow::Borrowed(first)),
        Some(other) => Some(Cow::Owned(format!("{first}, {other}"))),
    }
}
