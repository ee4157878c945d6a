//! How much may be held at once, in all and by each holder: bytes, streams, or runs that wait. What is taken is given back
//! when its [`Charge`] is dropped, on every path.
//!
//! A holder has an entry only while it holds something, so the table cannot grow beyond what the budget gives out. Callers
//! take nothing for what is small; then neither the counter of all nor a lock is touched.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id_hash::SeededHash;
use crate::ports::Share;

/// The table of holders is split, so that holders on different cores rarely wait for each other.
const SHARDS: usize = 16;

/// How much each holder holds.
type Holders<K> = HashMap<K, u64, SeededHash>;

/// How much all holders together, and each of them, may hold.
pub struct Budget<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    all_max: u64,
    each_max: u64,
    /// What part of `each_max` a holder has here.
    share: Share,
    all: AtomicU64,
    refused_all: AtomicU64,
    refused_each: AtomicU64,
    hashing: SeededHash,
    holders: [Mutex<Holders<K>>; SHARDS],
}

/// Why nothing more is given out. The number is the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverBudget {
    /// All holders together hold as much as there is.
    All(u64),
    /// This holder holds as much as one may.
    Each(u64),
}

/// What a budget shows in `/metrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUse {
    /// What is held now, by all.
    pub held: u64,
    /// How often nothing was given because all together, or one holder, held too much.
    pub refused_all: u64,
    /// The same for one holder.
    pub refused_each: u64,
}

impl<K> Clone for Budget<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone() }
    }
}

impl<K: Hash + Eq + Clone> Budget<K> {
    /// A budget of so much in all, and so much for each holder.
    #[must_use]
    pub fn new(all_max: u64, each_max: u64) -> Self {
        let holders = std::array::from_fn(|_| Mutex::default());
        let (all, refused_all, refused_each) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (share, hashing) = (Share::default(), SeededHash::default());
        let inner = Inner { all_max, each_max, share, all, refused_all, refused_each, hashing, holders };
        Self { inner: Arc::new(inner) }
    }

    /// A new budget in which a holder has only the part of this process. What all may hold stays, because it is what this process can take.
    #[must_use]
    pub fn shared(mut self, share: Share) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.share = share;
        }
        self
    }

    /// Takes so much for a holder.
    ///
    /// # Errors
    /// If it would be more than the holder, or all together, may hold. Then nothing is taken.
    pub fn take(&self, holder: K, amount: u64) -> Result<Charge<K>, OverBudget> {
        self.inner.add(&holder, amount)?;
        Ok(Charge(Box::new(Held { inner: self.inner.clone(), holder, held: amount })))
    }

    /// Takes so much although it may be too much: for what is held already and cannot be refused.
    #[must_use]
    pub fn take_anyway(&self, holder: K, amount: u64) -> Charge<K> {
        self.inner.all.fetch_add(amount, Relaxed);
        *self.inner.shard(&holder).entry(holder.clone()).or_insert(0) += amount;
        Charge(Box::new(Held { inner: self.inner.clone(), holder, held: amount }))
    }

    /// What is held and refused, for `/metrics`.
    #[must_use]
    pub fn usage(&self) -> BudgetUse {
        let Inner { all, refused_all, refused_each, .. } = &*self.inner;
        BudgetUse {
            held: all.load(Relaxed),
            refused_all: refused_all.load(Relaxed),
            refused_each: refused_each.load(Relaxed),
        }
    }
}

impl<K: Hash + Eq + Clone> Inner<K> {
    fn shard(&self, holder: &K) -> MutexGuard<'_, Holders<K>> {
        let shard = usize::try_from(self.hashing.hash_one(holder)).unwrap_or_default() % SHARDS;
        self.holders[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, holder: &K, amount: u64) -> Result<(), OverBudget> {
        let within = |max: u64| move |held: u64| held.checked_add(amount).filter(|sum| *sum <= max);
        if self.all.fetch_update(Relaxed, Relaxed, within(self.all_max)).is_err() {
            self.refused_all.fetch_add(1, Relaxed);
            return Err(OverBudget::All(self.all_max));
        }
        let mut holders = self.shard(holder);
        let held = holders.get_mut(holder);
        let each_max = self.share.of(self.each_max);
        let Some(sum) = within(each_max)(held.as_deref().copied().unwrap_or_default()) else {
            drop(holders);
            self.all.fetch_sub(amount, Relaxed);
            self.refused_each.fetch_add(1, Relaxed);
            return Err(OverBudget::Each(each_max));
        };
        match held {
            Some(held) => *held = sum,
            None => drop(holders.insert(holder.clone(), sum)),
        }
        Ok(())
    }

