//! From settings to an agent that can be called: finds the card, decides how to call it, and checks before the first call what the
//! card already tells: versions, credentials, extensions, capabilities.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use switchboard::client::{CardKeys, CardReference, Client, ClientLimits, Credentials, DiscoveredCard};
use switchboard::model::{AgentCard, ContextId, SecurityRequirement, SecurityScheme, Update};
use switchboard::outbound::Trust;
use switchboard::{AgentClient, CallError, ProtocolBinding, Task, TaskId};

use super::debug::Debug;
use super::error::{ClientError, Code};
use super::printer::{Format, Printer};
use super::reference;
use super::settings::Settings;
use super::text::quote;
use super::tokens::{KeptToken, Tokens, hosts_of};

/// How long one call may take that the agent answers at once.
pub(crate) const CALL_MAX: Duration = Duration::from_secs(60);
/// How long the agent may take to answer a call that it answers when the work is done.
const WORK_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Settings, and where to print.
pub(crate) struct Session {
    pub(crate) settings: Settings,
    pub(crate) printer: Printer,
    /// The tokens of earlier logins.
    pub(crate) tokens: Option<Tokens>,
    /// The one that is used, and the credentials that may renew it.
    used: RefCell<Option<(KeptToken, Credentials)>>,
    /// The task that the command is about, once it is known: an error names it.
    about: RefCell<Option<(TaskId, ContextId)>>,
}

/// Which certificates are trusted, and which one is shown.
///
/// # Errors
/// When of the user's certificate and its key one is missing.
pub(crate) fn trust(settings: &Settings, printer: &Printer) -> Result<Trust, ClientError> {
    let (cert, key) = (settings.text("client-cert"), settings.text("client-key"));
    if cert.is_some() != key.is_some() {
        return Err(ClientError::usage("--client-cert and --client-key are given together or not at all"));
    }
    if settings.switch("insecure") {
        let source = settings.value("insecure").map(|value| value.source.to_string()).unwrap_or_default();
        printer.warn(format!(
            "certificates are not verified ({source}); anyone on the way can read and change everything"
        ));
    }
    let trust = match settings.text("ca-cert") {
        _ if settings.switch("insecure") => Trust::without_verification(),
        Some(file) => Trust::PublicAuthoritiesAnd(file.into()),
        None => Trust::PublicAuthorities,
    };
    Ok(match (cert, key) {
        (Some(cert), Some(key)) => trust.with_client_certificate(cert, key),
        _ => trust,
    })
}

/// The keys that the user named to verify signatures of cards. No others are fetched.
///
/// # Errors
/// When a file has none.
pub(crate) fn card_keys(settings: &Settings) -> Result<CardKeys, ClientError> {
    let mut keys = CardKeys::none();
    for path in settings.list("card-key") {
        let failed = |why: &dyn std::fmt::Display| ClientError::usage(format!("--card-key {path}: {why}"));
        let text = std::fs::read(path).map_err(|error| failed(&error))?;
        let is_json = text.trim_ascii_start().starts_with(b"{");
        let added = if is_json { keys.and_jwk_set(&text) } else { keys.and_pem(&text) };
        keys = added.map_err(|error| failed(&error))?;
    }
    Ok(keys)
}

/// An agent that was found.
pub(crate) struct Found {
    pub(crate) client: Client,
    pub(crate) reference: CardReference,
    pub(crate) card: Arc<DiscoveredCard>,
}

/// An agent that can be called.
pub(crate) struct Agent {
    pub(crate) found: Found,
    pub(crate) client: AgentClient,
    pub(crate) card: Arc<AgentCard>,
    has_credentials: bool,
}

impl Session {
    pub(crate) fn new(settings: Settings, tokens: Option<Tokens>, is_live: bool) -> Self {
        let format = if settings.text("output") == Some("json") { Format::Json } else { Format::Text };
        let printer = Printer { format, is_live, is_verbose: settings.switch("verbose") };
        for warning in &settings.warnings {
            printer.warn(warning);
        }
        Self { settings, printer, tokens, used: RefCell::default(), about: RefCell::default() }
    }

    /// The task that the command is about. It is told on standard error as soon as it is known, so that nothing that happens
    /// later can lose it.
    pub(crate) fn learn(&self, id: &TaskId, context: &ContextId) {
        let mut about = self.about.borrow_mut();
        if about.as_ref().is_none_or(|(known, _)| known != id) {
            self.printer.note(format!("Task {id} in context {context}"));
            *about = Some((id.clone(), context.clone()));
        }
    }

    pub(crate) fn learn_task(&self, task: &Task) {
        self.learn(&task.id, &task.context_id);
    }

