//! Checks the log of one task: no commit is missing, each matches its row, and together they produce the task's row.
//! Where retention has removed commits, those that readers still need must exist.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension};
use switchboard_core::lifecycle::{ArtifactHead, Event, Head, is_needed_to_fold};
use switchboard_core::model::ArtifactId;
use switchboard_engine::ports::store::StoreError;

use super::super::error::Failure;
use super::super::fold::replaces_checkpoint;
use super::super::rows::{LOG_COLUMNS, LogRow, VERSION_MAX, log_no, version_of};
use super::tasks::Inspected;
use super::{Inspection, told};
use crate::checksum::ContentHash;
use crate::record::{Chains, ChunkSource, Want, decode, encode, signed};

/// The state that the commits checked so far produce.
struct LogCheck {
    head: Head,
    chains: Chains,
    /// The last commit with only a checkpoint and artifact writes, and the commit it points back to.
    checkpoint: Option<(i64, i64)>,
    version: i64,
    chunks: u64,
}

struct CommitRow {
    version: i64,
    last_seq: i64,
    visible: i64,
    prev_story: i64,
    prev_artifact: i64,
}

impl Inspection<'_> {
    pub(super) fn commits(&mut self, task: &Inspected) -> Result<(), Failure> {
        let connection = self.connection;
        let (task_no, stored) = (task.row.task_no, &task.row.head);
        let id = stored.id.as_str();
        let head = Head::unopened(stored.id.clone(), stored.context_id.clone(), stored.agent.clone());
        let mut check = LogCheck { head, chains: Chains::default(), checkpoint: None, version: 0, chunks: 0 };
        let sql = format!("SELECT {LOG_COLUMNS} FROM log WHERE log_no BETWEEN ?1 AND ?2 ORDER BY log_no");
        let mut select = connection.prepare_cached(&sql)?;
        let mut rows = select.query([log_no(task_no, 0), log_no(task_no, signed(VERSION_MAX))])?;
        while let Some(row) = rows.next()? {
            let LogRow { columns, record } = LogRow::read_unchecked(row)?;
            let commit = CommitRow {
                version: version_of(columns.log_no),
                last_seq: columns.last_seq,
                visible: columns.visible,
                prev_story: columns.prev_story,
                prev_artifact: columns.prev_artifact,
            };
            self.checked.commits += 1;
            if row.get::<_, i64>(7)? != columns.checksum(ContentHash::of(record.as_bytes())) {
                self.fault(Some(id), format!("commit {} does not match its checksum", commit.version));
            }
            self.keys_filed += u64::from(columns.accept_expires.is_some_and(|expires| self.is_kept(expires)));
            if commit.version > check.version.max(task.floor_version) + 1 {
                // The effect of the missing commits is not known, so the later ones cannot be checked.
                let (first, last) = (check.version.max(task.floor_version) + 1, commit.version - 1);
                self.fault(Some(id), format!("commits {first} to {last} are missing"));
                return Ok(());
            }
            if let Err(what) = self.commit(task, &mut check, &commit, record) {
                self.fault(Some(id), format!("commit {}: {what}", commit.version));
                return Ok(());
            }
        }
        if check.version != signed(stored.version) {
            self.fault(Some(id), format!("its log ends at commit {}, and it is at {}", check.version, stored.version));
            return Ok(());
        }
        self.task_is_its_log(task, &check)
    }

    /// Applies one commit, or returns what is wrong with it.
    fn commit(
        &mut self,
        task: &Inspected,
        check: &mut LogCheck,
        commit: &CommitRow,
        record: &str,
    ) -> Result<(), String> {
        let chunks = OwnChunks { connection: self.connection, read: RefCell::default() };
        let events = decode(record, Want::Everything, &chunks).map_err(|error| told(&error))?;
        let visible = events.iter().filter(|event| event.is_visible()).count();
        let before = check.head.clone();
        check.head.apply_commit(&events);
        check.version = commit.version;
        self.checked.events += visible as u64;
        self.chunks(task.row.task_no, check, &events, chunks.read.into_inner())?;

        if commit.visible != signed(visible as u64) {
            return Err(format!("it says that it has {} events, and has {visible}", commit.visible));
        }
        if task.floor_version == 0 {
            self.whole(check, commit, &before, &events)
        } else {
            self.kept(task, check, commit)
        }
    }

    /// Checks a commit of a complete log: everything about it follows from the commits before it.
    fn whole(
        &mut self,
        check: &mut LogCheck,
        commit: &CommitRow,
        before: &Head,
        events: &[Event],
    ) -> Result<(), String> {
        let Chains { mut story, artifact, .. } = check.chains;
        if replaces_checkpoint(events) {
            // A checkpoint points to the commit before the checkpoint that it replaces.
            if let Some((replaced, below)) = check.checkpoint.filter(|(replaced, _)| *replaced == story) {
                story = if commit.prev_story == replaced { replaced } else { below };
            }
            check.checkpoint = Some((commit.version, commit.prev_story));
        }
        check.chains = check.chains.after(commit.version, events, is_needed_to_fold(before.state, events));
        if commit.last_seq != signed(check.head.seq) {
            return Err(format!("it ends with event {}, and should with {}", commit.last_seq, check.head.seq));
        }
        if (commit.prev_story, commit.prev_artifact) != (story, artifact) {
            let found = (commit.prev_story, commit.prev_artifact);
            return Err(format!("it points back to commits {found:?}, and should to {:?}", (story, artifact)));
        }
        if check.head.fence < before.fence {
            return Err(format!("its fence {} is below {}", check.head.fence, before.fence));
        }
        if before.is_closed() && events.iter().any(Event::is_visible) {
            return Err("something happened after the end".to_owned());
        }
        Ok(())
    }

    /// Checks a commit of a compacted log: the commits it points back to must exist.
    fn kept(&mut self, task: &Inspected, check: &mut LogCheck, commit: &CommitRow) -> Result<(), String> {
        let known = check.chains;
        check.chains = Chains { story: commit.prev_story, artifact: commit.prev_artifact, ..known };
        for (pointed, before) in [(commit.prev_story, known.story), (commit.prev_artifact, known.artifact)] {
            if pointed != before && !self.has_commit(task.row.task_no, pointed).map_err(|failure| told(&failure.0))? {
                return Err(format!("it points back to commit {pointed}, which is missing"));
            }
        }
        Ok(())
    }

    fn has_commit(&self, task_no: i64, version: i64) -> Result<bool, Failure> {
        let mut select = self.connection.prepare_cached("SELECT 1 FROM log WHERE log_no = ?1")?;
        Ok(version == 0 || select.exists([log_no(task_no, version)])?)
    }

    /// The task's row must be what its log produces.
    fn task_is_its_log(&mut self, task: &Inspected, check: &LogCheck) -> Result<(), Failure> {
        let (stored, id) = (&task.row.head, task.row.head.id.as_str());
        if task.floor_version == 0 {
            // These two do not come from events: webhooks are counted elsewhere, and the engine sets the deadline.
            let artifacts = as_recorded(stored, &check.head);
            let made =
                Head { push_configs: stored.push_configs, deadline: stored.deadline, artifacts, ..check.head.clone() };
            for what in differences(stored, &made) {
                self.fault(Some(id), what);
            }
            if task.row.chains != check.chains {
                let what =
                    format!("it is read from commits {:?}, and should be from {:?}", task.row.chains, check.chains);
                self.fault(Some(id), what);
            }
        } else {
            let sizes = |head: &Head| -> Vec<(ArtifactId, u64, u64)> {
                head.artifacts.iter().map(|artifact| (artifact.id.clone(), artifact.parts, artifact.bytes)).collect()
            };
            if sizes(stored) != sizes(&check.head) {
                self.fault(Some(id), "its artifacts are not those of its log");
            }
            let Chains { story, artifact, status } = task.row.chains;
            for version in [story, artifact, status] {
                if !self.has_commit(task.row.task_no, version)? {
                    self.fault(Some(id), format!("it is read from commit {version}, which is missing"));
                }
            }
        }
        let mut count = self.connection.prepare_cached("SELECT count(*) FROM chunk WHERE task_no = ?1")?;
        let chunks: i64 = count.query_row([task.row.task_no], |row| row.get(0))?;
        if chunks != signed(check.chunks) {
            let what = format!("{chunks} pieces of content are kept for it, and its log has {}", check.chunks);
            self.fault(Some(id), what);
        }
        Ok(())
    }

    /// The chunks that a commit refers to must belong to it and have the positions that a range read expects.
    fn chunks(
        &mut self,
        task_no: i64,
        check: &mut LogCheck,
        events: &[Event],
        read: VecDeque<(i64, i64)>,
    ) -> Result<(), String> {
        if read.is_empty() {
            return Ok(());
        }
        // Encoding the commit again gives the position of each chunk; it takes numbers in the order in which they were
        // read.
        let numbers = RefCell::new(read);
        let again = encode(events, &check.head, &|_| numbers.borrow_mut().pop_front().map_or(0, |(first, _)| first));
        for chunk in &again.chunks {
            let place = (task_no, check.version, chunk.artifact_id.as_ref().map(|id| id.as_str().to_owned()));
            let within = (signed(chunk.part), signed(chunk.start), signed(chunk.bytes.len() as u64));
            let stored = stored_position(self.connection, chunk.number).map_err(|failure| told(&failure.0))?;
            if stored != Some((place, within)) {
                return Err(format!("content piece {} is not its own, or lies elsewhere", chunk.number));
            }
            self.checked.chunk_bytes += chunk.bytes.len() as u64;
        }
        check.chunks += again.chunks.len() as u64;
        self.checked.chunks += again.chunks.len() as u64;
        Ok(())
    }
}

