//! The stages of a request, one file each: `admit` (may this host and this page call), `route` (which agent and binding), `version`
//! (which dialect), `authorize` (what the caller may do, once that is known), `read` (the body, within bounds) and `respond`. `service`
//! runs them in order; who calls is found out in `server/authentication`.
//!
//! Beside them:
//! - `shared` is what all requests use, `paths` what a path names, `headers` which headers there are and which are dropped.
//! - `origins` has the names of this server, the path below which it is mounted, and the pages that may call it; `rebased` writes links to
//!   artifacts under another name of this machine.
//! - `request_record` is what is noted about a request, `request_trace` the trace that it belongs to, and `refused` how an answer is marked
//!   that refuses it. `request_log`, with `line_budget`, and `access_log` are what is counted and logged from them.
//! - `budgets` bounds what callers may have under way; a `holder` is who has it.
//! - `operator_check` and `peers` know callers by a key or by their address.

pub(crate) mod access_log;
pub(crate) mod admit;
pub(crate) mod authorize;
pub(crate) mod budgets;
pub(crate) mod headers;
pub(crate) mod holder;
pub(crate) mod line_budget;
pub(crate) mod operator_check;
pub(crate) mod origins;
pub(crate) mod paths;
pub(crate) mod peers;
pub(crate) mod read;
pub(crate) mod rebased;
pub(crate) mod refused;
pub(crate) mod request_log;
pub(crate) mod request_record;
pub(crate) mod request_trace;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod shared;
pub(crate) mod version;
