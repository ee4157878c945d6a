//! Encrypts the secrets of webhooks in the file: `token` and `auth_credentials` of `push` (AES-256-GCM). A secret is bound to its
//! row and column, so that one who can write the file cannot have it sent to another receiver.
//!
//! The keys come from outside, or from a file beside the database that is made with the first secret. A backup of the database
//! does not contain it. If it is lost, the secrets cannot be read and webhooks are posted to without them; nothing else is lost.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rusqlite::Connection;
use switchboard_engine::ports::store::StoreError;

use super::error::{Failure, FileError};
use super::files::{beside, folder_of, sync_folder};
use super::meta::write_meta;
use super::rows::PushColumns;
use crate::secret_keys::{KEY_PREFIX, Place, SEALED_PREFIX, SecretKeys, SecretKeysError, key_id};

const KEY_FILE_BYTES_MAX: u64 = 16 * 1_024;

/// The number in `meta` that says that every secret of the file is encrypted.
pub(super) const SECRETS_SEALED: &str = "secrets_sealed";

impl SecretKeys {
    /// The keys as text, for a file that only its owner can read.
    fn text(&self) -> String {
        let lines = self.keys.iter().map(|key| format!("{KEY_PREFIX}{}  # {}\n", STANDARD.encode(key), key_id(key)));
        let head = "# Encrypts the secrets of webhooks. Keep a copy apart from backups of the database.\n".to_owned();
        lines.fold(head, |text, line| text + &line)
    }

    /// Writes the keys to a file that only its owner can read, in the place of the one that is there.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let next = beside(file, ".next");
        match std::fs::remove_file(&next) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => (),
        }
        self.write_new(&next)?;
        std::fs::rename(&next, file)?;
        sync_folder(folder_of(file))
    }

    fn write_new(&self, file: &Path) -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut opened = options.open(file)?;
        opened.write_all(self.text().as_bytes())?;
        opened.sync_all()
    }

    /// Reads keys from a file; none if there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, others than its owner can read it, or it has no keys.
    pub fn read(file: &Path) -> Result<Option<Self>, SecretKeysError> {
        let wrong = |why: &dyn fmt::Display| SecretKeysError(format!("{}: {why}", file.display()));
        let opened = match std::fs::File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(&error)),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = opened.metadata().map_err(|error| wrong(&error))?.permissions().mode();
            if mode & 0o077 != 0 {
                return Err(wrong(&format_args!(
                    "others than its owner can read it; `chmod 600 {}` keeps it private",
                    file.display()
                )));
            }
        }
        let mut text = String::new();
        opened.take(KEY_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        Self::parse(&text).map(Some).map_err(|error| wrong(&error))
    }
}

/// Where the keys are.
#[derive(Clone, Debug, Default)]
pub enum SecretKeySource {
    /// In a file beside the database, which is made with the first secret.
    #[default]
    Beside,
    /// These.
    Keys(SecretKeys),
    /// Nowhere: secrets are neither read nor written, for work on a file that has nothing to do with them.
    Untouched,
}

/// The file that keys are in if none are given: it is beside the database, and not in it.
#[must_use]
pub fn secret_key_file(database: &Path) -> PathBuf {
    beside(database, ".secrets-key")
}

/// The keys of an open file.
pub(super) struct Secrets {
    /// Where the first key is written to; none if the keys were given.
    file: Option<PathBuf>,
    keys: Mutex<Option<SecretKeys>>,
    pub(super) is_untouched: bool,
    /// Whether it was logged that a secret cannot be read.
    is_loss_told: AtomicBool,
}

impl Secrets {
    /// Those that were given, else those beside the database, if there are any yet.
    pub(super) fn of(database: &Path, source: &SecretKeySource) -> Result<Self, FileError> {
        let (file, keys) = match source {
            SecretKeySource::Keys(keys) => (None, Some(keys.clone())),
            SecretKeySource::Beside => {
                let file = secret_key_file(database);
                let keys = read_keys(database, &file)?;
                (Some(file), keys)
            }
            SecretKeySource::Untouched => return Ok(Self::untouched()),
        };
        let is_untouched = false;
        Ok(Self { file, keys: Mutex::new(keys), is_untouched, is_loss_told: AtomicBool::new(false) })
    }

