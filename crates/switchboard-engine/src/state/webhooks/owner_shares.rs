//! What each owner has of the slots for deliveries, so that the webhooks of one owner do not delay those of another, however
//! many endpoints it has and however slow they are.
//!
//! A slot stays taken until its receiver has answered or its time is over, so an owner that comes later is served at once only
//! if slots were left free for it. The more deliveries an owner has under way, the more slots it must leave: see [`SPARES`].
//! Deliveries that wait start in turns: those of the owner with the fewest under way first, then of the one that was served
//! longest ago. `state/runs/fair_slots.rs` shares out runs; it cannot be used here, because whether a delivery may start also depends on its
//! endpoint, and because more deliveries are due than are held in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;

/// An owner with fewer deliveries under way than the first part of the slots may start another while more than the second part
/// is left. With 1,024 slots an owner may have 4 as long as 16 are left, 16 while 64 are left, and more while 256 are left. Its
/// first one takes any slot.
const SPARES: [(usize, usize); 2] = [(256, 64), (64, 16)];
/// The part of the slots that owners with more than that leave free.
const SPARE_MAX: usize = 4;

/// A delivery that its owner has no slot for is offered again after the time that one of its deliveries takes, within these.
const HOLD_MS_MIN: i64 = 250;
const HOLD_MS_MAX: i64 = 60_000;
/// Such deliveries become due one by one, at least this far apart.
const PACE_MICROS_MIN: i64 = 1_000;

pub(super) struct OwnerShares {
    slots: usize,
    /// Those that have deliveries under way or waiting.
    owners: BTreeMap<Owner, OwnerShare>,
    /// How many deliveries have started.
    turn: u64,
}

#[derive(Default)]
struct OwnerShare {
    under_way: usize,
    waiting: usize,
    /// When the owner was last served, as a number of starts.
    served: u64,
    /// The smoothed duration of a delivery.
    took_micros: i64,
    /// The next delivery that is held becomes due after this.
    held_until_micros: i64,
}

impl OwnerShares {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, owners: BTreeMap::new(), turn: 0 }
    }

    /// Whether an owner may start one more delivery while so many slots are left.
    pub(super) fn may_start(&self, owner: &Owner, left: usize) -> bool {
        let under_way = self.owners.get(owner).map_or(0, |share| share.under_way);
        let spare = match under_way {
            0 => 0,
            _ => {
                let tier = SPARES.iter().find(|(few, _)| under_way < self.slots / few);
                self.slots / tier.map_or(SPARE_MAX, |(_, spare)| *spare)
            }
        };
        left > spare
    }

    /// Whether one more delivery of an owner may wait, where so many more can wait in all.
    pub(super) fn may_wait(&self, owner: &Owner, capacity: usize) -> bool {
        self.owners.get(owner).map_or(0, |share| share.waiting) < capacity
    }

    pub(super) fn waits(&mut self, owner: &Owner) {
        self.owners.entry(owner.clone()).or_default().waiting += 1;
    }

    pub(super) fn stops_waiting(&mut self, owner: &Owner) {
        self.change(owner, |share| share.waiting = share.waiting.saturating_sub(1));
    }

    pub(super) fn starts(&mut self, owner: &Owner) {
        self.turn += 1;
        let share = self.owners.entry(owner.clone()).or_default();
        share.under_way += 1;
        share.served = self.turn;
    }

    pub(super) fn finishes(&mut self, owner: &Owner, took: Duration) {
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX / 8);
        self.change(owner, |share| {
            share.under_way = share.under_way.saturating_sub(1);
            share.took_micros = if share.took_micros == 0 { took } else { (share.took_micros * 7 + took) / 8 };
        });
    }

    fn change(&mut self, owner: &Owner, change: impl FnOnce(&mut OwnerShare)) {
        let Some(share) = self.owners.get_mut(owner) else { return };
        change(share);
        if share.under_way == 0 && share.waiting == 0 {
            self.owners.remove(owner);
        }
    }

    /// The owners that have deliveries waiting, in the order in which they are served.
    pub(super) fn in_turn(&self) -> Vec<Owner> {
        let mut waiting: Vec<_> = self.owners.iter().filter(|(_, share)| share.waiting > 0).collect();
        waiting.sort_by_key(|(_, share)| (share.under_way, share.served));
        waiting.into_iter().map(|(owner, _)| owner.clone()).collect()
    }

    /// When a delivery is due again for which its owner has no slot.
    pub(super) fn hold(&mut self, owner: &Owner, now: Timestamp) -> Timestamp {
        let now_micros = now.as_ms().saturating_mul(1_000);
        let Some(share) = self.owners.get_mut(owner) else { return now.plus_ms(HOLD_MS_MIN) };
        let took = share.took_micros.clamp(HOLD_MS_MIN * 1_000, HOLD_MS_MAX * 1_000);
        let under_way = i64::try_from(share.under_way.max(1)).unwrap_or(i64::MAX);
        let (earliest, pace) = (now_micros + took, (share.took_micros / under_way).max(PACE_MICROS_MIN));
        share.held_until_micros = share.held_until_micros.max(earliest).saturating_add(pace);
        // Beyond the longest wait the schedule starts again at the earliest time.
        if share.held_until_micros > earliest + HOLD_MS_MAX * 1_000 {
            share.held_until_micros = earliest;
        }
        Timestamp::from_ms(share.held_until_micros / 1_000 + 1)
    }
}
