//! The stages of a request, one file each: `admit` (may this host and this page call), `route` (which agent, which binding),
//! `authenticate` (who calls), `read` (the body, within bounds) and `respond`. `service` runs them in order.
//!
//! Beside them: `paths` (what a path names), `dialect` (which version), `tokens`, `shared` and `sites` (what all requests use),
//! `note`, `access_log` and `line_budget` (what is counted and logged about a request).

pub(crate) mod access_log;
pub(crate) mod admit;
pub(crate) mod authenticate;
pub(crate) mod dialect;
pub(crate) mod header_names;
pub(crate) mod line_budget;
pub(crate) mod origins;
pub(crate) mod paths;
pub(crate) mod percent;
pub(crate) mod read;
pub(crate) mod rebased;
pub(crate) mod request_record;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod shared;
pub(crate) mod sites;
pub(crate) mod tokens;
