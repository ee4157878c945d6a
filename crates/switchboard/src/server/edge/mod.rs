//! The stages of a request, one file each: `admit` (may this host and this page call), `route` (which agent, binding and dialect),
//! `authorize` (what the caller may do, once that is known), `read` (the body, within bounds) and `respond`. `service` runs them in
//! order; who calls is found out in `server/authentication`.
//!
//! Beside them: `paths` (what a path names), `shared` (what all requests use), `rebased` (links to artifacts
//! under another name of this machine), `request_log` and `access_log` (what is counted and logged about a request), `request_trace` (the trace it belongs to), `headers` (their names, which there
//! are, and which are dropped), `operator_check` and `peers` (callers that are known by their address).

pub(crate) mod access_log;
pub(crate) mod admit;
pub(crate) mod authorize;
pub(crate) mod budgets;
pub(crate) mod headers;
pub(crate) mod operator_check;
pub(crate) mod paths;
pub(crate) mod peers;
pub(crate) mod read;
pub(crate) mod rebased;
pub(crate) mod request_log;
pub(crate) mod request_trace;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod shared;
