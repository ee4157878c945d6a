//! A task as it was when a message was accepted, folded again from its log.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchboard_core::lifecycle::{Event, Folded};
use switchboard_core::model::{Artifact, ArtifactId};

use super::tables::{LogEntry, Record, Tables};
use crate::ports::outline::{Outline, OutlinedPart, too_large};
use crate::ports::store::{Accepted, AcceptedTask, Scope, StoreError};

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
            known.append(&Artifact { parts: Vec::new(), ..write.clone() });
            write.parts.iter().for_each(|part| known.add(OutlinedPart::of(part)));
        }
        _ => {
            outlines.insert(write.artifact_id.clone(), Outline::of(write));
        }
    }
}
