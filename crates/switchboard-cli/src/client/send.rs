//! `switchboard send`: a message to an agent, and what comes of it.

use std::io::Read;
use std::path::Path;

use clap::{ArgMatches, Args};
use switchboard::call::SendMessage;
use switchboard::client::new_message_id;
use switchboard::{CallErrorKind, Json, Message, Part, PartDetails, ProtocolError, Role};

use super::error::ClientError;
use super::follow::{Follower, Outcome};
use super::options::{CommonArgs, Flags, WaitArgs};
use super::session::{CALL_MAX, Session};

/// A file that is sent is not larger.
const FILE_BYTES_MAX: u64 = 32 << 20;

const EXAMPLES: &str = "\
Examples:
  switchboard send -a https://agent.example 'What is the weather?'
      Sends a text, waits for the end, and prints the task and its artifacts.
  switchboard send -a localhost:8080 --text 'Read this' --file report.pdf
  switchboard send -a localhost:8080 --data - < order.json
      Parts of a message, in the order given. --media-type is about the part
      before it. A file that is a URL is sent as a reference.
  switchboard send -a localhost:8080 --stream 'Tell me a story'
      Prints each event as it comes.
  switchboard send -a localhost:8080 --async 'Tidy the attic'
      Returns at once; wait with: switchboard task get --wait ID
  switchboard send -a localhost:8080 --task-id ID 'the blue one'
      Answers a question; --context-id begins a new task in the same context.
  switchboard send -a localhost:8080 -o json hello | jq .task.status.state
      One JSON document: {\"task\": …} or {\"message\": …}. With --stream, one
      per line.

Exit codes:
  0  the agent answered, whatever it decided: look at the state
  1  it failed; 2 wrong usage; 3 the agent or its card cannot be reached;
  4  credentials are missing or rejected; 5 --timeout is over";

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArgs {
    /// The text to send
    #[arg(value_name = "TEXT")]
    message: Option<String>,
    /// A part with text; repeatable
    #[arg(long, value_name = "TEXT", help_heading = "Message")]
    text: Vec<String>,
    /// A part with a file, or a reference if it is a URL; repeatable
    #[arg(long, value_name = "PATH|URL", help_heading = "Message")]
    file: Vec<String>,
    /// A part with JSON from a file, or from standard input with -; repeatable
    #[arg(long, value_name = "PATH|-", help_heading = "Message", allow_hyphen_values = true)]
    data: Vec<String>,
    /// Media type of the part right before it
    #[arg(long, value_name = "TYPE", help_heading = "Message")]
    media_type: Vec<String>,
    /// Metadata of the request, as a JSON object
    #[arg(long, value_name = "JSON", help_heading = "Message")]
    metadata: Option<String>,
    /// Go on with this task
    #[arg(long, value_name = "ID", help_heading = "Message")]
    task_id: Option<String>,
    /// Begin a new task in this context
    #[arg(long, value_name = "ID", help_heading = "Message")]
    context_id: Option<String>,
    /// Do not wait for the task; print its ids and return
    #[arg(long = "async", visible_aliases = ["return-immediately", "no-wait"], help_heading = "Waiting")]
    is_async: bool,
    #[command(flatten)]
    wait: WaitArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl SendArgs {
    pub(crate) fn flags(&self) -> Flags {
        let flags = self.common.flags();
        self.wait
            .add_to(flags)
            .switch("async", self.is_async)
            .text("metadata", self.metadata.as_ref())
            .text("task-id", self.task_id.as_ref())
            .text("context-id", self.context_id.as_ref())
    }

    /// The parts in the order in which they were given.
    ///
    /// # Errors
    /// When there is none, a file cannot be read, or JSON is none.
    pub(crate) fn parts<'a>(&'a self, matches: &ArgMatches) -> Result<Vec<Part>, ClientError> {
        let mut given: Vec<(usize, Given<'a>)> = Vec::new();
        let indices = |name: &str| matches.indices_of(name).map_or_else(Vec::new, Iterator::collect);
        let of = |name: &str, values: &'a [String], kind: fn(&'a str) -> Given<'a>| {
            indices(name).into_iter().zip(values).map(move |(index, value)| (index, kind(value)))
        };
        given.extend(of("text", &self.text, Given::Text));
        given.extend(of("file", &self.file, Given::File));
        given.extend(of("data", &self.data, Given::Data));
        given.extend(of("media_type", &self.media_type, Given::MediaType));
        given.sort_by_key(|(index, _)| *index);
        let first = self.message.as_deref().map(Given::Text);
        read_parts(first.into_iter().chain(given.into_iter().map(|(_, given)| given)), &mut std::io::stdin())
    }
}

