//! Renews the tokens: checks their file at an interval and reads it again when it has changed. Nothing here blocks a
//! thread that serves requests.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::{TokenList, Tokens, TokensError, parse};
use crate::server::file_version::FileVersion;

/// A larger file cannot be a list of tokens.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub(super) struct TokensFile {
    path: PathBuf,
    /// The file as it was when it was last read.
    seen: Mutex<FileVersion>,
}

impl Tokens {
    /// Reads a list of tokens from a file.
    ///
    /// A server looks every minute whether the file has changed, and then uses the new list: a token that is gone is
    /// refused from the next request on. If the new list is not good, or is empty, the server goes on with the one it has
    /// and says so in the log.
    ///
    /// # Errors
    /// When the file cannot be read, holds no token, or for the reasons of [`Tokens::parse`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TokensError> {
        let path = path.as_ref();
        let seen = FileVersion::of(path);
        let list = read(bytes_now(path))?;
        Ok(Self::new(list, Some(TokensFile { path: path.to_owned(), seen: Mutex::new(seen) })))
    }

    /// Reads the file again, now. Streams that are open go on. Without a file it does nothing.
    ///
    /// # Errors
    /// As [`Tokens::from_file`]; then the list stays the one it was.
    pub async fn reload(&self) -> Result<(), TokensError> {
        let Some(file) = &self.0.file else { return Ok(()) };
        // Looked at before it is read: what is written meanwhile is a change that the next look sees.
        let version = FileVersion::of_now(&file.path).await;
        *file.seen.lock().unwrap_or_else(PoisonError::into_inner) = version;
        self.replace(read(bytes(&file.path).await)?);
        Ok(())
    }

    /// [Reloads](Self::reload) and tells the log how it went.
    pub async fn reload_and_log(&self) {
        let Some(file) = &self.0.file else { return };
        let path = file.path.display();
        match self.reload().await {
            Ok(()) => tracing::info!(file = %path, tokens = self.len(), "tokens read again"),
            Err(error) => {
                tracing::warn!(file = %path, %error, "the new tokens were not taken; the old ones stay in use");
            }
        }
    }
}

/// Blocks the thread; for the start of a server.
fn bytes_now(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Read::take(std::fs::File::open(path)?, FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

async fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    tokio::fs::File::open(path).await?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

fn read(bytes: io::Result<Vec<u8>>) -> Result<TokenList, TokensError> {
    let wrong = |reason: String| TokensError { line: 0, reason };
    let bytes = bytes.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong("is not text".to_owned()))?;
    let list = parse(&text)?;
    if list.is_empty() {
        return Err(wrong("no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]".to_owned()));
    }
    Ok(list)
}

/// Looks for a new file until it is dropped, and logs the outcome.
pub(crate) async fn reload_on_change(tokens: Tokens, every: Duration) {
    let Some(file) = &tokens.0.file else { return };
    loop {
        tokio::time::sleep(every).await;
        let version = FileVersion::of_now(&file.path).await;
        if version != *file.seen.lock().unwrap_or_else(PoisonError::into_inner) {
            tokens.reload_and_log().await;
        }
    }
}
