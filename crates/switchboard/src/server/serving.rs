//! A server that has been put together: it takes a port, or becomes a service in an application, and is stopped in order.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use switchboard_engine::Engine;
use switchboard_engine::supervisor::Kind;

use super::builder::ServerBuilder;
use super::edge::service::A2aService;
use super::exposure::origins::{Origins, reachable};
use super::host::Host;
use super::listener::{Bound, listen};
use super::parts::{Parts, short_key};
use super::reloads::Reloads;
use super::serve_error::{ServeError, ServeErrorKind};
use super::shared::Shared;
use super::telemetry::MetricsPage;
use super::transport::tls::Tls;
use crate::agent_client::AgentClient;

/// Agents, a store and the rules for calling them; not yet at any address.
pub struct Server {
    parts: Parts,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents: Vec<&str> = self.parts.agents.iter().map(|agent| agent.name.as_str()).collect();
        f.debug_struct("Server").field("agents", &agents).finish_non_exhaustive()
    }
}

impl Server {
    /// Begins with no agent and the memory store.
    #[must_use]
    pub fn builder() -> ServerBuilder {
        ServerBuilder::new()
    }

    pub(super) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Takes the port.
    ///
    /// # Errors
    /// When the address cannot be had. Also when other machines can reach it and callers need no token, unless
    /// [`ServerBuilder::allow_unauthenticated`] says that this is meant.
    pub async fn bind(mut self, addr: SocketAddr) -> Result<Bound, ServeError> {
        let is_open = self.parts.authentication.is_open() && !self.parts.allow_unauthenticated;
        if is_open && !self.parts.exposure.is_closed && !addr.ip().to_canonical().is_loopback() {
            return Err(ServeError::new(format!(
                "{addr} can be reached from other machines, and every client that reaches it could use every agent and read \
                 every task; give out tokens (ServerBuilder::tokens), or call ServerBuilder::allow_unauthenticated"
            )));
        }
        if let Some(what) = self.parts.short_key.filter(|_| !addr.ip().is_loopback()) {
            return Err(short_key(what, &format!("{addr} is not a loopback address")));
        }
        let cannot = |error: std::io::Error| {
            ServeError::caused(ServeErrorKind::Address, format!("cannot listen on {addr}: {error}"), error)
        };
        let listener = listen(addr).map_err(cannot)?;
        let local_addr = listener.local_addr().map_err(cannot)?;
        if local_addr.ip().is_loopback() {
            self.parts.host_check = true;
        }
        let (url, certified_host) = match &self.parts.tls {
            None => (format!("http://{}", reachable(local_addr)), None),
            Some(tls) => secure_url(tls, local_addr, self.parts.public_url.as_ref()),
        };
        // Runs that go on at once are told where to call.
        if let Some(door) = &self.parts.call_door {
            door.served_at(&url, reachable(local_addr).ip());
        }
        self.parts.host.start();
        let origins = Origins::of_port(url.clone(), local_addr.port());
        let host = self.parts.host.clone();
        let shared = Arc::new(self.parts.share(origins, certified_host));
        send_metrics_of(&shared);
        Ok(Bound::new(listener, local_addr, url, host, shared))
    }

    /// The server as a tower service, for a server of yours. Needs a tokio runtime.
    ///
    /// The listener is yours, and so is the decision who can reach it: nothing here knows its address, so only a public URL
    /// on another machine is refused without [tokens](ServerBuilder::tokens).
    ///
    /// Your server also bounds the number of connections, the size of heads, and the time for a head and for a TLS handshake. An
    /// answer whose client does not take the next 16 KiB of it within [`ServerLimits::reply_stall_s_max`](crate::ServerLimits) is let
    /// go here, and its connection breaks off; what HTTP and the socket have taken of it already (some 100 KiB at most) is held until your server
    /// closes the connection. Callers without a credential share one budget, because their addresses are not known here.
    ///
    /// # Errors
    /// Without [`ServerBuilder::public_url`]: a service does not know the address at which it is mounted, and its cards
    /// must name it.
    pub fn into_service(self) -> Result<A2aService, ServeError> {
        let Some(url) = self.parts.public_url.as_ref().map(Uri::to_string) else {
            return Err(ServeError::new(
                "the cards must name the address at which clients reach this server, and a mounted server does not know \
                 it; set ServerBuilder::public_url, such as \"https://agents.example/a2a\", with the path of the mount",
            ));
        };
        self.parts.host.start();
        let shared = Arc::new(self.parts.share(Origins::fixed(url), None));
        send_metrics_of(&shared);
        let stall = Duration::from_secs(u64::from(shared.limits.reply_stall_s_max.max(1)));
        shared.supervisor.spawn(Kind::Sweep, shared.unread.clone().run(stall));
        Ok(A2aService::new(shared))
    }

