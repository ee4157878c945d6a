//! `switchboard chat`: a conversation in the terminal. The context is carried from turn to turn, and the task as long as it asks for
//! something. Where the output is no terminal, each line of the input is one turn, printed like the result of `send`.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::sync::Arc;

use clap::Args;
use switchboard::call::SendMessage;
use switchboard::client::new_message_id;
use switchboard::model::{ContextId, Update};
use switchboard::{Message, Part, Role, Task, TaskId, TaskStream};
use tokio::sync::mpsc;

use super::error::{ClientError, Code};
use super::follow::{Follower, Outcome};
use super::options::{CommonArgs, Flags, WaitArgs};
use super::render::state_name;
use super::send;
use super::session::{Agent, CALL_MAX, Session};
use super::text::{clean, clean_lines};

/// A line of the conversation is not longer.
const LINE_BYTES_MAX: u64 = 1 << 20;

const HELP: &str = "\
Type a message and press Enter. Lines that begin with / are commands:
  /file PATH    send a file, or the URL of one, with the next message
  /cancel       cancel the task
  /resume       follow the last task again
  /task         show the ids and the state
  /new          begin a new conversation
  /help         show this
  /quit         leave; so does the end of the input (Ctrl-D)
Ctrl-C stops waiting for an answer; the task goes on.";

#[derive(Args, Clone, Debug)]
#[command(after_help = HELP)]
pub(crate) struct ChatArgs {
    /// The agent, as for --agent-card
    #[arg(value_name = "REF")]
    agent: Option<String>,
    /// Go on with this task
    #[arg(long, value_name = "ID")]
    task_id: Option<String>,
    /// Go on in this context
    #[arg(long, value_name = "ID")]
    context_id: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl ChatArgs {
    pub(crate) fn flags(&self) -> Flags {
        let flags = self.common.clone().or_agent(self.agent.as_ref()).flags();
        let flags = self.wait.add_to(flags).text("task-id", self.task_id.as_ref());
        flags.text("context-id", self.context_id.as_ref())
    }
}

/// What is carried from turn to turn.
#[derive(Default)]
struct Conversation {
    context: Option<ContextId>,
    /// The task of the last turn.
    task: Option<Arc<Task>>,
    /// The task that the next message goes on with.
    open: Option<TaskId>,
    files: Vec<Part>,
}

impl Conversation {
    fn take(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Task(task) => {
                self.context = Some(task.context_id.clone());
                self.open = task.state().is_interrupted().then(|| task.id.clone());
                self.task = Some(task.clone());
            }
            Outcome::Message(message) => {
                self.context = message.context_id.clone().or(self.context.take());
                self.open = None;
            }
        }
    }

    fn message(&mut self, text: &str) -> SendMessage {
        let mut parts = vec![Part::text(text)];
        parts.append(&mut self.files);
        let mut message = Message::new(Role::User, new_message_id(), parts);
        message.task_id.clone_from(&self.open);
        message.context_id.clone_from(&self.context);
        SendMessage::new(message)
    }
}

/// # Errors
/// When there is no agent, or neither a terminal to print to nor lines to read.
pub(crate) async fn run(session: &Session, _: &ChatArgs) -> Result<(), ClientError> {
    let is_terminal = std::io::stdout().is_terminal() && !session.printer.is_json();
    if !is_terminal && std::io::stdin().is_terminal() {
        return Err(
            ClientError::usage("chat needs a terminal to print to, or lines to read").with_hint("Use switchboard send")
        );
    }
    let agent = session.bounded(Box::pin(session.agent())).await?;
    let mut conversation = Conversation {
        context: session.settings.text("context-id").map(Into::into),
        open: session.settings.text("task-id").map(Into::into),
        ..Conversation::default()
    };
    let chat = Chat { session, agent: &agent, is_terminal };
    chat.greet()?;
    let mut lines = read_lines();
    while let Some(line) = chat.next_line(&mut lines).await? {
        let line = line.trim();
        let done = match line.split_once(char::is_whitespace).unwrap_or((line, "")) {
            ("", _) => continue,
            ("/quit" | "/exit", _) => break,
            (command, rest) if command.starts_with('/') => chat.command(command, rest.trim(), &mut conversation).await,
            _ => chat.turn(line, &mut conversation).await,
        };
        match done {
            Ok(()) => {}
            Err(error) if error.code == Code::OutputClosed => return Err(error),
            // On a terminal the user sees the error and goes on. A script is told by the exit code.
            Err(error) if is_terminal => drop(session.printer.fail(&error)),
            Err(error) => return Err(error),
        }
    }
    chat.part(&conversation)
}

struct Chat<'a> {
    session: &'a Session,
    agent: &'a Agent,
    is_terminal: bool,
}