/// Where a chunk belongs (task, commit, artifact) and its position there (part, start, length).
type ChunkPosition = ((i64, i64, Option<String>), (i64, i64, i64));

fn stored_position(connection: &Connection, chunk_no: i64) -> Result<Option<ChunkPosition>, Failure> {
    let mut select = connection.prepare_cached(
        "SELECT task_no, version, artifact_id, part, start, length(bytes) FROM chunk WHERE chunk_no = ?1",
    )?;
    let place = select.query_row([chunk_no], |row| {
        Ok(((row.get(0)?, row.get(1)?, row.get(2)?), (row.get(3)?, row.get(4)?, row.get(5)?)))
    });
    Ok(place.optional()?)
}

/// Reads chunks, and remembers which.
struct OwnChunks<'c> {
    connection: &'c Connection,
    read: RefCell<VecDeque<(i64, i64)>>,
}

impl ChunkSource for OwnChunks<'_> {
    fn read(&self, first: i64, count: i64) -> Result<Vec<u8>, StoreError> {
        self.read.borrow_mut().push_back((first, count));
        super::super::fold::Chunks(self.connection).read(first, count)
    }
}

/// The artifacts that a log produces, without the values that were not recorded yet when the row was written.
fn as_recorded(stored: &Head, made: &Head) -> Arc<[ArtifactHead]> {
    let recorded = |made: &ArtifactHead| match stored.artifact(made.id.as_str()) {
        Some(ArtifactHead { fence: 0, checkpoint, .. }) => {
            ArtifactHead { fence: 0, checkpoint: *checkpoint, ..made.clone() }
        }
        Some(_) | None => made.clone(),
    };
    made.artifacts.iter().map(recorded).collect()
}

