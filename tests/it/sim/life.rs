//! Whether one process of the simulation runs, stands still, or is gone. Everything that leaves a process passes here:
//! what a process does while it stands still is not seen until it runs again, and what it does after its death is never
//! seen.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// One process from its start to its end.
pub(super) struct Life {
    /// Which node it is of, and which of its processes: `n2.3`.
    pub(super) name: String,
    pub(super) node: usize,
    /// The agents of this process.
    pub(super) serves: Vec<&'static str>,
    state: Mutex<State>,
    /// (A watch channel would wake its waiters in an order of its own choosing.)
    changed: Notify,
}

#[derive(Clone, Copy)]
struct State {
    /// When it was last started or went on.
    awake_since: Instant,
    /// When it last stopped to run: frozen, or dead.
    still_since: Instant,
    frozen: bool,
    leaving: bool,
    dead: bool,
}

impl State {
    /// A frozen process that is killed has stood still since it was frozen.
    fn stop(&mut self) {
        if !self.dead && !self.frozen {
            self.still_since = Instant::now();
        }
    }
}

/// How a process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Killed,
    /// It was asked to, and may tidy up.
    Leaving,
}

impl Life {
    pub(super) fn new(node: usize, number: u64, serves: Vec<&'static str>) -> Self {
        let now = Instant::now();
        let state = State { awake_since: now, still_since: now, frozen: false, leaving: false, dead: false };
        let name = format!("n{node}.{number}");
        Self { name, node, serves, state: Mutex::new(state), changed: Notify::new() }
    }

    /// Kills the process where it stands; false if it is dead already.
    pub(super) fn die(&self) -> bool {
        self.change(|state| {
            state.stop();
            !std::mem::replace(&mut state.dead, true)
        })
    }

    pub(super) fn leave(&self) {
        self.change(|state| state.leaving = true);
    }

    pub(super) fn freeze(&self) {
        self.change(|state| {
            state.stop();
            state.frozen = true;
        });
    }

    pub(super) fn thaw(&self) {
        self.change(|state| {
            if std::mem::replace(&mut state.frozen, false) {
                state.awake_since = Instant::now();
            }
        });
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// For how long it has been running without a break.
    pub(super) fn awake_for(&self) -> Duration {
        let state = self.state();
        if state.dead || state.frozen { Duration::ZERO } else { state.awake_since.elapsed() }
    }

    /// Since when it has been frozen or dead, if it is.
    pub(super) fn unwell_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.dead || state.frozen).then_some(state.still_since)
    }

    /// Done when the process runs: waits while it stands still, and for ever once it is dead.
    pub(super) async fn awake(&self) {
        loop {
            let changed = self.changed.notified();
            let state = self.state();
            if state.dead {
                return pending().await;
            }
            if !state.frozen {
                return;
            }
            changed.await;
        }
    }

    pub(super) async fn ended(&self) -> End {
        loop {
            let changed = self.changed.notified();
            let state = self.state();
            if state.dead {
                return End::Killed;
            }
            if state.leaving && !state.frozen {
                return End::Leaving;
            }
            changed.await;
        }
    }

    /// Done when the process is dead.
    pub(super) async fn death(&self) {
        loop {
            let changed = self.changed.notified();
            if self.state().dead {
                return;
            }
            changed.await;
        }
    }

    /// What comes out of the process: nothing while it stands still, none once it is dead.
    pub(super) async fn through<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        loop {
            let changed = self.changed.notified();
            let state = self.state();
            if state.dead {
                return None;
            }
            if state.frozen {
                changed.await;
                continue;
            }
            tokio::select! {
                biased;
                () = changed => {}
                out = &mut work => return Some(out),
            }
        }
    }

    fn state(&self) -> State {
        *self.state.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let out = change(&mut self.state.lock().unwrap());
        self.changed.notify_waiters();
        out
    }
}
