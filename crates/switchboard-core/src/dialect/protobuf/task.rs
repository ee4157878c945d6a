//! Tasks, their artifacts, and what a stream says of them. Nothing here trims: a [`TaskView`] says how much of a task is shown.
//!
//! Both packages have these messages, and what differs is small: numbers of fields, which come with the generated code, a name,
//! and a flag of 0.3. So each package has this file as its module `task`, with its own messages as `wire`, and says in its
//! module `message` what is its own.

use std::fmt::Arguments;

use bytes::Bytes;

use crate::call::Reply;
use crate::dialect::json::{Check, DecodeLimits};
use crate::dialect::protobuf::{
    Fields, Holds, ListField, Lists, decode_answer, decode_object, decode_timestamp, each, list, optional, read_parts,
    read_state, state_number, text,
};
use crate::error::ProtocolError;
use crate::model::{
    Artifact, ArtifactDetails, ArtifactId, ArtifactUpdate, ArtifactView, Dialect, StatusUpdate, Task, TaskState,
    TaskStatus, TaskView, Update,
};

use super::generated as wire;
use super::generated::{send_message_response, stream_response};
use super::message::{DIALECT, MESSAGE, SentMessage, StreamedMessage};

/// The lists of a task.
pub(super) const TASK: Lists = &[
    ListField(wire::Task::STATUS, "status", Holds::One(STATUS)),
    ListField(wire::Task::ARTIFACTS, "artifacts", Holds::Many("artifacts", ARTIFACT)),
    ListField(wire::Task::HISTORY, "history", Holds::Many("messages", MESSAGE)),
];
const STATUS: Lists = &[ListField(wire::TaskStatus::SAID, "message", Holds::One(MESSAGE))];
const ARTIFACT: Lists = &[
    ListField(wire::Artifact::PARTS, "parts", Holds::Parts),
    ListField(wire::Artifact::EXTENSIONS, "extensions", Holds::Texts),
];
const SENT: Lists = &[
    ListField(wire::SendMessageResponse::TASK, "task", Holds::One(TASK)),
    ListField(wire::SendMessageResponse::SAID, "message", Holds::One(MESSAGE)),
];
const UPDATE: Lists = &[
    ListField(wire::StreamResponse::TASK, "task", Holds::One(TASK)),
    ListField(wire::StreamResponse::SAID, "message", Holds::One(MESSAGE)),
    ListField(wire::StreamResponse::STATUS_UPDATE, "statusUpdate", Holds::One(STATUS_UPDATE)),
    ListField(wire::StreamResponse::ARTIFACT_UPDATE, "artifactUpdate", Holds::One(ARTIFACT_UPDATE)),
];
const STATUS_UPDATE: Lists = &[ListField(wire::TaskStatusUpdateEvent::STATUS, "status", Holds::One(STATUS))];
const ARTIFACT_UPDATE: Lists = &[ListField(wire::TaskArtifactUpdateEvent::ARTIFACT, "artifact", Holds::One(ARTIFACT))];

/// Reads what a send is answered with.
///
/// # Errors
/// As [`read_update`].
pub(super) fn read_sent(message: Bytes, limits: &DecodeLimits) -> Result<Reply, ProtocolError> {
    use send_message_response::Payload;
    let mut check = Check::new(limits);
    let reply = match decode_answer::<wire::SendMessageResponse>(message, SENT, limits)?.payload {
        Some(Payload::Task(task)) => {
            Reply::SentTask(TaskView::whole(task.read(&mut check, format_args!("task")).into()))
        }
        Some(SentMessage(said)) => Reply::SentMessage(said.read(&mut check, format_args!("message")).into()),
        None => return Err(ProtocolError::invalid("result", "holds none of task and message")),
    };
    check.finish(reply)
}

