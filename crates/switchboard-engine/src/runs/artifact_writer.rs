//! Writes one artifact in chunks. Each chunk is an event of its own; when the call returns, it is durable and followers
//! have been notified.
//!
//! A later attempt continues an artifact from the last checkpoint, and undoes what an earlier run wrote to it after
//! that. The content at the checkpoint is read from the log, which keeps all commits while a task is open, and written
//! again. If a run dies while doing so, the checkpoint is unchanged, and the next run does the same.

use std::future::ready;

use futures_util::future::Either;
use serde::Serialize;
use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{
    ArtifactWrite, AtCheckpoint, Event, Head, Restoration, RestoredPiece, RunCommand, WriteMode,
};
use switchboard_core::model::{Artifact, ArtifactId, Json, Part, PartContent};

use super::agent_error::TurnError;
use super::turn::Turn;
use super::turn::{Written, checkpoint_json};
use crate::ports::store::LoggedCommit;

/// An artifact being written. The first chunk begins it, the others are appended.
///
/// [`ArtifactWriter::finish`] marks its chunk as the last one. An agent that does not know in advance which chunk is
/// the last can simply stop writing.
///
/// If the run dies, the first chunk of the next attempt replaces what the dead run has written. An agent that wants to
/// continue instead writes checkpoints along with its chunks, and begins with [`ArtifactWriter::resume`].
#[derive(Debug)]
pub struct ArtifactWriter {
    turn: Turn,
    artifact: Artifact,
    begun: bool,
    resume: bool,
}

impl ArtifactWriter {
    pub(crate) fn new(turn: Turn, id: ArtifactId) -> Self {
        Self { turn, artifact: Artifact::new(id, Vec::new()), begun: false, resume: false }
    }

