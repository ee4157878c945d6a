//! The modification time and length of a file, to find out whether it has changed since it was read.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::SystemTime;

/// When a file was last written, and its length; a file that cannot be looked at has neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileVersion(Option<(SystemTime, u64)>);

impl FileVersion {
    /// That of a file that is not there.
    pub(crate) fn absent() -> Self {
        Self(None)
    }

    /// Blocks the thread; for the start of a server.
    pub(crate) fn of(path: &Path) -> Self {
        Self::read(std::fs::metadata(path))
    }

    pub(crate) async fn of_now(path: &Path) -> Self {
        Self::read(tokio::fs::metadata(path).await)
    }

    fn read(file: io::Result<Metadata>) -> Self {
        Self(file.ok().and_then(|file| Some((file.modified().ok()?, file.len()))))
    }
}
