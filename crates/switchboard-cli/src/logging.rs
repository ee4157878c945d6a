//! Logs: to standard error, for people or for machines. `RUST_LOG` chooses what is logged.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{ConfigError, Environment, LogFormat, Origin};

const DEFAULT_FILTER: &str = "info";

/// # Errors
/// When `RUST_LOG` makes no sense.
pub(crate) fn start(format: LogFormat, environment: &Environment) -> Result<(), ConfigError> {
    let filter = environment.get("RUST_LOG")?.unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(filter).map_err(|error| Origin::Variable("RUST_LOG").error(error))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    match format {
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