    /// Sets an id of your own. Use one artifact per turn: should a later turn die and be tried again without a
    /// checkpoint, its first write replaces the artifact, including what earlier turns wrote to it.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<ArtifactId>) -> Self {
        self.artifact.artifact_id = id.into();
        self
    }

    /// Sets a name for people. It is sent with the first chunk.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.artifact = self.artifact.with_name(name);
        self
    }

    /// Sets a description for people. It is sent with the first chunk.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.artifact = self.artifact.with_description(description);
        self
    }

    /// Sets metadata about the artifact, which must be a JSON object. It is sent with the first chunk.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.artifact = self.artifact.with_metadata(metadata);
        self
    }

    /// Continues the artifact from the last checkpoint of this turn instead of replacing it: the first chunk is
    /// appended to what the artifact held at the checkpoint. What a dead attempt wrote after the checkpoint is undone
    /// first; followers see that as an update that replaces the artifact. There is nothing to undo if every chunk is
    /// written [with a checkpoint](ArtifactWriter::text_with_checkpoint). Without a checkpoint, or if it was written
    /// before the artifact was begun, this changes nothing.
    ///
    /// ```no_run
    /// # use switchboard_engine::runs::{AgentError, Turn};
    /// async fn count(turn: Turn) -> Result<(), AgentError> {
    ///     let mut writer = turn.artifact_writer().resume();
    ///     let done: u32 = if writer.resumes() { turn.checkpoint_as()?.unwrap_or(0) } else { 0 };
    ///     for number in done + 1..=100 {
    ///         writer.text_with_checkpoint(format!("{number}\n"), &number).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn resume(mut self) -> Self {
        self.resume = true;
        self
    }

    /// Whether the next chunk continues what was written before: by this writer, or by an earlier attempt whose
    /// checkpoint recorded this artifact. If not, the next chunk begins it.
    #[must_use]
    pub fn resumes(&self) -> bool {
        self.begun || (self.resume && !matches!(self.turn.find_artifact(self.id()), ResumePoint::Nothing))
    }

    /// The id of the artifact: yours, or one that is the same in every attempt.
    #[must_use]
    pub fn id(&self) -> &ArtifactId {
        &self.artifact.artifact_id
    }

    /// Writes a chunk of text. An empty one after the first is left out.
    ///
    /// # Errors
    /// When the task has ended, a limit is exceeded, or the store did not take it.
    pub async fn text(&mut self, text: impl Into<String>) -> Result<(), TurnError> {
        self.chunk(vec![Part::text(text)], false, None).await
    }

    /// Writes a chunk of any parts.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text`].
    pub async fn parts(&mut self, parts: Vec<Part>) -> Result<(), TurnError> {
        self.chunk(parts, false, None).await
    }

    /// Writes a chunk of text and a [checkpoint](Turn::checkpoint) in one commit: the next attempt finds both or neither.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text`] and [`Turn::checkpoint`].
    pub async fn text_with_checkpoint(
        &mut self,
        text: impl Into<String>,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        self.chunk(vec![Part::text(text)], false, Some(checkpoint_json(checkpoint)?)).await
    }

    /// Writes a chunk of any parts and a checkpoint in one commit.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text_with_checkpoint`].
    pub async fn parts_with_checkpoint(
        &mut self,
        parts: Vec<Part>,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        self.chunk(parts, false, Some(checkpoint_json(checkpoint)?)).await
    }

    /// Writes the last chunk. If nothing is left to write, nothing is written, and no chunk is marked as the last.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text`].
    pub async fn finish(mut self, parts: Vec<Part>) -> Result<(), TurnError> {
        self.chunk(parts, true, None).await
    }

    /// Writes the last chunk and a checkpoint in one commit.
    ///
    /// # Errors
    /// As [`ArtifactWriter::text_with_checkpoint`].
    pub async fn finish_with_checkpoint(
        mut self,
        parts: Vec<Part>,
        checkpoint: &(impl Serialize + ?Sized),
    ) -> Result<(), TurnError> {
        self.chunk(parts, true, Some(checkpoint_json(checkpoint)?)).await
    }

    async fn chunk(&mut self, mut parts: Vec<Part>, last: bool, checkpoint: Option<Json>) -> Result<(), TurnError> {
        let mode = match (self.begun, self.resume) {
            (true, _) => WriteMode::Append,
            // Boxed, because few writers need it, and an agent's future reserves memory for everything that it may
            // await.
            (false, true) => Box::pin(self.turn.resume_artifact(&self.artifact.artifact_id)).await?,
            (false, false) => WriteMode::Replace,
        };
        let begins = mode == WriteMode::Replace;
        if !begins {
            parts.retain(says_something);
        }
        if parts.is_empty() && (!begins || last) {
            return match checkpoint {
                Some(value) => self.turn.write_checkpoint(value).await,
                None => Ok(()),
            };
        }
        let chunk = match begins {
            true => self.artifact.copy_with_parts(parts),
            false => Artifact::new(self.artifact.artifact_id.clone(), parts),
        };
        self.turn.write_artifact(chunk, mode, last, checkpoint).await?;
        self.begun = true;
        Ok(())
    }
}

/// Whether a part adds anything to an artifact that has others.
fn says_something(part: &Part) -> bool {
    part.details().is_some() || !matches!(&part.content, PartContent::Text(text) if text.is_empty())
}

/// Commits read from the log at once.
const COMMITS_PER_PAGE: usize = 256;

/// The largest update of a restored artifact, unless a single write of the agent was larger.
const PIECE_BYTES_MAX: u64 = 1 << 20;

/// What a run finds of an artifact that it wants to continue.
pub(super) enum ResumePoint {
    /// No checkpoint of this turn recorded the artifact: it is begun again.
    Nothing,
    /// This run has already written to the artifact.
    Own,
    AtCheckpoint(AtCheckpoint),
}

impl ResumePoint {
    pub(super) fn of(head: &Head, id: &ArtifactId, fence: u64) -> Self {
        match head.artifact(id.as_str()) {
            Some(known) if known.turn == head.turn && known.fence == fence => Self::Own,
            Some(known) => known.checkpoint.map_or(Self::Nothing, Self::AtCheckpoint),
            None => Self::Nothing,
        }
    }
}

