//! The settings of the client commands. Each comes from the first of: a flag, a variable (`A2ACLI_` and the name of the flag), the
//! nearest `.env` or the file named with `--config`, the user's file, and what is built in. Nothing is ever written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::ClientError;
use super::options::Flags;
use crate::config::Environment;

/// What the names of variables begin with, in the environment and in files.
const PREFIX: &str = "A2ACLI_";
/// The user's file, below the folder for configuration. Its folder is that of the specification, shared with other tools.
const GLOBAL_FILE: &str = "a2a-cli/.env";
/// A file of settings is not larger.
const FILE_BYTES_MAX: u64 = 64 * 1_024;
/// The longest time that can be asked for.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// One setting: the name of its flag, and what values it takes.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) built_in: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Never printed.
    Secret,
    Switch,
    Duration,
    /// Separated by commas, except on the command line.
    List,
    /// A list whose values are never printed.
    SecretList,
}

impl Key {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, built_in: None }
    }

    const fn or(name: &'static str, kind: Kind, built_in: &'static str) -> Self {
        Self { name, kind, built_in: Some(built_in) }
    }

    pub(crate) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::SecretList)
    }
}

/// All settings. `--stream`, `--help` and `--version` come only from the command line.
pub(crate) const KEYS: &[Key] = &[
    Key::new("agent-card", Kind::Text),
    Key::or("output", Kind::Text, "text"),
    Key::new("async", Kind::Switch),
    Key::or("wait", Kind::Switch, "true"),
    Key::or("poll-interval", Kind::Duration, "2s"),
    Key::new("timeout", Kind::Duration),
    Key::new("context-id", Kind::Text),
    Key::new("task-id", Kind::Text),
    Key::or("a2a-version", Kind::Text, "1.0"),
    Key::new("transport", Kind::List),
    Key::new("catalog", Kind::Text),
    Key::new("extension", Kind::List),
    Key::new("bearer", Kind::Secret),
    Key::new("api-key", Kind::Secret),
    Key::new("card-key", Kind::List),
    Key::new("client-id", Kind::Text),
    Key::new("client-secret", Kind::Secret),
    Key::new("client-cert", Kind::Text),
    Key::new("client-key", Kind::Text),
    Key::new("svc-param", Kind::SecretList),
    Key::new("push-token", Kind::Secret),
    Key::new("auth-credentials", Kind::Secret),
    Key::new("metadata", Kind::Text),
    Key::new("ca-cert", Kind::Text),
    Key::or("insecure", Kind::Switch, "false"),
    Key::or("verbose", Kind::Switch, "false"),
    Key::or("debug", Kind::Switch, "false"),
];

/// Where a value came from, from the strongest to the weakest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(&'static str),
    Variable(String),
    /// The file named with `--config`, or the nearest `.env`.
    Local(PathBuf),
    Global(PathBuf),
    BuiltIn,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag --{name}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Local(path) | Self::Global(path) => write!(f, "file {}", path.display()),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    pub(crate) texts: Vec<String>,
    pub(crate) source: Source,
}

/// The settings in effect.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, Value>,
    /// What the user should know about where they came from.
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    /// Reads all sources. `folder` is the working directory.
    ///
    /// # Errors
    /// When a file cannot be read, or a value is not what its setting takes.
    pub(crate) fn read(
        flags: &Flags,
        config: Option<&str>,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Self, ClientError> {
        let mut warnings = Vec::new();
        let named = config.map(str::to_owned).or_else(|| variable(environment, "A2ACLI_CONFIG"));
        let local = match named {
            Some(path) => Some(EnvFile::read(&folder.join(path))?),
            None => nearest(folder).map(|path| EnvFile::read(&path)).transpose()?,
        };
        let global = match global_file(environment).filter(|path| path.is_file()) {
            Some(path) => Some(EnvFile::read(&path)?),
            None => None,
        };
        for file in local.iter().chain(&global) {
            file.warn(&mut warnings);
        }
        let mut values = BTreeMap::new();
        for key in KEYS {
            if let Some(value) = effective(key, flags, environment, local.as_ref(), global.as_ref()) {
                check(key, &value)?;
                values.insert(key.name, value);
            }
        }
        let mut settings = Self { values, warnings };
        settings.warn_of_reach();
        Ok(settings)
    }

    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.value(name).and_then(|value| value.texts.first()).map(String::as_str)
    }

    pub(crate) fn list(&self, name: &str) -> &[String] {
        self.value(name).map_or(&[], |value| &value.texts)
    }

    pub(crate) fn switch(&self, name: &str) -> bool {
        self.text(name).and_then(read_switch).unwrap_or(false)
    }

    pub(crate) fn duration(&self, name: &str) -> Option<Duration> {
        self.text(name).and_then(read_duration)
    }

    /// Whether a command that sends returns at once. The stronger source decides between `--async` and `--wait`.
    ///
    /// # Errors
    /// When both come from the same source.
    pub(crate) fn is_async(&self) -> Result<bool, ClientError> {
        let on = |name: &str| self.value(name).filter(|_| self.switch(name)).map(|value| strength(&value.source));
        match (on("async"), on("wait")) {
            (None, _) => Ok(false),
            (Some(_), None) => Ok(true),
            (Some(later), Some(wait)) if later == wait => {
                Err(ClientError::usage("--async and --wait exclude each other").with_hint("Leave one of them out"))
            }
            (Some(later), Some(wait)) => Ok(later < wait),
        }
    }

    /// The value as it may be printed.
    pub(crate) fn shown(&self, key: &Key) -> Option<String> {
        let value = self.value(key.name)?;
        Some(match key.is_secret() {
            true => format!("set, {} characters", value.texts.iter().map(|text| text.chars().count()).sum::<usize>()),
            false => value.texts.join(","),
        })
    }

    /// Warns of a `.env` that was found in a folder above and names the agent, or turns verification off: its author may want the
    /// credentials that come from elsewhere.
    fn warn_of_reach(&mut self) {
        let found = |name: &str| match self.values.get(name).map(|value| &value.source) {
            Some(Source::Local(path)) => Some(path.clone()),
            _ => None,
        };
        let is_elsewhere = |name: &str| {
            self.values.get(name).is_some_and(|value| matches!(value.source, Source::Variable(_) | Source::Global(_)))
        };
        let mut warnings = Vec::new();
        for name in ["insecure", "a2a-version"] {
            if let Some(path) = found(name) {
                warnings.push(format!("--{name} is set by {}", path.display()));
            }
        }
        if let Some(path) = found("agent-card")
            && (is_elsewhere("bearer") || is_elsewhere("api-key"))
        {
            warnings.push(format!(
                "the agent is named by {}, and credentials from elsewhere are sent to it",
                path.display()
            ));
        }
        self.warnings.extend(warnings);
    }
}

