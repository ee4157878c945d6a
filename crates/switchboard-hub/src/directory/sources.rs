//! Where the agents of the directory are written down, in order: the manifest in the environment, a file of it, or the folders of the
//! workspace; and beside them the files of agents outside of it. Reads files, and decides nothing about their contents.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::io::AsyncReadExt as _;

use super::entry::{DirectoryEntry, DirectoryProblem, FoundIn};
use super::manifest::{APPS_MAX, Place, is_workspace_root, read_manifest, read_package, read_remote};

/// The variable that holds a manifest.
pub const MANIFEST_VARIABLE: &str = "AGENT_NATIVE_WORKSPACE_APPS_JSON";
/// Where a manifest is looked for, from the folder of the workspace.
const MANIFEST_FILES: [&str; 2] = [".agent-native/workspace-apps.json", "workspace-apps.json"];
/// Folders of files that each describe an agent outside the workspace. The first is the newer name and wins.
const REMOTE_FOLDERS: [&str; 2] = ["remote-agents", "agents"];
/// The variables that may hold the address of the workspace, in order.
const BASE_VARIABLES: [&str; 4] = ["WORKSPACE_GATEWAY_URL", "APP_URL", "URL", "DEPLOY_URL"];
/// How many folders upwards the root of the workspace is looked for.
const ROOT_LEVELS_MAX: usize = 20;
/// A larger manifest is not read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// Files of a folder beyond these are not read.
const REMOTES_MAX: usize = 1_000;

/// Where to look, and what the environment says.
///
/// ```
/// use switchboard_hub::directory::Sources;
///
/// let sources = Sources::new("/srv/workspace").gateway("https://ws.example").own_id("mail");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// None if there is no workspace.
    pub(super) folder: Option<PathBuf>,
    /// Further folders of files that each describe an agent outside the workspace.
    pub(super) remote_folders: Vec<PathBuf>,
    pub(super) manifest: Option<String>,
    pub(super) place: Place,
    pub(super) own_id: Option<String>,
    pub(super) hidden: Vec<String>,
}

impl Sources {
    /// Looks in this folder, and in those above it for the root of a workspace.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..Self::default() }
    }

    /// No workspace: the agents are those of [`Sources::remote_agents`] and of a manifest that is given.
    #[must_use]
    pub fn without_workspace() -> Self {
        Self::default()
    }

    /// One more folder of files that each describe an agent outside the workspace.
    #[must_use]
    pub fn remote_agents(mut self, folder: impl Into<PathBuf>) -> Self {
        self.remote_folders.push(folder.into());
        self
    }

    /// Takes what the environment says: the manifest in `AGENT_NATIVE_WORKSPACE_APPS_JSON`, the address of the workspace in
    /// `WORKSPACE_GATEWAY_URL`, `APP_URL`, `URL` or `DEPLOY_URL`, and the id of this app in `AGENT_NATIVE_WORKSPACE_APP_ID`. What was
    /// set before stays.
    #[must_use]
    pub fn environment(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        self.manifest = self.manifest.or_else(|| text(MANIFEST_VARIABLE));
        self.place.base = self.place.base.or_else(|| BASE_VARIABLES.into_iter().find_map(text));
        self.own_id = self.own_id.or_else(|| text("AGENT_NATIVE_WORKSPACE_APP_ID"));
        self
    }

    /// A manifest as text, which comes before every file.
    #[must_use]
    pub fn manifest(mut self, text: impl Into<String>) -> Self {
        self.manifest = Some(text.into());
        self
    }

    /// The address of the workspace: the paths of apps are below it.
    #[must_use]
    pub fn gateway(mut self, url: impl Into<String>) -> Self {
        self.place.base = Some(url.into());
        self
    }

    /// Whether this process is hosted. Addresses of this machine in a manifest are then leftovers of development and not used.
    #[must_use]
    pub fn hosted(mut self, hosted: bool) -> Self {
        self.place.is_hosted = hosted;
        self
    }

    /// The id of this program in the workspace: it is not among the agents that it can call.
    #[must_use]
    pub fn own_id(mut self, id: impl Into<String>) -> Self {
        self.own_id = Some(id.into());
        self
    }

    /// An agent that is not shown.
    #[must_use]
    pub fn hide(mut self, id: impl Into<String>) -> Self {
        self.hidden.push(id.into());
        self
    }

    /// Every file that may say something, with its version: two equal answers mean that nothing has changed.
    pub(super) async fn versions(&self) -> Vec<(PathBuf, FileVersion)> {
        let mut versions = Vec::new();
        let mut files: Vec<PathBuf> = self.manifest_files().map(|(_, file)| file).collect();
        if let Some(root) = self.root().await {
            let apps = root.join("apps");
            files.extend(folders(&apps).await.into_iter().map(|(_, folder)| folder.join("package.json")));
            files.push(root.join("package.json"));
        }
        for folder in self.remotes() {
            files.extend(json_files(&folder).await.into_iter().map(|(_, file)| file));
        }
        for file in files {
            let version = FileVersion::of(&file).await;
            versions.push((file, version));
        }
        versions
    }

    /// Reads the first source that is there, and the agents outside the workspace.
    pub(super) async fn read(&self) -> Found {
        let mut found = Found::default();
        self.read_apps(&mut found).await;
        for folder in self.remotes() {
            for (stem, file) in json_files(&folder).await {
                let source = self.shown(&file);
                let read = match read_text(&file).await {
                    Ok(Some(text)) => read_remote(&source, &stem, &text, self.place.is_hosted),
                    Ok(None) => continue,
                    Err(what) => Err(DirectoryProblem { at: FoundIn { source, line: None }, what }),
                };
                match read {
                    Ok(entry) => found.remotes.push(entry),
                    Err(problem) => found.problems.push(problem),
                }
            }
        }
        found
    }

    async fn read_apps(&self, found: &mut Found) {
        if let Some(text) = &self.manifest {
            let read = read_manifest(MANIFEST_VARIABLE, text, &self.place);
            found.problems.extend(read.problems);
            if read.is_readable {
                found.apps = read.entries;
                return;
            }
        }
        for (file, path) in self.manifest_files() {
            let text = match read_text(&path).await {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(what) => {
                    found.is_in_doubt = true;
                    let at = FoundIn { source: file.to_owned(), line: None };
                    found.problems.push(DirectoryProblem { at, what });
                    continue;
                }
            };
            let read = read_manifest(file, &text, &self.place);
            found.problems.extend(read.problems);
            if read.is_readable {
                found.apps = read.entries;
                return;
            }
            found.is_in_doubt = true;
        }
        let Some(root) = self.root().await else { return };
        for (name, folder) in folders(&root.join("apps")).await {
            let file = folder.join("package.json");
            let source = self.shown(&file);
            let read = match read_text(&file).await {
                Ok(Some(text)) => read_package(&source, &name, &text, &self.place),
                Ok(None) => continue,
                Err(what) => Err(DirectoryProblem { at: FoundIn { source, line: None }, what }),
            };
            match read {
                Ok(entry) => found.apps.push(entry),
                Err(problem) => found.problems.push(problem),
            }
        }
    }

    /// The root of the workspace: this folder or one above it, whose `package.json` says so.
    async fn root(&self) -> Option<PathBuf> {
        for folder in self.folder.as_ref()?.ancestors().take(ROOT_LEVELS_MAX + 1) {
            if let Ok(Some(text)) = read_text(&folder.join("package.json")).await
                && is_workspace_root(&text)
            {
                return Some(folder.to_owned());
            }
        }
        None
    }

    /// A file as it is named to people: from the folder of the directory, where it is below that.
    fn shown(&self, file: &Path) -> String {
        let below = self.folder.as_ref().and_then(|folder| file.strip_prefix(folder).ok());
        below.unwrap_or(file).display().to_string()
    }

    fn manifest_files(&self) -> impl Iterator<Item = (&'static str, PathBuf)> {
        let folder = self.folder.as_ref();
        MANIFEST_FILES.into_iter().filter_map(move |file| Some((file, folder?.join(file))))
    }

    fn remotes(&self) -> Vec<PathBuf> {
        let in_workspace = self.folder.iter().flat_map(|folder| REMOTE_FOLDERS.map(|name| folder.join(name)));
        in_workspace.chain(self.remote_folders.iter().cloned()).collect()
    }
}

