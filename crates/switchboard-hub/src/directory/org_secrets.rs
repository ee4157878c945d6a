//! Passes the secret of an organization on to the other apps of the workspace.

use std::time::Duration;

use futures_util::StreamExt as _;
use http::{Request, StatusCode, Uri, header};
use serde_json::json;
use switchboard::call::BoxFuture;
use switchboard::client::SignedTokens;
use switchboard::outbound::{AddressPolicy, BuildError, Client, RequestLimits};
use switchboard::{OrgPeers, OrgSecretPush, OrgSecretPushed};
use tokio::sync::OnceCell;

use super::Directory;
use super::entry::DirectoryEntry;
use super::sources::Sources;

/// Where an app takes secrets, below its address.
const RECEIVE_PATH: &str = "/_agent-native/org/a2a-secret/receive";
/// How many apps are told at once.
const PUSHES_AT_ONCE_MAX: usize = 8;
/// How long one of them may take.
const PUSH_TIME_MAX: Duration = Duration::from_secs(15);
/// What is read of an answer; nothing of it is shown.
const PUSH_ANSWER_BYTES_MAX: u64 = 64 << 10;

/// The apps of a workspace, as those that a server passes the secrets of organizations on to. Agents outside the workspace are not told: they
/// could then sign for every member of the organization.
///
/// ```
/// use switchboard::{AgentBuilder, Server, Turn};
/// use switchboard_hub::directory::{Sources, WorkspacePeers};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let sources = Sources::new("/srv/workspace").gateway("https://ws.example");
/// let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
/// let server = Server::builder().agent(echo).org_peers(WorkspacePeers::new(sources)?).build();
/// # drop(server);
/// # Ok::<(), switchboard::outbound::BuildError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct WorkspacePeers {
    sources: Sources,
    /// Read when a secret is first passed on.
    directory: OnceCell<Directory>,
    client: Client,
    issuer: Option<String>,
    allow_plain_http: bool,
}

impl WorkspacePeers {
    /// The apps of the workspace that these sources describe.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(sources: Sources) -> Result<Self, BuildError> {
        // Where the apps are is written by who runs the workspace, so they may be at private addresses.
        let client = Client::builder().policy(AddressPolicy::any()).build()?;
        Ok(Self { sources, directory: OnceCell::new(), client, issuer: None, allow_plain_http: false })
    }

    /// The address of this program (`iss`).
    #[must_use]
    pub fn with_issuer(mut self, url: impl Into<String>) -> Self {
        self.issuer = Some(url.into());
        self
    }

    /// Lets a secret travel to other machines without TLS, where the network between them is trusted.
    #[must_use]
    pub fn allow_plain_http(mut self, on: bool) -> Self {
        self.allow_plain_http = on;
        self
    }

    async fn push_to(&self, app: DirectoryEntry, push: &OrgSecretPush) -> OrgSecretPushed {
        let mut pushed = OrgSecretPushed {
            id: app.id.clone(),
            name: app.name.clone(),
            url: app.url.clone(),
            status: None,
            error: None,
        };
        if !self.allow_plain_http && !is_private_enough(&app.url) {
            pushed.error = Some("a secret is not sent to another machine without TLS; use https".to_owned());
            return pushed;
        }
        let mut tokens = SignedTokens::new(&push.user);
        let mut secrets = push.sign_with.iter();
        tokens = tokens.with_org(&push.org_domain, secrets.next());
        tokens = secrets.fold(tokens, SignedTokens::with_earlier_org_secret);
        if let Some(issuer) = &self.issuer {
            tokens = tokens.with_issuer(issuer);
        }
        let body = json!({"secret": push.secret, "orgDomain": push.org_domain}).to_string();
        pushed.error = Some("there is no secret to sign with".to_owned());
        for token in tokens.tokens_now() {
            let request = Request::post(format!("{}{RECEIVE_PATH}", app.audience()))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::AUTHORIZATION, format!("Bearer {token}"));
            let Ok(request) = request.body(body.clone().into()) else {
                pushed.error = Some("its address is no URL".to_owned());
                break;
            };
            let mut limits = RequestLimits::default();
            (limits.total, limits.body_bytes_max) = (Some(PUSH_TIME_MAX), Some(PUSH_ANSWER_BYTES_MAX));
            match self.client.send(request, &limits).await {
                Ok(answer) => {
                    let status = answer.status();
                    pushed.status = Some(status.as_u16());
                    pushed.error = (!status.is_success()).then(|| format!("it has answered {status}"));
                    // It may know the organization by another secret.
                    if status != StatusCode::UNAUTHORIZED {
                        break;
                    }
                }
                Err(error) => {
                    pushed.status = None;
                    pushed.error = Some(error.to_string());
                    break;
                }
            }
        }
        pushed
    }
}

/// Whether nobody else can read what is sent to this address.
fn is_private_enough(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    url.scheme_str() == Some("https") || is_local
}

impl OrgPeers for WorkspacePeers {
    fn push<'a>(&'a self, secret: &'a OrgSecretPush) -> BoxFuture<'a, Vec<OrgSecretPushed>> {
        Box::pin(async move {
            let directory = self.directory.get_or_init(|| Directory::open(self.sources.clone())).await;
            let agents = directory.refresh().await;
            let mut pushes: Vec<BoxFuture<'a, OrgSecretPushed>> = Vec::new();
            for app in agents.entries() {
                if app.is_app() {
                    pushes.push(Box::pin(self.push_to(app.clone(), secret)));
                }
            }
            futures_util::stream::iter(pushes).buffered(PUSHES_AT_ONCE_MAX).collect().await
        })
    }
}
