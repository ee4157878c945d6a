//! The row of a running task as the writer left it, so that the next step need not read it again.

use switchboard_core::lifecycle::{Event, Phase};
use switchboard_core::model::Timestamp;

use super::fold::replaces_checkpoint;
use super::rows::{TaskColumns, UNINDEXED_RUN, chains_of, phase_of};
use crate::record::{Chains, phase_number, unsigned};

/// What the writer needs to know about a task to apply the next commit.
#[derive(Clone, Copy)]
pub(super) struct StepRow {
    pub(super) unchanged: UnchangedColumns,
    pub(super) version: u64,
    pub(super) fence: u64,
    pub(super) listing: Listing,
    pub(super) run: Run,
    pub(super) chains: Chains,
    /// The commit that readers fold after the next checkpoint; none if it must be looked up.
    pub(super) below_checkpoint: Option<i64>,
    pub(super) closed_at: Option<i64>,
    pub(super) cancel_requested: bool,
    pub(super) is_unindexed: bool,
    pub(super) push_configs: i64,
    /// With those of its commits that wait to be filed.
    pub(super) bytes: i64,
}

impl StepRow {
    pub(super) fn of(columns: &TaskColumns<'_>) -> Self {
        let time = |ms: Option<i64>| ms.map(Timestamp::from_ms);
        let TaskColumns { scope_no, floor_seq, floor_version, created_at, .. } = *columns;
        let head = &columns.head;
        Self {
            unchanged: UnchangedColumns { scope_no, floor_seq, floor_version, created_at },
            version: unsigned(head.version),
            fence: unsigned(head.fence),
            listing: Listing { phase: phase_of(head), state: head.state, status_at: head.status_at },
            run: Run {
                running: head.running != 0,
                holder: columns.holder,
                lease_until: time(columns.lease_until),
                run_at: time(columns.run_at),
            },
            chains: chains_of(columns),
            below_checkpoint: None,
            closed_at: columns.closed_at,
            cancel_requested: head.cancel_requested != 0,
            is_unindexed: head.running == UNINDEXED_RUN,
            push_configs: head.push_configs,
            bytes: columns.bytes,
        }
    }

    /// `below_checkpoint` after one more commit, which was chained to `prev_story` and leaves these chains.
    pub(super) fn below_checkpoint_after(&self, events: &[Event], prev_story: i64, chains: Chains) -> Option<i64> {
        match replaces_checkpoint(events) {
            true => Some(prev_story),
            false if chains.story != self.chains.story => Some(chains.story),
            false => self.below_checkpoint,
        }
    }
}

/// The columns that a commit does not change.
#[derive(Clone, Copy)]
pub(super) struct UnchangedColumns {
    pub(super) scope_no: i64,
    pub(super) floor_seq: i64,
    pub(super) floor_version: i64,
    pub(super) created_at: i64,
}

/// The columns of the listing indexes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) phase: i64,
    pub(super) state: i64,
    pub(super) status_at: i64,
}

impl Listing {
    /// The state it is counted under; only tasks are listed, not records that never became one.
    pub(super) fn listed_under(self) -> Option<i64> {
        (self.phase == phase_number(Phase::Live)).then_some(self.state)
    }
}

/// Whether a run is at work, and which epoch holds it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) running: bool,
    pub(super) holder: i64,
    pub(super) lease_until: Option<Timestamp>,
    pub(super) run_at: Option<Timestamp>,
}

impl Run {
    pub(super) const NONE: Self = Self { running: false, holder: 0, lease_until: None, run_at: None };
}
