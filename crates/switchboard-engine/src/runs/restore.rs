//! Continues an artifact from the last checkpoint, and undoes what an earlier run wrote to it after that. The content
//! at the checkpoint is read from the log, which keeps all commits while a task is open, and written again. If a run
//! dies while doing so, the checkpoint is unchanged, and the next run does the same.

use switchboard_core::error::ProtocolError;
use switchboard_core::lifecycle::{
    ArtifactWrite, AtCheckpoint, Event, Head, Restoration, RestoredPiece, RunCommand, WriteMode,
};
use switchboard_core::model::{Artifact, ArtifactId, Json};

use super::{Turn, TurnError};
use crate::ports::store::LoggedCommit;

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

    pub(super) async fn write_artifact(
        &self,
        artifact: Artifact,
        mode: WriteMode,
        last_chunk: bool,
        checkpoint: Option<Json>,
    ) -> Result<(), TurnError> {
        if let Some(value) = &checkpoint {
            self.check_checkpoint(value)?;
        }
        let artifact = artifact.into();
        let write = ArtifactWrite { artifact, mode, last_chunk, metadata: None, checkpoint, completes: false };
        self.write(RunCommand::Artifact(write)).await
    }
}
