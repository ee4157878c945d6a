//! The one thread that starts commands, and stops those whose run was dropped. The system sends a command its
//! parent-death signal when the *thread* dies that started it, so that thread must live as long as the server does.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::process::{WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::TERM_GRACE;
use super::group::Group;
use crate::process::kill_with_parent;

/// How often a command that was asked to end is looked at.
const LOOK: Duration = Duration::from_millis(20);

static THREAD: OnceLock<Sender<LauncherJob>> = OnceLock::new();

enum LauncherJob {
    Start(Box<dyn FnOnce() + Send>),
    Stop(StoppingCommand),
    /// The sender is dropped when no command is being stopped any more.
    Watch(Sender<()>),
}

/// A command that was asked to end. Its first process is waited for only after the group was killed, so that the system
/// cannot give the number of the group to another one meanwhile.
struct StoppingCommand {
    child: Child,
    group: Arc<Group>,
    deadline: Instant,
}

/// Starts a command that dies with this process. The value that `make` returns must end the command when it is dropped,
/// because the run that asked for it may be gone by then.
pub(super) async fn start<T: Send + 'static>(mut command: Command, make: fn(Child) -> T) -> io::Result<T> {
    kill_with_parent(&mut command);
    let (started, answer) = oneshot::channel();
    let runtime = Handle::current();
    let launch = move || {
        let _entered = runtime.enter();
        let _ = started.send(command.spawn().map(make));
    };
    let gone = || io::Error::other("the thread that starts commands is gone");
    thread().send(LauncherJob::Start(Box::new(launch))).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

/// Kills a command that was asked to end, when it has or its time is up.
pub(super) fn stop(child: Child, group: Arc<Group>) {
    let stopping = StoppingCommand { child, group, deadline: Instant::now() + TERM_GRACE };
    if let Err(mpsc::SendError(LauncherJob::Stop(stopping))) = thread().send(LauncherJob::Stop(stopping)) {
        stopping.group.kill();
    }
}

/// Waits until every command that was asked to end has ended.
pub(super) fn wait_for_stopping() {
    let Some(thread) = THREAD.get() else { return };
    let (watch, all_stopped) = mpsc::channel();
    if thread.send(LauncherJob::Watch(watch)).is_ok() {
        let _ = all_stopped.recv_timeout(TERM_GRACE * 2);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one thread that starts commands, and it is never joined")]
fn thread() -> &'static Sender<LauncherJob> {
    THREAD.get_or_init(|| {
        let (jobs, received) = mpsc::channel();
        // Without the thread the channel is closed, and every start says so.
        if let Err(error) = std::thread::Builder::new().name("commands".to_owned()).spawn(move || work(&received)) {
            tracing::error!(%error, "the thread that starts commands could not be started");
        }
        jobs
    })
}

fn work(received: &Receiver<LauncherJob>) {
    let mut stopping: Vec<StoppingCommand> = Vec::new();
    let mut watching = Vec::new();
    loop {
        let job = match stopping.is_empty() {
            true => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => received.recv_timeout(LOOK),
        };
        match job {
            Ok(LauncherJob::Start(launch)) => launch(),
            Ok(LauncherJob::Stop(one)) => stopping.push(one),
            Ok(LauncherJob::Watch(sender)) => watching.push(sender),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        stopping.retain_mut(|one| !one.is_over());
        if stopping.is_empty() {
            watching.clear();
        }
    }
}

impl StoppingCommand {
    fn is_over(&mut self) -> bool {
        if !self.has_ended() && Instant::now() < self.deadline {
            return false;
        }
        self.group.kill();
        // One that was killed just now is waited for by the runtime.
        let _ = self.child.try_wait();
        true
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match self.group.id() {
            Some(leader) => !matches!(waitid(WaitId::Pid(leader), options), Ok(None)),
            None => true,
        }
    }
}
