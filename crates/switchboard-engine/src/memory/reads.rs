//! What is read from the tables: the tasks of one scope, newest status first, with a cursor that later commits do not
//! shift; large artifacts that are left out of a task's view, and their bytes for downloads; a task as it was when a
//! message was accepted, folded again from its log.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use switchboard_core::lifecycle::{Event, Folded};
use switchboard_core::model::{Artifact, ArtifactId, Measure, TaskId, Timestamp, content_bytes};

use super::tables::{LogEntry, Record, Tables};
use crate::ports::download::{ArtifactCursor, ArtifactPiece, ReadPosition, StoredArtifact};
use crate::ports::outline::{Outline, OutlinedPart, PartKind, too_large};
use crate::ports::store::{
    Accepted, AcceptedTask, ListCursor, ListPage, ListQuery, Scope, StoreError, StoredTask, TaskKey,
};

impl Tables {
    pub(super) fn list(&self, scope: &Scope, query: &ListQuery) -> ListPage {
        let mut page = ListPage { tasks: Vec::new(), next: None, total: 0 };
        let Some(listed) = self.listed.get(scope) else { return page };
        let since = query.status_since.unwrap_or(Timestamp::from_ms(i64::MIN));
        let oldest = Bound::Included((since, TaskKey(i64::MIN)));
        let newest = query.after.map_or(Bound::Unbounded, |after| Bound::Excluded((after.status_at, after.key)));
        let matches = |key: &TaskKey| self.records.get(key).filter(|record| record.matches(query));

        page.total = match (&query.context_id, query.state) {
            (None, None) if query.status_since.is_none() => listed.len() as u64,
            _ => listed.range((oldest, Bound::Unbounded)).filter(|(_, key)| matches(key).is_some()).count() as u64,
        };
        let before_oldest = query.after.is_some_and(|after| (after.status_at, after.key) <= (since, TaskKey(i64::MIN)));
        if before_oldest || query.page_size == 0 {
            return page;
        }
        let range = listed.range((oldest, newest)).rev();
        let mut found = range.filter_map(|(at, key)| Some((*at, *key, matches(key)?)));
        let mut left = query.bytes_max;
        for (status_at, key, record) in found.by_ref().take(query.page_size) {
            let stored = match query.artifacts {
                true => record.stored_within(key, query.bytes_max),
                false => record.stored(key),
            };
            let bytes = Measure::ABOUT.task(&stored.folded.task, query.artifacts);
            if bytes > left && !page.tasks.is_empty() {
                return page;
            }
            left = left.saturating_sub(bytes);
            page.tasks.push(stored);
            page.next = Some(ListCursor { status_at, key });
        }
        if found.next().is_none() {
            page.next = None;
        }
        page
    }
}

impl Record {
    fn matches(&self, query: &ListQuery) -> bool {
        query.context_id.as_ref().is_none_or(|context| *context == self.head.context_id)
            && query.state.is_none_or(|state| state == self.head.state)
    }
}

/// The version of a record after its first commit.
const FIRST_VERSION: u64 = 1;

impl Record {
    /// The record, without artifact contents that do not fit into `bytes_max` bytes.
    pub(super) fn stored_within(&self, key: TaskKey, bytes_max: u64) -> StoredTask {
        let too_large = too_large(&self.head, bytes_max);
        if too_large.is_empty() {
            return self.stored(key);
        }
        let mut folded = Folded::clone(&self.folded);
        let mut outlined = Vec::new();
        for artifact in &mut Arc::make_mut(&mut folded.task).artifacts {
            if too_large.iter().any(|head| head.id == artifact.artifact_id) {
                let outline = Outline::of(artifact);
                *artifact = Arc::new(outline.bare().clone());
                outlined.push(outline);
            }
        }
        StoredTask { key, head: self.head.clone(), folded: Arc::new(folded), outlined }
    }

    /// Notes the artifacts that a commit begins or replaces.
    pub(super) fn note_begun(&mut self, version: u64, events: &[Event]) {
        for event in events {
            let Event::ArtifactWritten { artifact, append, .. } = event else { continue };
            if !append && version > FIRST_VERSION {
                self.begun.insert(artifact.artifact_id.clone(), version);
            }
        }
    }

    /// The commit that began the artifact or last replaced it.
    fn begun(&self, artifact: &ArtifactId) -> u64 {
        self.begun.get(artifact).copied().unwrap_or(FIRST_VERSION)
    }
}

impl Tables {
    pub(super) fn artifact(
        &self,
        scope: &Scope,
        id: &TaskId,
        artifact: &ArtifactId,
        part: Option<u64>,
    ) -> Option<StoredArtifact> {
        let (key, record) = self.find(scope, id)?;
        let found = record.folded.task.artifact(artifact.as_str())?;
        let number = usize::try_from(part.unwrap_or(0)).ok()?;
        let first = found.parts.get(number)?;
        let start = if part.is_some() { content_bytes(&found.parts[..number]) } else { 0 };
        let bytes = if part.is_some() { first.content_bytes() as u64 } else { content_bytes(&found.parts) };
        Some(StoredArtifact {
            key,
            artifact: artifact.clone(),
            begun: record.begun(artifact),
            version: record.head.version,
            range: start..start + bytes,
            filename: first.filename().map(str::to_owned),
            media_type: first.media_type().unwrap_or_else(|| PartKind::of(&first.content).media_type()).to_owned(),
            positions: [ReadPosition { at: 0, start: 0 }].into(),
        })
    }

