//! Reads the manifest of a workspace: a list of apps, or an object with such a list in `apps`, as agent-native has it. Pure.
//!
//! One wrong entry costs itself alone, also where it is no JSON: the entries are then told apart by their braces.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::entry::{
    DirectoryEntry, DirectoryProblem, FoundIn, check_id, check_texts, check_url, is_loopback, title_of,
};

/// More apps than this in one workspace are not read.
pub(super) const APPS_MAX: usize = 1_000;

/// The id of the app that dispatches messages to the others, unless an entry says so of itself.
pub(super) const DISPATCH_ID: &str = "dispatch";

/// Where the apps of a workspace are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of the workspace, to which the paths of apps are added.
    pub(super) base: Option<String>,
    /// Whether this process is hosted: then an address on this machine is a leftover of development.
    pub(super) is_hosted: bool,
}

/// What was read: the entries that can be used, and what is wrong with the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReadManifest {
    pub(super) entries: Vec<DirectoryEntry>,
    pub(super) problems: Vec<DirectoryProblem>,
    /// Whether the source as a whole could be read. One that could not is as if it were not there.
    pub(super) is_readable: bool,
}

/// One app as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenApp {
    id: String,
    name: Option<String>,
    description: Option<String>,
    path: String,
    url: Option<String>,
    port: Option<u16>,
    is_dispatch: Option<bool>,
    color: Option<String>,
}

/// Reads a manifest from its text; `source` is the name of the file or variable.
pub(super) fn read_manifest(source: &str, text: &str, place: &Place) -> ReadManifest {
    let text = text.trim_start_matches('\u{feff}');
    let mut read = ReadManifest { is_readable: true, ..ReadManifest::default() };
    let at = |line: usize| FoundIn { source: source.to_owned(), line: Some(line) };
    let pieces = match strictly(text) {
        Ok(pieces) => pieces,
        Err(error) => match by_braces(text) {
            Some(pieces) => pieces,
            None => {
                read.is_readable = false;
                read.problems.push(DirectoryProblem { at: at(error.0), what: error.1 });
                return read;
            }
        },
    };
    for (number, piece) in pieces.into_iter().enumerate() {
        let line = line_of(text, piece);
        if number >= APPS_MAX {
            let what = format!("there are more than {APPS_MAX} apps; this one and those after it are left out");
            read.problems.push(DirectoryProblem { at: at(line), what });
            break;
        }
        match read_app(piece, place) {
            Ok(entry) => read.entries.push(DirectoryEntry { found_in: at(line), ..entry }),
            Err((below, what)) => read.problems.push(DirectoryProblem { at: at(line + below), what }),
        }
    }
    read
}

/// The texts of the entries of a manifest that is JSON.
fn strictly(text: &str) -> Result<Vec<&str>, (usize, String)> {
    #[derive(Deserialize)]
    struct Listed<'a> {
        #[serde(borrow)]
        apps: Vec<&'a RawValue>,
    }
    let listed = match text.trim_start().starts_with('{') {
        true => serde_json::from_str::<Listed<'_>>(text).map(|listed| listed.apps),
        false => serde_json::from_str::<Vec<&RawValue>>(text),
    };
    let listed = listed.map_err(|error| (error.line().max(1), format!("is no list of apps: {error}")))?;
    Ok(listed.into_iter().map(RawValue::get).collect())
}

/// The texts of the entries of a list that is not JSON as a whole: what stands between braces inside the list. A string ends at the
/// end of its line at the latest, because JSON has no line breaks in strings; an entry with such a string may lack its last
/// brace, so the next line that begins with a brace is another entry.
fn by_braces(text: &str) -> Option<Vec<&str>> {
    let list = text.find('[').filter(|start| {
        let before: String = text[..*start].split_whitespace().collect();
        before.is_empty() || before == "{\"apps\":"
    })?;
    let mut pieces = Vec::new();
    let (mut depth, mut begin) = (0_usize, 0);
    let (mut in_string, mut is_escaped, mut is_broken, mut is_line_start) = (false, false, false, false);
    for (at, letter) in text.char_indices().skip_while(|(at, _)| *at <= list) {
        if in_string {
            is_broken |= letter == '\n';
            in_string = !(letter == '\n' || (letter == '"' && !is_escaped));
            is_escaped = letter == '\\' && !is_escaped;
            is_line_start = letter == '\n';
            continue;
        }
        match letter {
            '"' => (in_string, is_escaped) = (true, false),
            '{' => {
                if depth > 0 && is_broken && is_line_start {
                    pieces.push(text[begin..at].trim_end());
                    depth = 0;
                }
                if depth == 0 {
                    (begin, is_broken) = (at, false);
                }
                depth += 1;
            }
            '}' if depth == 1 => {
                depth = 0;
                pieces.push(&text[begin..=at]);
            }
            '}' => depth = depth.saturating_sub(1),
            ']' if depth == 0 => break,
            _ => {}
        }
        is_line_start = letter == '\n' || (is_line_start && letter.is_whitespace());
    }
    if depth > 0 {
        // The rest is one entry that has no end.
        pieces.push(&text[begin..]);
    }
    (!pieces.is_empty()).then_some(pieces)
}

