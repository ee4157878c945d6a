//! The folder of signing keys: `{id}.pem` for each, which only its owner can read, and `active`, which names the one that signs.
//!
//! A key is written before it is named as active, and stays named until another is, so that a process that reads the folder at
//! any moment, or after a crash, finds keys that belong together.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::pair::KeyPair;
use super::{KEYS_MAX, KeyAlgorithm, KeySet, SigningKeysError};

const ACTIVE: &str = "active";
const SUFFIX: &str = ".pem";
/// The size of a file that is read.
const FILE_BYTES_MAX: u64 = 16 * 1_024;
const ID_BYTES_MAX: usize = 64;

/// The folder that signing keys are kept in. [`SigningKeys`](crate::SigningKeys) has the keys themselves.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    path: PathBuf,
}

/// What is known of a key that anyone may know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SigningKeyInfo {
    /// The id by which signatures name it (`kid`).
    pub id: String,
    /// What it signs with.
    pub algorithm: KeyAlgorithm,
    /// Whether it is the one that signs; the others are only published.
    pub is_active: bool,
    /// The file with its private part.
    pub file: PathBuf,
}

impl KeyFolder {
    /// The folder at this path, which need not be there yet.
    #[must_use]
    pub fn at(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned() }
    }

    /// Every key, the active one first.
    ///
    /// # Errors
    /// When a key cannot be read, or others than its owner can read it.
    pub fn list(&self) -> Result<Vec<SigningKeyInfo>, SigningKeysError> {
        Ok(self.read()?.0.iter().enumerate().map(|(at, pair)| self.info(pair, at == 0)).collect())
    }

    /// Makes a key. The first one is active; a later one is only published, so that verifiers know it before it signs.
    ///
    /// # Errors
    /// When the id is taken or is no name for a file, or the key cannot be written.
    pub fn make(&self, id: Option<&str>, algorithm: KeyAlgorithm) -> Result<SigningKeyInfo, SigningKeysError> {
        let known = self.read_pairs()?;
        if known.len() >= KEYS_MAX {
            return Err(SigningKeysError::new(format!(
                "there are {KEYS_MAX} keys already; remove one that no card is verified with any more"
            )));
        }
        if let Some(id) = id {
            check_id(id)?;
        }
        let (pair, text) = KeyPair::generate(id, algorithm)?;
        create_private_folder(&self.path).map_err(|error| self.failed("cannot be made", &error))?;
        let file = self.file(&pair.id);
        match write_new(&file, text.as_bytes()) {
            Ok(()) => (),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(SigningKeysError::new(format!("there is a key {:?} already; choose another id", pair.id)));
            }
            Err(error) => return Err(SigningKeysError::new(format!("{} cannot be written: {error}", file.display()))),
        }
        let is_first = known.is_empty();
        if is_first {
            self.activate(&pair.id)?;
        }
        Ok(self.info(&pair, is_first))
    }

    /// Lets another key sign: the one with this id, or a new one. The key that signed until now stays published, so that what it
    /// signed can be verified until it is [removed](Self::remove).
    ///
    /// # Errors
    /// When there is no such key, or the folder cannot be written.
    pub fn rotate(&self, to: Option<&str>, algorithm: KeyAlgorithm) -> Result<SigningKeyInfo, SigningKeysError> {
        let id = match to {
            Some(id) => id.to_owned(),
            None => self.make(None, algorithm)?.id,
        };
        let known = self.read_pairs()?;
        let pair = known.iter().find(|pair| pair.id == id).ok_or_else(|| self.unknown(&id))?;
        self.activate(&id)?;
        Ok(self.info(pair, true))
    }

    /// Deletes a key. What it signed can no longer be verified, once verifiers have read the keys again.
    ///
    /// # Errors
    /// When there is no such key, or it is the active one and others are left: another has to be active first.
    pub fn remove(&self, id: &str) -> Result<(), SigningKeysError> {
        let known = self.read()?;
        let at = known.0.iter().position(|pair| pair.id == id).ok_or_else(|| self.unknown(id))?;
        if at == 0 && known.0.len() > 1 {
            return Err(SigningKeysError::new(format!(
                "the key {id:?} is the one that signs; let another one sign first (keys rotate)"
            )));
        }
        let file = self.file(id);
        fs::remove_file(&file)
            .map_err(|error| SigningKeysError::new(format!("{} cannot be removed: {error}", file.display())))?;
        if at == 0 {
            // Without keys, nothing is active. A leftover name would be an error for the next reader.
            match fs::remove_file(self.path.join(ACTIVE)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.failed("cannot be written", &error));
                }
                Ok(()) | Err(_) => (),
            }
        }
        Ok(())
    }

    /// The public parts of all keys as a JSON Web Key set, the active one first.
    ///
    /// # Errors
    /// As [`KeyFolder::list`].
    pub fn jwk_set(&self) -> Result<String, SigningKeysError> {
        Ok(self.read()?.jwk_set())
    }

    /// All keys, the active one first.
    pub(super) fn read(&self) -> Result<KeySet, SigningKeysError> {
        let mut pairs = self.read_pairs()?;
        if pairs.is_empty() {
            return Ok(KeySet(pairs));
        }
        let active = match fs::read_to_string(self.path.join(ACTIVE)) {
            Ok(active) => active.trim().to_owned(),
            // One key that was put there by hand needs no further word.
            Err(error) if error.kind() == io::ErrorKind::NotFound && pairs.len() == 1 => pairs[0].id.clone(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SigningKeysError::new(format!(
                    "{} holds several keys and does not say which one signs; say it with `switchboard keys rotate --to ID`",
                    self.path.display()
                )));
            }
            Err(error) => return Err(self.failed("cannot be read", &error)),
        };
        let at = pairs.iter().position(|pair| pair.id == active).ok_or_else(|| self.unknown(&active))?;
        pairs[..=at].rotate_right(1);
        Ok(KeySet(pairs))
    }

    /// All keys, by their ids.
    fn read_pairs(&self) -> Result<Vec<KeyPair>, SigningKeysError> {
        let mut pairs = Vec::new();
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(pairs),
            Err(error) => return Err(self.failed("cannot be read", &error)),
        };
        for entry in entries {
            let file = entry.map_err(|error| self.failed("cannot be read", &error))?.path();
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(id) = name.strip_suffix(SUFFIX) else { continue };
            if pairs.len() >= KEYS_MAX {
                return Err(SigningKeysError::new(format!(
                    "there are more than {KEYS_MAX} keys in {}; remove some",
                    self.path.display()
                )));
            }
            let unfit = |why: &dyn std::fmt::Display| SigningKeysError::new(format!("{} {why}", file.display()));
            check_id(id)?;
            let text = read_private(&file).map_err(|why| unfit(&why))?;
            pairs.push(KeyPair::read(id, &text).map_err(|why| unfit(&why))?);
        }
        pairs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(pairs)
    }

    fn activate(&self, id: &str) -> Result<(), SigningKeysError> {
        let written = write_renamed(&self.path, ACTIVE, format!("{id}\n").as_bytes());
        written.map_err(|error| self.failed("cannot be written", &error))
    }

    fn file(&self, id: &str) -> PathBuf {
        self.path.join(format!("{id}{SUFFIX}"))
    }

    fn info(&self, pair: &KeyPair, is_active: bool) -> SigningKeyInfo {
        SigningKeyInfo { id: pair.id.clone(), algorithm: pair.algorithm(), is_active, file: self.file(&pair.id) }
    }

    fn unknown(&self, id: &str) -> SigningKeysError {
        SigningKeysError::new(format!("there is no key {id:?} in {}", self.path.display()))
    }

    fn failed(&self, what: &str, error: &io::Error) -> SigningKeysError {
        SigningKeysError::new(format!("the folder of keys {} {what}: {error}", self.path.display()))
    }
}

