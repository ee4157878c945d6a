//! The key of operators of a server without tokens: made at each start, and kept in a file of the data folder that only its owner can
//! read. `switchboard outbox` finds it there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::failure::Failure;

/// How many random bytes a key has.
const KEY_BYTES: usize = 24;

/// A new key.
#[expect(clippy::disallowed_methods, reason = "a key must come from the system, and no test depends on its value")]
pub(crate) fn make() -> Result<String, Failure> {
    let mut bytes = [0_u8; KEY_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::Runtime(format!("there is no randomness for a key: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes the key of a server that has just started, in place of that of the one before.
pub(crate) fn write(path: &Path, key: &str) -> Result<(), Failure> {
    replace(path, key).map_err(|error| Failure::Runtime(format!("{} cannot be written: {error}", path.display())))
}

fn replace(path: &Path, key: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    writeln!(file, "{key}")?;
    std::fs::rename(&new, path)
}

/// The key of the server that uses, or last used, a data folder.
pub(crate) fn read(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}
