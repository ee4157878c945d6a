//! The signals of a server process: two that ask it to stop, and one that asks it to read its files again.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Completes when the process is asked to stop: by Ctrl-C (SIGINT), or by what `kill`, systemd and container platforms
/// send (SIGTERM). From the first call on, SIGHUP no longer kills the process either.
///
/// ```no_run
/// # async fn serve_mine() -> Result<(), Box<dyn std::error::Error>> {
/// # let (app, listener) = (axum::Router::new(), tokio::net::TcpListener::bind("127.0.0.1:0").await?);
/// # let agents = switchboard::Server::builder().agent(switchboard::AgentBuilder::from_fn("A", |_| async { Ok(()) })).build()?;
/// let handle = agents.handle();
/// axum::serve(listener, app).with_graceful_shutdown(handle.drain_when(switchboard::stop_signal())).await?;
/// handle.shutdown(std::time::Duration::from_secs(10)).await;
/// # Ok(())
/// # }
/// ```
pub async fn stop_signal() {
    match (StopSignals::listen(), hangups()) {
        (Ok(mut signals), _hangups) => signals.next().await,
        (Err(error), _) => {
            tracing::warn!(%error, "signals cannot be received; the process can only be killed, and loses nothing by it");
            std::future::pending::<()>().await;
        }
    }
}

/// SIGINT and SIGTERM, from the moment this was made.
#[derive(Debug)]
pub struct StopSignals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
}

impl StopSignals {
    /// Starts to receive the signals; from now on they no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system refuses a handler, or there is no tokio runtime with I/O.
    pub fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        return Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? });
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// SIGHUP, by which an operator says that files have changed. Once this was made, the signal no longer ends the process.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    hangup: Signal,
}

impl Hangups {
    /// Waits for the next one; never comes back on systems that have no such signal.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.hangup.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Starts to receive SIGHUP.
///
/// # Errors
/// When the system refuses a handler, or there is no tokio runtime with I/O.
pub fn hangups() -> io::Result<Hangups> {
    #[cfg(unix)]
    return Ok(Hangups { hangup: signal(SignalKind::hangup())? });
    #[cfg(not(unix))]
    Ok(Hangups {})
}