    pub(crate) fn learn_update(&self, update: &Update) {
        match update {
            Update::Task(view) => self.learn_task(&view.task),
            Update::Status(update) => self.learn(&update.task_id, &update.context_id),
            Update::Artifact(update) => self.learn(&update.task_id, &update.context_id),
            Update::Message(_) => {}
        }
    }

    /// The name of the agent as the user gave it.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn agent_reference(&self) -> Result<&str, ClientError> {
        self.settings.text("agent-card").ok_or_else(|| {
            ClientError::usage("no agent is named").with_hint(
                "Name one with --agent-card, as in --agent-card https://agent.example, or set A2ACLI_AGENT_CARD",
            )
        })
    }

    /// A command line that goes on with this agent, to be pasted into a shell. It holds no credential.
    pub(crate) fn command_line(&self, command: &str, words: &[&str]) -> String {
        let mut line = format!("switchboard {command}");
        let agent = self.settings.text("agent-card");
        let version = self.settings.text("a2a-version").filter(|version| *version != "1.0");
        for (flag, value) in [("--agent-card", agent), ("--a2a-version", version)] {
            if let Some(value) = value {
                line.push_str(&format!(" {flag} {}", quote(value)));
            }
        }
        for word in words {
            line.push(' ');
            line.push_str(&quote(word));
        }
        line
    }

    /// Runs a command until it is done, its time is over, or the user stops it. The task goes on in any case.
    ///
    /// # Errors
    /// What the command fails with, the timeout, or the interruption.
    pub(crate) async fn bounded<T>(
        &self,
        command: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let expired = async {
            match self.settings.duration("timeout") {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let stopped = async {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = command => done,
            () = expired => {
                let limit = self.settings.text("timeout").unwrap_or_default();
                Err(self.with_way_on(ClientError::new(Code::Timeout, format!("no result within {limit}"))))
            }
            () = stopped => Err(self.with_way_on(ClientError::new(Code::Interrupted, "stopped before the result was there"))),
        }
    }

    /// With the command that asks for the result later, if there is a task.
    fn with_way_on(&self, error: ClientError) -> ClientError {
        match &*self.about.borrow() {
            Some((id, _)) => {
                let line = self.command_line("task get", &["--wait", id.as_str()]);
                error.with_hint(format!("The task goes on; wait for it with: {line}"))
            }
            None => error,
        }
    }

    /// Finds the card. It carries no credentials.
    ///
    /// # Errors
    /// When there is none, or no way to it.
    pub(crate) async fn find(&self) -> Result<Found, ClientError> {
        let trust = trust(&self.settings, &self.printer)?;
        let reference = reference::resolve(self.agent_reference()?, &self.settings, &trust).await?;
        let mut limits = ClientLimits::default();
        limits.call = CALL_MAX;
        limits.send = WORK_MAX;
        let mut builder = Client::builder().trust(trust).limits(limits).versions(self.versions()?);
        builder = builder.card_keys(card_keys(&self.settings)?);
        if self.settings.switch("debug") {
            builder = builder.interceptor(Arc::new(Debug));
        }
        let client = builder.build().map_err(ClientError::usage)?;
        // What a registry names was not named by the user.
        let client = if reference.is_foreign { client.strict_addresses() } else { client };
        let reference = reference.card;
        let card = client.discover_at(&reference).await.map_err(|error| {
            let found = ClientError::of_discovery(&error);
            match reference::well_known_hint(&reference) {
                Some(hint) if found.code == Code::CardNotFound || found.code == Code::CardInvalid => {
                    found.with_hint(hint)
                }
                _ => found,
            }
        })?;
        Ok(Found { client, reference, card })
    }

    /// Finds the agent and makes it ready to be called.
    ///
    /// # Errors
    /// When there is no card, or it already tells that the call cannot succeed.
    pub(crate) async fn agent(&self) -> Result<Agent, ClientError> {
        self.agent_of(self.find().await?).await
    }

    /// The agent of a card, ready to be called.
    ///
    /// # Errors
    /// When the card already tells that the call cannot succeed.
    pub(crate) async fn agent_of(&self, found: Found) -> Result<Agent, ClientError> {
        let card = found.card.card().clone();
        self.check_version(&found.card)?;
        let kept = self.kept_token(&card)?;
        let credentials = self.credentials(&card, kept.as_ref())?;
        let extensions = self.extensions(&card)?;
        let has_credentials = credentials != Credentials::none();
        let chosen = found.client.clone().with_bindings(self.bindings(&card));
        let client =
            chosen.agent_at(&found.reference).await.map_err(|error| ClientError::of_call(&error, has_credentials))?;
        if client.spoken().is_some_and(|spoken| spoken.url.starts_with("http://") && !is_local(&spoken.url))
            && has_credentials
        {
            self.printer
                .warn("credentials are sent without encryption, because the agent's address begins with http://");
        }
        if self.settings.switch("insecure") && has_credentials {
            self.printer.warn("CREDENTIALS are sent over a connection whose other end is not verified (--insecure)");
        }
        *self.used.borrow_mut() = kept.map(|kept| (kept, credentials.clone()));
        let client = client.with_credentials(credentials).with_caller(|caller| caller.extensions = extensions);
        Ok(Agent { found, client, card, has_credentials })
    }

    /// The versions that may be used, best first. Below 1.0 only if the user asked for it.
    fn versions(&self) -> Result<Vec<String>, ClientError> {
        match self.settings.text("a2a-version").unwrap_or("1.0") {
            "auto" => Ok(["1.0", "0.3", "0.2"].map(str::to_owned).into()),
            wanted @ ("1.0" | "0.3" | "0.2") => Ok(vec![wanted.to_owned()]),
            other => {
                let message = format!("version {other:?} is not spoken; 1.0, 0.3 and 0.2 are");
                let error = ClientError::protocol("VersionNotSupportedError", message);
                Err(error.with_hint("Use --a2a-version 1.0, 0.3, 0.2 or auto"))
            }
        }
    }

    /// An agent that does not offer the version is not called in another one.
    fn check_version(&self, found: &DiscoveredCard) -> Result<(), ClientError> {
        let wanted = self.settings.text("a2a-version").unwrap_or("1.0");
        let interfaces = &found.card().supported_interfaces;
        let offered: Vec<&str> = interfaces.iter().map(|own| own.protocol_version.as_str()).collect();
        let is_offered = !found.is_of_older_system() && offered.iter().any(|version| is_version(version, wanted));
        if wanted == "auto" || is_offered {
            return Ok(());
        }
        let listed = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
        let message = format!("the agent does not offer version {wanted}; its card offers: {listed}");
        let older = ["0.3", "0.2"].into_iter().find(|older| offered.iter().any(|version| is_version(version, older)));
        let hint = match wanted {
            "1.0" => {
                let older = older.filter(|_| !found.is_of_older_system()).unwrap_or("auto");
                format!("Versions below 1.0 are used only if you ask for them: --a2a-version {older}")
            }
            _ => "See the versions on the card: switchboard card get".to_owned(),
        };
        Err(ClientError::protocol("VersionNotSupportedError", message).with_hint(hint))
    }

    /// The bindings in the order in which they are tried: those that the user prefers, then those of the card.
    fn bindings(&self, card: &AgentCard) -> Vec<ProtocolBinding> {
        let mut bindings = Vec::new();
        let mut add = |name: &str| match reference::binding(name) {
            Some(binding) if !bindings.contains(&binding) => bindings.push(binding),
            Some(_) => {}
            None => self.printer.note(format!("Note: the binding {name:?} is not known here, and is skipped")),
        };
        for name in self.settings.list("transport") {
            add(name);
        }
        for interface in &card.supported_interfaces {
            if let Some(binding) = reference::binding(&interface.protocol_binding)
                && !bindings.contains(&binding)
            {
                bindings.push(binding);
            }
        }
        bindings
    }

    /// What proves who calls, checked against what the card asks for.
    fn credentials(&self, card: &AgentCard, kept: Option<&KeptToken>) -> Result<Credentials, ClientError> {
        let (bearer, key) = (self.settings.text("bearer"), self.settings.text("api-key"));
        let mut credentials = Credentials::none();
        if let (Some(kept), None) = (kept, bearer) {
            credentials = credentials.and_token(kept.application(&self.settings), kept.token.clone());
        }
        if let Some(token) = bearer {
            credentials = credentials.and_bearer(token);
            if !card.security_schemes.iter().any(|(_, scheme)| takes_bearer(scheme)) {
                self.printer
                    .warn("the card declares no scheme for a bearer token; it is sent as Authorization: Bearer");
            }
        }
        if let Some(key) = key {
            if !card.security_schemes.iter().any(|(_, scheme)| matches!(scheme, SecurityScheme::ApiKey { .. })) {
                return Err(ClientError::usage(
                    "the card declares no scheme for an API key, so there is no place to put it",
                )
                .with_hint("Send it as a header: --svc-param NAME:KEY"));
            }
            credentials = credentials.and_api_key(key);
        }
        for param in self.settings.list("svc-param") {
            let (name, value) = svc_param(param)?;
            credentials = credentials.and_header(name, value);
        }
        let is_met = |requirement: &SecurityRequirement| {
            requirement.schemes.iter().all(|(name, _)| {
                let scheme = card.security_schemes.iter().find(|(known, _)| known == name).map(|(_, scheme)| scheme);
                scheme.is_none_or(|scheme| self.has(scheme) || (kept.is_some() && takes_bearer(scheme)))
            })
        };
        if card.security_requirements.is_empty()
            || card.security_requirements.iter().any(is_met)
            || !self.settings.list("svc-param").is_empty()
        {
            return Ok(credentials);
        }
        let needed: Vec<String> = card
            .security_requirements
            .iter()
            .map(|requirement| {
                requirement.schemes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ")
            })
            .collect();
        let message = format!("the agent asks for credentials: {}", needed.join(", or "));
        let login = self.command_line("auth login", &[]);
        let hint = format!("Set A2ACLI_BEARER or A2ACLI_API_KEY, or log in: {login}");
        Err(ClientError::new(Code::CredentialsMissing, message).with_hint(hint))
    }

    /// The token of an earlier login, if the agent is still where it was then. A token that was named outranks it.
    fn kept_token(&self, card: &AgentCard) -> Result<Option<KeptToken>, ClientError> {
        let (Some(tokens), None) = (&self.tokens, self.settings.text("bearer")) else { return Ok(None) };
        tokens.for_agent(self.agent_reference()?, &hosts_of(card), &self.printer)
    }

    /// Keeps a token that was renewed on the way.
    pub(crate) fn keep_renewed(&self) {
        let used = self.used.borrow();
        let (Some(tokens), Some((kept, credentials))) = (&self.tokens, &*used) else { return };
        let Some(token) = credentials.stored_token() else { return };
        if token != kept.token
            && let Ok(reference) = self.agent_reference()
            && let Err(error) = tokens.put(reference, KeptToken { token, ..kept.clone() })
        {
            self.printer.warn(format!("the renewed token was not kept: {}", error.message));
        }
    }

    fn has(&self, scheme: &SecurityScheme) -> bool {
        match scheme {
            SecurityScheme::ApiKey { .. } => self.settings.text("api-key").is_some(),
            SecurityScheme::MutualTls { .. } => self.settings.text("client-cert").is_some(),
            scheme => takes_bearer(scheme) && self.settings.text("bearer").is_some(),
        }
    }

    /// The extensions that the user supports. One that the agent requires must be among them.
    fn extensions(&self, card: &AgentCard) -> Result<Vec<String>, ClientError> {
        let declared = self.settings.list("extension");
        let missing =
            card.capabilities.extensions.iter().find(|known| known.required && !declared.contains(&known.uri));
        match missing {
            None => Ok(declared.to_vec()),
            Some(extension) => Err(ClientError::protocol(
                "ExtensionSupportRequiredError",
                format!("the agent requires the extension {}", extension.uri),
            )
            .with_hint(format!("If you support it, say so: --extension {}", quote(&extension.uri)))),
        }
    }
}

impl Agent {
    pub(crate) fn error(&self, error: &CallError) -> ClientError {
        ClientError::of_call(error, self.has_credentials)
    }

    pub(crate) fn streams(&self) -> bool {
        self.card.capabilities.streaming == Some(true)
    }

    /// # Errors
    /// When the card says that the agent posts no updates.
    pub(crate) fn check_push(&self) -> Result<(), ClientError> {
        match self.card.capabilities.push_notifications {
            Some(true) => Ok(()),
            _ => Err(ClientError::protocol(
                "PushNotificationNotSupportedError",
                "the card says that the agent posts no updates to webhooks",
            )),
        }
    }
}

fn is_version(offered: &str, wanted: &str) -> bool {
    offered == wanted || offered.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
}

fn takes_bearer(scheme: &SecurityScheme) -> bool {
    match scheme {
        SecurityScheme::Http { scheme, .. } => scheme.eq_ignore_ascii_case("bearer"),
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => true,
        SecurityScheme::ApiKey { .. } | SecurityScheme::MutualTls { .. } => false,
    }
}

fn is_local(url: &str) -> bool {
    ["http://localhost", "http://127.", "http://[::1]"].iter().any(|start| url.starts_with(start))
}

/// The name and the value of a header, separated by the first colon.
pub(crate) fn svc_param(text: &str) -> Result<(&str, &str), ClientError> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(ClientError::usage("--svc-param takes NAME:VALUE, and there is no colon in what was given"));
    };
    let name = name.trim();
    if name.eq_ignore_ascii_case("a2a-version") {
        return Err(ClientError::usage("--svc-param cannot set A2A-Version").with_hint("Use --a2a-version"));
    }
    Ok((name, value.trim()))
}
