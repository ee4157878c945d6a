//! The shortest way from an agent to a server.

use std::io::Write;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::agent::AgentBuilder;
use crate::server::{ServeError, ServeErrorKind, Server, ServerBuilder, Tls};
use crate::signals::{StopSignals, hangups};

/// Serves one agent: on `127.0.0.1:8080`, in memory, until Ctrl-C or SIGTERM, unless told otherwise.
///
/// ```no_run
/// use switchboard::{AgentBuilder, Turn};
///
/// # async fn main_() -> Result<(), switchboard::ServeError> {
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// switchboard::serve(echo).durable("data/tasks.db").listen(([127, 0, 0, 1], 8080)).run().await
/// # }
/// ```
#[must_use]
pub fn serve(agent: AgentBuilder) -> Serve {
    Serve {
        builder: Server::builder().agent(agent),
        listen: ([127, 0, 0, 1], 8080).into(),
        grace: GRACE_DEFAULT,
        quiet: false,
    }
}

/// How long running agents may go on after a stop signal, unless [`Serve::grace`] says otherwise.
const GRACE_DEFAULT: Duration = Duration::from_secs(10);

/// A server about to run.
#[derive(Debug)]
pub struct Serve {
    builder: ServerBuilder,
    listen: SocketAddr,
    grace: Duration,
    quiet: bool,
}

impl Serve {
    /// Keeps tasks in a SQLite database at this path.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn durable(self, path: impl AsRef<std::path::Path>) -> Self {
        self.with(|builder| builder.sqlite(path))
    }

    /// The address and port to listen on.
    #[must_use]
    pub fn listen(mut self, addr: impl Into<SocketAddr>) -> Self {
        self.listen = addr.into();
        self
    }

    /// Speaks TLS with this certificate and key, and nothing else.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Self {
        self.with(|builder| builder.tls(tls))
    }

    /// Any other setting.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        self.builder = change(self.builder);
        self
    }

    /// How long running agents may go on after a stop signal (10 s by default). Those that are left are interrupted and
    /// go on at the next start; this does not count as an attempt.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Prints nothing when it is up. Otherwise [`run`](Self::run) prints a [banner](crate::Banner) to standard output: where
    /// the server is, who may call, and lines to paste.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Serves until Ctrl-C or SIGTERM, then stops in order: streams end (clients resume), calls in flight are answered,
    /// running agents have the [grace period](Self::grace). A second signal stops at once, and loses nothing either.
    /// SIGHUP reads the files of the server again, see [`ServerHandle::reload_files`](crate::ServerHandle::reload_files).
    ///
    /// # Errors
    /// When something is configured wrongly, the store or the port cannot be had, or signals cannot be received.
    pub async fn run(self) -> Result<(), ServeError> {
        let signal_error = |error| ServeError::caused(ServeErrorKind::System, "signals cannot be received", error);
        let mut signals = StopSignals::listen().map_err(signal_error)?;
        let mut hangups = hangups().map_err(signal_error)?;
        let server = self.builder.build()?;
        let handle = server.handle();
        let bound = server.bind(self.listen).await?;
        tracing::info!(url = bound.url(), "serving");
        if !self.quiet {
            // A program that is started without a terminal may have no standard output; that is no reason not to serve.
            let _ = writeln!(std::io::stdout(), "{}", bound.banner());
        }
        let stop = CancellationToken::new();
        let mut serving = pin!(bound.run_until(stop.clone().cancelled_owned(), self.grace));
        loop {
            tokio::select! {
                biased;
                () = &mut serving => return Ok(()),
                () = signals.next() => {
                    if stop.is_cancelled() {
                        return Ok(());
                    }
                    tracing::info!("stopping; a second signal stops at once");
                    stop.cancel();
                }
                () = hangups.next() => handle.reload_files().await,
            }
        }
    }
}