/// What the sources say.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) apps: Vec<DirectoryEntry>,
    pub(super) remotes: Vec<DirectoryEntry>,
    pub(super) problems: Vec<DirectoryProblem>,
    /// Whether a source that is there could not be read as a whole, as while it is being written.
    pub(super) is_in_doubt: bool,
}

/// When a file was last written, and its length; a file that cannot be looked at has neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileVersion(Option<(SystemTime, u64)>);

impl FileVersion {
    async fn of(path: &Path) -> Self {
        let metadata = tokio::fs::metadata(path).await;
        Self(metadata.ok().and_then(|file| Some((file.modified().ok()?, file.len()))))
    }
}

/// The text of a file; none if there is no such file.
async fn read_text(path: &Path) -> Result<Option<String>, String> {
    let file = match tokio::fs::File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound || error.kind() == io::ErrorKind::NotADirectory => {
            return Ok(None);
        }
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    let mut text = String::new();
    let read = file.take(MANIFEST_BYTES_MAX + 1).read_to_string(&mut text).await;
    read.map_err(|error| format!("cannot be read: {error}"))?;
    match text.len() as u64 > MANIFEST_BYTES_MAX {
        true => Err(format!("is larger than {MANIFEST_BYTES_MAX} bytes")),
        false => Ok(Some(text)),
    }
}

/// The folders in a folder with their names, in order; hidden ones are left out.
async fn folders(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = list(folder, APPS_MAX).await;
    found.retain(|(name, _)| !name.starts_with('.'));
    found
}

/// The files in a folder whose names end with `.json`, with the rest of their names, in order.
async fn json_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let files = list(folder, REMOTES_MAX).await;
    let is_json = |path: &PathBuf| path.extension() == Some(OsStr::new("json"));
    let stem = |path: &PathBuf| path.file_stem().and_then(OsStr::to_str).map(str::to_owned);
    files.into_iter().filter(|(_, path)| is_json(path)).filter_map(|(_, path)| Some((stem(&path)?, path))).collect()
}

async fn list(folder: &Path, entries_max: usize) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else { return found };
    while let Ok(Some(entry)) = entries.next_entry().await {
        if found.len() == entries_max {
            tracing::warn!(folder = %folder.display(), entries_max, "a folder of the directory has more entries than are read");
            break;
        }
        if let Ok(name) = entry.file_name().into_string() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    found
}