impl Chat<'_> {
    fn greet(&self) -> Result<(), ClientError> {
        match self.is_terminal {
            true => show(&format!("Talking to {}. /help shows the commands.\n", bold(&clean(&self.agent.card.name)))),
            false => Ok(()),
        }
    }

    async fn next_line(
        &self,
        lines: &mut mpsc::Receiver<std::io::Result<String>>,
    ) -> Result<Option<String>, ClientError> {
        if self.is_terminal {
            show("> ")?;
        }
        tokio::select! {
            biased;
            line = lines.recv() => line.transpose().map_err(ClientError::internal),
            _ = tokio::signal::ctrl_c() => Ok(None),
        }
    }

    async fn command(&self, command: &str, rest: &str, conversation: &mut Conversation) -> Result<(), ClientError> {
        match command {
            "/help" => show(&format!("{HELP}\n")),
            "/file" => {
                conversation.files.push(send::file(rest)?);
                show(&format!("{} goes with the next message\n", clean(rest)))
            }
            "/new" => {
                *conversation = Conversation::default();
                Ok(())
            }
            "/task" => self.state(conversation),
            "/cancel" | "/resume" => {
                let Some(task) = conversation.task.clone() else {
                    return Err(ClientError::usage("there is no task yet"));
                };
                let outcome = match command {
                    "/cancel" => {
                        let canceled = self.agent.client.clone().with_deadline(CALL_MAX).cancel(&task.id).await;
                        Outcome::Task(canceled.map_err(|error| self.agent.error(&error))?)
                    }
                    _ => self.resume(&task).await?,
                };
                conversation.take(&outcome);
                self.state(conversation)
            }
            other => Err(ClientError::usage(format!("there is no command {other}; /help shows them"))),
        }
    }

    async fn resume(&self, task: &Arc<Task>) -> Result<Outcome, ClientError> {
        match self.agent.client.subscribe(&task.id).await {
            Ok(stream) if self.is_terminal => self.show_live(stream, false).await,
            Ok(stream) => self.follower().stream(stream, false).await,
            Err(_) => Ok(Outcome::Task(self.follower().whole(task.clone()).await)),
        }
    }

    fn follower(&self) -> Follower<'_> {
        Follower { session: self.session, agent: self.agent, is_live: false }
    }

    /// One message and its answer. Ctrl-C ends the wait and not the task.
    async fn turn(&self, text: &str, conversation: &mut Conversation) -> Result<(), ClientError> {
        let send = conversation.message(text);
        let continues = send.message.task_id.is_some();
        let follower = self.follower();
        let turn = async {
            if self.is_terminal && self.agent.streams() {
                let stream = self.agent.client.stream_with(send).await.map_err(|error| self.agent.error(&error))?;
                return self.show_live(stream, continues).await;
            }
            let outcome = send::deliver(&follower, send, false).await?;
            follower.print_outcome(&outcome)?;
            Ok(outcome)
        };
        let outcome = self.session.bounded(Box::pin(turn)).await?;
        conversation.take(&outcome);
        if self.is_terminal { self.state(conversation) } else { Ok(()) }
    }

    /// Shows text as it comes.
    async fn show_live(&self, mut stream: TaskStream, answers: bool) -> Result<Outcome, ClientError> {
        let mut at_line_start = true;
        while let Some(next) = stream.next().await {
            let frame = next.map_err(|error| self.agent.error(&error))?;
            let update = &frame.update.update;
            let text = match update {
                Update::Artifact(update) => update.artifact.parts.iter().map(said).collect::<String>(),
                Update::Status(update) => match &update.status.message {
                    Some(message) if update.status.state.is_settled() => message.parts.iter().map(said).collect(),
                    Some(message) => dim(&clean(&message.text())) + "\n",
                    None => String::new(),
                },
                Update::Message(message) => message.parts.iter().map(said).collect(),
                Update::Task(view) if stream.is_settled() && !answers => {
                    view.task.artifacts.iter().flat_map(|artifact| artifact.parts.iter().map(said)).collect()
                }
                Update::Task(_) => String::new(),
            };
            if !text.is_empty() {
                at_line_start = text.ends_with('\n');
                show(&text)?;
            }
            let is_old_question = answers && matches!(update, Update::Task(_));
            if stream.is_settled() && !is_old_question {
                break;
            }
        }
        if !at_line_start {
            show("\n")?;
        }
        let sent = stream.take_sent().map(Outcome::from);
        sent.ok_or_else(|| {
            ClientError::protocol("InvalidAgentResponseError", "the stream ended before it said anything")
        })
    }

    fn state(&self, conversation: &Conversation) -> Result<(), ClientError> {
        let Some(task) = &conversation.task else { return Ok(()) };
        let (id, context) = (clean(task.id.as_str()), clean(task.context_id.as_str()));
        show(&format!("{}\n", dim(&format!("Task: {id}  Context: {context}  State: {}", state_name(task.state())))))
    }

    /// Says how the conversation can be taken up again: nothing of it is remembered here.
    fn part(&self, conversation: &Conversation) -> Result<(), ClientError> {
        let words: Vec<&str> = match (&conversation.open, &conversation.context) {
            (Some(task), _) => vec!["--task-id", task.as_str()],
            (None, Some(context)) => vec!["--context-id", context.as_str()],
            (None, None) => return Ok(()),
        };
        let line = self.session.command_line("chat", &words);
        match self.is_terminal {
            true => show(&format!("\nResume: {line}\n")),
            false => {
                self.session.printer.note(format!("Resume: {line}"));
                Ok(())
            }
        }
    }
}

/// A part in the conversation.
fn said(part: &Part) -> String {
    match part.as_text() {
        Some(text) => clean_lines(text).join("\n"),
        None => {
            let name = part.filename().unwrap_or("unnamed");
            format!("[{} {}]\n", clean(name), clean(part.effective_media_type()))
        }
    }
}

fn bold(text: &str) -> String {
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

fn dim(text: &str) -> String {
    format!("\u{1b}[2m{text}\u{1b}[0m")
}

/// Prints to the terminal.
fn show(text: &str) -> Result<(), ClientError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| ClientError::new(Code::OutputClosed, error))
}

/// The lines of the input. A thread reads them, because reading cannot be interrupted.
#[expect(clippy::disallowed_methods, reason = "the thread waits for the terminal, and ends with the process")]
fn read_lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
            let sent = match read {
                Ok(0) => return,
                Ok(_) => sender.blocking_send(Ok(line)),
                Err(error) => sender.blocking_send(Err(error)),
            };
            if sent.is_err() {
                return;
            }
        }
    });
    lines
}
