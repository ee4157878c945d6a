//! What a server reads from files, and reads again while it runs: tokens, rules, the secrets of organizations, keys of identity
//! providers, signing keys, and the certificate. A file is read again when it has changed, or when the server is told to. The log and the
//! audit log say how that went, and a file that is not good leaves in use what was read before.
//!
//! [`WatchedFiles`] are the files themselves, [`Reload`] is what was read from them, and [`ReloadedList`] is a list with an entry on
//! each line. Nothing that a running server does here blocks a thread that serves requests, except [`Reload::read_again`] of signing keys,
//! which are a few small files.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use switchboard_core::call::BoxFuture;
use switchboard_engine::ports::Clock;
use switchboard_engine::ports::audit::{AuditEntry, AuditEvent, Decision};
use switchboard_engine::system::SystemClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Larger files hold no certificate, and no list of tokens, rules or secrets.
pub(crate) const RELOADED_FILE_BYTES_MAX: u64 = 1 << 20;

/// When a file was last written, and its length; a file that cannot be looked at has neither.
type FileVersion = Option<(SystemTime, u64)>;

fn version_of(file: io::Result<Metadata>) -> FileVersion {
    file.ok().and_then(|file| Some((file.modified().ok()?, file.len())))
}

/// Reads a file of at most so many bytes. Blocks the thread, so it is for the start of a server.
///
/// # Errors
/// Words that follow the name of the file: that it cannot be read, or is larger.
pub(crate) fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    bounded(read.map(|_| bytes), bytes_max)
}

/// As [`read_file`], for a server that runs.
pub(crate) async fn read_file_now(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = async {
        let mut bytes = Vec::new();
        tokio::fs::File::open(path).await?.take(bytes_max + 1).read_to_end(&mut bytes).await?;
        Ok(bytes)
    };
    bounded(read.await, bytes_max)
}

fn bounded(bytes: io::Result<Vec<u8>>, bytes_max: u64) -> Result<Vec<u8>, String> {
    match bytes {
        Ok(bytes) if bytes.len() as u64 > bytes_max => Err(format!("is larger than {bytes_max} bytes")),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// Puts a file in the place of another one, with the same rights: who reads it sees all of the old one or all of the new one, also
/// after a power cut.
async fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let rights = tokio::fs::metadata(path).await?.permissions();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.new"));
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut file = options.open(&new).await?;
    file.write_all(bytes).await?;
    file.set_permissions(rights).await?;
    file.sync_all().await?;
    tokio::fs::rename(&new, path).await?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tokio::fs::File::open(folder).await?.sync_all().await
}

/// The files (or the folder) that something was read from.
pub(crate) struct WatchedFiles {
    /// What is in them, as the log calls it.
    what: &'static str,
    event: AuditEvent,
    paths: Vec<PathBuf>,
    /// Of each file when it was last read.
    seen: Mutex<Vec<FileVersion>>,
    /// Puts an entry into the audit log. Not set before a server says where that is.
    record: OnceLock<Record>,
}

type Record = Box<dyn Fn(AuditEntry) + Send + Sync>;

impl WatchedFiles {
    /// Files that are about to be read for the first time.
    pub(crate) fn new(what: &'static str, event: AuditEvent, paths: Vec<PathBuf>) -> Self {
        let files = Self { what, event, paths, seen: Mutex::default(), record: OnceLock::new() };
        files.mark_read();
        files
    }

    pub(crate) fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Says that the files are about to be read. It comes before the read: what is written meanwhile is a change that the next look
    /// sees. Blocks the thread.
    pub(crate) fn mark_read(&self) {
        let versions = self.paths.iter().map(|path| version_of(std::fs::metadata(path))).collect();
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = versions;
    }

    /// As [`WatchedFiles::mark_read`], for a server that runs.
    pub(crate) async fn mark_read_now(&self) {
        let versions = self.versions().await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = versions;
    }

    async fn versions(&self) -> Vec<FileVersion> {
        let mut versions = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            versions.push(version_of(tokio::fs::metadata(path).await));
        }
        versions
    }

    async fn has_changed(&self) -> bool {
        let versions = self.versions().await;
        versions != *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what puts entries into the audit log. The first one counts.
    pub(crate) fn record_by(&self, record: impl Fn(AuditEntry) + Send + Sync + 'static) {
        let _ = self.record.set(Box::new(record));
    }

    /// Tells the log and the audit log how many entries were read, or why what was read before stays in use.
    pub(crate) fn report(&self, read: Result<usize, &dyn fmt::Display>) {
        let (what, file) = (self.what, self.path().display());
        match read {
            Ok(count) => tracing::info!(%file, count, "{what} read again"),
            Err(error) => tracing::warn!(%file, %error, "new {what} not taken; what was read before stays in use"),
        }
        let Some(record) = self.record.get() else { return };
        let decision = if read.is_ok() { Decision::Allowed } else { Decision::Failed };
        let entry = AuditEntry::new(SystemClock.now(), self.event, decision, format!("{what} reload"));
        record(match read {
            Ok(count) => AuditEntry { count: Some(count as u64), ..entry },
            Err(error) => AuditEntry { reason: error.to_string().into(), ..entry },
        });
    }
}

impl fmt::Debug for WatchedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.paths).finish()
    }
}

/// What was read from files and can be read again.
pub(crate) trait Reload: Send + Sync {
    /// None if it was not read from files.
    fn files(&self) -> Option<&WatchedFiles>;

    /// Reads the files again and uses what is in them, if it is good; says how many entries there are.
    fn read_again(&self) -> BoxFuture<'_, Result<usize, String>>;
}

/// Reads the files again and reports the outcome.
pub(crate) async fn reload_and_log(source: &dyn Reload) {
    let Some(files) = source.files() else { return };
    let read = source.read_again().await;
    files.report(read.as_ref().map(|count| *count).map_err(|why| why as &dyn fmt::Display));
}

