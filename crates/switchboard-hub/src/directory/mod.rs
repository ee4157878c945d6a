//! The directory: which agents there are and where, from a manifest, the folders of a workspace and files of single agents. It reads
//! them again when they have changed.
//!
//! `entry` is one agent, `manifest` reads what is written down, `sources` finds it, `caller` is who calls, `org_secrets` passes the secrets
//! of organizations on.

mod caller;
mod entry;
mod manifest;
mod org_secrets;
mod sources;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use switchboard::call::Owner;
use switchboard::client::Credentials;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use caller::WorkspaceCaller;
pub use entry::{DirectoryEntry, DirectoryProblem, FoundIn};
pub use org_secrets::WorkspacePeers;
pub use sources::{MANIFEST_VARIABLE, Sources};

use sources::{FileVersion, Found};

/// How long what was read is taken to be up to date; after that, the files are looked at before the next answer.
const LOOK_PAUSE: Duration = Duration::from_secs(2);
/// Names in the answer to a name that is not known.
const NAMES_LISTED_MAX: usize = 50;

/// The agents that this program can call.
///
/// ```
/// use switchboard_hub::directory::{Directory, Sources};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let manifest = r#"[{"id": "mail", "path": "/mail"}, {"id": "analytics", "path": "/analytics"}]"#;
/// let sources = Sources::new("/nowhere").manifest(manifest).gateway("https://ws.example").own_id("mail");
/// let directory = Directory::open(sources).await;
/// let agents = directory.agents().await;
/// assert_eq!(agents.find("Analytics").unwrap().url, "https://ws.example/analytics");
/// assert_eq!(agents.find("nobody").unwrap_err().to_string(), "no agent is called \"nobody\"; there are: Analytics");
/// # });
/// ```
#[derive(Clone)]
pub struct Directory {
    inner: Arc<Inner>,
    /// Who calls the apps of the workspace.
    caller: Option<WorkspaceCaller>,
}

struct Inner {
    sources: Sources,
    known: RwLock<Arc<Agents>>,
    /// Held while files are looked at, by one caller at a time.
    look: Mutex<Look>,
}

struct Look {
    /// None before the first look.
    at: Option<Instant>,
    versions: Vec<(std::path::PathBuf, FileVersion)>,
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory").field("sources", &self.inner.sources).finish_non_exhaustive()
    }
}

impl Directory {
    /// Reads the sources. What is wrong with them is logged and in [`Agents::problems`]; it is no reason not to start.
    pub async fn open(sources: Sources) -> Self {
        let directory = Self::unread(sources);
        directory.refresh().await;
        directory
    }

    /// A directory whose sources are read when its agents are first asked for, or by [`Directory::refresh`].
    #[must_use]
    pub fn unread(sources: Sources) -> Self {
        let look = Mutex::new(Look { at: None, versions: Vec::new() });
        Self { inner: Arc::new(Inner { sources, known: RwLock::default(), look }), caller: None }
    }

    /// Proves to apps of the workspace for whom they are called, by tokens that are signed with its secret.
    #[must_use]
    pub fn with_workspace(mut self, caller: WorkspaceCaller) -> Self {
        self.caller = Some(caller);
        self
    }

    /// What an agent is shown when it is called for this owner; none for agents that are not of the workspace.
    pub(crate) fn credentials(&self, owner: &Owner, entry: &DirectoryEntry) -> Option<Credentials> {
        self.caller.as_ref()?.credentials_for(owner, entry)
    }

    /// The agents as they are now: files that have changed are read again, at most every two seconds, by one caller; others get
    /// what was known before.
    pub async fn agents(&self) -> Arc<Agents> {
        if let Ok(mut look) = self.inner.look.try_lock()
            && look.at.is_none_or(|at| at.elapsed() >= LOOK_PAUSE)
        {
            self.look(&mut look).await;
        }
        self.known()
    }

    /// Looks at the files now.
    pub async fn refresh(&self) -> Arc<Agents> {
        let mut look = self.inner.look.lock().await;
        self.look(&mut look).await;
        self.known()
    }

    /// The agents as they were last read.
    #[must_use]
    pub fn known(&self) -> Arc<Agents> {
        self.inner.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The id of this program among the agents.
    #[must_use]
    pub fn own_id(&self) -> Option<&str> {
        self.inner.sources.own_id.as_deref()
    }

    async fn look(&self, look: &mut Look) {
        let versions = self.inner.sources.versions().await;
        let is_first = look.at.replace(Instant::now()).is_none();
        if versions == look.versions && !is_first {
            return;
        }
        look.versions = versions;
        let found = self.inner.sources.read().await;
        let is_in_doubt = found.is_in_doubt && !is_first;
        let agents = Agents::of(found, &self.inner.sources);
        agents.log_problems();
        if is_in_doubt {
            tracing::warn!("the directory keeps the agents it had, because a manifest cannot be read as a whole");
            return;
        }
        if !is_first {
            tracing::info!(agents = agents.entries.len(), problems = agents.problems.len(), "directory read again");
        }
        *self.inner.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(agents);
    }
}

/// The agents at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    entries: Vec<DirectoryEntry>,
    own: Option<DirectoryEntry>,
    problems: Vec<DirectoryProblem>,
}

