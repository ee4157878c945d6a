//! The groups of settings in `serve --help` and in the documentation.

pub(super) const ADDRESS: &str = "Address";
pub(super) const AGENT: &str = "Agent";
pub(super) const TASKS: &str = "Tasks";
pub(super) const ACCESS: &str = "Access";
pub(super) const WEBHOOKS: &str = "Webhooks";
pub(super) const RUNS: &str = "Runs";
pub(super) const CARD: &str = "Card";
pub(super) const DIALECTS: &str = "Dialects";
pub(super) const RELAY: &str = "Relay";
pub(super) const ISSUER: &str = "Identity provider";
pub(super) const TELEMETRY: &str = "Traces and metrics";
/// The heading that `cli.rs` gives to `--config` and its like.
pub(super) const CONFIGURATION: &str = "Configuration";

/// The headings of `serve --help`, in its order.
pub(super) const HEADINGS: &[&str] =
    &[ADDRESS, AGENT, RELAY, RUNS, TASKS, ACCESS, WEBHOOKS, CARD, DIALECTS, TELEMETRY, CONFIGURATION];
