//! What goes wrong, and when. Every call through a port asks here what becomes of it, and every await of such a call is
//! a place where its process may die.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::dice::Dice;
use super::journal::{Journal, count};
use super::life::Life;

/// What kind of trouble a world is in for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Everything, as the seed has it.
    Seeded,
    /// Nothing but this, at this step, counted over all processes. Step 0 never comes.
    One(Blow, u64),
}

/// What can happen to a process at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    Death,
    /// It stands still beyond its leases, and goes on.
    Freeze,
}

pub(super) struct Weather {
    pub(super) journal: Arc<Journal>,
    trouble: Trouble,
    /// No more trouble: what is left must come to rest.
    calm: AtomicBool,
    dice: Mutex<Dice>,
    /// One call in so many goes wrong.
    fault_one_in: u64,
    /// One step in so many is a process's last, or its last for a while, as long as there are blows left.
    blow_one_in: u64,
    blows_left: AtomicU64,
    steps: AtomicU64,
    lease_ms: u64,
}

/// What becomes of one call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Fine,
    Conflict,
    /// It does not happen.
    Lost,
    /// It happens, and the caller gets no answer.
    Unanswered,
}

pub(super) struct Passage {
    pub(super) fate: Fate,
    pub(super) there: Duration,
    pub(super) back: Duration,
}

impl Weather {
    pub(super) fn new(journal: Arc<Journal>, trouble: Trouble, lease_ms: u32, mut dice: Dice) -> Self {
        Self {
            journal,
            trouble,
            calm: AtomicBool::new(trouble != Trouble::Seeded),
            fault_one_in: [12, 40, 150][dice.pick(3)],
            blow_one_in: [60, 250, 1_000][dice.pick(3)],
            blows_left: AtomicU64::new(dice.below(7)),
            dice: Mutex::new(dice),
            steps: AtomicU64::new(0),
            lease_ms: lease_ms.into(),
        }
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    /// Whether nothing goes wrong from beginning to end.
    pub(super) fn is_fair(&self) -> bool {
        matches!(self.trouble, Trouble::One(_, 0))
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    pub(super) fn passage(&self) -> Passage {
        if self.is_calm() {
            return Passage { fate: Fate::Fine, there: Duration::ZERO, back: Duration::ZERO };
        }
        let mut dice = self.dice.lock().unwrap();
        let delay = |dice: &mut Dice| Duration::from_millis(if dice.one_in(4) { dice.below(25) } else { 0 });
        let (there, back) = (delay(&mut dice), delay(&mut dice));
        let fate = match dice.one_in(self.fault_one_in) {
            true => [Fate::Conflict, Fate::Lost, Fate::Unanswered][dice.pick(3)],
            false => Fate::Fine,
        };
        if fate != Fate::Fine {
            count(&self.journal.counts.store_faults);
        }
        Passage { fate, there, back }
    }

    /// One time in `n`, while there is trouble.
    pub(super) fn one_in(&self, n: u64) -> bool {
        !self.is_calm() && self.dice.lock().unwrap().one_in(n)
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.dice.lock().unwrap().below(bound)
    }

    /// One step of a process: its last, if the weather says so.
    pub(super) fn step(&self, life: &Arc<Life>, place: &'static str) {
        if life.is_dead() {
            return;
        }
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let blow = match self.trouble {
            Trouble::One(blow, at) => (step == at).then_some(blow),
            Trouble::Seeded => self.blow(),
        };
        match blow {
            Some(Blow::Death) => self.kill(life, place),
            Some(Blow::Freeze) => {
                let (life, ms) = (life.clone(), self.freeze(life, place));
                tokio::spawn(async move {
                    pass(Duration::from_millis(ms)).await;
                    life.thaw();
                });
            }
            None => {}
        }
    }

    fn blow(&self) -> Option<Blow> {
        if self.blows_left.load(Ordering::Relaxed) == 0 || !self.one_in(self.blow_one_in) {
            return None;
        }
        self.blows_left.fetch_sub(1, Ordering::Relaxed);
        Some(if self.one_in(2) { Blow::Death } else { Blow::Freeze })
    }

    /// Stops a process, and says for how long: most often beyond its leases.
    pub(super) fn freeze(&self, life: &Life, place: &'static str) -> u64 {
        let ms = match self.trouble {
            Trouble::One(..) => 2 * self.lease_ms,
            Trouble::Seeded => 10 + self.below(3 * self.lease_ms),
        };
        count(&self.journal.counts.freezes);
        self.journal.say(|| format!("{} stands still {place}, for {ms} ms", life.name));
        life.freeze();
        ms
    }

    pub(super) fn kill(&self, life: &Life, place: &'static str) {
        if life.die() {
            count(&self.journal.counts.crashes);
            self.journal.say(|| format!("{} dies {place}", life.name));
        }
    }
}

pub(super) async fn pass(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
