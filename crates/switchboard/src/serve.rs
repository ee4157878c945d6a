//! The shortest way from an agent to a server.

use std::net::SocketAddr;
use std::time::Duration;

use crate::agent::AgentBuilder;
use crate::server::{ServeError, Server, ServerBuilder, Tls};

/// Serves one agent: on `127.0.0.1:8080`, in memory, until Ctrl-C, unless told otherwise.
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
    Serve { builder: Server::builder().agent(agent), listen: ([127, 0, 0, 1], 8080).into() }
}

/// A server about to run.
pub struct Serve {
    builder: ServerBuilder,
    listen: SocketAddr,
}

impl Serve {
    /// Keeps tasks in a SQLite database at this path.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn durable(self, path: impl AsRef<std::path::Path>) -> Self {
        self.with(|builder| builder.sqlite(path))
    }

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

    /// Serves until Ctrl-C.
    ///
    /// # Errors
    /// When something is configured wrongly, or the store or the port cannot be had.
    pub async fn run(self) -> Result<(), ServeError> {
        let bound = self.builder.build()?.bind(self.listen).await?;
        tracing::info!(url = bound.url(), "serving");
        let stop = async {
            // A process without a signal handler just runs on; it can still be killed, and loses nothing.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        bound.run_until(stop, Duration::from_secs(10)).await;
        Ok(())
    }
}
