//! The network between two servers, a gateway and its upstream or a server and its database: a port of ours that passes bytes on, and that is
//! cut and healed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::crew::Crew;
use super::dice::Dice;

/// How long it is whole, and how long it is not.
const WHOLE_MS: (u64, u64) = (300, 3_000);
const CUT_MS: (u64, u64) = (20, 2_000);
/// How long to wait for a port that cannot be had again yet.
const BIND_AGAIN: Duration = Duration::from_millis(20);
const BUFFER_BYTES: usize = 16 << 10;

/// How a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Whole,
    /// Connections stay, and nothing comes through until it is whole again. Nothing is lost.
    Silent,
    /// Connections break, and new ones break as well.
    Broken,
    /// Connections break, and the proxy listens no more: new ones are refused.
    Gone,
}

pub(super) struct Link {
    pub(super) addr: SocketAddr,
    state: watch::Sender<State>,
    cuts: AtomicU64,
}

impl Link {
    /// A link on this port, to be served by [`Link::serve`].
    pub(super) fn new(addr: SocketAddr) -> Arc<Self> {
        Arc::new(Self { addr, state: watch::Sender::new(State::Whole), cuts: AtomicU64::new(0) })
    }

    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }

    /// Cuts the link and heals it, again and again, until the run is `over`. It is whole then.
    pub(super) async fn be_cut(&self, mut dice: Dice, over: impl Fn() -> bool) {
        while !over() {
            sleep(Duration::from_millis(dice.between(WHOLE_MS.0, WHOLE_MS.1))).await;
            let cut = match dice.below(3) {
                0 => State::Silent,
                1 => State::Broken,
                _ => State::Gone,
            };
            self.cut(cut, Duration::from_millis(dice.between(CUT_MS.0, CUT_MS.1))).await;
        }
    }

    /// Notes a cut that was made elsewhere.
    #[cfg(feature = "postgres")]
    pub(super) fn note_cut(&self) {
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Cuts the link for this long.
    pub(super) async fn cut(&self, how: State, time: Duration) {
        self.state.send_replace(how);
        self.cuts.fetch_add(1, Ordering::Relaxed);
        sleep(time).await;
        self.state.send_replace(State::Whole);
    }

    /// Passes connections on to the server at `to`, a host and a port, until it is dropped.
    pub(super) async fn serve(self: Arc<Self>, to: String) {
        let mut state = self.state.subscribe();
        loop {
            let is_wanted = state.wait_for(|state| *state != State::Gone).await.is_ok();
            match TcpListener::bind(self.addr).await {
                Ok(listener) if is_wanted => self.accept(&listener, &to).await,
                Ok(_) => return,
                Err(_) => sleep(BIND_AGAIN).await,
            }
        }
    }

    /// The same on a port that was made elsewhere.
    #[cfg(feature = "postgres")]
    pub(super) async fn serve_on(self: Arc<Self>, listener: TcpListener, to: String) {
        loop {
            self.accept(&listener, &to).await;
        }
    }

    /// Takes connections until the link is gone.
    async fn accept(&self, listener: &TcpListener, to: &str) {
        let mut connections = Crew::new();
        let mut state = self.state.subscribe();
        loop {
            tokio::select! {
                biased;
                _ = state.wait_for(|state| *state == State::Gone) => return,
                accepted = listener.accept() => {
                    if let Ok((socket, _)) = accepted {
                        connections.add(connect(socket, to.to_owned(), self.state.subscribe()));
                    }
                }
                () = connections.someone_leaves() => {}
            }
        }
    }
}

/// Passes one connection on, until one side ends it or the link is cut.
async fn connect(near: TcpStream, to: String, mut state: watch::Receiver<State>) {
    let mut broken = state.clone();
    let passing = async move {
        state.wait_for(|state| *state != State::Silent).await.map_err(io::Error::other)?;
        let far = TcpStream::connect(to).await?;
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = far.into_split();
        tokio::try_join!(pass(near_read, far_write, state.clone()), pass(far_read, near_write, state.clone())).map(drop)
    };
    tokio::select! {
        biased;
        _ = broken.wait_for(|state| matches!(state, State::Broken | State::Gone)) => {}
        // Either side may have died.
        _ = passing => {}
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut state: watch::Receiver<State>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = from.read(&mut buffer).await?;
        state.wait_for(|state| *state != State::Silent).await.map_err(io::Error::other)?;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..read]).await?;
    }
}
