//! Logs: to standard error, for people or for machines. `RUST_LOG` chooses what is logged.

use std::io::IsTerminal;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use crate::config::{ConfigError, Environment, LogFormat, Origin};
use crate::log_writer::LogWriter;

const DEFAULT_FILTER: &str = "info";

/// How long the last lines may take when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The log of this process. Dropped last, so that its last lines are written.
pub(crate) struct Log {
    writer: LogWriter,
}

impl Log {
    /// Writes what waits.
    pub(crate) fn flush(&self) {
        self.writer.flush(FLUSH_MAX);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.flush();
    }
}

/// # Errors
/// When `RUST_LOG` makes no sense.
pub(crate) fn start(format: LogFormat, environment: &Environment) -> Result<Log, ConfigError> {
    let filter = environment.get("RUST_LOG")?.unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(filter).map_err(|error| Origin::Variable("RUST_LOG").error(error))?;
    let writer = LogWriter::stderr().map_err(|error| ConfigError(format!("the log cannot be written: {error}")))?;
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer.clone()).with_target(false);
    match format {
        LogFormat::Text => logs.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(Log { writer })
}