/// An id is the name of a file, and stands in JSON and in logs.
fn check_id(id: &str) -> Result<(), SigningKeysError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_name = !id.is_empty() && id.len() <= ID_BYTES_MAX && !id.starts_with(['.', '-']);
    if is_name && id.chars().all(fits) {
        return Ok(());
    }
    Err(SigningKeysError::new(format!(
        "the id {id:?} of a key must be 1 to {ID_BYTES_MAX} letters, digits, '-', '_' or '.', and begin with a letter or digit"
    )))
}

/// Reads a small file that nobody but its owner may read.
fn read_private(file: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let unread = |error: io::Error| format!("cannot be read: {error}");
    let opened = fs::File::open(file).map_err(unread)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = opened.metadata().map_err(unread)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!(
                "can be read by others than its owner; `chmod 600 {}` keeps it private",
                file.display()
            ));
        }
    }
    let mut text = Vec::new();
    opened.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unread)?;
    Ok(text)
}

fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Writes a file that must not be there, for its owner alone, and syncs it.
fn write_new(file: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut opened = options.open(file)?;
    let written = opened.write_all(text).and_then(|()| opened.sync_all());
    if written.is_err() {
        // Half a key would be an error for every later reader.
        let _ = fs::remove_file(file);
    }
    written
}

/// Puts a file in the place of another in one step.
fn write_renamed(folder: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let next = folder.join(format!("{name}.next"));
    match fs::remove_file(&next) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => (),
    }
    write_new(&next, text)?;
    fs::rename(&next, folder.join(name))?;
    fs::File::open(folder)?.sync_all()
}
