//! One agent of the directory, where it is, and the rules for names. Pure.

use std::fmt;

use http::Uri;

use crate::hops::is_agent_name;

/// An agent that the directory knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// Names it among agents, and in the metadata of hops.
    pub id: String,
    /// Its name for people. Without one of its own it is made from the id.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it is: the base of its paths, without a slash at the end.
    pub url: String,
    /// The path of an app below the address of its workspace; none for agents outside of it.
    pub path: Option<String>,
    /// Whether it is the app that dispatches messages to the others.
    pub is_dispatch: bool,
    /// The colour that it has in lists, as it was written.
    pub color: Option<String>,
    /// Where it is written down.
    pub found_in: FoundIn,
}

impl DirectoryEntry {
    /// Whom tokens for this agent are for (`aud`): its URL, without the path of its endpoint.
    #[must_use]
    pub fn audience(&self) -> &str {
        let url = self.url.strip_suffix("/a2a").unwrap_or(&self.url);
        url.strip_suffix("/_agent-native").unwrap_or(url)
    }

    /// Whether it is an app of this workspace, which knows the secret that all apps share.
    #[must_use]
    pub fn is_app(&self) -> bool {
        self.path.is_some()
    }
}

/// Where an entry was found, with its line where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIn {
    /// A file, or the variable of the environment.
    pub source: String,
    /// From 1; none where the whole file is one entry.
    pub line: Option<usize>,
}

impl fmt::Display for FoundIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// Something in a source that cannot be used: where, and what is wrong with it. It costs no more than its own entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryProblem {
    /// Where it is.
    pub at: FoundIn,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl fmt::Display for DirectoryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// The words of an id, each with a capital: `sales-desk` is Sales Desk.
pub(super) fn title_of(id: &str) -> String {
    let words = id.split(['-', '_', '.']).filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    };
    words.map(capital).collect::<Vec<_>>().join(" ")
}

/// Longest name and description that are kept; a longer one is refused, because lists of agents go into answers.
pub(super) const NAME_CHARS_MAX: usize = 200;
pub(super) const DESCRIPTION_CHARS_MAX: usize = 4_000;

pub(super) fn check_id(id: &str) -> Result<(), String> {
    match is_agent_name(id) {
        true => Ok(()),
        false => Err(format!(
            "id: {:?} cannot be an id; expected letters, digits, '.', '_' or '-', the first a letter or digit",
            id.chars().take(64).collect::<String>()
        )),
    }
}

pub(super) fn check_texts(name: &str, description: &str) -> Result<(), String> {
    if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        return Err(format!("name: expected at most {NAME_CHARS_MAX} characters on one line"));
    }
    match description.chars().count() > DESCRIPTION_CHARS_MAX {
        true => Err(format!("description: expected at most {DESCRIPTION_CHARS_MAX} characters")),
        false => Ok(()),
    }
}

/// A URL that agents can be called at, without a slash at its end.
pub(super) fn check_url(url: &str) -> Result<String, String> {
    let wrong =
        || format!("url: {url:?} is no address of an agent; expected one such as \"https://agents.example/mail\"");
    let parsed: Uri = url.trim().parse().map_err(|_| wrong())?;
    let is_web = matches!(parsed.scheme_str(), Some("http" | "https"));
    if !is_web || parsed.host().is_none_or(str::is_empty) || parsed.query().is_some() {
        return Err(wrong());
    }
    if parsed.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("url: holds a user name or password; credentials do not belong into a manifest".to_owned());
    }
    Ok(url.trim().trim_end_matches('/').to_owned())
}

/// Whether a URL is on this machine alone.
pub(super) fn is_loopback(url: &str) -> bool {
    let Ok(parsed) = url.parse::<Uri>() else { return false };
    let Some(host) = parsed.host() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.eq_ignore_ascii_case("localhost")
        || bare.to_ascii_lowercase().ends_with(".localhost")
        || bare
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback() || address.is_unspecified())
}
