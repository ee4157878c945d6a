//! The door through which a program that an agent has started calls other agents. It is given the address of the door and a token; the
//! token is good while the run is at work, and the calls that it makes are calls of that run ([`Turn::call`]). Who calls, for whom and from
//! which task is known by the token alone.
//!
//! Tokens are in memory, as hashes. `serve` answers the requests.

pub(crate) mod serve;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use switchboard_engine::runs::{Call, Turn};
use switchboard_engine::sha256::sha256;
use tokio_util::sync::CancellationToken;

use crate::random;
use crate::server::uri::decode;

/// The first segment of its paths.
pub(crate) const DOOR: &str = "_switchboard";

/// The door through which programs that agents start call other agents, over HTTP on this machine. Give it to the server
/// ([`ServerBuilder::call_door`](crate::ServerBuilder::call_door)), and let the agent open it for each run.
///
/// ```
/// use switchboard::{AgentBuilder, AgentError, CallDoor, Server, Turn};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let door = CallDoor::new();
/// let opened = door.clone();
/// let agent = AgentBuilder::from_fn("Shell", move |turn: Turn| {
///     let door = opened.clone();
///     async move {
///         // None while the server has no port of its own.
///         if let Some(pass) = door.open(&turn) {
///             let mut command = tokio::process::Command::new("true");
///             command.env("A2A_CALL_URL", pass.url()).env("A2A_CALL_TOKEN", pass.token());
///             command.status().await?;
///         }
///         // The token ends with `pass`.
///         Ok(turn.answer("done").await?)
///     }
/// });
/// let server = Server::builder().agent(agent).call_door(&door).build().unwrap();
/// # server.local("shell").unwrap().send_text("go").await.unwrap();
/// # });
/// ```
#[derive(Clone, Default)]
pub struct CallDoor {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Where the port is. A server that is mounted in another one has none.
    place: OnceLock<Place>,
    /// The runs at work, by the hashes of their tokens. There are no more of them than runs.
    runs: Mutex<HashMap<[u8; 32], Arc<AtWork>>>,
}

struct Place {
    url: String,
    ip: IpAddr,
}

/// A run that a token is for.
pub(crate) struct AtWork {
    turn: Turn,
    /// Its calls, by their ids. A turn makes at most [`TURN_CALLS_MAX`](switchboard_engine::runs::TURN_CALLS_MAX).
    calls: Mutex<HashMap<String, Arc<Call>>>,
    ended: CancellationToken,
}

/// What lets a program through the door, until it is dropped.
pub struct DoorPass {
    door: CallDoor,
    key: [u8; 32],
    url: String,
    token: String,
}

impl fmt::Debug for CallDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallDoor").field("runs", &self.lock().len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for DoorPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DoorPass").field("url", &self.url).finish_non_exhaustive()
    }
}

impl CallDoor {
    /// A door that no server has yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets calls of this run through, for as long as the pass is kept. None if the server has no port of its own.
    #[must_use]
    pub fn open(&self, turn: &Turn) -> Option<DoorPass> {
        let url = self.inner.place.get()?.url.clone();
        let token = random::secret();
        let key = sha256(&token);
        let run = AtWork { turn: turn.clone(), calls: Mutex::default(), ended: CancellationToken::new() };
        self.lock().insert(key, Arc::new(run));
        Some(DoorPass { door: self.clone(), key, url, token })
    }

    /// Where the server listens, and how it is reached from this machine.
    pub(crate) fn served_at(&self, base: &str, ip: IpAddr) {
        let url = format!("{}/{DOOR}", base.trim_end_matches('/'));
        let _ = self.inner.place.set(Place { url, ip: ip.to_canonical() });
    }

    /// The run that a token is for. Hashes are looked up, so the time tells nothing about tokens.
    fn run(&self, token: &str) -> Option<Arc<AtWork>> {
        self.lock().get(&sha256(token)).cloned()
    }

    /// Whether an address is one of this machine, as far as the door knows it.
    fn is_here(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.inner.place.get().is_some_and(|place| place.ip == peer)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<AtWork>>> {
        self.inner.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DoorPass {
    /// The address of the door.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token to show there, as `Authorization: Bearer`.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for DoorPass {
    fn drop(&mut self) {
        let run = self.door.lock().remove(&self.key);
        if let Some(run) = run {
            run.ended.cancel();
        }
    }
}

/// A path of the door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DoorPath {
    /// `/_switchboard/agents/{name}`, where an agent is called.
    Agent(String),
    /// `/_switchboard/calls/{id}`, one call.
    Call(String),
}

impl DoorPath {
    /// The path of the door that these segments are.
    pub(crate) fn at(segments: &[&str]) -> Option<Self> {
        match segments {
            [DOOR, "agents", name] => Some(Self::Agent(decode(name)?.into_owned())),
            [DOOR, "calls", id] => Some(Self::Call(decode(id)?.into_owned())),
            _ => None,
        }
    }
}
