//! A task, its status, its artifacts, and what a stream says of them.

use std::fmt::Arguments;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::dialect::json::{Check, List, NameOrNumber, Obj, Raw, Text, Time};
use crate::model::{self, ArtifactDetails, ArtifactId, ArtifactView, Dialect, TaskState, TaskView, Timestamp};

use super::Spelling;
use super::message::{FromModel, Items, Message, Parts, read_parts, texts_of};

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Obj<Status<'a>>>,
    #[serde(borrow)]
    artifacts: Option<Items<'a, Obj<Artifact<'a>>, Arc<model::Artifact>>>,
    #[serde(borrow)]
    history: Option<Items<'a, Obj<Message<'a>>, Arc<model::Message>>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
struct Status<'a> {
    #[serde(borrow)]
    state: Option<NameOrNumber<'a>>,
    /// Boxed, because few statuses have one and each would be larger by its size.
    #[serde(borrow, alias = "update")]
    message: Option<Box<Obj<Message<'a>>>>,
    #[serde(borrow)]
    timestamp: Option<Moment<'a>>,
}

/// A point in time: as it was sent (it is parsed later, so that an error names the field), or as it will be written.
enum Moment<'a> {
    Sent(Text<'a>),
    Known(Timestamp),
}

impl<'de: 'a, 'a> Deserialize<'de> for Moment<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(Self::Sent)
    }
}

impl Serialize for Moment<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Sent(text) => text.serialize(serializer),
            Self::Known(at) => Time(*at).serialize(serializer),
        }
    }
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Artifact<'a> {
    #[serde(borrow, alias = "artifact_id")]
    artifact_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    parts: Option<Parts<'a>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    extensions: Option<List<Text<'a>>>,
}

