//! The one thread that starts commands, and stops those whose run was dropped. The system sends a command its
//! parent-death signal when the *thread* dies that started it, so that thread must live as long as the server does.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::TERM_GRACE;
use super::group::Group;
use super::orphans::{Leaders, ORPHAN_LOOKS_MAX, StartTime};
use super::strays;
use crate::process::{Confinement, confine};

/// How long a killed process is waited for.
pub(super) const REAP_MAX: Duration = Duration::from_millis(500);

/// How often a command that was asked to end is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How often orphans that have ended are waited for while commands run, so that they do not stay in the table of processes.
const ORPHAN_WAIT_PAUSE: Duration = Duration::from_secs(10);

/// Commands that wait to be started or stopped. A run waits for its command, so there are rarely more than runs at work.
const JOBS_MAX: usize = 1024;

static THREAD: OnceLock<SyncSender<LauncherJob>> = OnceLock::new();

enum LauncherJob {
    Start(Box<dyn FnOnce(&mut Leaders) + Send>),
    Stop(Box<StoppingCommand>),
    /// Looks once for what is left of a command that was started then; how many processes were killed.
    KillOrphans(StartTime, oneshot::Sender<usize>),
    /// The sender is dropped when no command is being stopped any more.
    Watch(SyncSender<()>),
}

/// A command that was asked to end. Its first process is waited for only after the group was killed, so that the system
/// cannot give the number of the group to another one meanwhile.
struct StoppingCommand {
    child: Child,
    group: Arc<Group>,
    message: PathBuf,
    started: Option<StartTime>,
    deadline: Instant,
    is_killed: bool,
}

/// Starts a command that dies with this process. The value that `make` returns must end the command when it is dropped,
/// because the run that asked for it may be gone by then.
pub(super) async fn start<T: Send + 'static>(
    mut command: Command,
    confinement: Confinement,
    make: impl FnOnce(Child, Option<StartTime>) -> T + Send + 'static,
) -> io::Result<T> {
    confine(&mut command, confinement);
    let (started, answer) = oneshot::channel();
    let runtime = Handle::current();
    let launch = move |leaders: &mut Leaders| {
        let _entered = runtime.enter();
        let _ = started.send(command.spawn().map(|child| {
            let began = child.id().and_then(|id| leaders.add(i32::try_from(id).ok()?));
            make(child, began)
        }));
    };
    // Never waits, because runs do this on the threads of the runtime.
    thread().try_send(LauncherJob::Start(Box::new(launch))).map_err(|error| not_taken(&error))?;
    answer.await.map_err(|_| gone())?
}

fn not_taken(error: &TrySendError<LauncherJob>) -> io::Error {
    match error {
        TrySendError::Full(_) => io::Error::other(format!("{JOBS_MAX} commands wait to be started or stopped")),
        TrySendError::Disconnected(_) => gone(),
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts commands is gone")
}

/// Kills a command that was asked to end, when it has or its time is up; at once if too many others wait for that.
pub(super) fn stop(child: Child, group: Arc<Group>, message: PathBuf, started: Option<StartTime>) {
    let deadline = Instant::now() + TERM_GRACE;
    let stopping = Box::new(StoppingCommand { child, group, message, started, deadline, is_killed: false });
    let offered = thread().try_send(LauncherJob::Stop(stopping));
    if let Err(
        TrySendError::Full(LauncherJob::Stop(stopping)) | TrySendError::Disconnected(LauncherJob::Stop(stopping)),
    ) = offered
    {
        stopping.group.kill();
    }
}

/// Kills what a command that was started then and has ended has left behind, and returns when none of it is left.
pub(super) async fn kill_orphans(started: StartTime) {
    for _ in 0..ORPHAN_LOOKS_MAX {
        let (looked, answer) = oneshot::channel();
        if thread().try_send(LauncherJob::KillOrphans(started, looked)).is_err() {
            return;
        }
        match answer.await {
            Ok(0) | Err(_) => return,
            Ok(_) => tokio::time::sleep(LOOK / 4).await,
        }
    }
    tracing::warn!("a command starts processes faster than they can be ended");
}

/// Waits until every command that was asked to end has ended.
pub(super) fn wait_for_stopping() {
    let Some(thread) = THREAD.get() else { return };
    let (watch, all_stopped) = mpsc::sync_channel(0);
    if thread.send(LauncherJob::Watch(watch)).is_ok() {
        let _ = all_stopped.recv_timeout(TERM_GRACE * 2);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one thread that starts commands, and it is never joined")]
fn thread() -> &'static SyncSender<LauncherJob> {
    THREAD.get_or_init(|| {
        let (jobs, received) = mpsc::sync_channel(JOBS_MAX);
        // Without the thread the channel is closed, and every start says so.
        if let Err(error) = std::thread::Builder::new().name("commands".to_owned()).spawn(move || work(&received)) {
            tracing::error!(%error, "the thread that starts commands could not be started");
        }
        jobs
    })
}

fn work(received: &Receiver<LauncherJob>) {
    let mut stopping: Vec<Box<StoppingCommand>> = Vec::new();
    let mut watching = Vec::new();
    let mut leaders = Leaders::default();
    loop {
        let job = match (stopping.is_empty(), leaders.is_empty()) {
            (true, true) => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            (true, false) => received.recv_timeout(ORPHAN_WAIT_PAUSE),
            (false, _) => received.recv_timeout(LOOK),
        };
        match job {
            Ok(LauncherJob::Start(launch)) => launch(&mut leaders),
            Ok(LauncherJob::KillOrphans(started, looked)) => {
                let _ = looked.send(leaders.kill_orphans(started));
            }
            Ok(LauncherJob::Stop(one)) => stopping.push(one),
            Ok(LauncherJob::Watch(sender)) => watching.push(sender),
            Err(RecvTimeoutError::Timeout) if stopping.is_empty() => leaders.wait_for_orphans(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        stopping.retain_mut(|one| !one.is_over(&mut leaders));
        if stopping.is_empty() {
            watching.clear();
        }
    }
}

impl StoppingCommand {
    fn is_over(&mut self, leaders: &mut Leaders) -> bool {
        if !self.is_killed {
            if !self.has_ended() && Instant::now() < self.deadline {
                return false;
            }
            self.group.kill();
            self.is_killed = true;
            self.deadline = Instant::now() + REAP_MAX;
        }
        // What the first process has started becomes ours when that one has ended.
        if matches!(self.child.try_wait(), Ok(None)) && Instant::now() < self.deadline {
            return false;
        }
        let orphans = self.started.map_or(0, |started| leaders.kill_orphans(started));
        let strays = strays::kill_now(&self.message);
        (orphans == 0 && strays == 0) || Instant::now() >= self.deadline
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match self.group.id() {
            Some(leader) => !matches!(waitid(WaitId::Pid(leader), options), Ok(None)),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{JOBS_MAX, LauncherJob, mpsc, not_taken};

    #[test]
    fn a_command_that_cannot_be_started_now_is_refused_with_the_reason() {
        let start = || LauncherJob::Start(Box::new(|_| {}));
        let (thread, received) = mpsc::sync_channel(1);
        assert!(thread.try_send(start()).is_ok());
        let full = not_taken(&thread.try_send(start()).unwrap_err());
        assert_eq!(full.to_string(), format!("{JOBS_MAX} commands wait to be started or stopped"));
        drop(received);
        let gone = not_taken(&thread.try_send(start()).unwrap_err());
        assert_eq!(gone.to_string(), "the thread that starts commands is gone");
    }
}
