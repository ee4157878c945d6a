//! Any command as an agent. The text of the message is its standard input, the whole message is in a file named by
//! `A2A_MESSAGE_FILE` and what came with it in one named by `A2A_REQUEST_FILE`, what it prints is streamed as one artifact,
//! and its exit code is the verdict. A run goes: write the files, start the program in a process group of its own, feed it, publish what it prints, see how it ended.
//!
//! The first process decides when the command has ended; what it leaves running is killed, in its group
//! and outside of it. The whole group
//! is asked to end, and killed a moment later, when the task is canceled, when its time is up, and when the run is
//! dropped. If the server dies, the first process is killed by the system, and what is left of the group by the next
//! server with the same data, before it begins. The group is also recorded with the run, so that the next worker of the
//! run can find it.
//!
//! Nothing of a request ever becomes part of the command line. A command that was interrupted by a crash of the server
//! is started again, with `A2A_ATTEMPT` one higher, unless the configuration says otherwise.

mod group;
mod group_record;
mod launcher;
mod leftovers;
mod message_file;
mod orphans;
mod output;
mod process;
mod program;
mod request;
mod stderr;
mod strays;
mod user;
mod words;

use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use switchboard::{Agent, AgentError, CallDoor, DoorPass, Json, Recovery, Traits, Turn, TurnError};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub(crate) use orphans::adopt as adopt_orphans;
pub(crate) use program::{Invocation, Program, variables};
pub(crate) use user::{PASSWD, User};
pub(crate) use words::{shell_doubt, split_words};

use crate::process::Confinement;
use launcher::REAP_MAX;
use message_file::MessageFile;
use process::Process;

/// How long a command has to end after it was asked to, before it is killed. Must fit into the engine's own patience
/// with a canceled run.
const TERM_GRACE: Duration = Duration::from_secs(2);

/// How long the pipes of a command that has ended are read while nothing comes: a process that left the group may hold
/// them open for ever.
const SILENCE_MAX: Duration = Duration::from_millis(500);

pub(crate) struct Exec {
    pub(crate) program: Program,
    /// The folder of the database, if there is one.
    pub(crate) data: Option<PathBuf>,
    /// The whole environment of the command, but for what is said about the message.
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) run_max: Duration,
    /// The longest run that a call may ask for.
    pub(crate) run_max_per_call: Option<Duration>,
    pub(crate) recovery: Recovery,
    /// How many of it may run at once; the others wait, and have not begun while they do.
    pub(crate) processes_max: usize,
    /// The user that the command runs as, if not that of the server.
    pub(crate) user: Option<User>,
    pub(crate) confinement: Confinement,
    /// Where the command calls other agents, if it may.
    pub(crate) door: Option<CallDoor>,
}

impl Agent for Exec {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let deadline = Instant::now() + turn.run_max();
        let file = self.message_file(&turn).await?;
        // The command may call other agents until this run ends, however it ends.
        let pass = self.door.as_ref().and_then(|door| door.open(&turn));
        match Process::start(self.command(&turn, &file, pass.as_ref()), self.confinement, file.path().to_owned()).await
        {
            Ok(process) => self.follow(&turn, process, deadline).await,
            Err(error) => {
                let details = format!("{:?}: {error}", self.program.given);
                Err(AgentError::with_details("The command could not be started", details))
            }
        }
    }

    async fn clean_up_after(&self, checkpoint: Json) {
        group_record::kill_survivors(&checkpoint).await;
    }

    fn traits(&self) -> Traits {
        // The agent ends a late command itself, with SIGTERM first; the engine's own limit is for the case that this
        // fails.
        let wind_down = TERM_GRACE + REAP_MAX + Duration::from_secs(1);
        let traits = Traits::default().with_recovery(self.recovery.clone()).with_run_max(self.run_max);
        let traits = traits.with_wind_down(wind_down).with_runs_max(self.processes_max);
        match self.run_max_per_call {
            Some(run_max) => traits.with_run_max_per_call(run_max),
            None => traits,
        }
    }
}

/// Clears away what an earlier server with this data folder has left: for a server that has the folder and has not begun.
pub(crate) async fn clear_leftovers(data: &Path) {
    leftovers::clear(data).await;
}

/// Ends every command and removes what was written for it: for a process that is about to leave without unwinding.
pub(crate) fn kill_commands_and_remove_files() {
    group::kill_all();
    message_file::remove_all();
}

/// Waits until the commands whose runs were dropped have ended: for a process that is about to leave in order.
pub(crate) fn wait_for_stopping() {
    launcher::wait_for_stopping();
}

/// Why the run stopped following its command.
enum Stop {
    Ended(Result<Ending, TurnError>),
    Canceled,
    OutOfTime,
}

/// How a command ended.
struct Ending {
    status: io::Result<ExitStatus>,
    last_words: String,
}

impl Exec {
    async fn message_file(&self, turn: &Turn) -> io::Result<MessageFile> {
        let request = request::request_json(turn);
        match self.user {
            None => MessageFile::write(turn.message(), &request, self.data.as_deref()).await,
            // Another user cannot enter the data folder.
            Some(user) => {
                let file = MessageFile::write(turn.message(), &request, None).await?;
                file.give_to(user)?;
                Ok(file)
            }
        }
    }