/// One flag about the parts.
#[derive(Clone, Copy, Debug)]
enum Given<'a> {
    Text(&'a str),
    File(&'a str),
    Data(&'a str),
    MediaType(&'a str),
}

fn read_parts<'a>(given: impl Iterator<Item = Given<'a>>, stdin: &mut dyn Read) -> Result<Vec<Part>, ClientError> {
    let mut parts: Vec<Part> = Vec::new();
    let (mut has_read_stdin, mut is_free) = (false, false);
    for given in given {
        let part = match given {
            Given::Text(text) => Part::text(text),
            Given::File(name) => file(name)?,
            Given::Data("-") if has_read_stdin => {
                return Err(ClientError::usage("--data - can be given once: standard input is read to its end"));
            }
            Given::Data(name) => {
                has_read_stdin |= name == "-";
                data(name, stdin)?
            }
            Given::MediaType(media_type) => match parts.last_mut().filter(|_| is_free) {
                Some(part) => {
                    part.change_details(|details| details.media_type = Some(media_type.to_owned()));
                    is_free = false;
                    continue;
                }
                None => {
                    return Err(ClientError::usage(
                        "--media-type is about the part right before it, and there is none",
                    )
                    .with_hint("Put it after --text, --file or --data"));
                }
            },
        };
        parts.push(part);
        is_free = true;
    }
    if parts.is_empty() {
        return Err(ClientError::usage("there is nothing to send").with_hint("Give a text, --file or --data"));
    }
    Ok(parts)
}

pub(crate) fn file(name: &str) -> Result<Part, ClientError> {
    let lower = name.get(..8).unwrap_or(name).to_ascii_lowercase();
    let last = name.rsplit('/').next().filter(|last| !last.is_empty());
    let part = match lower.starts_with("http://") || lower.starts_with("https://") {
        true => Part::url(name),
        false => {
            let bytes = read_bounded(name, &mut std::fs::File::open(name).map_err(|error| unread(name, &error))?)?;
            Part::raw(bytes)
        }
    };
    Ok(part.with_details(PartDetails {
        metadata: None,
        filename: last.map(|last| last.split(['?', '#']).next().unwrap_or(last).to_owned()),
        media_type: media_type_of(name).map(str::to_owned),
    }))
}

fn data(name: &str, stdin: &mut dyn Read) -> Result<Part, ClientError> {
    let bytes = match name {
        "-" => read_bounded("standard input", stdin)?,
        name => read_bounded(name, &mut std::fs::File::open(name).map_err(|error| unread(name, &error))?)?,
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| ClientError::usage(format!("--data {name}: this is not JSON: {error}")))?;
    Part::data(&value).map_err(|error| ClientError::usage(format!("--data {name}: {error}")))
}

fn read_bounded(name: &str, reader: &mut dyn Read) -> Result<Vec<u8>, ClientError> {
    let mut bytes = Vec::new();
    reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| unread(name, &error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let error = ClientError::usage(format!("{name} is larger than {FILE_BYTES_MAX} bytes"));
        return Err(error.with_hint("Put it where the agent can fetch it, and send its URL with --file"));
    }
    Ok(bytes)
}

fn unread(name: &str, error: &std::io::Error) -> ClientError {
    ClientError::usage(format!("{name}: cannot be read: {error}"))
}

/// The media type that the ending of a name stands for.
pub(crate) fn media_type_of(name: &str) -> Option<&'static str> {
    let name = name.split(['?', '#']).next().unwrap_or(name);
    let ending = Path::new(name).extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "txt" | "log" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "json" => "application/json",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        _ => return None,
    })
}

/// The object that `--metadata` holds.
///
/// # Errors
/// When it is no JSON object.
pub(crate) fn metadata(session: &Session) -> Result<Option<Json>, ClientError> {
    let Some(text) = session.settings.text("metadata") else { return Ok(None) };
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(value @ serde_json::Value::Object(_)) => Ok(Some(Json::from_trusted(value.to_string()))),
        Ok(_) => Err(ClientError::usage("--metadata takes a JSON object, as in '{\"priority\":1}'")),
        Err(error) => Err(ClientError::usage(format!("--metadata is not JSON: {error}"))),
    }
}