    fn give_back(&self, holder: &K, amount: u64) {
        self.all.fetch_sub(amount, Relaxed);
        let mut holders = self.shard(holder);
        if let Some(held) = holders.get_mut(holder) {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                holders.remove(holder);
            }
        }
    }
}

/// What a holder has taken, until this is dropped. Boxed, because calls and runs carry places for several of them and few have one.
pub struct Charge<K: Hash + Eq + Clone>(Box<Held<K>>);

struct Held<K: Hash + Eq + Clone> {
    inner: Arc<Inner<K>>,
    holder: K,
    held: u64,
}

impl<K: Hash + Eq + Clone> Charge<K> {
    /// Takes as much more as it needs to hold `amount`; never gives back.
    ///
    /// # Errors
    /// If it would be more than the holder, or all together, may hold. Then what was taken stays.
    pub fn grow_to(&mut self, amount: u64) -> Result<(), OverBudget> {
        let held = &mut *self.0;
        let more = amount.saturating_sub(held.held);
        if more > 0 {
            held.inner.add(&held.holder, more)?;
            held.held += more;
        }
        Ok(())
    }
}

impl<K: Hash + Eq + Clone> Drop for Held<K> {
    fn drop(&mut self) {
        self.inner.give_back(&self.holder, self.held);
    }
}

impl<K> fmt::Debug for Budget<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("all_max", &self.inner.all_max).finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + Clone> fmt::Debug for Charge<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charge").field("held", &self.0.held).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, BudgetUse, OverBudget};
    use crate::ports::Share;

    #[test]
    fn what_one_may_hold_is_divided_among_processes_and_what_all_may_is_not() {
        let share = Share::default();
        let budget = Budget::new(10, 6).shared(share.clone());
        let held = budget.take("a", 5).unwrap();
        share.set_processes(2);
        assert_eq!(budget.take("a", 1).map(drop), Err(OverBudget::Each(3)), "what is held stays");
        drop(held);
        let all = ["a", "b", "c"].map(|holder| budget.take(holder, 3).unwrap());
        assert_eq!(budget.take("d", 2).map(drop), Err(OverBudget::All(10)));
        drop(all);
    }

    #[test]
    fn a_holder_gets_its_share_and_all_together_no_more_than_there_is() {
        let budget = Budget::new(10, 6);
        let a = budget.take("a", 6).unwrap();
        assert_eq!(budget.take("a", 1).map(drop), Err(OverBudget::Each(6)));
        let b = budget.take("b", 4).unwrap();
        assert_eq!(budget.take("c", 1).map(drop), Err(OverBudget::All(10)));
        assert_eq!(budget.usage(), BudgetUse { held: 10, refused_all: 1, refused_each: 1 });
        drop(a);
        budget.take("c", 6).map(drop).unwrap();
        drop(b);
        assert_eq!(budget.usage().held, 0);
        assert!(budget.inner.holders.iter().all(|shard| shard.lock().unwrap().is_empty()));
    }

    #[test]
    fn a_charge_that_cannot_grow_keeps_what_it_has() {
        let budget = Budget::new(10, 10);
        let mut charge = budget.take(1, 4).unwrap();
        charge.grow_to(9).unwrap();
        charge.grow_to(2).unwrap();
        assert_eq!(charge.grow_to(11), Err(OverBudget::All(10)));
        assert_eq!(budget.usage().held, 9);
        let over = budget.take_anyway(1, 50);
        assert_eq!(budget.usage().held, 59);
        drop((charge, over));
        assert_eq!(budget.usage().held, 0);
    }
}
