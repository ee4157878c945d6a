//! The way to an agent, in this process or elsewhere: what a call takes beside its request, and what it is answered with.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
#[cfg(feature = "client")]
use http::Extensions;
use switchboard_core::call::{BoxFuture, Caller, Frame, Reply, Request};
use switchboard_core::model::{AgentCard, Message, Task};

use crate::call_error::CallError;

/// What a call has beside its request and its caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallOptions {
    /// From the beginning of a call to its result, attempts and pauses included.
    pub(crate) deadline: Option<Duration>,
    /// The options of one kind of agent, by their type. Calls to other kinds do not read them.
    #[cfg(feature = "client")]
    pub(crate) extensions: Extensions,
}

/// The frames of a stream, with the errors of calls.
pub(crate) type FrameStream = Pin<Box<dyn Stream<Item = Result<Frame, CallError>> + Send>>;

/// What a call is answered with.
pub(crate) enum Answer {
    /// Any reply but a stream.
    Reply(Reply),
    Stream(FrameStream),
}

/// The way to an agent.
pub(crate) trait CallAgent: Send + Sync {
    fn call<'a>(
        &'a self,
        caller: Caller,
        request: Request,
        options: &'a CallOptions,
    ) -> BoxFuture<'a, Result<Answer, CallError>>;

    /// The newest card that is known.
    fn card(&self) -> Arc<AgentCard>;

    /// The card that a server which mounts the agent shows to everyone.
    fn public_card(&self) -> Arc<AgentCard> {
        self.card()
    }

    /// How a remote agent is called.
    #[cfg(feature = "client")]
    fn spoken(&self) -> Option<Spoken> {
        None
    }
}

/// How a remote agent is called.
#[cfg(feature = "client")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spoken {
    /// Where calls are sent.
    pub url: String,
    /// `JSONRPC`, `HTTP+JSON` or `GRPC`.
    pub binding: &'static str,
    /// The version of the protocol; none for the dialect of an older system.
    pub version: Option<&'static str>,
}

/// What an agent answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Sent {
    /// The task that the message opened or went on with.
    Task(Arc<Task>),
    /// A direct answer, for which there is no task.
    Message(Arc<Message>),
}

impl Sent {
    /// The task, if the answer was one.
    #[must_use]
    pub fn into_task(self) -> Option<Arc<Task>> {
        match self {
            Self::Task(task) => Some(task),
            Self::Message(_) => None,
        }
    }

    /// The message, if the answer was a direct one.
    #[must_use]
    pub fn into_message(self) -> Option<Arc<Message>> {
        match self {
            Self::Message(message) => Some(message),
            Self::Task(_) => None,
        }
    }

    /// What was answered in words: the text of a direct answer, else of the artifacts of the task, else of the message of its
    /// status.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Message(message) => message.text(),
            Self::Task(task) => task.answer_text(),
        }
    }
}
