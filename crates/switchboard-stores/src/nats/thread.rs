//! The thread that keeps a connection to NATS, and makes it again when it is lost.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use switchboard_engine::ports::{Hint, HintSink, HintStats, Hints};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::options::{NatsError, NatsOptions, Place};
use crate::hint_box::HintBox;

/// The pause before a lost connection is made again, which doubles, and its longest.
const PAUSE_MS_MIN: u64 = 100;
const PAUSE_MS_MAX: u64 = 5_000;
/// A connection that held so long was a good one, and the pauses begin anew.
const GOOD_S: u64 = 10;

/// Hints over NATS.
pub struct NatsHints {
    hints: Arc<HintBox>,
    closing: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Hints for NatsHints {
    fn notify(&self, hint: Hint<'_>) {
        self.hints.put(hint);
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        self.hints.listen(sink);
    }

    fn stats(&self) -> HintStats {
        self.hints.stats()
    }
}

impl NatsHints {
    /// Starts to connect, and does not wait for it: a server works without hints, too. `group` is the last word of the subject; the servers
    /// that share a database have the same.
    ///
    /// # Errors
    /// When the options cannot be used, whatever the server says.
    pub fn start(options: &NatsOptions, group: &str) -> Result<Self, NatsError> {
        let place = options.place(group)?;
        let mut name = [0; 8];
        aws_lc_rs::rand::fill(&mut name).map_err(|_| NatsError("the system gives no randomness".to_owned()))?;
        let name = u64::from_le_bytes(name);
        let hints = Arc::new(HintBox::new(format!("{name:016x}")));
        let failed = |error: std::io::Error| NatsError(format!("no thread could be started: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (closing, closes) = watch::channel(false);
        let carried = hints.clone();
        #[expect(clippy::disallowed_methods, reason = "joined when the hints are dropped")]
        let thread = std::thread::Builder::new().name("nats".to_owned()).spawn(move || {
            runtime.block_on(keep(&place, &carried, name, closes));
        });
        Ok(Self { hints, closing, thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for NatsHints {
    fn drop(&mut self) {
        self.closing.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was logged by its hook.
            let _ = thread.join();
        }
    }
}

/// Keeps a connection to one of the servers until the hints are closed. Each process begins with another one, so that they are spread
/// over a cluster.
async fn keep(place: &Place, hints: &HintBox, seed: u64, closes: watch::Receiver<bool>) {
    let closed = || {
        let mut closes = closes.clone();
        // A sender that is gone closes them, too.
        async move { drop(closes.wait_for(|is_closing| *is_closing).await) }
    };
    let (mut next, mut pause, mut chance) = (usize::try_from(seed % 1_024).unwrap_or(0), PAUSE_MS_MIN, seed);
    let mut is_told = false;
    loop {
        let begun = Instant::now();
        let made = tokio::select! {
            biased;
            () = closed() => return,
            made = Connection::make(place, &place.servers[next % place.servers.len()]) => made,
        };
        let lost = match made {
            Ok(connection) => {
                tracing::info!(server = connection.version, "hints go over NATS");
                is_told = false;
                match connection.carry(place, hints, closed()).await {
                    Some(why) => why,
                    None => return,
                }
            }
            Err(why) => why,
        };
        if begun.elapsed() >= Duration::from_secs(GOOD_S) {
            pause = PAUSE_MS_MIN;
        }
        // One line for each time that hints stop, however long that takes.
        match std::mem::replace(&mut is_told, true) {
            false => {
                tracing::warn!(reason = lost, "no hints over NATS; followers at other servers wait for the next sweep");
            }
            true => tracing::debug!(reason = lost, "no hints over NATS yet"),
        }
        next = next.wrapping_add(1);
        // With some chance in it, so that not all processes come back at once.
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::select! {
            biased;
            () = closed() => return,
            () = sleep(Duration::from_millis(pause / 2 + (chance >> 33) % (pause / 2 + 1))) => {}
        }
        pause = (pause * 2).min(PAUSE_MS_MAX);
    }
}
