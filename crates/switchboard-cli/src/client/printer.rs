//! Where the output of a client command goes: results to standard output, as text or as JSON, and everything else to standard error.

use std::io::Write;
use std::process::ExitCode;

use super::error::{ClientError, Code};
use super::text::{clean, escape_json};
use crate::output;

/// The format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Prints what a command has to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    pub(crate) format: Format,
    /// Whether events are shown as they come.
    pub(crate) is_live: bool,
    /// Whether metadata and history are shown.
    pub(crate) is_verbose: bool,
}

impl Printer {
    /// For what is said before the settings are known, or without them.
    pub(crate) fn plain(is_json: bool) -> Self {
        let format = if is_json { Format::Json } else { Format::Text };
        Self { format, is_live: false, is_verbose: false }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints one JSON document on a line of its own.
    ///
    /// # Errors
    /// When the reader has gone.
    pub(crate) fn json(&self, json: impl AsRef<[u8]>) -> Result<(), ClientError> {
        let text = String::from_utf8_lossy(json.as_ref()).into_owned();
        put(&format!("{}\n", escape_json(&text)))
    }

    /// Prints lines that are clean already.
    ///
    /// # Errors
    /// When the reader has gone.
    pub(crate) fn text(&self, lines: impl AsRef<str>) -> Result<(), ClientError> {
        put(lines.as_ref())
    }

    /// Says on standard error what goes on.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        output::remark(clean(text.as_ref()));
    }

    /// Says on standard error what the user should know.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        output::remark(format_args!("Warning: {}", clean(text.as_ref())));
    }

    /// Says why the command failed. As JSON it is the result, and goes to standard output.
    pub(crate) fn fail(&self, error: &ClientError) -> ExitCode {
        if error.code == Code::OutputClosed {
            return error.exit_code();
        }
        match self.format {
            Format::Json => drop(self.json(error.to_json().to_string())),
            Format::Text => {
                output::remark(format_args!("Error: {}", clean(error.code.name())));
                output::remark(format_args!("Message: {}", clean(&error.message)));
                if let Some(hint) = &error.hint {
                    output::remark(format_args!("Hint: {}", clean(hint)));
                }
            }
        }
        error.exit_code()
    }
}

fn put(text: &str) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| ClientError::new(Code::OutputClosed, error))
}