/// Looks for changed files until it is dropped, and reports what came of each.
pub(crate) async fn reload_on_change(source: Arc<dyn Reload>, every: Duration) {
    let Some(files) = source.files() else { return };
    loop {
        tokio::time::sleep(every).await;
        if files.has_changed().await {
            reload_and_log(&*source).await;
        }
    }
}

/// Why a list of tokens, rules or secrets cannot be used.
///
/// ```
/// let error = switchboard::Rules::parse("allow * * *\npermit * * *").unwrap_err();
/// assert_eq!(error.line, 2);
/// assert!(error.to_string().starts_with("line 2: \"permit\" is neither allow nor deny"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListError {
    /// The line that is wrong, from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// What is wrong there, next to what was expected. No token and no secret is quoted.
    pub reason: String,
}

impl ListError {
    fn of_file(reason: impl Into<String>) -> Self {
        Self { line: 0, reason: reason.into() }
    }
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: {}", self.reason),
        }
    }
}

impl std::error::Error for ListError {}

/// A list with an entry on each line of a text.
pub(crate) trait ListOfLines: Sized + Send + Sync + 'static {
    /// What its entries are, as the log calls them.
    const WHAT: &'static str;
    const EVENT: AuditEvent;
    /// What is wrong with a file that has no entry, and what was expected.
    const NONE_IN_FILE: &'static str;

    fn parse(text: &str) -> Result<Self, ListError>;

    fn len(&self) -> usize;

    /// Prepares the list to take the place of another one, or says why it must not.
    fn succeed(&mut self, before: &Self) -> Result<(), ListError>;
}

/// A list that is in use, and the file it is read from.
pub(crate) struct ReloadedList<T> {
    current: RwLock<T>,
    /// Grows with each list that was taken.
    generation: AtomicU64,
    /// None if the list was given as text.
    files: Option<WatchedFiles>,
    /// Held while the file is changed from here.
    editing: tokio::sync::Mutex<()>,
}

impl<T: ListOfLines> ReloadedList<T> {
    pub(crate) fn given(list: T) -> Self {
        let (current, editing) = (RwLock::new(list), tokio::sync::Mutex::default());
        Self { current, generation: AtomicU64::new(0), files: None, editing }
    }

    /// Reads a file, which must have an entry.
    pub(crate) fn open(path: &Path) -> Result<Self, ListError> {
        let files = WatchedFiles::new(T::WHAT, T::EVENT, vec![path.to_owned()]);
        let list = read_list(read_file(path, RELOADED_FILE_BYTES_MAX))?;
        Ok(Self { files: Some(files), ..Self::given(list) })
    }

    /// Looks at the list that is in use.
    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Reads the file again. If it is not good, the list stays the one it was.
    pub(crate) async fn reload(&self) -> Result<(), ListError> {
        let Some(files) = &self.files else { return Ok(()) };
        files.mark_read_now().await;
        let mut list: T = read_list(read_file_now(files.path(), RELOADED_FILE_BYTES_MAX).await)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        list.succeed(&current)?;
        *current = list;
        self.generation.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

impl<T: ListOfLines> ReloadedList<T> {
    /// Changes the file, and then uses what is in it. `change` is told the list that is in use and the text of the file. If the new text
    /// is not good or cannot be written, nothing changes.
    pub(crate) async fn edit(&self, change: impl FnOnce(&T, &str) -> String) -> Result<(), ListError> {
        let Some(files) = &self.files else { return Err(ListError::of_file("was not read from a file")) };
        let _alone = self.editing.lock().await;
        // What was written by others meanwhile is not lost.
        self.reload().await?;
        let bytes = read_file_now(files.path(), RELOADED_FILE_BYTES_MAX).await.map_err(ListError::of_file)?;
        let text = String::from_utf8(bytes).map_err(|_| ListError::of_file("is not text"))?;
        let text = self.read(|list| change(list, &text));
        read_list::<T>(Ok(text.clone().into_bytes()))?;
        let written = replace_file(files.path(), text.as_bytes()).await;
        written.map_err(|error| ListError::of_file(format!("cannot be written: {error}")))?;
        self.reload().await
    }
}

/// What every public list that is a [`ReloadedList`] inside has: reading its file again, by the program or by the server.
macro_rules! reloads_by_itself {
    ($list:ty) => {
        impl $list {
            /// Reads the file again, now, as a server does by itself when it has changed. Without a file it does nothing.
            ///
            /// # Errors
            /// When the file cannot be used; then what was read before stays in use.
            pub async fn reload(&self) -> Result<(), $crate::reloaded::ListError> {
                self.0.reload().await
            }

            /// As what a server reads again.
            pub(crate) fn source(&self) -> std::sync::Arc<dyn $crate::reloaded::Reload> {
                self.0.clone()
            }
        }
    };
}
pub(crate) use reloads_by_itself;

fn read_list<T: ListOfLines>(bytes: Result<Vec<u8>, String>) -> Result<T, ListError> {
    let text = String::from_utf8(bytes.map_err(ListError::of_file)?).map_err(|_| ListError::of_file("is not text"))?;
    let list = T::parse(&text)?;
    if list.len() == 0 {
        return Err(ListError::of_file(T::NONE_IN_FILE));
    }
    Ok(list)
}

impl<T: ListOfLines> Reload for ReloadedList<T> {
    fn files(&self) -> Option<&WatchedFiles> {
        self.files.as_ref()
    }

    fn read_again(&self) -> BoxFuture<'_, Result<usize, String>> {
        Box::pin(async {
            self.reload().await.map_err(|error| error.to_string())?;
            Ok(self.read(T::len))
        })
    }
}
