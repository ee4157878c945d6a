//! The stages of a request, one file each: `admit` (may this host and this page call), `route` (which agent, binding and dialect),
//! `authorize` (what the caller may do, once that is known), `read` (the body, within bounds) and `respond`. `service` runs them in
//! order; who calls is found out in `server/authentication`.
//!
//! Beside them: `paths` (what a path names), `version` (the dialect of a request), `shared` (what all
//! requests use), `origins` (the names of this server, the path below which it is mounted, and whose pages may call), `rebased` (links to artifacts under another name of
//! this machine), `request_record` (what is noted about a request), `request_log`, `line_budget` and `access_log` (what is counted and
//! logged from it), `refused` (how an answer is marked that refuses), `request_trace` (the trace it belongs to), `budgets` and `holder`
//! (what callers may have under way, and who has it), `headers` (their names, which there are, and which are dropped),
//! `operator_check` and `peers` (callers that are known by their address).

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
