//! The way of a replica to the store of its cell: a few milliseconds long, and now and then cut. Calls on a way that is cut hang,
//! and fail if it stays cut for as long as a store tries.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_engine::ports::store::{Commit, CommitError, Release, StoreError, TaskKey};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::super::dice::Dice;
use super::super::life::Life;
use super::super::store::{Way, unavailable};
use super::super::weather::pass;
use super::book::{Book, Offer};

/// How long the adapter for PostgreSQL tries before it says that the store does not answer.
const STORE_TRIES: Duration = Duration::from_secs(10);
/// How long a call takes one way.
const LATENCY_MS: (u64, u64) = (1, 5);

/// Whether a replica can reach its store.
pub(super) struct Link {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// How many reasons there are for it to be cut.
    cuts: u32,
    since: Instant,
}

impl Link {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { cuts: 0, since: Instant::now() }), changed: Notify::new() }
    }

    pub(super) fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.cuts += 1;
        if state.cuts == 1 {
            state.since = Instant::now();
        }
    }

    pub(super) fn heal(&self) {
        let mut state = self.state.lock().unwrap();
        state.cuts -= 1;
        if state.cuts == 0 {
            state.since = Instant::now();
            self.changed.notify_waiters();
        }
    }

    /// For how long it has been whole; nothing while it is cut.
    pub(super) fn whole_for(&self) -> Duration {
        let state = self.state.lock().unwrap();
        if state.cuts == 0 { state.since.elapsed() } else { Duration::ZERO }
    }

    pub(super) fn cut_since(&self) -> Option<Instant> {
        let state = self.state.lock().unwrap();
        (state.cuts > 0).then_some(state.since)
    }

    async fn whole(&self) {
        loop {
            let changed = self.changed.notified();
            if self.cut_since().is_none() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until it is whole, and gives up as a store does.
    async fn cross(&self) -> Result<(), StoreError> {
        tokio::time::timeout(STORE_TRIES, self.whole()).await.map_err(|_| unavailable())
    }
}

/// What a process of a replica has of its own: a life and a link.
#[derive(Clone)]
pub(super) struct Hand {
    pub(super) life: Arc<Life>,
    pub(super) link: Arc<Link>,
}

impl Hand {
    /// For how long it has been able to work; nothing if it is not.
    pub(super) fn well_for(&self) -> Duration {
        self.life.awake_for().min(self.link.whole_for())
    }

    /// Since when it has not been able to work, if it is not.
    pub(super) fn unwell_since(&self) -> Option<Instant> {
        [self.life.unwell_since(), self.link.cut_since()].into_iter().flatten().min()
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.life, &other.life)
    }
}

/// The store of a cell as one process sees it.
pub(super) struct CellWay {
    pub(super) hand: Hand,
    pub(super) book: Arc<Book>,
    pub(super) dice: Mutex<Dice>,
}

impl CellWay {
    async fn travel(&self) {
        let ms = self.dice.lock().unwrap().between(LATENCY_MS.0, LATENCY_MS.1);
        pass(Duration::from_millis(ms)).await;
    }
}

impl Way for CellWay {
    type Offer = Offer;

    async fn errand<T: Send, E: From<StoreError> + Send>(
        &self,
        what: &'static str,
        _: Option<E>,
        deed: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, E> {
        let Hand { life, link } = &self.hand;
        life.awake().await;
        link.cross().await?;
        self.travel().await;
        self.book.called(what);
        let answer = deed.await;
        self.travel().await;
        link.cross().await?;
        life.awake().await;
        answer
    }

    fn offer(&self, commit: &Commit) -> Offer {
        self.book.offered(commit)
    }

    fn committed(&self, offer: Offer, answer: &Result<TaskKey, CommitError>) {
        self.book.committed(&self.hand, &offer, answer);
    }

    fn renewed(&self, held: &[(TaskKey, u64)], lost: &[TaskKey]) {
        self.book.renewed(&self.hand, held, lost);
    }

    fn released(&self, released: &[Release]) {
        self.book.released(released);
    }
}
