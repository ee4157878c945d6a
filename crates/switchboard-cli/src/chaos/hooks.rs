//! The receiver of webhooks: it answers well, badly, late, or not at all, and writes down what arrived and what it has
//! taken. An update counts as taken when it is written down, before the server is told.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use super::crew::Crew;
use super::dice::Dice;
use super::ledger::{Entry, Ledger, digest};

/// How long a late answer takes at most.
const LATE_MS_MAX: u64 = 1_500;

pub(super) struct Hooks {
    ledger: Arc<Ledger>,
    dice: Mutex<Dice>,
    /// Set when there has been enough trouble: everything is taken at once.
    calm: AtomicBool,
    /// Updates that arrived, by task; taken or not.
    arrived: Mutex<BTreeMap<String, BTreeMap<u64, bool>>>,
    repeated: AtomicU64,
    strange: Mutex<BTreeSet<String>>,
}

/// What is done with an update.
enum Mood {
    Take { after: Duration },
    Refuse,
    HangUp,
}

impl Hooks {
    fn new(ledger: Arc<Ledger>, dice: Dice) -> Arc<Self> {
        Arc::new(Self {
            ledger,
            dice: Mutex::new(dice),
            calm: AtomicBool::new(false),
            arrived: Mutex::default(),
            repeated: AtomicU64::new(0),
            strange: Mutex::default(),
        })
    }

    /// Listens, and has the crew serve.
    pub(super) async fn start(ledger: Arc<Ledger>, dice: Dice, crew: &mut Crew) -> io::Result<(Arc<Self>, SocketAddr)> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (addr, hooks) = (listener.local_addr()?, Self::new(ledger, dice));
        crew.add(hooks.clone().serve(listener));
        Ok((hooks, addr))
    }

    /// Serves until it is dropped.
    async fn serve(self: Arc<Self>, listener: TcpListener) {
        let mut connections = Crew::new();
        loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => {
                    if let Ok((socket, _)) = accepted {
                        connections.add(self.clone().converse(socket));
                    }
                }
                () = connections.someone_leaves() => {}
            }
        }
    }

    async fn converse(self: Arc<Self>, socket: TcpStream) {
        let answer = |request| {
            let hooks = self.clone();
            async move { hooks.answer(request).await.ok_or("hangs up") }
        };
        // An error is a server that died, or that we hung up on.
        let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer)).await;
    }

    /// None hangs up.
    async fn answer(&self, request: Request<Incoming>) -> Option<Response<Empty<Bytes>>> {
        let id = request.headers().get("a2a-delivery-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let body = request.into_body().collect().await.ok()?.to_bytes();
        let Some((task, seq)) = id.as_deref().and_then(split) else {
            self.strange.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("a webhook of id {id:?}"));
            return Some(status(StatusCode::OK));
        };
        let mood = self.mood();
        if let Mood::Take { after } = mood {
            tokio::time::sleep(after).await;
        }
        let taken = matches!(mood, Mood::Take { .. });
        self.note(task, seq, taken);
        let entry = Entry::Hooked { task: task.to_owned(), seq, digest: digest(&body), taken };
        self.ledger.record(entry).await;
        match mood {
            Mood::Take { .. } => Some(status(StatusCode::OK)),
            Mood::Refuse => Some(status(StatusCode::INTERNAL_SERVER_ERROR)),
            Mood::HangUp => None,
        }
    }

    fn mood(&self) -> Mood {
        if self.calm.load(Ordering::Relaxed) {
            return Mood::Take { after: Duration::ZERO };
        }
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        match dice.below(40) {
            0..=2 => Mood::Refuse,
            3 => Mood::HangUp,
            4 => Mood::Take { after: Duration::from_millis(dice.between(100, LATE_MS_MAX)) },
            _ => Mood::Take { after: Duration::ZERO },
        }
    }

    fn note(&self, task: &str, seq: u64, taken: bool) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        match arrived.entry(task.to_owned()).or_default().entry(seq) {
            std::collections::btree_map::Entry::Vacant(first) => {
                first.insert(taken);
            }
            std::collections::btree_map::Entry::Occupied(mut again) => {
                self.repeated.fetch_add(1, Ordering::Relaxed);
                *again.get_mut() |= taken;
            }
        }
    }

    pub(super) fn calm_down(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// Whether every update of a task up to this one has been taken.
    pub(super) fn has_taken(&self, task: &str, last_seq: u64) -> bool {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = arrived.get(task).map_or(0, |seqs| seqs.range(..=last_seq).filter(|(_, taken)| **taken).count());
        taken as u64 == last_seq
    }

    /// How often an update came that had come before.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// What came that no server of ours should have sent.
    pub(super) fn strange(&self) -> Vec<String> {
        self.strange.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// A delivery's id is the task, the config and the number of the update.
fn split(id: &str) -> Option<(&str, u64)> {
    let (task, rest) = id.split_once(':')?;
    Some((task, rest.rsplit(':').next()?.parse().ok()?))
}

fn status(status: StatusCode) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    response
}
