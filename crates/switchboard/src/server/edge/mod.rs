//! The way of a request: `admit` (may this host and this page call), `route` (which agent and binding, by what `paths` finds in the
//! path), who calls (`server/authentication`), and then the binding that reads it, calls the agent and answers. `service` runs
//! these stages in order, and `request_log` counts and logs what came of it.

pub(crate) mod admit;
pub(crate) mod paths;
pub(crate) mod request_log;
pub(crate) mod route;
pub(crate) mod service;