    /// The server as an axum router, to be nested in an app of yours or merged with it. Take a [handle](Self::handle)
    /// first, so that the app can stop it in order.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use switchboard::{AgentBuilder, Server, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let agents = Server::builder().agent(echo).public_url("http://127.0.0.1:3000/a2a").build()?;
    /// let handle = agents.handle();
    /// let app: Router = Router::new().route("/", get(|| async { "my app" })).nest("/a2a", agents.into_router()?);
    /// // axum::serve(listener, app).with_graceful_shutdown(handle.drain_when(switchboard::stop_signal())).await?;
    /// handle.shutdown(std::time::Duration::from_secs(10)).await;
    /// # drop(app);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// The listener is yours: [`Server::bind`] refuses an address that other machines can reach if callers need no token,
    /// and here nothing can. Give out [tokens](ServerBuilder::tokens) before you listen beyond this machine.
    /// [`Server::into_service`] says which limits are then your server's.
    ///
    /// **Nested** under a path (`Router::nest`), it answers everything below that path; the public URL ends with the same
    /// path. **Merged** (`Router::merge`), it answers what no route of the app does: it is the fallback of the app, which
    /// therefore cannot have another one (axum panics), and a route of the app at `/` hides the JSON-RPC endpoint there
    /// (clients find `/rpc` and `/a2a`, too). Requests that come by another path than the public URL's are answered, and
    /// the log says once that cards and mount disagree.
    ///
    /// # Errors
    /// As [`Server::into_service`].
    pub fn into_router<S>(self) -> Result<axum::Router<S>, ServeError>
    where
        S: Clone + Send + Sync + 'static,
    {
        Ok(axum::Router::new().fallback_service(self.into_service()?))
    }

    /// Stops this server in order, wherever it is mounted by then.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle { host: self.parts.host.clone(), reloads: self.parts.reloads.clone() }
    }

    /// An agent or endpoint of this server, called in this process without a socket.
    #[must_use]
    pub fn local(&self, name: &str) -> Option<AgentClient> {
        self.parts.host.start();
        let agent = self.parts.agents.iter().find(|agent| agent.name == name)?;
        Some(AgentClient::new(agent.endpoint.clone()))
    }

    /// The engine behind its agents, for tests and tools; none on a server that only mounts endpoints.
    #[must_use]
    pub fn engine(&self) -> Option<&Engine> {
        self.parts.host.engine()
    }

    /// Ends what [`Server::local`] started: as [`ServerHandle::shutdown`].
    pub async fn shutdown(&self, grace: Duration) {
        self.handle().shutdown(grace).await;
    }
}

/// Sends the metrics of a server to its collector, if it has one.
fn send_metrics_of(shared: &Arc<Shared>) {
    if let Some(telemetry) = &shared.telemetry {
        let page: Arc<dyn MetricsPage> = shared.clone();
        telemetry.start_metrics(Arc::downgrade(&page), &shared.supervisor);
    }
}

/// The URL of a port that speaks TLS, and the host in it if the certificate is for it. Problems that clients are likely
/// to have with the certificate are logged.
fn secure_url(tls: &Tls, local_addr: SocketAddr, public_url: Option<&Uri>) -> (String, Option<String>) {
    let addr = reachable(local_addr);
    let host = tls.host_at(addr.ip());
    let url = match &host {
        Some(host) => format!("https://{host}:{}", addr.port()),
        None => format!("https://{addr}"),
    };
    if tls.key_is_exposed() {
        tracing::warn!("everybody on this machine can read the private key; make its file readable to its owner alone");
    }
    match public_url {
        None if host.is_none() => {
            tracing::warn!(url, "the certificate names no host, so clients will refuse it at this URL");
        }
        Some(public) if public.scheme_str() == Some("http") => {
            tracing::warn!(%public, "the port speaks TLS, and the public URL in the cards begins with http://");
        }
        Some(_) | None => {}
    }
    (url, host)
}

/// Stops a server in order. Cheap to clone; take it with [`Server::handle`](crate::Server::handle) before the server is
/// mounted.
///
/// An app that mounts the server stops in two steps, because only the app knows its connections:
///
/// 1. [`drain_when`](Self::drain_when) ends open streams and waiting calls when the stop signal comes, so that the app's
///    graceful shutdown is not held up by them. Clients resume their streams later, at the event where they ended.
/// 2. [`shutdown`](Self::shutdown) gives runs the grace period, and then gives the leases of those that are left back,
///    so that the next process goes on with them at once and no attempt is counted.
///
/// [`stop_signal`](crate::stop_signal) has an example.
#[derive(Clone)]
pub struct ServerHandle {
    host: Host,
    reloads: Reloads,
}

impl ServerHandle {
    /// Reads again, now, every file that the server was given: tokens, rules, secrets of organizations, keys of identity providers,
    /// signing keys, and the certificate. The log says how it went; a file that is not good leaves in use what was read before.
    /// This is what SIGHUP asks of a server.
    ///
    /// ```
    /// use switchboard::{AgentBuilder, Server, Tokens, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.txt");
    /// # std::fs::write(&path, "s3cret-token-of-alice alice").unwrap();
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let tokens = Tokens::from_file(&path).unwrap();
    /// let server = Server::builder().agent(echo).tokens(tokens.clone()).build()?;
    /// std::fs::write(&path, "s3cret-token-of-alice alice\ns3cret-token-of-bob bob").unwrap();
    /// server.handle().reload_files().await;
    /// assert_eq!(tokens.len(), 2);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    pub async fn reload_files(&self) {
        self.reloads.reload().await;
    }

    /// Ends streams and waiting calls now, and reports the server as not ready. Running agents go on.
    pub fn drain(&self) {
        self.host.begin_drain();
    }

    /// Waits for `stop`, then [drains](Self::drain). This is what `with_graceful_shutdown` of axum wants.
    pub fn drain_when<F>(&self, stop: F) -> impl Future<Output = ()> + Send + 'static
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let handle = self.clone();
        async move {
            stop.await;
            handle.drain();
        }
    }

    /// Drains, waits for running agents until `grace` is over, cuts off those that are left and gives their leases back.
    /// Call it last: what a run writes after this is refused.
    pub async fn shutdown(&self, grace: Duration) {
        self.host.shutdown(grace).await;
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").field("runs", &self.host.runs_alive()).finish_non_exhaustive()
    }
}
