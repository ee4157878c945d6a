//! `switchboard auth login` and `logout`: gets a token of OAuth 2.0 or OpenID Connect for an agent and keeps it. Later commands send it by
//! themselves, and renew it.

use std::time::Duration;

use clap::{Args, Subcommand};
use switchboard::client::{OAuthClient, OAuthLogin, RedirectListener, StoredToken};
use switchboard::model::{AgentCard, OAuthFlowKind, SecurityScheme};

use super::error::ClientError;
use super::options::{CommonArgs, Flags};
use super::render::Lines;
use super::session::Session;
use super::tokens::{KeptToken, hosts_of};

/// The name by which authorization servers may know this program, unless told otherwise.
const CLIENT_ID_DEFAULT: &str = "switchboard";
/// How long a login in the browser may take.
const BROWSER_MAX: Duration = Duration::from_secs(600);

const EXAMPLES: &str = "\
Examples:
  switchboard auth login -a agent.example --client-id my-app
      The way that the card offers: with a code on another device, or in a
      browser on this machine. What to do is printed on standard error.
  A2ACLI_CLIENT_SECRET=… switchboard auth login -a agent.example --client-id my-app --flow client-credentials
      In the name of the application, without a person.

The token is kept in ~/.config/switchboard/tokens.json, which only you can read,
for this agent alone. switchboard auth logout removes it.";

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum AuthCommand {
    /// Get a token for an agent, and keep it
    Login(LoginArgs),
    /// Remove the token of an agent
    Logout(LogoutArgs),
}

#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoginArgs {
    /// How to log in [default: what the card offers]
    #[arg(long, value_enum)]
    flow: Option<Flow>,
    /// The application, as the authorization server knows it [default: switchboard]. Its secret, if it has one, is A2ACLI_CLIENT_SECRET
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// Scope to ask for; repeatable [default: what the card asks for]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Where tokens are issued, whatever the card says
    #[arg(long, value_name = "URL")]
    token_url: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LogoutArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Flow {
    /// A code that is confirmed in a browser on any device
    DeviceCode,
    /// A browser on this machine
    AuthorizationCode,
    /// The application itself, without a person
    ClientCredentials,
}

impl LoginArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.common.flags().text("client-id", self.client_id.as_ref())
    }
}

/// # Errors
/// When there is no way to log in, or the login is refused.
pub(crate) async fn login(session: &Session, args: &LoginArgs) -> Result<(), ClientError> {
    let logging_in = async {
        let found = session.find().await?;
        let card = found.card.card();
        let flow = match args.flow {
            Some(flow) => flow,
            None => offered(card, session.settings.text("client-secret").is_some())?,
        };
        let login = found.client.login_at(&found.reference, application(session, args)).await;
        let login = login.map_err(|error| ClientError::of_call(&error, false))?;
        let token = match flow {
            Flow::ClientCredentials => login.client_credentials().await,
            Flow::DeviceCode => by_device(session, &login).await,
            Flow::AuthorizationCode => in_browser(session, &login).await,
        };
        let token = token.map_err(|error| ClientError::of_call(&error, true))?;
        keep(session, hosts_of(card), token)
    };
    session.bounded(Box::pin(logging_in)).await
}

fn application(session: &Session, args: &LoginArgs) -> OAuthClient {
    let mut application = OAuthClient::new(session.settings.text("client-id").unwrap_or(CLIENT_ID_DEFAULT));
    if let Some(secret) = session.settings.text("client-secret") {
        application = application.with_secret(secret);
    }
    if !args.scope.is_empty() {
        application = application.with_scopes(args.scope.clone());
    }
    match &args.token_url {
        Some(url) => application.with_token_url(url),
        None => application,
    }
}

/// The way to log in that the card offers.
fn offered(card: &AgentCard, has_secret: bool) -> Result<Flow, ClientError> {
    let flows = card.security_schemes.iter().filter_map(|(_, scheme)| match scheme {
        SecurityScheme::OAuth2 { flow, .. } => Some(flow.kind),
        // The server says which ways it has; a device needs no browser here.
        SecurityScheme::OpenIdConnect { .. } => {
            Some(if has_secret { OAuthFlowKind::ClientCredentials } else { OAuthFlowKind::DeviceCode })
        }
        SecurityScheme::ApiKey { .. } | SecurityScheme::Http { .. } | SecurityScheme::MutualTls { .. } => None,
    });
    let flows: Vec<OAuthFlowKind> = flows.collect();
    let best = [
        (OAuthFlowKind::ClientCredentials, Flow::ClientCredentials),
        (OAuthFlowKind::DeviceCode, Flow::DeviceCode),
        (OAuthFlowKind::AuthorizationCode, Flow::AuthorizationCode),
    ];
    let found = best.into_iter().find(|(kind, flow)| {
        flows.contains(kind) && (has_secret || *flow != Flow::ClientCredentials || flows.len() == 1)
    });
    found.map(|(_, flow)| flow).ok_or_else(|| {
        ClientError::usage("the card offers no login of OAuth 2.0 or OpenID Connect")
            .with_hint("See what it asks for: switchboard card get")
    })
}

/// What to do is printed, and nothing is read: the login is confirmed elsewhere.
async fn by_device(session: &Session, login: &OAuthLogin) -> Result<StoredToken, switchboard::CallError> {
    let device = login.device().await?;
    let page = device.verification_url_complete().unwrap_or_else(|| device.verification_url());
    session.printer.note(format!("Open {page}"));
    session.printer.note(format!("and confirm the code {} within {:?}", device.user_code(), device.time_left()));
    device.wait().await
}

async fn in_browser(session: &Session, login: &OAuthLogin) -> Result<StoredToken, switchboard::CallError> {
    let listener = RedirectListener::bind().await?;
    let login = login.authorization_code(listener.url()).await?;
    session.printer.note(format!("Open {}", login.url()));
    let came_back_to = listener.wait(BROWSER_MAX).await?;
    login.finish(&came_back_to).await
}

fn keep(session: &Session, hosts: Vec<String>, token: StoredToken) -> Result<(), ClientError> {
    let reference = session.agent_reference()?;
    let tokens = session.tokens.as_ref().ok_or_else(|| {
        ClientError::internal("there is no place to keep the token").with_hint("Set HOME or XDG_CONFIG_HOME")
    })?;
    let (expires_at_s, scopes) = (token.expires_at_s, token.scopes.join(" "));
    tokens.put(reference, KeptToken { hosts: hosts.clone(), token })?;
    let path = tokens.path.display().to_string();
    if session.printer.is_json() {
        let shown = serde_json::json!({
            "agentCard": reference, "hosts": hosts, "expiresAt": expires_at_s, "scopes": scopes, "file": path,
        });
        return session.printer.json(shown.to_string());
    }
    let mut lines = Lines::default();
    lines.field("Logged-In", reference).field("Hosts", hosts.join(" "));
    if !scopes.is_empty() {
        lines.field("Scopes", scopes);
    }
    lines.field("File", path);
    session.printer.text(lines.into_text())
}

/// # Errors
/// When the file of tokens cannot be changed.
pub(crate) fn logout(session: &Session) -> Result<(), ClientError> {
    let reference = session.agent_reference()?;
    let was_there = match &session.tokens {
        Some(tokens) => tokens.remove(reference)?,
        None => false,
    };
    if session.printer.is_json() {
        return session.printer.json(serde_json::json!({ "agentCard": reference, "removed": was_there }).to_string());
    }
    let mut lines = Lines::default();
    lines.field(if was_there { "Logged-Out" } else { "Not-Logged-In" }, reference);
    session.printer.text(lines.into_text())
}