/// Appends one update of a stream.
pub fn write_update(update: &Update, out: &mut Vec<u8>) {
    type Streamed = wire::StreamResponse;
    let mut fields = Fields(out);
    match update {
        Update::Task(view) => fields.message(Streamed::TASK, |fields| wire::Task::write(view, fields)),
        Update::Message(said) => fields.message(Streamed::SAID, |fields| wire::Message::write(said, fields)),
        Update::Status(update) => {
            fields.message(Streamed::STATUS_UPDATE, |fields| wire::TaskStatusUpdateEvent::write(update, fields));
        }
        Update::Artifact(update) => {
            fields.message(Streamed::ARTIFACT_UPDATE, |fields| wire::TaskArtifactUpdateEvent::write(update, fields));
        }
    }
}

/// Reads one update of a stream.
///
/// # Errors
/// [`ProtocolError::InvalidAgentResponse`] when the bytes are no such message, else [`ProtocolError::InvalidParams`] naming the
/// fields at fault.
pub fn read_update(message: Bytes, limits: &DecodeLimits) -> Result<Update, ProtocolError> {
    use stream_response::Payload;
    let mut check = Check::new(limits);
    let update = match decode_answer::<wire::StreamResponse>(message, UPDATE, limits)?.payload {
        Some(Payload::Task(task)) => Update::Task(TaskView::whole(task.read(&mut check, format_args!("task")).into())),
        Some(StreamedMessage(said)) => Update::Message(said.read(&mut check, format_args!("message")).into()),
        Some(Payload::StatusUpdate(update)) => Update::Status(update.read(&mut check, format_args!("statusUpdate"))),
        Some(Payload::ArtifactUpdate(update)) => {
            Update::Artifact(update.read(&mut check, format_args!("artifactUpdate")))
        }
        None => {
            let expected = "holds none of task, message, statusUpdate and artifactUpdate";
            return Err(ProtocolError::invalid("result", expected));
        }
    };
    check.finish(update)
}

impl wire::Task {
    pub(super) fn write(view: &TaskView, fields: &mut Fields<'_>) {
        let task = &*view.task;
        fields.text(Self::ID, task.id.as_str());
        fields.text(Self::CONTEXT_ID, task.context_id.as_str());
        fields.message(Self::STATUS, |fields| wire::TaskStatus::write(&task.status, fields));
        let artifacts = match view.artifacts {
            ArtifactView::Shown | ArtifactView::AlwaysListed => task.artifacts.as_slice(),
            ArtifactView::Omitted => &[],
        };
        for made in artifacts {
            fields.message(Self::ARTIFACTS, |fields| wire::Artifact::write(made, fields));
        }
        for said in view.history() {
            fields.message(Self::HISTORY, |fields| wire::Message::write(said, fields));
        }
        fields.object(Self::METADATA, task.metadata.as_ref());
    }

    /// Reads the task that stands at `at`. When it was begun is not told; the time of its status is the nearest that is.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Task {
        let status = wire::TaskStatus::read(self.status, check, format_args!("{at}.status"));
        let artifacts = ("artifacts", usize::MAX);
        let artifacts = each(check, format_args!("{at}.artifacts"), artifacts, self.artifacts, wire::Artifact::read);
        let history = ("messages", usize::MAX);
        let history = each(check, format_args!("{at}.history"), history, self.history, wire::Message::read);
        Task {
            id: check.required_id(format_args!("{at}.id"), text(&self.id)),
            context_id: check.id(format_args!("{at}.contextId"), text(&self.context_id)).unwrap_or_default(),
            artifacts: artifacts.into_iter().map(Into::into).collect(),
            history: history.into_iter().map(Into::into).collect(),
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
            created_at: status.timestamp,
            status,
            dialect: DIALECT,
        }
    }
}

impl wire::TaskStatus {
    fn write(status: &TaskStatus, fields: &mut Fields<'_>) {
        fields.number(Self::STATE, state_number(status.state).into());
        if let Some(said) = &status.message {
            fields.message(Self::SAID, |fields| wire::Message::write(said, fields));
        }
        fields.timestamp(Self::TIMESTAMP, status.timestamp);
    }