    /// None of them, for work that reads no secrets.
    pub(super) fn untouched() -> Self {
        Self { file: None, keys: Mutex::new(None), is_untouched: true, is_loss_told: AtomicBool::new(true) }
    }

    /// The keys, which are made and written down before the first secret is.
    fn to_seal(&self) -> Result<SecretKeys, Failure> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*keys {
            return Ok(keys.clone());
        }
        let unavailable =
            |why: String| StoreError::Unavailable(format!("secrets of webhooks cannot be encrypted: {why}"));
        let file = self.file.as_ref().ok_or_else(|| unavailable("there is no key".to_owned()))?;
        let made = SecretKeys::generate().map_err(|error| unavailable(error.to_string()))?;
        let written = made.write_new(file).and_then(|()| sync_folder(folder_of(file)));
        written.map_err(|error| unavailable(format!("{}: {error}", file.display())))?;
        tracing::info!(file = %file.display(), "key for the secrets of webhooks made; keep a copy of it apart from backups");
        *keys = Some(made.clone());
        Ok(made)
    }

    /// Encrypts the secrets of a row that is about to be written.
    pub(super) fn seal(&self, columns: &mut PushColumns) -> Result<(), Failure> {
        if columns.token.is_none() && columns.auth_credentials.is_none() {
            return Ok(());
        }
        let keys = self.to_seal()?;
        seal_with(&keys, columns)
    }

    /// Decrypts the secrets of a row. What cannot be read is left out, with the scheme that it belongs to.
    pub(super) fn open(&self, columns: &mut PushColumns) {
        if columns.token.is_none() && columns.auth_credentials.is_none() {
            return;
        }
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if !open_with(keys.as_ref(), columns) && !self.is_loss_told.swap(true, Ordering::Relaxed) {
            tracing::error!(
                webhook = columns.config_id,
                "secrets of webhooks cannot be read: their key is missing; they are posted to without them"
            );
        }
    }
}

pub(super) fn seal_with(keys: &SecretKeys, columns: &mut PushColumns) -> Result<(), Failure> {
    let PushColumns { task_no, config_id, token, auth_credentials, .. } = columns;
    for (column, secret) in [("token", token), ("auth_credentials", auth_credentials)] {
        let Some(plain) = secret else { continue };
        let place = Place { task_no: *task_no, config_id, column };
        let sealed = keys.seal(&place, plain);
        let failed = || StoreError::Unavailable("a secret of a webhook could not be encrypted".to_owned());
        *secret = Some(sealed.ok_or_else(failed)?);
    }
    Ok(())
}

/// Whether every secret could be read.
pub(super) fn open_with(keys: Option<&SecretKeys>, columns: &mut PushColumns) -> bool {
    let PushColumns { task_no, config_id, token, auth_scheme, auth_credentials, .. } = columns;
    let open = |column, sealed: &str| keys?.open(&Place { task_no: *task_no, config_id, column }, sealed);
    let mut is_whole = true;
    if let Some(sealed) = token.take() {
        *token = open("token", &sealed);
        is_whole &= token.is_some();
    }
    if let Some(sealed) = auth_credentials.take() {
        *auth_credentials = open("auth_credentials", &sealed);
        is_whole &= auth_credentials.is_some();
        if auth_credentials.is_none() {
            // A scheme without credentials would ask the server for a token of its own.
            *auth_scheme = None;
        }
    }
    is_whole
}

pub(super) fn read_keys(database: &Path, file: &Path) -> Result<Option<SecretKeys>, FileError> {
    let unfit = |error: SecretKeysError| FileError::SecretKeys { path: database.to_owned(), why: error.to_string() };
    SecretKeys::read(file).map_err(unfit)
}

/// Whether a secret of a row is written as it is.
pub(super) fn is_plain(columns: &PushColumns) -> bool {
    let secrets = [columns.token.as_deref(), columns.auth_credentials.as_deref()];
    secrets.into_iter().flatten().any(|secret| !secret.starts_with(SEALED_PREFIX))
}

/// Whether these keys can read the secrets of a row.
pub(super) fn is_readable(keys: Option<&SecretKeys>, columns: &PushColumns) -> bool {
    open_with(keys, &mut columns.clone())
}

/// Notes in a file that its secrets are not encrypted yet.
pub(super) fn begin_sealing(connection: &Connection) -> Result<(), Failure> {
    Ok(write_meta(connection, SECRETS_SEALED, 0)?)
}
