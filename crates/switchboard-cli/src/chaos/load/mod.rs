//! The load: clients that send, follow, answer and cancel, each as a person would who wants to know: what is not
//! answered is asked again, under the same key, until it is. What they ask and what they are told goes into the ledger.

mod cancel;
mod follow;
mod send;
#[cfg(feature = "postgres")]
mod takeover;

#[cfg(feature = "postgres")]
pub(super) use takeover::takeover;

pub(super) use send::{artifacts_text, parts_text};

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::client::{Client, Refusal, Trouble};
use super::crew::Crew;
use super::dice::Dice;
use super::ledger::{Entry, Ledger};
use super::wish::{Whom, Wish};

/// How long a client waits before it tries again.
const PAUSE: Duration = Duration::from_millis(15);

/// How many clients of each kind there are.
const SENDERS: usize = 16;
const FOLLOWERS: usize = 12;
const COMMANDERS: usize = 4;
const CANCELERS: usize = 2;

/// What all clients share.
pub(super) struct World {
    pub(super) client: Arc<Client>,
    ledger: Arc<Ledger>,
    hooks: SocketAddr,
    /// No new wishes.
    closing: AtomicBool,
    /// Clients that have not got their answer by then give up.
    deadline: Mutex<Option<Instant>>,
    sent: AtomicU64,
    readers: AtomicU64,
    resumed: AtomicU64,
    sends_unanswered: AtomicUsize,
    kills: AtomicU64,
    upstream_kills: AtomicU64,
    /// The kills that broke a send.
    kills_felt: Mutex<BTreeSet<u64>>,
    tasks: Mutex<Vec<Known>>,
    refusals: Mutex<Vec<String>>,
}

/// A task that was accepted.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) task: String,
    pub(super) whom: Whom,
    pub(super) hook: bool,
}

/// A wish that is under way.
struct Order {
    n: u64,
    wish: Wish,
    hook: bool,
}

/// Where a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Clients talk to it.
    Front,
    /// It is behind a gateway.
    Upstream,
}

impl World {
    pub(super) fn new(client: Arc<Client>, ledger: Arc<Ledger>, hooks: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            client,
            ledger,
            hooks,
            closing: AtomicBool::new(false),
            deadline: Mutex::default(),
            sent: AtomicU64::new(0),
            readers: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            sends_unanswered: AtomicUsize::new(0),
            kills: AtomicU64::new(0),
            upstream_kills: AtomicU64::new(0),
            kills_felt: Mutex::default(),
            tasks: Mutex::default(),
            refusals: Mutex::default(),
        })
    }

    /// Puts every client to work.
    pub(super) fn start(self: &Arc<Self>, dice: &mut Dice) -> Crew {
        let mut crew = Crew::new();
        for _ in 0..SENDERS {
            crew.add(send::sender(self.clone(), dice.fork()));
        }
        for _ in 0..FOLLOWERS {
            crew.add(follow::follower(self.clone(), dice.fork()));
        }
        for _ in 0..COMMANDERS {
            crew.add(follow::commander(self.clone(), dice.fork()));
        }
        for _ in 0..CANCELERS {
            crew.add(cancel::canceler(self.clone(), dice.fork()));
        }
        crew
    }

    /// Clients end what they are at, and begin nothing new. Who has no answer by the deadline gives up.
    pub(super) fn close(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
        self.closing.store(true, Ordering::Relaxed);
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        deadline.is_some_and(|deadline| Instant::now() > deadline)
    }

    pub(super) fn has_unanswered_send(&self) -> bool {
        self.sends_unanswered.load(Ordering::Relaxed) > 0
    }

    pub(super) fn note_kill(&self, place: Place) {
        self.kills_of(place).fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn kills(&self, place: Place) -> u64 {
        self.kills_of(place).load(Ordering::Relaxed)
    }

    fn kills_of(&self, place: Place) -> &AtomicU64 {
        match place {
            Place::Front => &self.kills,
            Place::Upstream => &self.upstream_kills,
        }
    }

    /// How many kills happened while a send was unanswered, and left it so.
    pub(super) fn kills_felt(&self) -> u64 {
        self.kills_felt.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Streams that broke and were resumed where they had.
    pub(super) fn resumed(&self) -> u64 {
        self.resumed.load(Ordering::Relaxed)
    }

    pub(super) fn tasks(&self) -> Vec<Known> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the server refused to do though it should have.
    pub(super) fn refusals(&self) -> Vec<String> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn order(&self, wish: Wish, hook: bool) -> Order {
        let n = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        self.ledger.record(Entry::Sending { n, wish: wish.clone(), hook }).await;
        Order { n, wish, hook }
    }

    async fn accepted(&self, order: &Order, task: &str) {
        let known = Known { task: task.to_owned(), whom: order.wish.whom(), hook: order.hook };
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(known);
        self.ledger.record(Entry::Accepted { n: order.n, task: task.to_owned() }).await;
    }

    /// Whether it is worth trying again, and if so, not at once.
    async fn try_again(&self, what: &str, trouble: Trouble) -> bool {
        if let Trouble::Refused(Refusal { text, .. }) = trouble {
            self.complain(format!("{what} was refused: {text}"));
            return false;
        }
        if self.is_over() {
            return false;
        }
        sleep(PAUSE).await;
        true
    }

    fn complain(&self, what: String) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

/// A send that waits for its first answer.
struct Unanswered<'a> {
    world: &'a World,
    kills_before: u64,
}

impl<'a> Unanswered<'a> {
    fn new(world: &'a World) -> Self {
        world.sends_unanswered.fetch_add(1, Ordering::Relaxed);
        Self { world, kills_before: world.kills(Place::Front) }
    }

    /// How it went. A send that was on its way when the server died has felt it.
    fn ended<T>(self, result: Result<T, Trouble>) -> Result<T, Trouble> {
        if matches!(result, Err(Trouble::Broken)) && self.world.kills(Place::Front) > self.kills_before {
            let mut felt = self.world.kills_felt.lock().unwrap_or_else(PoisonError::into_inner);
            felt.insert(self.kills_before + 1);
        }
        result
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        self.world.sends_unanswered.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Order {
    fn key(&self) -> String {
        format!("chaos-{}", self.n)
    }

    /// The parameters of a send.
    fn send(&self, hooks: SocketAddr, return_immediately: bool) -> Value {
        let mut send = json!({"message": message(&format!("m-{}", self.n), &self.wish.text(), None)});
        if return_immediately {
            send["configuration"]["returnImmediately"] = json!(true);
        }
        if self.hook {
            let url = format!("http://{hooks}/{}", self.n % 4);
            send["configuration"]["taskPushNotificationConfig"] = json!({"id": "hook", "url": url});
        }
        send
    }
}

fn message(id: &str, text: &str, task: Option<&str>) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
    if let Some(task) = task {
        message["taskId"] = json!(task);
    }
    message
}