    fn read(status: Option<Self>, check: &mut Check<'_>, at: Arguments<'_>) -> TaskStatus {
        if status.is_none() {
            check.violation(at, "is required");
        }
        // One complaint about what is not there is enough.
        let status = status.unwrap_or_else(|| Self { state: state_number(TaskState::Submitted), ..Self::default() });
        TaskStatus {
            state: match status.state {
                // Of an agent of 0.3 that cannot determine the state; it is final.
                0 if DIALECT != Dialect::V1_0 => TaskState::Failed,
                state => read_state(check, format_args!("{at}.state"), state),
            },
            timestamp: decode_timestamp(check, format_args!("{at}.timestamp"), status.timestamp).unwrap_or_default(),
            message: status.said().map(|said| said.read(check, format_args!("{at}.message")).into()),
        }
    }
}

impl wire::Artifact {
    fn write(artifact: &Artifact, fields: &mut Fields<'_>) {
        fields.text(Self::ARTIFACT_ID, artifact.artifact_id.as_str());
        fields.text(Self::NAME, artifact.name().unwrap_or_default());
        fields.text(Self::DESCRIPTION, artifact.description().unwrap_or_default());
        for part in &artifact.parts {
            fields.message(Self::PARTS, |fields| wire::Part::write(part, fields));
        }
        fields.object(Self::METADATA, artifact.metadata());
        fields.texts(Self::EXTENSIONS, artifact.extensions().iter().map(String::as_str));
    }

    fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> Artifact {
        let artifact_id: ArtifactId = check.required_id(format_args!("{at}.artifactId"), text(&self.artifact_id));
        let parts = read_parts(check, format_args!("{at}.parts"), self.parts, wire::Part::read);
        Artifact::new(artifact_id, parts).with_details(ArtifactDetails {
            name: optional(self.name),
            description: optional(self.description),
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
            extensions: check.lines(format_args!("{at}.extensions"), list(self.extensions)),
        })
    }
}

impl wire::TaskStatusUpdateEvent {
    pub(super) fn write(update: &StatusUpdate, fields: &mut Fields<'_>) {
        fields.text(Self::TASK_ID, update.task_id.as_str());
        fields.text(Self::CONTEXT_ID, update.context_id.as_str());
        fields.message(Self::STATUS, |fields| wire::TaskStatus::write(&update.status, fields));
        Self::write_final(update, fields);
        fields.object(Self::METADATA, update.metadata.as_ref());
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> StatusUpdate {
        StatusUpdate {
            task_id: check.required_id(format_args!("{at}.taskId"), text(&self.task_id)),
            context_id: check.id(format_args!("{at}.contextId"), text(&self.context_id)).unwrap_or_default(),
            status: wire::TaskStatus::read(self.status, check, format_args!("{at}.status")),
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
        }
    }
}

impl wire::TaskArtifactUpdateEvent {
    pub(super) fn write(update: &ArtifactUpdate, fields: &mut Fields<'_>) {
        fields.text(Self::TASK_ID, update.task_id.as_str());
        fields.text(Self::CONTEXT_ID, update.context_id.as_str());
        fields.message(Self::ARTIFACT, |fields| wire::Artifact::write(&update.artifact, fields));
        fields.flag(Self::APPEND, update.append);
        fields.flag(Self::LAST_CHUNK, update.last_chunk);
        fields.object(Self::METADATA, update.metadata.as_ref());
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> ArtifactUpdate {
        let artifact = match self.artifact {
            Some(artifact) => artifact.read(check, format_args!("{at}.artifact")),
            None => {
                check.violation(format_args!("{at}.artifact"), "is required");
                Artifact::new("", Vec::new())
            }
        };
        ArtifactUpdate {
            task_id: check.required_id(format_args!("{at}.taskId"), text(&self.task_id)),
            context_id: check.id(format_args!("{at}.contextId"), text(&self.context_id)).unwrap_or_default(),
            artifact: artifact.into(),
            append: self.append,
            last_chunk: self.last_chunk,
            metadata: decode_object(check, format_args!("{at}.metadata"), self.metadata.as_ref()),
        }
    }
}
