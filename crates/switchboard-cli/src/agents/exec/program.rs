//! What is run: the program that a configured command means, found once at start, and the environment it gets.

use std::env::split_paths;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Variables that every command gets, if the server has them. All else must be named in the configuration, so that no
/// secret of the server reaches a command by accident.
const ALWAYS_PASSED: &[&str] = &["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// A command as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// A program and its arguments.
    Words(Vec<String>),
    /// A line for `sh -c`.
    Shell(String),
}

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// As it was configured; also what it sees as its own name.
    pub(crate) given: String,
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
    /// What the operator is told of a command that may not do what was meant.
    pub(crate) doubt: Option<String>,
}

impl Program {
    /// Finds the program of a command in the folders of `search`, a value of `PATH`.
    ///
    /// # Errors
    /// When there is none, or it is not executable.
    pub(crate) fn find(invocation: &Invocation, search: &OsStr) -> Result<Self, String> {
        let (given, args) = match invocation {
            Invocation::Shell(line) if line.trim().is_empty() => return Err("the command is empty".to_owned()),
            Invocation::Shell(line) => ("sh", vec!["-c".to_owned(), line.clone()]),
            Invocation::Words(words) => match words.split_first() {
                Some((program, args)) if !program.is_empty() => (program.as_str(), args.to_vec()),
                _ => return Err("the command is empty".to_owned()),
            },
        };
        Ok(Self { given: given.to_owned(), path: find_file(given, search)?, args, doubt: None })
    }
}

fn find_file(given: &str, search: &OsStr) -> Result<PathBuf, String> {
    if given.contains('/') {
        let path = std::path::absolute(given).map_err(|error| format!("{given:?}: {error}"))?;
        return match (path.is_file(), is_executable(&path)) {
            (true, true) => Ok(path),
            (true, false) => Err(format!("{given:?} is not executable")),
            (false, _) => Err(format!("there is no file {given:?}")),
        };
    }
    let candidates = split_paths(search).map(|folder| folder.join(given)).filter(|path| path.is_file());
    let mut denied = false;
    for path in candidates {
        if is_executable(&path) {
            return std::path::absolute(&path).map_err(|error| format!("{given:?}: {error}"));
        }
        denied = true;
    }
    let hint = if given.contains(['|', '&', ';', '<', '>', '$', '`']) {
        "; only a shell makes anything of that (--exec-shell, or shell = true)"
    } else if given.contains(char::is_whitespace) {
        "; a list holds the program and each argument apart"
    } else {
        ""
    };
    Err(if denied {
        format!("{given:?} is not executable")
    } else {
        format!("there is no program {given:?} in PATH{hint}")
    })
}

fn is_executable(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// The variables a command gets: the usual ones and those named.
pub(crate) fn variables(named: &[String], lookup: impl Fn(&str) -> Option<OsString>) -> Vec<(OsString, OsString)> {
    let named = named.iter().map(String::as_str).filter(|name| !ALWAYS_PASSED.contains(name));
    let names = ALWAYS_PASSED.iter().copied().chain(named);
    names.filter_map(|name| Some((OsString::from(name), lookup(name)?))).collect()
}