    fn command(&self, turn: &Turn, file: &MessageFile, pass: Option<&DoorPass>) -> Command {
        let (task, owner) = (turn.task(), turn.owner());
        let mut command = Command::new(&self.program.path);
        command
            .arg0(&self.program.given)
            .args(&self.program.args)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(request::facts(turn).into_iter().map(|(name, value)| (name, env_value(&value))))
            .envs(request::trace(turn))
            .env("A2A_MESSAGE_FILE", file.path())
            .env("A2A_REQUEST_FILE", file.request_path())
            .env("A2A_TASK_ID", env_value(task.id.as_str()))
            .env("A2A_CONTEXT_ID", env_value(task.context_id.as_str()))
            .env("A2A_ATTEMPT", turn.attempt().to_string())
            .env("A2A_INTERRUPTED", turn.was_interrupted().to_string())
            .env("A2A_PRINCIPAL", env_value(owner.principal.as_str()))
            .env("A2A_TENANT", env_value(owner.tenant.as_str()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(pass) = pass {
            command.env("A2A_CALL_URL", pass.url()).env("A2A_CALL_TOKEN", pass.token());
        }
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    async fn follow(&self, turn: &Turn, mut process: Process, deadline: Instant) -> Result<(), AgentError> {
        let group = process.group();
        let ended = CancellationToken::new();
        let (stdin, stdout, stderr) = process.take_pipes();
        let group_record = process.group_record(&env_value(turn.task().id.as_str()));
        let stop = {
            let work = async {
                turn.working("").await?;
                let ((), last_words, status) = tokio::try_join!(
                    output::publish(stdout, turn, &ended),
                    async { Ok(stderr::last_words(stderr, &ended).await) },
                    async { Ok(process.wait(&ended).await) },
                )?;
                Ok(Ending { status, last_words })
            };
            let side = async {
                tokio::join!(feed(stdin, request::input(turn)), keep(turn, group_record));
            };
            let mut work = pin!(alongside(work, side));
            let stop = tokio::select! {
                biased;
                ending = &mut work => Stop::Ended(ending),
                () = turn.cancelled() => Stop::Canceled,
                () = sleep_until(deadline) => Stop::OutOfTime,
            };
            if let Stop::Canceled | Stop::OutOfTime = stop {
                group.ask_to_end();
                // What it still prints on its way out is published as usual.
                let _ = tokio::time::timeout(TERM_GRACE, work).await;
            }
            stop
        };
        process.end().await;
        self.conclude(turn, stop).await
    }

    async fn conclude(&self, turn: &Turn, stop: Stop) -> Result<(), AgentError> {
        match stop {
            Stop::Canceled | Stop::Ended(Err(TurnError::Stopped)) => Ok(()),
            Stop::OutOfTime => {
                let limit = turn.run_max().as_secs();
                Err(AgentError::timed_out(format!("Task timed out: the command did not end within {limit} s")))
            }
            Stop::Ended(Ok(ending)) => ending.verdict(),
            Stop::Ended(Err(TurnError::Refused(error))) => {
                let told = format!("The output of the command could not be kept: {error}");
                Err(AgentError::told(told).caused_by(TurnError::Refused(error)))
            }
            Stop::Ended(Err(error)) => Err(error.into()),
        }
    }
}

impl Ending {
    /// A failed command fails its task. The caller reads how it ended; what it wrote to standard error may hold paths and
    /// secrets, and goes to the log.
    fn verdict(self) -> Result<(), AgentError> {
        let what = match &self.status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => match status.code() {
                Some(code) => format!("The command exited with status {code}"),
                // Spelled by std as "signal: 9 (SIGKILL)".
                None => format!("The command was ended by {status}").replace("signal: ", "signal "),
            },
            Err(error) => {
                let details = format!("{error}\n{}", self.last_words);
                return Err(AgentError::with_details("It is not known how the command ended", details));
            }
        };
        Err(AgentError::with_details(what, self.last_words))
    }
}

/// Records the process group of the command, so that the next server can find it if this one dies. A command that has
/// ended already needs no record.
async fn keep(turn: &Turn, group_record: Option<Json>) {
    if let Some(group_record) = group_record
        && let Err(error) = turn.checkpoint(&group_record).await
    {
        tracing::debug!(task = %turn.task().id, %error, "the process group of a command was not written down");
    }
}

/// A command need not read what it is given, so a closed pipe is no failure.
async fn feed(stdin: Option<ChildStdin>, text: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(text.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
}

/// Drives `side` along, for as long as `main` takes.
async fn alongside<T>(main: impl Future<Output = T>, side: impl Future<Output = ()>) -> T {
    let mut main = pin!(main);
    tokio::select! {
        biased;
        done = &mut main => return done,
        () = side => {}
    }
    main.await
}

/// Reads once. Nothing means that no more will come.
async fn read(from: &mut (impl tokio::io::AsyncRead + Unpin), buffer: &mut [u8], ended: &CancellationToken) -> usize {
    use tokio::io::AsyncReadExt;
    let silent = async {
        ended.cancelled().await;
        tokio::time::sleep(SILENCE_MAX).await;
    };
    tokio::select! {
        biased;
        read = from.read(buffer) => read.unwrap_or(0),
        () = silent => 0,
    }
}

/// Ids may hold anything a client wrote, but a variable cannot hold a zero byte.
fn env_value(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests;
