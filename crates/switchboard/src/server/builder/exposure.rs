//! The settings of a server that say how it is exposed to others, and what its callers may do.

use super::ServerBuilder;
use crate::server::exchange::authorize::Rules;

impl ServerBuilder {
    /// Says that the server is in production. It then fails closed: a server that has neither [tokens](Self::tokens) nor another way
    /// to know its callers refuses every operation with 503, also from this machine, unless
    /// [`allow_unauthenticated`](Self::allow_unauthenticated) says that this is meant. Cards and health checks are answered. Its
    /// cards name no `http://` address of another machine, see [`allow_plain_http`](Self::allow_plain_http).
    ///
    /// ```
    /// use switchboard::{AgentBuilder, Server, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # use tower::ServiceExt;
    /// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    /// let server = Server::builder().agent(echo).production(true).public_url("https://agents.example").build()?;
    /// let service = server.into_service()?;
    /// let get = |path| service.clone().oneshot(http::Request::get(path).body(String::new()).unwrap());
    /// assert_eq!(get("/.well-known/agent-card.json").await.unwrap().status(), 200);
    /// assert_eq!(get("/v1/tasks/1").await.unwrap().status(), 503);
    /// # Ok::<(), switchboard::ServeError>(())
    /// # }).unwrap();
    /// ```
    #[must_use]
    pub fn production(mut self, production: bool) -> Self {
        self.exposure.production = production;
        self
    }

    /// Lets the cards of a server in [production](Self::production) name a public URL that begins with `http://` and is not on this
    /// machine. Whoever is on the way can read and change what is sent there, tokens included.
    #[must_use]
    pub fn allow_plain_http(mut self, allowed: bool) -> Self {
        self.exposure.allow_plain_http = allowed;
        self
    }

    /// Names of hosts, without ports, that this server answers to besides its own: the host of the public URL, that of the
    /// certificate, and the names of this machine. A server without authentication refuses requests to other names (numeric
    /// addresses are taken beyond loopback), because a page in a browser can have its own name point here. Given on a server with
    /// authentication, the list is checked there, too.
    #[must_use]
    pub fn allowed_hosts<T: Into<String>>(mut self, hosts: impl IntoIterator<Item = T>) -> Self {
        self.exposure.allowed_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// What operators of a server without tokens send as `Authorization: Bearer KEY`, of at least 16 characters. Without it such a server
    /// has no operators: where a request comes from does not tell, since a proxy on this machine passes everybody's on.
    #[must_use]
    pub fn operator_key(mut self, key: impl Into<String>) -> Self {
        self.exposure.operator_key = Some(key.into());
        self
    }

    /// Where callers come from that send no credentials, on a server that asks for them: agents of corvid and gateways of NEXUS,
    /// as in `corvid=192.0.2.7` or `nexus=10.1.0.0/16`. They may use the paths that belong to their dialect and no others
    /// (`/a2a/tasks`, `/dialects/nexus`), and see the tasks of their own address. The address is that of the connection: behind a
    /// proxy it is the proxy's, for all of its clients. A service that is mounted in a server of yours does not know it, and
    /// opens to nobody.
    #[must_use]
    pub fn open_peers<T: Into<String>>(mut self, peers: impl IntoIterator<Item = T>) -> Self {
        self.exposure.open_peers = peers.into_iter().map(Into::into).collect();
        self
    }

    /// What callers may do, by principal, tenant and scope ([`Rules`]). Without rules, everybody who is let in may do everything with
    /// tasks of their own. The extended card shows a caller the skills that it may ask for.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.access.rules = Some(rules);
        self
    }

    /// Lets all callers of a tenant share their tasks, whoever they are, as some older systems do: tasks then belong to the tenant
    /// alone. Callers whose credential names no tenant are refused.
    #[must_use]
    pub fn shared_tenant(mut self, on: bool) -> Self {
        self.access.shared_tenant = on;
        self
    }

    /// Shows the public cards only to callers that are known. The specification has them readable by everybody, so clients that look
    /// for a card without a credential do not find the agent.
    #[must_use]
    pub fn protect_cards(mut self, on: bool) -> Self {
        self.access.protect_cards = on;
        self
    }
}