/// The line, from 1, where a piece of a text begins.
fn line_of(text: &str, piece: &str) -> usize {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.get(..start).unwrap_or_default().matches('\n').count() + 1
}

/// Reads one app; an error says how many lines below the beginning of the entry it is.
fn read_app(text: &str, place: &Place) -> Result<DirectoryEntry, (usize, String)> {
    let app: WrittenApp =
        serde_json::from_str(text).map_err(|error| (error.line().saturating_sub(1), format!("no app: {error}")))?;
    entry_of(app, place).map_err(|what| (0, what))
}

fn entry_of(app: WrittenApp, place: &Place) -> Result<DirectoryEntry, String> {
    let WrittenApp { id, name, description, path, url, port, is_dispatch, color } = app;
    check_id(&id)?;
    let name = name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| title_of(&id));
    let description = description.unwrap_or_default();
    check_texts(&name, &description)?;
    let written = path.trim();
    if !written.starts_with('/') || written.contains(['?', '#', '\\']) || written.contains("//") {
        return Err(format!("path: {written:?} is no path of an app; expected one such as \"/{id}\""));
    }
    let path = written.trim_end_matches('/');
    let url = url.map(|url| check_url(&url)).transpose()?;
    let url = url.filter(|url| !(place.is_hosted && is_loopback(url)));
    let of_base = || place.base.as_ref().map(|base| format!("{}{path}", base.trim_end_matches('/')));
    let of_port = || port.filter(|_| !place.is_hosted).map(|port| format!("http://127.0.0.1:{port}{path}"));
    let url = url.or_else(of_base).or_else(of_port).ok_or(
        "the app has no address; give it a url, or set WORKSPACE_GATEWAY_URL or APP_URL to that of the workspace",
    )?;
    let is_dispatch = is_dispatch.unwrap_or(id == DISPATCH_ID);
    let found_in = FoundIn { source: String::new(), line: None };
    Ok(DirectoryEntry { id, name, description, url, path: Some(path.to_owned()), is_dispatch, color, found_in })
}

/// Reads one app of a workspace that has no manifest, from the `package.json` of its folder.
pub(super) fn read_package(
    source: &str,
    folder: &str,
    text: &str,
    place: &Place,
) -> Result<DirectoryEntry, DirectoryProblem> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Package {
        display_name: Option<String>,
        description: Option<String>,
    }
    let at = |line| FoundIn { source: source.to_owned(), line };
    let package: Package = serde_json::from_str(text).map_err(|error| DirectoryProblem {
        at: at(Some(error.line().max(1))),
        what: format!("is no package.json: {error}"),
    })?;
    let app = WrittenApp {
        id: folder.to_owned(),
        name: package.display_name,
        description: package.description,
        path: format!("/{folder}"),
        url: None,
        port: None,
        is_dispatch: None,
        color: None,
    };
    let entry = entry_of(app, place).map_err(|what| DirectoryProblem { at: at(None), what })?;
    Ok(DirectoryEntry { found_in: at(None), ..entry })
}

/// Whether the `package.json` of a folder says that the folder is the root of a workspace (`agent-native.workspaceCore`).
pub(super) fn is_workspace_root(text: &str) -> bool {
    let package: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    match &package["agent-native"]["workspaceCore"] {
        serde_json::Value::Null | serde_json::Value::Bool(false) => false,
        serde_json::Value::String(text) => !text.trim().is_empty(),
        _ => true,
    }
}

/// Reads the manifest of one agent outside the workspace (`remote-agents/{id}.json`).
pub(super) fn read_remote(
    source: &str,
    stem: &str,
    text: &str,
    is_hosted: bool,
) -> Result<DirectoryEntry, DirectoryProblem> {
    #[derive(Deserialize)]
    struct Remote {
        id: Option<String>,
        name: String,
        url: String,
        description: Option<String>,
        color: Option<String>,
    }
    let problem = |line, what| DirectoryProblem { at: FoundIn { source: source.to_owned(), line }, what };
    let remote: Remote = serde_json::from_str(text)
        .map_err(|error| problem(Some(error.line().max(1)), format!("is no agent: {error}")))?;
    let checked = || -> Result<DirectoryEntry, String> {
        let Remote { id, name, url, description, color } = remote;
        let id = id.filter(|id| !id.trim().is_empty()).unwrap_or_else(|| stem.to_owned());
        check_id(&id)?;
        let name = Some(name).filter(|name| !name.trim().is_empty()).unwrap_or_else(|| title_of(&id));
        let description = description.unwrap_or_default();
        check_texts(&name, &description)?;
        let url = check_url(&url)?;
        if is_hosted && is_loopback(&url) {
            return Err(format!("url: {url} is an address of this machine, and this process is hosted"));
        }
        let found_in = FoundIn { source: source.to_owned(), line: None };
        Ok(DirectoryEntry { id, name, description, url, path: None, is_dispatch: false, color, found_in })
    };
    checked().map_err(|what| problem(None, what))
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
