//! The only place that writes to the terminal. Results go to standard output, complaints to standard error, like the
//! logs. A write that fails because the reader went away is ignored.

use std::fmt::Display;
use std::io::Write;

pub(crate) fn say(text: impl Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints each line of the text as an error of its own.
pub(crate) fn complain(text: impl Display) {
    let mut out = std::io::stderr().lock();
    for line in text.to_string().lines() {
        let _ = writeln!(out, "switchboard: {line}");
    }
}

/// What is worth knowing beside a result.
pub(crate) fn remark(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
