//! Logs: to standard error, for people or for machines. `RUST_LOG` chooses what is logged.

mod format;
mod writer;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use switchboard::AccessLog;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::{ConfigError, Environment, Given, LogFormat, Origin};

use format::{LineForm, LogLines};
use writer::LogWriter;

const DEFAULT_FILTER: &str = "info";

/// How long the last lines may take when the process ends.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// The log of this process. Dropped last, so that its last lines are written.
pub(crate) struct Log {
    writer: LogWriter,
    access: Option<LogWriter>,
}

impl Log {
    /// Begins the access log, if there is to be one.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub(crate) fn access_log(&mut self, setting: &Given<Option<PathBuf>>) -> Result<Option<AccessLog>, ConfigError> {
        let Some(path) = &setting.value else { return Ok(None) };
        let writer = if path.file_name().is_some_and(|name| name == "-") {
            self.writer.clone()
        } else {
            let cannot = |error| setting.from.error(format_args!("{path:?} cannot be written: {error}"));
            LogWriter::file(path).map_err(cannot)?
        };
        self.access = Some(writer.clone());
        Ok(Some(AccessLog::new(move |line| writer.line(line.as_bytes(), false))))
    }

    /// Writes what waits.
    pub(crate) fn flush(&self) {
        self.writer.flush(FLUSH_MAX);
        if let Some(access) = &self.access {
            access.flush(FLUSH_MAX);
        }
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
    let writer =
        LogWriter::stderr().map_err(|error| ConfigError::new(format!("the log cannot be written: {error}")))?;
    let form = match format {
        LogFormat::Text => LineForm::Text { colours: std::io::stderr().is_terminal() },
        LogFormat::Json => LineForm::Json,
    };
    let lines = writer.clone();
    let lines = LogLines::new(form, move |line, is_urgent| lines.line(line, is_urgent));
    tracing_subscriber::registry().with(filter).with(lines).init();
    Ok(Log { writer, access: None })
}