impl Turn {
    /// Begins an artifact that is written in chunks, or goes on with it after an interruption: see
    /// [`ArtifactWriter::resume`].
    #[must_use]
    pub fn artifact_writer(&self) -> ArtifactWriter {
        ArtifactWriter::new(self.clone(), self.next_artifact_id())
    }

    /// Makes sure that an artifact holds what the last checkpoint recorded, and returns how to write to it next.
    pub(super) async fn resume_artifact(&self, id: &ArtifactId) -> Result<WriteMode, TurnError> {
        match self.find_artifact(id) {
            ResumePoint::Nothing => Ok(WriteMode::Replace),
            ResumePoint::Own => Ok(WriteMode::Append),
            ResumePoint::AtCheckpoint(recorded) if recorded.unchanged => Ok(WriteMode::Resume),
            ResumePoint::AtCheckpoint(recorded) => {
                self.restore_artifact(id, recorded).await?;
                Ok(WriteMode::Append)
            }
        }
    }

    async fn restore_artifact(&self, id: &ArtifactId, recorded: AtCheckpoint) -> Result<(), TurnError> {
        let mut restoration = Restoration::new(id.clone(), PIECE_BYTES_MAX);
        let mut after_seq = 0;
        while after_seq < recorded.seq {
            let commits = self.read_log(after_seq, COMMITS_PER_PAGE).await?;
            if commits.is_empty() {
                break;
            }
            for commit in commits {
                let visible = commit.events.iter().filter(|event| event.is_visible());
                for (seq, event) in (commit.first_seq..=recorded.seq).zip(visible) {
                    after_seq = seq;
                    if let Event::ArtifactWritten { artifact, append, .. } = event
                        && let Some(piece) = restoration.take(artifact, *append)
                    {
                        self.write_piece(piece).await?;
                    }
                }
            }
        }
        if let Some(piece) = restoration.finish() {
            self.write_piece(piece).await?;
        }
        let restored = self.with_head(|head| head.artifact(id.as_str()).map(|now| (now.parts, now.bytes)));
        if restored == Some((recorded.parts, recorded.bytes)) {
            return Ok(());
        }
        let reason = format!("artifact {id} could not be brought back to what the checkpoint recorded");
        Err(TurnError::Refused(ProtocolError::InvalidAgentResponse { reason }))
    }

    pub(super) fn find_artifact(&self, id: &ArtifactId) -> ResumePoint {
        self.with_head(|head| ResumePoint::of(head, id, self.fence()))
    }

    /// Commits with visible events above `after_seq`, at most `commits_max`.
    async fn read_log(&self, after_seq: u64, commits_max: usize) -> Result<Vec<LoggedCommit>, TurnError> {
        let Some(key) = self.record().key() else { return Ok(Vec::new()) };
        match self.engine().store.log(key, after_seq, commits_max).await {
            Ok(page) => Ok(page.commits),
            Err(error) => {
                let _ = self.engine().store_failed(&error);
                self.note_unwritten();
                Err(TurnError::Unavailable)
            }
        }
    }

    async fn write_piece(&self, RestoredPiece { artifact, mode }: RestoredPiece) -> Result<(), TurnError> {
        self.write_artifact(artifact, mode, false, None).await
    }

    pub(super) fn write_artifact(
        &self,
        artifact: Artifact,
        mode: WriteMode,
        last_chunk: bool,
        checkpoint: Option<Json>,
    ) -> Written<'_> {
        if let Some(Err(refused)) = checkpoint.as_ref().map(|value| self.check_checkpoint(value)) {
            return Either::Left(ready(Err(refused)));
        }
        let artifact = artifact.into();
        let write = ArtifactWrite { artifact, mode, last_chunk, metadata: None, checkpoint, completes: false };
        self.write(RunCommand::Artifact(write))
    }
}