/// Sends the message, and prints what comes of it.
///
/// # Errors
/// When something is wrong with what was asked, on the way, or at the agent.
pub(crate) async fn run(session: &Session, args: &SendArgs, matches: &ArgMatches) -> Result<(), ClientError> {
    let is_async = session.settings.is_async()?;
    if is_async && session.printer.is_live {
        return Err(ClientError::usage("--async and --stream exclude each other").with_hint("Leave one of them out"));
    }
    let parts = args.parts(matches)?;
    let metadata = metadata(session)?;
    let mut message = Message::new(Role::User, new_message_id(), parts);
    message.task_id = session.settings.text("task-id").map(Into::into);
    message.context_id = session.settings.text("context-id").map(Into::into);
    let send = SendMessage { metadata, ..SendMessage::new(message) };
    let sending = async {
        let agent = session.agent().await?;
        let follower = Follower { session, agent: &agent, is_live: session.printer.is_live };
        let outcome = deliver(&follower, send, is_async).await?;
        follower.print_outcome(&outcome)
    };
    session.bounded(Box::pin(sending)).await
}

/// Sends a message and, unless told otherwise, waits until there is nothing more to wait for.
///
/// # Errors
/// What the agent refuses with, and what goes wrong on the way.
pub(crate) async fn deliver(
    follower: &Follower<'_>,
    send: SendMessage,
    is_async: bool,
) -> Result<Outcome, ClientError> {
    let agent = follower.agent;
    let continues = send.message.task_id.is_some();
    let refused = |error: &switchboard::CallError| about_ids(agent.error(error), error, continues);
    if agent.streams() && !is_async {
        match agent.client.stream_with(send.clone()).await {
            Ok(stream) => {
                let outcome = follower.stream(stream, continues).await?;
                return Ok(match outcome {
                    // The stream may not have told all of it, such as the history.
                    Outcome::Task(task) if !follower.is_live => Outcome::Task(follower.whole(task).await),
                    outcome => outcome,
                });
            }
            Err(error) if is_without_streams(&error) => {
                follower.session.printer.note("Note: the agent does not stream after all; asking for the task instead");
            }
            Err(error) => return Err(refused(&error)),
        }
    } else if follower.is_live {
        follower.session.printer.note("Note: the agent does not stream; asking for the task instead");
    }
    // The agent answers at once, so that the id of the task is known while it works. A task that goes on has an id already, and an
    // answer at once might still show the question.
    let mut send = send;
    send.return_immediately = is_async || !continues;
    let client =
        if send.return_immediately { agent.client.clone().with_deadline(CALL_MAX) } else { agent.client.clone() };
    let sent = client.send_with(send.clone()).await.map_err(|error| refused(&error))?;
    let outcome = match Outcome::from(sent) {
        Outcome::Task(task) => {
            follower.session.learn_task(&task);
            match is_async {
                true => Outcome::Task(task),
                false => Outcome::Task(follower.poll(task).await?),
            }
        }
        message @ Outcome::Message(_) => message,
    };
    if follower.is_live {
        print_last(follower, &outcome)?;
    }
    Ok(outcome)
}

/// The end of a task that was not streamed, in the form of an event.
fn print_last(follower: &Follower<'_>, outcome: &Outcome) -> Result<(), ClientError> {
    use switchboard::model::{TaskView, Update};
    follower.print(&match outcome {
        Outcome::Task(task) => Update::Task(TaskView::whole(task.clone())),
        Outcome::Message(message) => Update::Message(message.clone()),
    })
}

fn is_without_streams(error: &switchboard::CallError) -> bool {
    let is_refused = error.kind() == CallErrorKind::Refused || error.kind() == CallErrorKind::InvalidRequest;
    is_refused
        && matches!(
            error.protocol_error(),
            Some(ProtocolError::UnsupportedOperation { .. } | ProtocolError::MethodNotFound { .. })
        )
}

/// An error about a task or a context that the user named says how to find out more. No new task is begun in its place.
fn about_ids(error: ClientError, cause: &switchboard::CallError, continues: bool) -> ClientError {
    if !continues || cause.kind() != CallErrorKind::Refused || error.hint.is_some() {
        return error;
    }
    error.with_hint(
        "The agent does not accept this --task-id, and no new task was begun; --debug shows what was exchanged",
    )
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
