//! The stages of a request, one file each: `admit` (may this host and this page call), `route` (which agent, which binding),
//! `authenticate` (who calls), `body` (reading within bounds) and `respond`. `service` runs them in order. `note`, `access_log`
//! and `line_budget` are what is counted and logged about a request.

pub(crate) mod access_log;
pub(crate) mod admit;
pub(crate) mod authenticate;
pub(crate) mod body;
pub(crate) mod cors;
pub(crate) mod header_names;
pub(crate) mod line_budget;
pub(crate) mod mount_path;
pub(crate) mod note;
pub(crate) mod origins;
pub(crate) mod percent;
pub(crate) mod rebased;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod shared;
pub(crate) mod sites;