    /// A position is the number of a part and the offset at which it begins.
    pub(super) fn read_artifact(&self, cursor: ArtifactCursor, bytes_max: usize) -> Result<ArtifactPiece, StoreError> {
        let record = self.records.get(&cursor.key).ok_or(StoreError::Pruned)?;
        if record.begun(&cursor.artifact) != cursor.begun {
            return Err(StoreError::Pruned);
        }
        let found = record.folded.task.artifact(cursor.artifact.as_str()).ok_or(StoreError::Pruned)?;
        let mut next = cursor;
        let bytes = read(found, &mut next, bytes_max);
        Ok(ArtifactPiece { bytes, next })
    }
}

fn read(artifact: &Artifact, cursor: &mut ArtifactCursor, bytes_max: usize) -> Bytes {
    let mut out = BytesMut::new();
    let first = usize::try_from(cursor.position.at).unwrap_or(usize::MAX);
    for part in artifact.parts.iter().skip(first) {
        if cursor.is_at_end() || out.len() >= bytes_max {
            break;
        }
        let content = part.content_as_bytes();
        let until = usize::try_from(cursor.until - cursor.position.start).unwrap_or(usize::MAX).min(content.len());
        let from = usize::try_from(cursor.from - cursor.position.start).unwrap_or(usize::MAX).min(until);
        let end = until.min(from.saturating_add(bytes_max - out.len()));
        out.extend_from_slice(&content[from..end]);
        cursor.from += (end - from) as u64;
        if end == content.len() {
            cursor.position =
                ReadPosition { at: cursor.position.at + 1, start: cursor.position.start + content.len() as u64 };
        }
    }
    out.freeze()
}

impl Tables {
    pub(super) fn task_as_accepted(
        &self,
        scope: &Scope,
        accepted: &Accepted,
        bytes_max: u64,
    ) -> Result<Option<AcceptedTask>, StoreError> {
        let found = self.find(scope, &accepted.task_id);
        found.map(|(_, record)| record.as_accepted(accepted, bytes_max)).transpose()
    }
}

impl Record {
    fn as_accepted(&self, accepted: &Accepted, bytes_max: u64) -> Result<AcceptedTask, StoreError> {
        if accepted.after_seq < self.floor_seq {
            return Err(StoreError::Pruned);
        }
        // A message that ended a pause is in the first commit after `after_seq`; a message that had to wait is in an
        // earlier commit.
        let after = self.log.partition_point(|entry| entry.last_seq <= accepted.after_seq);
        let until = self.log.len().min(after + 1);
        let waited_in = |entry: &LogEntry| accepted.waited_in(&entry.commit.events);
        let newest_first = (0..until).rev();
        let found = newest_first.filter_map(|place| waited_in(&self.log[place]).map(|waited| (place, waited))).next();
        let Some((place, waited)) = found else {
            return Err(StoreError::Corrupt(format!("no commit accepted the message of turn {}", accepted.turn)));
        };
        let too_large = too_large(&self.head, bytes_max);
        let mut folded = Folded::empty(self.head.id.clone(), self.head.context_id.clone());
        let mut outlines = BTreeMap::new();
        for event in self.log[..=place].iter().flat_map(|entry| entry.commit.events.iter()) {
            match event {
                Event::ArtifactWritten { artifact, append, .. }
                    if too_large.iter().any(|head| head.id == artifact.artifact_id) =>
                {
                    outline(&mut outlines, artifact, *append);
                }
                _ => folded.apply(event),
            }
        }
        let mut task = Arc::unwrap_or_clone(folded.task);
        let outlined: Vec<Outline> = outlines.into_values().collect();
        task.artifacts.extend(outlined.iter().map(|outline| Arc::new(outline.bare().clone())));
        let place_of =
            |artifact: &Arc<Artifact>| self.head.artifacts.iter().position(|head| head.id == artifact.artifact_id);
        task.artifacts.sort_by_key(place_of);
        Ok(AcceptedTask { task: Arc::new(task), outlined, seq: self.log[place].last_seq, waited })
    }
}

fn outline(outlines: &mut BTreeMap<ArtifactId, Outline>, write: &Artifact, append: bool) {
    match outlines.get_mut(&write.artifact_id) {
        Some(known) if append => {
            known.append(&write.copy_with_parts(Vec::new()));
            write.parts.iter().for_each(|part| known.add(OutlinedPart::of(part)));
        }
        _ => {
            outlines.insert(write.artifact_id.clone(), Outline::of(write));
        }
    }
}
