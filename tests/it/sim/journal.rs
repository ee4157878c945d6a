//! What happened in one simulated world: the first broken promise, how much of everything there was, and, if a
//! developer wants to read it, every step.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

pub(super) struct Journal {
    started: Instant,
    steps: Option<Mutex<Vec<String>>>,
    broken: Mutex<Option<String>>,
    pub(super) counts: Counts,
}

impl Journal {
    pub(super) fn new(keep_steps: bool) -> Self {
        let steps = keep_steps.then(Mutex::default);
        Self { started: Instant::now(), steps, broken: Mutex::default(), counts: Counts::default() }
    }

    /// Notes a step, if steps are kept.
    pub(super) fn say(&self, step: impl FnOnce() -> String) {
        if let Some(steps) = &self.steps {
            steps.lock().unwrap().push(self.stamp(&step()));
        }
    }

    /// Notes a broken promise. The first one counts: what follows may be its echo.
    pub(super) fn broken(&self, promise: &str) {
        let text = self.stamp(promise);
        self.say(|| format!("BROKEN {promise}"));
        self.broken.lock().unwrap().get_or_insert(text);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.lock().unwrap().is_some()
    }

    pub(super) fn close(&self) -> Story {
        let steps = self.steps.as_ref().map(|steps| std::mem::take(&mut *steps.lock().unwrap()));
        Story {
            broken: self.broken.lock().unwrap().take(),
            totals: self.counts.totals(),
            steps: steps.unwrap_or_default(),
        }
    }

    fn stamp(&self, text: &str) -> String {
        format!("{:>8} ms  {text}", self.started.elapsed().as_millis())
    }
}

/// How a world went.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Story {
    /// The first promise that did not hold.
    pub(super) broken: Option<String>,
    pub(super) totals: Totals,
    pub(super) steps: Vec<String>,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Default)]
        pub(super) struct Counts { $(pub(super) $name: AtomicU64),* }

        impl Counts {
            fn totals(&self) -> Totals {
                Totals { $($name: self.$name.load(Ordering::Relaxed)),* }
            }
        }

        /// What a simulation saw, so that one that saw nothing can be told.
        #[derive(Debug, Default, Clone, PartialEq, Eq)]
        pub(super) struct Totals { $($(#[$doc])* pub(super) $name: u64),* }

        impl Totals {
            pub(super) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Tasks that some client was told of.
    acknowledged,
    updates_seen,
    streams_resumed,
    sends_repeated,
    cancels_confirmed,
    answers_to_questions,
    crashes,
    freezes,
    shutdowns,
    clock_jumps,
    store_faults,
    hints_lost,
    hints_late,
    hints_doubled,
    runs_claimed,
    writes_fenced_off,
    webhooks_taken,
    webhooks_repeated,
    webhook_faults,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