fn variable(environment: &Environment, name: &str) -> Option<String> {
    environment.raw(name).and_then(|value| value.into_string().ok()).filter(|value| !value.is_empty())
}

fn strength(source: &Source) -> u8 {
    match source {
        Source::Flag(_) => 0,
        Source::Variable(_) => 1,
        Source::Local(_) => 2,
        Source::Global(_) => 3,
        Source::BuiltIn => 4,
    }
}

fn effective(
    key: &Key,
    flags: &Flags,
    environment: &Environment,
    local: Option<&EnvFile>,
    global: Option<&EnvFile>,
) -> Option<Value> {
    if let Some(texts) = flags.get(key.name) {
        return Some(Value { texts: texts.to_vec(), source: Source::Flag(key.name) });
    }
    let name = key.variable();
    let split = |text: &str| match key.kind {
        Kind::List | Kind::SecretList => {
            text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
        }
        _ => vec![text.to_owned()],
    };
    if let Some(text) = variable(environment, &name) {
        return Some(Value { texts: split(&text), source: Source::Variable(name) });
    }
    let in_file = |file: Option<&EnvFile>, source: fn(PathBuf) -> Source| {
        let file = file?;
        let text = file.values.get(&name).filter(|text| !text.is_empty())?;
        Some(Value { texts: split(text), source: source(file.path.clone()) })
    };
    in_file(local, Source::Local)
        .or_else(|| in_file(global, Source::Global))
        .or_else(|| key.built_in.map(|text| Value { texts: vec![text.to_owned()], source: Source::BuiltIn }))
}

fn check(key: &Key, value: &Value) -> Result<(), ClientError> {
    let text = value.texts.first().map_or("", String::as_str);
    let expected = match key.kind {
        Kind::Switch if read_switch(text).is_none() => "true or false",
        Kind::Duration if read_duration(text).is_none() => "a duration such as 500ms, 2s, 5m or 1h",
        Kind::Text if key.name == "output" && !matches!(text, "text" | "json") => "text or json",
        _ => return Ok(()),
    };
    Err(ClientError::usage(format!("--{} takes {expected}, and {:?} is neither ({})", key.name, text, value.source)))
}

fn read_switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Some(true),
        "0" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// A number and its unit; without one, seconds.
pub(crate) fn read_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => number / 1_000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration <= DURATION_MAX)
}

/// The nearest `.env`, in this folder or one above it.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let start = std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder }).ok()?;
    start.ancestors().map(|folder| folder.join(".env")).find(|path| path.is_file())
}

/// Where the user's file is.
pub(crate) fn global_file(environment: &Environment) -> Option<PathBuf> {
    let folder = match variable(environment, "XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(variable(environment, "HOME")?).join(".config"),
    };
    Some(folder.join(GLOBAL_FILE))
}

/// A file with lines of the form `A2ACLI_KEY=value`. Other names in it are not ours and are not read.
struct EnvFile {
    path: PathBuf,
    values: BTreeMap<String, String>,
    is_open_to_others: bool,
}

impl EnvFile {
    fn read(path: &Path) -> Result<Self, ClientError> {
        use std::io::Read;
        use std::os::unix::fs::PermissionsExt;
        let unread = |why: &dyn fmt::Display| ClientError::usage(format!("{}: cannot be read: {why}", path.display()));
        let file = std::fs::File::open(path).map_err(|error| unread(&error))?;
        let mode = file.metadata().map_err(|error| unread(&error))?.permissions().mode();
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| unread(&error))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(unread(&format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        Ok(Self { path: path.to_owned(), values: parse(&text), is_open_to_others: mode & 0o077 != 0 })
    }

    fn warn(&self, warnings: &mut Vec<String>) {
        let path = self.path.display();
        for name in self.values.keys() {
            match KEYS.iter().find(|key| key.variable() == *name) {
                None => warnings.push(format!("{path}: {name} is not a setting")),
                Some(key) if key.is_secret() && self.is_open_to_others => {
                    warnings.push(format!("{path} holds {name} and can be read by others: chmod 600 {path}"));
                }
                Some(_) => {}
            }
        }
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let line = line.strip_prefix("export ").unwrap_or(line);
        if let Some((name, value)) = line.split_once('=')
            && name.trim().starts_with(PREFIX)
        {
            values.insert(name.trim().to_owned(), unquote(value.trim()));
        }
    }
    values
}

/// A value without its quotes; without quotes, up to a comment.
fn unquote(value: &str) -> String {
    for mark in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(mark)
            && let Some(end) = rest.find(mark)
        {
            return rest[..end].to_owned();
        }
    }
    value.split(" #").next().unwrap_or_default().trim_end().to_owned()
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