impl Agents {
    /// Puts together what was found: an app of the workspace comes before an agent outside of it with the same id.
    fn of(found: Found, sources: &Sources) -> Self {
        let Found { apps, remotes, mut problems, .. } = found;
        let mut entries: Vec<DirectoryEntry> = Vec::new();
        let is_hidden = |entry: &DirectoryEntry| {
            let is = |id: &String| entry.id.eq_ignore_ascii_case(id);
            sources.own_id.iter().chain(&sources.hidden).any(is)
        };
        for (group, is_workspace) in [(apps, true), (remotes, false)] {
            for entry in group {
                // An agent outside that is an app, too, is no mistake: the workspace says where it is now.
                let is_app_too = |other: &DirectoryEntry| other.is_app() && other.id.eq_ignore_ascii_case(&entry.id);
                if !is_workspace && entries.iter().any(is_app_too) {
                    continue;
                }
                match entries.iter().find_map(|other| other.clash(&entry).map(|name| (name, &other.found_in))) {
                    None => entries.push(entry),
                    Some((name, first)) => {
                        let what = format!(
                            "two agents are called {name:?}; the one of {first} is kept, and this one cannot be called until it \
                             has another id and name"
                        );
                        problems.push(DirectoryProblem { at: entry.found_in, what });
                    }
                }
            }
        }
        // This program and what is hidden are left out last, so that their names still count as taken.
        let is_own =
            |entry: &&DirectoryEntry| sources.own_id.as_ref().is_some_and(|own| entry.id.eq_ignore_ascii_case(own));
        let own = entries.iter().find(is_own).cloned();
        entries.retain(|entry| !is_hidden(entry));
        entries.sort_by(|one, other| {
            let key = |entry: &DirectoryEntry| (!entry.is_dispatch, entry.name.to_lowercase(), entry.id.clone());
            key(one).cmp(&key(other))
        });
        Self { entries, own, problems }
    }

    /// This program, if it is an app of the workspace.
    #[must_use]
    pub fn own(&self) -> Option<&DirectoryEntry> {
        self.own.as_ref()
    }

    /// All agents: the one that dispatches first, then by name.
    #[must_use]
    pub fn entries(&self) -> &[DirectoryEntry] {
        &self.entries
    }

    /// What is wrong in the sources.
    #[must_use]
    pub fn problems(&self) -> &[DirectoryProblem] {
        &self.problems
    }

    /// The agent of this id or name, in any case. `image`, `images` and `asset` mean `assets`, as in agent-native, unless agents are
    /// called so.
    ///
    /// # Errors
    /// When there is none; the text lists those there are.
    pub fn find(&self, name: &str) -> Result<&DirectoryEntry, UnknownAgent> {
        let wanted = name.trim().to_lowercase();
        let by = |wanted: &str| {
            let by_id = self.entries.iter().find(|entry| entry.id.to_lowercase() == wanted);
            by_id.or_else(|| self.entries.iter().find(|entry| entry.name.to_lowercase() == wanted))
        };
        let alias = matches!(wanted.as_str(), "image" | "images" | "asset").then_some("assets");
        by(&wanted).or_else(|| by(alias?)).ok_or_else(|| UnknownAgent {
            name: name.chars().take(64).collect(),
            known: self.entries.iter().take(NAMES_LISTED_MAX).map(|entry| entry.name.clone()).collect(),
            further: self.entries.len().saturating_sub(NAMES_LISTED_MAX),
        })
    }

    fn log_problems(&self) {
        for problem in &self.problems {
            tracing::warn!(at = %problem.at, problem = problem.what, "an entry of the directory cannot be used");
        }
    }
}

impl DirectoryEntry {
    /// The id or name that would mean two agents.
    fn clash<'e>(&self, other: &'e Self) -> Option<&'e str> {
        let is_own = |name: &str| [&self.id, &self.name].iter().any(|own| own.to_lowercase() == name.to_lowercase());
        [&other.id, &other.name].into_iter().map(String::as_str).find(|name| is_own(name))
    }
}

/// No agent has this name. The text lists those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAgent {
    name: String,
    known: Vec<String>,
    further: usize,
}

impl fmt::Display for UnknownAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no agent is called {:?}; ", self.name)?;
        match self.known.is_empty() {
            true => f.write_str("the directory is empty")?,
            false => write!(f, "there are: {}", self.known.join(", "))?,
        }
        match self.further {
            0 => Ok(()),
            further => write!(f, " and {further} more"),
        }
    }
}

impl std::error::Error for UnknownAgent {}

#[cfg(test)]
mod tests;