/// What a stream says, as it is written: the one member says what it is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Wrapped<'a> {
    Task(Task<'a>),
    Message(Message<'a>),
    StatusUpdate(StatusUpdate<'a>),
    ArtifactUpdate(ArtifactUpdate<'a>),
}

/// The same as it is read: other members may stand beside. Boxed, so that the struct is not as large as all of them
/// together.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamResponse<'a> {
    #[serde(borrow)]
    pub(super) task: Option<Box<Obj<Task<'a>>>>,
    #[serde(borrow)]
    pub(super) message: Option<Box<Obj<Message<'a>>>>,
    #[serde(borrow, alias = "status_update")]
    pub(super) status_update: Option<Box<Obj<StatusUpdate<'a>>>>,
    #[serde(borrow, alias = "artifact_update")]
    pub(super) artifact_update: Option<Box<Obj<ArtifactUpdate<'a>>>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusUpdate<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    task_id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Obj<Status<'a>>>,
    #[serde(rename = "final")]
    is_final: Option<bool>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactUpdate<'a> {
    #[serde(borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    task_id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    context_id: Option<Text<'a>>,
    #[serde(borrow)]
    artifact: Option<Obj<Artifact<'a>>>,
    append: Option<bool>,
    #[serde(alias = "last_chunk")]
    last_chunk: Option<bool>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

impl<'a> Task<'a> {
    /// As much of the task as the view shows.
    pub(super) fn of(view: &'a TaskView, spelling: &'a Spelling) -> Self {
        let task = &*view.task;
        let lists_artifacts = match view.artifacts {
            ArtifactView::Omitted => false,
            ArtifactView::AlwaysListed if spelling.lists_no_artifacts => true,
            ArtifactView::Shown | ArtifactView::AlwaysListed => !task.artifacts.is_empty(),
        };
        let history = view.history();
        Self {
            kind: (!spelling.wraps).then_some(Text::from("task")),
            id: Some(Text::from(task.id.as_str())),
            context_id: Some(Text::from(task.context_id.as_str())),
            status: Some(Obj(Status::of(&task.status, spelling))),
            artifacts: lists_artifacts.then(|| Items::of(&task.artifacts, spelling)),
            history: (!history.is_empty()).then(|| Items::of(history, spelling)),
            metadata: task.metadata.as_ref().map(Raw::from),
        }
    }

    /// Reads the task that stands at `at`. When it was begun is not told; the time of its status is the nearest that is.
    pub(super) fn read(
        self,
        check: &mut Check<'_>,
        at: Arguments<'_>,
        spelling: &Spelling,
        dialect: Dialect,
    ) -> model::Task {
        let status = Status::read(self.status, check, format_args!("{at}.status"), spelling);
        let artifacts = check.bounded(
            format_args!("{at}.artifacts"),
            "artifacts",
            usize::MAX,
            list(self.artifacts.map(Items::read)),
        );
        let history =
            check.bounded(format_args!("{at}.history"), "messages", usize::MAX, list(self.history.map(Items::read)));
        model::Task {
            id: check.required_id(format_args!("{at}.id"), self.id),
            context_id: check.id(format_args!("{at}.contextId"), self.context_id).unwrap_or_default(),
            artifacts: artifacts
                .into_iter()
                .enumerate()
                .map(|(i, Obj(artifact))| artifact.read(check, format_args!("{at}.artifacts[{i}]"), spelling).into())
                .collect(),
            history: history
                .into_iter()
                .enumerate()
                .map(|(i, Obj(message))| message.read(check, format_args!("{at}.history[{i}]"), spelling).into())
                .collect(),
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            created_at: status.timestamp,
            status,
            dialect,
        }
    }
}

fn list<T>(list: Option<List<T>>) -> List<T> {
    list.unwrap_or_else(|| List { items: Vec::new(), total: 0 })
}

impl<'a> Status<'a> {
    fn of(status: &'a model::TaskStatus, spelling: &'a Spelling) -> Self {
        Self {
            state: Some(NameOrNumber::Name(spelling.state(status.state).into())),
            message: status.message.as_deref().map(|message| Box::new(Obj(Message::of(message, spelling)))),
            timestamp: Some(Moment::Known(status.timestamp)),
        }
    }

    fn read(
        status: Option<Obj<Self>>,
        check: &mut Check<'_>,
        at: Arguments<'_>,
        spelling: &Spelling,
    ) -> model::TaskStatus {
        let Obj(status) = status.unwrap_or_else(|| {
            check.violation(at, "is required");
            Obj(Self {
                state: Some(NameOrNumber::Name(spelling.state(TaskState::Submitted).into())),
                ..Self::default()
            })
        });
        let state = match status.state.as_ref().map(|sent| (sent, spelling.read_state(sent))) {
            Some((_, Some(Some(state)))) => state,
            Some((NameOrNumber::Name(name), _)) if spelling.undetermined == Some(&**name) => TaskState::Failed,
            Some((_, Some(None))) => TaskState::Unspecified,
            Some((sent, None)) => {
                check.violation(format_args!("{at}.state"), format!("{sent} is not a task state"));
                TaskState::Submitted
            }
            None => {
                check.violation(format_args!("{at}.state"), "is required");
                TaskState::Submitted
            }
        };
        let timestamp = match status.timestamp {
            Some(Moment::Sent(text)) => check.timestamp(format_args!("{at}.timestamp"), Some(text)),
            Some(Moment::Known(known)) => Some(known),
            None => None,
        };
        model::TaskStatus {
            state,
            message: status
                .message
                .map(|message| Arc::new(message.0.read(check, format_args!("{at}.message"), spelling))),
            timestamp: timestamp.unwrap_or_default(),
        }
    }
}

impl<'a> FromModel<'a, Arc<model::Artifact>> for Obj<Artifact<'a>> {
    #[inline]
    fn of(artifact: &'a Arc<model::Artifact>, spelling: &'a Spelling) -> Self {
        Obj(Artifact::of(artifact, spelling))
    }
}

impl<'a> Artifact<'a> {
    fn of(artifact: &'a model::Artifact, spelling: &'a Spelling) -> Self {
        Self {
            artifact_id: Some(Text::from(artifact.artifact_id.as_str())),
            name: artifact.name().map(Text::from),
            description: artifact.description().map(Text::from),
            parts: Some(Items::of(&artifact.parts, spelling)),
            metadata: artifact.metadata().map(Raw::from),
            extensions: texts_of(artifact.extensions().iter().map(String::as_str)),
        }
    }

    fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::Artifact {
        let artifact_id: ArtifactId = check.required_id(format_args!("{at}.artifactId"), self.artifact_id);
        let parts = read_parts(check, format_args!("{at}.parts"), self.parts, spelling);
        model::Artifact::new(artifact_id, parts).with_details(ArtifactDetails {
            name: self.name.map(String::from),
            description: self.description.map(String::from),
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            extensions: check.lines(format_args!("{at}.extensions"), self.extensions),
        })
    }
}

impl<'a> StatusUpdate<'a> {
    pub(super) fn of(update: &'a model::StatusUpdate, spelling: &'a Spelling) -> Self {
        Self {
            kind: (!spelling.wraps).then_some(Text::from("status-update")),
            task_id: Some(Text::from(update.task_id.as_str())),
            context_id: Some(Text::from(update.context_id.as_str())),
            status: Some(Obj(Status::of(&update.status, spelling))),
            is_final: spelling.final_status.of(ends_stream(update.status.state)),
            metadata: update.metadata.as_ref().map(Raw::from),
        }
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::StatusUpdate {
        model::StatusUpdate {
            task_id: check.required_id(format_args!("{at}.taskId"), self.task_id),
            context_id: check.id(format_args!("{at}.contextId"), self.context_id).unwrap_or_default(),
            status: Status::read(self.status, check, format_args!("{at}.status"), spelling),
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
        }
    }
}

impl<'a> ArtifactUpdate<'a> {
    pub(super) fn of(update: &'a model::ArtifactUpdate, spelling: &'a Spelling) -> Self {
        Self {
            kind: (!spelling.wraps).then_some(Text::from("artifact-update")),
            task_id: Some(Text::from(update.task_id.as_str())),
            context_id: Some(Text::from(update.context_id.as_str())),
            artifact: Some(Obj(Artifact::of(&update.artifact, spelling))),
            append: spelling.chunks.of(update.append),
            last_chunk: spelling.chunks.of(update.last_chunk),
            metadata: update.metadata.as_ref().map(Raw::from),
        }
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::ArtifactUpdate {
        let Obj(artifact) = self.artifact.unwrap_or_else(|| {
            check.violation(format_args!("{at}.artifact"), "is required");
            Obj(Artifact::default())
        });
        model::ArtifactUpdate {
            task_id: check.required_id(format_args!("{at}.taskId"), self.task_id),
            context_id: check.id(format_args!("{at}.contextId"), self.context_id).unwrap_or_default(),
            artifact: artifact.read(check, format_args!("{at}.artifact"), spelling).into(),
            append: self.append.unwrap_or_default(),
            last_chunk: self.last_chunk.unwrap_or_default(),
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
        }
    }
}

/// Whether a 0.3 client stops reading here: at the end of a task, and where it waits for the next message.
#[must_use]
pub fn ends_stream(state: TaskState) -> bool {
    state.is_terminal() || state == TaskState::InputRequired
}
