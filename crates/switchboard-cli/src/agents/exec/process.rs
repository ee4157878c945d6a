//! A running command: its first process, and the group that this one leads. It is asked to end, then killed, and never
//! left behind by a run that is dropped.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use switchboard::Json;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::group::Group;
use super::group_record::group_record_of;
use super::launcher::REAP_MAX;
use super::orphans::StartTime;
use super::{launcher, strays};
use crate::process::Confinement;

/// A command that was started. If it is dropped before it has ended, it is asked to end and killed a moment later.
pub(super) struct Process {
    /// None once the launcher thread waits for it.
    child: Option<Child>,
    group: Arc<Group>,
    /// By which processes that have left the group are found; see [`strays`].
    message: PathBuf,
    /// By which those are found that have another environment, too; see [`super::orphans`].
    started: Option<StartTime>,
}

impl Process {
    /// Starts a command that dies with this process.
    pub(super) async fn start(command: Command, confinement: Confinement, message: PathBuf) -> io::Result<Self> {
        let of = move |child: Child, started: Option<StartTime>| {
            let group = Arc::new(Group::led_by(&child));
            Self { child: Some(child), group, message, started }
        };
        launcher::start(command, confinement, of).await
    }

    pub(super) fn group(&self) -> Arc<Group> {
        self.group.clone()
    }

    pub(super) fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        match &mut self.child {
            Some(child) => (child.stdin.take(), child.stdout.take(), child.stderr.take()),
            None => (None, None, None),
        }
    }

    /// The record by which the next server can find the command if this one dies.
    pub(super) fn group_record(&self, task: &str) -> Option<Json> {
        group_record_of(self.group.id()?, task)
    }

    /// Waits for the first process, then ends what it left behind, and says that it has ended.
    pub(super) async fn wait(&mut self, ended: &CancellationToken) -> io::Result<ExitStatus> {
        let status = match &mut self.child {
            Some(child) => child.wait().await,
            None => Err(io::Error::other("the launcher waits for it already")),
        };
        self.group.kill();
        self.kill_strays().await;
        ended.cancel();
        status
    }

    async fn kill_strays(&self) {
        strays::kill(&self.message).await;
        if let Some(started) = self.started {
            launcher::kill_orphans(started).await;
        }
    }

    /// Kills what is left of the group and waits for the first process, so that no zombie stays behind.
    pub(super) async fn end(mut self) {
        self.group.kill();
        if let Some(child) = &mut self.child {
            let _ = tokio::time::timeout(REAP_MAX, child.wait()).await;
        }
        self.kill_strays().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let (Some(child), Some(_)) = (self.child.take(), self.group.id()) {
            self.group.ask_to_end();
            launcher::stop(child, self.group.clone(), std::mem::take(&mut self.message), self.started);
        }
    }
}
