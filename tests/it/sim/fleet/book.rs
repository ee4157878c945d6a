//! What the store of a cell admitted, by which replica and under which claim. Promises are checked as it is written, and once a
//! second for runs that nobody works on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use switchboard_core::model::TaskId;
use switchboard_engine::ports::store::{Commit, CommitError, LeaseChange, Release, Target, TaskKey};
use tokio::time::Instant;

use super::figures::{Before, Figures};
use super::link::Hand;

pub(super) struct Book {
    started: Instant,
    entries: Mutex<Entries>,
    /// How long a run may be without a sign of life: lease, one sweep and 2 s.
    silence_max: Duration,
}

#[derive(Default)]
struct Entries {
    /// Runs that are under way or ought to be.
    runs: BTreeMap<TaskKey, RunEntry>,
    /// The tokens under which agents were started.
    begun: BTreeSet<String>,
    opened: u64,
    completed: BTreeSet<TaskId>,
    /// Since when some replica has been well, as of the last look.
    well_since: Option<Instant>,
    figures: Figures,
}

struct RunEntry {
    id: TaskId,
    fence: u64,
    holder: Option<Hand>,
    /// The last claim or renewal that was admitted, or the time at which a released run is due.
    sign: Instant,
}

/// What is noted of a commit before it is handed on.
pub(super) struct Offer {
    opens: bool,
    id: TaskId,
    /// Under which claim a run writes; none for writes of others.
    fence: Option<u64>,
    fence_after: u64,
    lease: LeaseChange,
    running: bool,
    completes: bool,
}

impl Book {
    pub(super) fn new(silence_max: Duration) -> Self {
        Self { started: Instant::now(), entries: Mutex::default(), silence_max }
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap()
    }

    fn second(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    /// A call has reached the store.
    pub(super) fn called(&self, what: &'static str) {
        self.entries().figures.call(self.second(), what);
    }

    pub(super) fn offered(&self, commit: &Commit) -> Offer {
        let (head, is_claim) = (&commit.head, matches!(commit.lease, LeaseChange::Claim { .. }));
        if is_claim {
            self.entries().figures.claim_tried(self.second());
        }
        Offer {
            opens: matches!(commit.target, Target::New { .. }),
            id: head.id.clone(),
            fence: commit.fence,
            fence_after: head.fence,
            lease: commit.lease,
            running: head.running,
            completes: head.state.is_terminal(),
        }
    }

    /// The store has decided about a commit of this process.
    pub(super) fn committed(&self, hand: &Hand, offer: &Offer, answer: &Result<TaskKey, CommitError>) {
        let now = Instant::now();
        let entries = &mut *self.entries();
        let key = match answer {
            Ok(key) => *key,
            Err(CommitError::Fenced) => return entries.figures.fenced += 1,
            Err(_) => return,
        };
        entries.opened += u64::from(offer.opens);
        if offer.completes {
            entries.completed.insert(offer.id.clone());
        }
        let before = entries.runs.remove(&key);
        if let (Some(fence), Some(run)) = (offer.fence, &before) {
            let is_holder = run.holder.as_ref().is_some_and(|holder| holder.is(hand));
            if run.fence != fence || !is_holder {
                let text = format!("{}: {} wrote under claim {fence} of {}", offer.id, hand.life.name, run.fence);
                entries.figures.broken.push(text);
            }
        }
        if !offer.running {
            return;
        }
        let mut run = before.unwrap_or_else(|| RunEntry { id: offer.id.clone(), fence: 0, holder: None, sign: now });
        match offer.lease {
            LeaseChange::Keep => {}
            LeaseChange::Take { .. } => {
                run.holder = Some(hand.clone());
                run.sign = now;
            }
            LeaseChange::Claim { .. } => {
                if offer.fence_after <= run.fence {
                    entries.figures.broken.push(format!("{}: claim {} was used again", offer.id, offer.fence_after));
                }
                // While no replica can work, none can take over.
                let well_since = entries.well_since.unwrap_or(now);
                let since = |moment: Instant| now - moment.max(well_since).min(now);
                let before = run
                    .holder
                    .as_ref()
                    .map(|holder| Before { unwell_for: holder.unwell_since().map(since), is_same: holder.is(hand) });
                entries.figures.claim_admitted(since(run.sign), before);
                run.holder = Some(hand.clone());
                run.sign = now;
            }
        }
        run.fence = offer.fence_after;
        entries.runs.insert(key, run);
    }

    pub(super) fn renewed(&self, hand: &Hand, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        let entries = &mut *self.entries();
        let lost: BTreeSet<&TaskKey> = lost.iter().collect();
        for (key, fence) in held.iter().filter(|(key, _)| !lost.contains(key)) {
            let Some(run) = entries.runs.get_mut(key).filter(|run| run.fence == *fence) else { continue };
            run.sign = Instant::now();
            if !run.holder.as_ref().is_some_and(|holder| holder.is(hand)) {
                let text = format!("{}: {} renewed a lease that is not its own", run.id, hand.life.name);
                entries.figures.broken.push(text);
            }
        }
    }

    pub(super) fn released(&self, released: &[Release]) {
        let mut entries = self.entries();
        for Release { key, fence, pause_ms } in released {
            let run = entries.runs.get_mut(key).filter(|run| run.fence == *fence);
            if let Some(run) = run {
                run.holder = None;
                run.sign = Instant::now() + Duration::from_millis(pause_ms.unsigned_abs());
            }
        }
    }

    /// An agent starts under a claim.
    pub(super) fn begun(&self, token: String) {
        let entries = &mut *self.entries();
        if entries.begun.contains(&token) {
            entries.figures.broken.push(format!("two runs were started under {token}"));
        }
        entries.begun.insert(token);
    }

    /// Looks for runs that nobody has given a sign of life. `well_for` is for how long some replica has been well.
    pub(super) fn look(&self, well_for: Duration) {
        let entries = &mut *self.entries();
        entries.well_since = Some(Instant::now() - well_for);
        entries.figures.runs_most = entries.figures.runs_most.max(entries.runs.len());
        for run in entries.runs.values() {
            let silent = run.sign.elapsed().min(well_for);
            if silent > self.silence_max {
                let text = format!("{}: no sign of life for {silent:?}, at second {}", run.id, self.second());
                entries.figures.broken.push(text);
            }
        }
    }

    pub(super) fn runs(&self) -> usize {
        self.entries().runs.len()
    }

    pub(super) fn count(&self, count: impl FnOnce(&mut Figures)) {
        count(&mut self.entries().figures);
    }

    /// What was seen; `tasks` is how many messages were accepted.
    pub(super) fn close(&self, tasks: u64) -> Figures {
        let entries = &mut *self.entries();
        let figures = &mut entries.figures;
        let completed = entries.completed.len() as u64;
        if entries.opened != tasks || completed != tasks || !entries.runs.is_empty() {
            let (opened, left) = (entries.opened, entries.runs.len());
            let text =
                format!("of {tasks} messages {opened} became tasks, {completed} completed and {left} are under way");
            figures.broken.push(text);
        }
        figures.tasks = tasks;
        figures.seconds = self.started.elapsed().as_secs();
        std::mem::take(figures)
    }

    /// What was seen of replicas whose runs need not end.
    pub(super) fn pause(&self) -> Figures {
        let figures = &mut self.entries().figures;
        figures.seconds = self.started.elapsed().as_secs();
        std::mem::take(figures)
    }
}
