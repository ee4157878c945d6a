//! Deliveries that wait or are under way, by the time at which they may be claimed. They are kept for each owner, too, so that a claim
//! can take some of each.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;

use crate::ports::store::{DeliveryKey, share_of_a_claim};

type Entry = (Timestamp, DeliveryKey);

#[derive(Default)]
pub(super) struct DueDeliveries {
    all: BTreeSet<Entry>,
    by_owner: BTreeMap<Owner, BTreeSet<Entry>>,
    /// The owner that was looked at last; the next claim begins after it.
    last: Option<Owner>,
}

impl DueDeliveries {
    pub(super) fn insert(&mut self, owner: &Owner, at: Timestamp, delivery: DeliveryKey) {
        self.all.insert((at, delivery));
        match self.by_owner.get_mut(owner) {
            Some(own) => drop(own.insert((at, delivery))),
            None => drop(self.by_owner.insert(owner.clone(), BTreeSet::from([(at, delivery)]))),
        }
    }

    pub(super) fn remove(&mut self, owner: &Owner, at: Timestamp, delivery: DeliveryKey) {
        self.all.remove(&(at, delivery));
        if let Some(own) = self.by_owner.get_mut(owner) {
            own.remove(&(at, delivery));
            if own.is_empty() {
                self.by_owner.remove(owner);
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn first_at(&self) -> Option<Timestamp> {
        self.all.first().map(|(at, _)| *at)
    }

    /// All of them, which are then no longer here.
    pub(super) fn take_all(&mut self) -> BTreeSet<Entry> {
        self.by_owner.clear();
        std::mem::take(&mut self.all)
    }

    /// At most so many that are due: a share for each owner, and the rest to those that have waited longest.
    pub(super) fn claimable(&mut self, limit: usize, now: Timestamp) -> Vec<Entry> {
        let due = |entries: &BTreeSet<Entry>, count: usize| -> Vec<Entry> {
            entries.iter().take_while(|(at, _)| *at <= now).take(count).copied().collect()
        };
        let oldest = due(&self.all, limit.saturating_add(1));
        if oldest.len() <= limit {
            return oldest;
        }
        let owners = self.next_owners(limit, now);
        let share = share_of_a_claim(limit, owners.len());
        let shares = owners.iter().filter_map(|owner| self.by_owner.get(owner)).flat_map(|own| due(own, share));
        let mut claimed: BTreeSet<Entry> = shares.take(limit).collect();
        // Those that have waited longest: of as many as a claim takes, some are not claimed yet, or the claim is full.
        for entry in oldest {
            if claimed.len() == limit {
                break;
            }
            claimed.insert(entry);
        }
        claimed.into_iter().collect()
    }

    /// The owners that have something due, beginning after the one that was looked at last. At most so many are looked at.
    fn next_owners(&mut self, count: usize, now: Timestamp) -> Vec<Owner> {
        let after = self.last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let until = self.last.as_ref().map_or(Bound::Excluded(Owner::default()), |last| Bound::Included(last.clone()));
        let later = self.by_owner.range::<Owner, _>((after, Bound::Unbounded));
        let earlier = self.by_owner.range::<Owner, _>((Bound::Unbounded, until.as_ref()));
        let (mut owners, mut last) = (Vec::new(), None);
        for (owner, own) in later.chain(earlier).take(count) {
            last = Some(owner);
            if own.first().is_some_and(|(at, _)| *at <= now) {
                owners.push(owner.clone());
            }
        }
        self.last = last.cloned();
        owners
    }
}