/// The fields in which a row differs from what its log produces.
fn differences(stored: &Head, made: &Head) -> Vec<String> {
    // All fields are named here, so that the compiler reports an added field.
    let Head {
        id: _,
        context_id: _,
        agent: _,
        phase,
        state,
        status_at,
        version,
        seq,
        turns,
        turn,
        artifacts,
        cancel_requested,
        running,
        fence,
        attempt,
        push_configs: _,
        deadline: _,
    } = stored;
    let mut found = Vec::new();
    let mut compare = |field: &str, stored: &dyn std::fmt::Debug, made: &dyn std::fmt::Debug| {
        let (stored, made) = (format!("{stored:?}"), format!("{made:?}"));
        if stored != made {
            found.push(format!("its {field} is {stored}, and its log says {made}"));
        }
    };
    compare("phase", phase, &made.phase);
    compare("state", state, &made.state);
    compare("time of status", status_at, &made.status_at);
    compare("version", version, &made.version);
    compare("last event", seq, &made.seq);
    compare("count of messages", turns, &made.turns);
    compare("turn", turn, &made.turn);
    compare("artifacts", artifacts, &made.artifacts);
    compare("request to cancel", cancel_requested, &made.cancel_requested);
    compare("run", running, &made.running);
    compare("fence", fence, &made.fence);
    compare("attempt", attempt, &made.attempt);
    found
}
