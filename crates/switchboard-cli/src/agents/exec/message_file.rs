//! The message and what came with it as two files, for the command to read: in a folder of their own that no other user may
//! enter, gone when the command has ended. It is in the data folder, if there is one, so that the next server finds what a dead one has left.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use switchboard::Message;
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;

use super::leftovers::message_folder;
use super::user::User;

static FOLDERS_MADE: AtomicU64 = AtomicU64::new(0);

/// The folders that are in use.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

pub(super) struct MessageFile {
    folder: PathBuf,
    path: PathBuf,
    request_path: PathBuf,
}

impl MessageFile {
    pub(super) async fn write(message: &Message, request: &str, data: Option<&Path>) -> io::Result<Self> {
        let within = data.map_or_else(|| Ok(std::env::temp_dir()), message_folder)?;
        let folder = private_folder(&within)?;
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.clone());
        let (path, request_path) = (folder.join("message.json"), folder.join("request.json"));
        let file = Self { path, request_path, folder };
        write_private(&file.path, &switchboard::json::message(message)).await?;
        write_private(&file.request_path, request.as_bytes()).await?;
        Ok(file)
    }

    /// Makes another user the owner, so that a command that runs as that user can read it.
    pub(super) fn give_to(&self, user: User) -> io::Result<()> {
        for path in [&self.path, &self.request_path, &self.folder] {
            std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn request_path(&self) -> &Path {
        &self.request_path
    }
}

async fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).await?;
    out.write_all(content).await?;
    out.flush().await
}

impl Drop for MessageFile {
    fn drop(&mut self) {
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.folder);
        remove(&self.folder);
    }
}

/// For a process that is about to leave without unwinding.
pub(super) fn remove_all() {
    for folder in std::mem::take(&mut *FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)) {
        remove(&folder);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "the folder of a message was not removed");
    }
}

/// Makes a folder that did not exist. A name that exists already is skipped.
fn private_folder(within: &Path) -> io::Result<PathBuf> {
    loop {
        let number = FOLDERS_MADE.fetch_add(1, Ordering::Relaxed);
        let folder = within.join(format!("switchboard-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}
