//! A request and its answer, for everything that answers requests.
//!
//! - `request` has the head of a request, and reads its body within bounds; `headers` knows the names of headers. `respond` puts
//!   answers into HTTP, and `refused` marks those that refuse.
//! - `authorize` has the rules that say what a caller may do. `budgets` bounds what callers may have under way.
//! - `request_record` is what is noted about a request, and `request_trace` the trace that it belongs to. `access_log` writes the
//!   access log, and `line_budget` limits how many refusals are logged.

pub(crate) mod access_log;
pub(crate) mod authorize;
pub(crate) mod budgets;
pub(crate) mod headers;
pub(crate) mod line_budget;
pub(crate) mod refused;
pub(crate) mod request;
pub(crate) mod request_record;
pub(crate) mod request_trace;
pub(crate) mod respond;
