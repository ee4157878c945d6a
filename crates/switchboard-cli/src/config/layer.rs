//! What one layer says: the flags, the environment, or the file. A layer on top of another one decides whatever it says
//! anything about. Nothing is checked here beyond being of the right type.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use toml::Spanned;

use super::choices::{Card, Effects, Idempotency, KindName, LogFormat, Recovery, Seed, Synchronous};
use super::file::{AgentTable, CommandForm, File, SecretForm, ServerTable, Setting, SkillTable, Source, TlsTable};
use super::{ConfigError, Environment, FILE_NAME, Given, Origin, SkillConfig, listen, values};

/// The settings of the server, and those of its default agent that have a flag.
/// What is said about tasks that have ended.
#[derive(Clone, Default)]
pub(crate) struct RetentionLayer {
    pub(super) resume_window_s: Option<Given<u64>>,
    pub(super) events_s: Option<Given<u64>>,
    pub(super) tasks_s: Option<Given<u64>>,
    pub(super) tasks_max: Option<Given<u64>>,
}

#[derive(Default)]
pub(crate) struct Layer {
    pub(crate) listen: Option<Given<String>>,
    pub(crate) public_url: Option<Given<String>>,
    pub(crate) tls_cert: Option<Given<PathBuf>>,
    pub(crate) tls_key: Option<Given<PathBuf>>,
    pub(crate) data: Option<Given<PathBuf>>,
    pub(crate) memory: Option<Given<bool>>,
    pub(crate) synchronous: Option<Given<Synchronous>>,
    pub(crate) log_format: Option<Given<LogFormat>>,
    pub(crate) tokens_file: Option<Given<PathBuf>>,
    /// The lines themselves; only the environment has these.
    pub(crate) tokens: Option<Given<String>>,
    pub(crate) allow_unauthenticated: Option<Given<bool>>,
    pub(crate) tenants: Option<Given<Vec<String>>>,
    pub(crate) outbound_allow: Option<Given<Vec<String>>>,
    pub(crate) cors_origins: Option<Given<Vec<String>>>,
    pub(crate) webhook_attempts_max: Option<Given<u64>>,
    pub(crate) webhook_coalesce_after: Option<Given<u64>>,
    /// The secrets themselves, as text; not from a flag, which everybody on the machine can read.
    pub(crate) webhook_signing_secret: Option<Given<String>>,
    pub(crate) webhook_signing_secret_file: Option<Given<PathBuf>>,
    pub(crate) body_bytes_max: Option<Given<u64>>,
    pub(crate) reply_bytes_max: Option<Given<u64>>,
    pub(crate) default_version: Option<Given<String>>,
    pub(crate) card: Option<Given<Card>>,
    pub(crate) grace_s: Option<Given<u64>>,
    /// Only in the file, like the next three.
    pub(crate) lease_s: Option<Given<u64>>,
    pub(crate) queued_timeout_s: Option<Given<u64>>,
    pub(crate) processing_timeout_s: Option<Given<u64>>,
    pub(crate) retention: Option<RetentionLayer>,
    /// Of the default agent, like those below.
    pub(crate) name: Option<Given<String>>,
    pub(crate) description: Option<Given<String>>,
    pub(crate) agent_version: Option<Given<String>>,
    pub(crate) exec: Option<Given<String>>,
    pub(crate) exec_shell: Option<Given<bool>>,
    pub(crate) effects: Option<Given<Effects>>,
    /// Of every agent.
    pub(crate) run_timeout_s: Option<Given<u64>>,
}

/// One `[[agent]]` of the file.
pub(super) struct AgentLayer {
    pub(super) name: Given<String>,
    pub(super) slug: Option<Given<String>>,
    pub(super) description: Option<Given<String>>,
    pub(super) version: Option<Given<String>>,
    pub(super) kind: Option<Given<KindName>>,
    pub(super) command: Option<Given<Command>>,
    pub(super) shell: Option<Given<bool>>,
    pub(super) env: Option<Given<Vec<String>>>,
    pub(super) processes_max: Option<Given<u64>>,
    pub(super) effects: Option<Given<Effects>>,
    pub(super) idempotency: Option<Given<Idempotency>>,
    pub(super) recovery: Option<Given<Recovery>>,
    pub(super) recovery_reason: Option<Given<String>>,
    pub(super) attempts_max: Option<Given<u64>>,
    pub(super) retry_pause_s: Option<Given<u64>>,
    pub(super) retry_pause_s_max: Option<Given<u64>>,
    pub(super) run_timeout_s: Option<Given<u64>>,
    pub(super) run_timeout_s_max: Option<Given<u64>>,
    pub(super) streaming: Option<Given<bool>>,
    pub(super) push: Option<Given<bool>>,
    pub(super) input_modes: Option<Given<Vec<String>>>,
    pub(super) output_modes: Option<Given<Vec<String>>>,
    pub(super) card: Option<Given<Card>>,
    pub(super) dialect: Option<Given<Seed>>,
    pub(super) default_dialect: Option<Given<Seed>>,
    pub(super) selectools_tasks_max: Option<Given<u64>>,
    pub(super) selectools_body_bytes_max: Option<Given<u64>>,
    pub(super) selectools_card_url: Option<Given<String>>,
    pub(super) default_project: Option<Given<bool>>,
    pub(super) corvid_sends_per_min: Option<Given<u64>>,
    pub(super) corvid_depth_max: Option<Given<u64>>,
    pub(super) corvid_timeout_s: Option<Given<u64>>,
    pub(super) skills: Vec<Given<SkillConfig>>,
}

/// A command as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Line(String),
    Words(Vec<String>),
}

/// All layers, laid on top of each other.
pub(crate) struct Layers {
    pub(crate) settings: Layer,
    pub(super) agents: Vec<AgentLayer>,
}

/// Lays the flags on the environment, and both on the file: the one named, or the one in `folder` if there is one.
///
/// # Errors
/// When the file cannot be read, or something is of the wrong type.
pub(crate) fn gather(
    flags: Layer,
    config: Option<&Path>,
    environment: &Environment,
    folder: &Path,
) -> Result<Layers, ConfigError> {
    let named = match config {
        Some(path) => Some(Given::new(path.to_owned(), Origin::Flag("--config"))),
        None => {
            let path = environment.get("SWITCHBOARD_CONFIG")?;
            path.map(|path| Given::new(PathBuf::from(path), Origin::Variable("SWITCHBOARD_CONFIG")))
        }
    };
    let source = match named {
        Some(Given { value: path, from }) => {
            let text = std::fs::read_to_string(folder.join(&path));
            let text = text.map_err(|error| from.error(format_args!("{} cannot be read: {error}", path.display())))?;
            Some(Source::new(&path, text))
        }
        None => match std::fs::read_to_string(folder.join(FILE_NAME)) {
            Ok(text) => Some(Source::new(Path::new(FILE_NAME), text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(ConfigError(format!("{FILE_NAME} cannot be read: {error}"))),
        },
    };
    let (file, agents) = match source {
        Some(source) => of_file(&source)?,
        None => (Layer::default(), Vec::new()),
    };
    Ok(Layers { settings: flags.over(of_environment(environment)?).over(file), agents })
}

impl Layer {
    fn over(mut self, below: Self) -> Self {
        // A layer that names a folder means it, whatever a lower one says about memory.
        if let (Some(data), None) = (&self.data, &self.memory) {
            self.memory = Some(Given::new(false, data.from.clone()));
        }
        // Tokens are one setting in two forms.
        let has_tokens = self.tokens.is_some() || self.tokens_file.is_some();
        let (tokens, tokens_file) = if has_tokens { (None, None) } else { (below.tokens, below.tokens_file) };
        // So are signing secrets.
        let has_secrets = self.webhook_signing_secret.is_some() || self.webhook_signing_secret_file.is_some();
        let (secret, secret_file) = match has_secrets {
            true => (None, None),
            false => (below.webhook_signing_secret, below.webhook_signing_secret_file),
        };
        Self {
            listen: self.listen.or(below.listen),
            public_url: self.public_url.or(below.public_url),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            data: self.data.or(below.data),
            memory: self.memory.or(below.memory),
            synchronous: self.synchronous.or(below.synchronous),
            log_format: self.log_format.or(below.log_format),
            tokens_file: self.tokens_file.or(tokens_file),
            tokens: self.tokens.or(tokens),
            allow_unauthenticated: self.allow_unauthenticated.or(below.allow_unauthenticated),
            tenants: self.tenants.or(below.tenants),
            outbound_allow: self.outbound_allow.or(below.outbound_allow),
            cors_origins: self.cors_origins.or(below.cors_origins),
            webhook_attempts_max: self.webhook_attempts_max.or(below.webhook_attempts_max),
            webhook_coalesce_after: self.webhook_coalesce_after.or(below.webhook_coalesce_after),
            webhook_signing_secret: self.webhook_signing_secret.or(secret),
            webhook_signing_secret_file: self.webhook_signing_secret_file.or(secret_file),
            body_bytes_max: self.body_bytes_max.or(below.body_bytes_max),
            reply_bytes_max: self.reply_bytes_max.or(below.reply_bytes_max),
            default_version: self.default_version.or(below.default_version),
            card: self.card.or(below.card),
            grace_s: self.grace_s.or(below.grace_s),
            lease_s: self.lease_s.or(below.lease_s),
            queued_timeout_s: self.queued_timeout_s.or(below.queued_timeout_s),
            processing_timeout_s: self.processing_timeout_s.or(below.processing_timeout_s),
            retention: self.retention.or(below.retention),
            name: self.name.or(below.name),
            description: self.description.or(below.description),
            agent_version: self.agent_version.or(below.agent_version),
            exec: self.exec.or(below.exec),
            exec_shell: self.exec_shell.or(below.exec_shell),
            effects: self.effects.or(below.effects),
            run_timeout_s: self.run_timeout_s.or(below.run_timeout_s),
        }
    }
}

fn of_environment(environment: &Environment) -> Result<Layer, ConfigError> {
    let text = |name: &'static str| -> Result<Option<Given<String>>, ConfigError> {
        Ok(environment.get(name)?.map(|value| Given::new(value, Origin::Variable(name))))
    };
    let flag = |name| text(name)?.map(|given| given.try_map(values::boolean)).transpose();
    let number = |name| text(name)?.map(|given| given.try_map(values::number)).transpose();
    let list = |name| text(name)?.map(|given| given.try_map(|text| Ok::<_, String>(values::list(text)))).transpose();
    let path = |name| text(name)?.map(|given| given.try_map(|text| Ok::<_, String>(PathBuf::from(text)))).transpose();
    Ok(Layer {
        listen: match text("SWITCHBOARD_LISTEN")? {
            Some(listen) => Some(listen),
            None => host_and_port(text("BIND_HOST")?, text("PORT")?)?,
        },
        public_url: text("SWITCHBOARD_PUBLIC_URL")?,
        tls_cert: path("SWITCHBOARD_TLS_CERT")?,
        tls_key: path("SWITCHBOARD_TLS_KEY")?,
        data: path("SWITCHBOARD_DATA")?,
        memory: flag("SWITCHBOARD_MEMORY")?,
        synchronous: text("SWITCHBOARD_SYNCHRONOUS")?.map(|given| given.try_map(choice)).transpose()?,
        log_format: text("SWITCHBOARD_LOG_FORMAT")?.map(|given| given.try_map(choice)).transpose()?,
        tokens_file: path("SWITCHBOARD_TOKENS_FILE")?,
        tokens: text("SWITCHBOARD_TOKENS")?,
        allow_unauthenticated: flag("SWITCHBOARD_ALLOW_UNAUTHENTICATED")?,
        tenants: list("SWITCHBOARD_TENANT")?,
        outbound_allow: list("SWITCHBOARD_OUTBOUND_ALLOW")?,
        cors_origins: list("SWITCHBOARD_CORS_ORIGIN")?,
        webhook_attempts_max: number("SWITCHBOARD_WEBHOOK_ATTEMPTS")?,
        webhook_coalesce_after: number("SWITCHBOARD_WEBHOOK_COALESCE")?,
        webhook_signing_secret: text("SWITCHBOARD_WEBHOOK_SIGNING_SECRET")?,
        webhook_signing_secret_file: path("SWITCHBOARD_WEBHOOK_SIGNING_SECRET_FILE")?,
        body_bytes_max: number("SWITCHBOARD_BODY_LIMIT")?,
        reply_bytes_max: number("SWITCHBOARD_REPLY_LIMIT")?,
        default_version: text("SWITCHBOARD_DEFAULT_VERSION")?,
        card: text("SWITCHBOARD_CARD")?.map(|given| given.try_map(choice)).transpose()?,
        grace_s: number("SWITCHBOARD_GRACE")?,
        name: text("SWITCHBOARD_NAME")?,
        description: text("SWITCHBOARD_DESCRIPTION")?,
        agent_version: text("SWITCHBOARD_AGENT_VERSION")?,
        exec: text("SWITCHBOARD_EXEC")?,
        exec_shell: flag("SWITCHBOARD_EXEC_SHELL")?,
        effects: text("SWITCHBOARD_EFFECTS")?.map(|given| given.try_map(choice)).transpose()?,
        run_timeout_s: number("SWITCHBOARD_RUN_TIMEOUT")?,
        lease_s: None,
        queued_timeout_s: None,
        processing_timeout_s: None,
        retention: None,
    })
}

/// The two variables that container platforms set. Either alone leaves the other at its default.
fn host_and_port(
    host: Option<Given<String>>,
    port: Option<Given<String>>,
) -> Result<Option<Given<String>>, ConfigError> {
    let Some(from) = host.as_ref().or(port.as_ref()).map(|given| given.from.clone()) else { return Ok(None) };
    let ip = host.map(|host| host.try_map(|text| listen::parse_host(&text))).transpose()?;
    let port = port.map(|port| port.try_map(|text| listen::parse_port(&text))).transpose()?;
    let ip = ip.map_or(listen::DEFAULT.ip(), |ip| ip.value);
    let port = port.map_or(listen::DEFAULT.port(), |port| port.value);
    Ok(Some(Given::new(std::net::SocketAddr::new(ip, port).to_string(), from)))
}

fn choice<T: ValueEnum>(text: String) -> Result<T, String> {
    T::from_str(&text, true).map_err(|_| {
        let words: Vec<String> = T::value_variants()
            .iter()
            .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()))
            .collect();
        format!("expected {}, got {text:?}", words.join(" or "))
    })
}

fn of_file(source: &Source) -> Result<(Layer, Vec<AgentLayer>), ConfigError> {
    let File { server, tls, agent } = source.parse()?;
    let mut agents = Vec::with_capacity(agent.len());
    for (index, agent) in agent.into_iter().enumerate() {
        agents.push(of_agent(&Place { source, table: format!("agent[{index}]") }, agent));
    }
    let server = of_server(&Place { source, table: "server".to_owned() }, server);
    let TlsTable { cert, key } = tls;
    let place = Place { source, table: "tls".to_owned() };
    Ok((Layer { tls_cert: place.get("cert", cert), tls_key: place.get("key", key), ..server }, agents))
}

/// A table of the file.
struct Place<'a> {
    source: &'a Source,
    table: String,
}

impl Place<'_> {
    fn one<T>(&self, key: &str, value: Spanned<T>) -> Given<T> {
        let line = self.source.line_at(value.span().start);
        let from = Origin::File { path: self.source.path.clone(), line, key: format!("{}.{key}", self.table) };
        Given::new(value.into_inner(), from)
    }

    fn get<T>(&self, key: &str, value: Setting<T>) -> Option<Given<T>> {
        value.map(|value| self.one(key, value))
    }
}

fn of_server(place: &Place<'_>, table: ServerTable) -> Layer {
    let secret = place.get("webhook_signing_secret", table.webhook_signing_secret).map(|given| {
        let secrets = match given.value {
            SecretForm::One(secret) => secret,
            SecretForm::Several(secrets) => secrets.join("\n"),
        };
        Given::new(secrets, given.from)
    });
    Layer {
        listen: place.get("listen", table.listen),
        public_url: place.get("public_url", table.public_url),
        data: place.get("data", table.data),
        memory: place.get("memory", table.memory),
        synchronous: place.get("synchronous", table.synchronous),
        log_format: place.get("log_format", table.log_format),
        tokens_file: place.get("tokens_file", table.tokens_file),
        allow_unauthenticated: place.get("allow_unauthenticated", table.allow_unauthenticated),
        tenants: place.get("tenants", table.tenants),
        outbound_allow: place.get("outbound_allow", table.outbound_allow),
        cors_origins: place.get("cors_origins", table.cors_origins),
        webhook_attempts_max: place.get("webhook_attempts_max", table.webhook_attempts_max),
        webhook_coalesce_after: place.get("webhook_coalesce_after", table.webhook_coalesce_after),
        webhook_signing_secret: secret,
        webhook_signing_secret_file: place.get("webhook_signing_secret_file", table.webhook_signing_secret_file),
        body_bytes_max: place.get("body_bytes_max", table.body_bytes_max),
        reply_bytes_max: place.get("reply_bytes_max", table.reply_bytes_max),
        default_version: place.get("default_version", table.default_version),
        card: place.get("card", table.card),
        grace_s: place.get("grace_s", table.grace_s),
        lease_s: place.get("lease_s", table.lease_s),
        queued_timeout_s: place.get("queued_timeout_s", table.queued_timeout_s),
        processing_timeout_s: place.get("processing_timeout_s", table.processing_timeout_s),
        retention: Some(RetentionLayer {
            resume_window_s: place.get("resume_window_s", table.resume_window_s),
            events_s: place.get("retention_events_s", table.retention_events_s),
            tasks_s: place.get("retention_tasks_s", table.retention_tasks_s),
            tasks_max: place.get("retention_tasks_max", table.retention_tasks_max),
        }),
        ..Layer::default()
    }
}

fn of_agent(place: &Place<'_>, table: AgentTable) -> AgentLayer {
    let command = place.get("command", table.command).map(|given| {
        let command = match given.value {
            CommandForm::Line(line) => Command::Line(line),
            CommandForm::Words(words) => Command::Words(words),
        };
        Given::new(command, given.from)
    });
    let skills = table.skill.into_iter().enumerate();
    AgentLayer {
        name: place.one("name", table.name),
        slug: place.get("slug", table.slug),
        description: place.get("description", table.description),
        version: place.get("version", table.version),
        kind: place.get("kind", table.kind),
        command,
        shell: place.get("shell", table.shell),
        env: place.get("env", table.env),
        processes_max: place.get("processes_max", table.processes_max),
        effects: place.get("effects", table.effects),
        idempotency: place.get("idempotency", table.idempotency),
        recovery: place.get("recovery", table.recovery),
        recovery_reason: place.get("recovery_reason", table.recovery_reason),
        attempts_max: place.get("attempts_max", table.attempts_max),
        retry_pause_s: place.get("retry_pause_s", table.retry_pause_s),
        retry_pause_s_max: place.get("retry_pause_s_max", table.retry_pause_s_max),
        run_timeout_s: place.get("run_timeout_s", table.run_timeout_s),
        run_timeout_s_max: place.get("run_timeout_s_max", table.run_timeout_s_max),
        streaming: place.get("streaming", table.streaming),
        push: place.get("push", table.push),
        input_modes: place.get("input_modes", table.input_modes),
        output_modes: place.get("output_modes", table.output_modes),
        card: place.get("card", table.card),
        dialect: place.get("dialect", table.dialect),
        default_dialect: place.get("default_dialect", table.default_dialect),
        selectools_tasks_max: place.get("selectools_tasks_max", table.selectools_tasks_max),
        selectools_body_bytes_max: place.get("selectools_body_bytes_max", table.selectools_body_bytes_max),
        selectools_card_url: place.get("selectools_card_url", table.selectools_card_url),
        default_project: place.get("default_project", table.default_project),
        corvid_sends_per_min: place.get("corvid_sends_per_min", table.corvid_sends_per_min),
        corvid_depth_max: place.get("corvid_depth_max", table.corvid_depth_max),
        corvid_timeout_s: place.get("corvid_timeout_s", table.corvid_timeout_s),
        skills: skills.map(|(index, skill)| of_skill(place, index, skill)).collect(),
    }
}

/// A skill stands where its id stands.
fn of_skill(place: &Place<'_>, index: usize, table: SkillTable) -> Given<SkillConfig> {
    let Given { value: id, from } = place.one(&format!("skill[{index}].id"), table.id);
    let skill = SkillConfig {
        name: table.name.map_or_else(|| id.clone(), Spanned::into_inner),
        description: table.description.map(Spanned::into_inner).unwrap_or_default(),
        id,
        tags: table.tags,
        examples: table.examples,
        input_modes: table.input_modes,
        output_modes: table.output_modes,
    };
    Given::new(skill, from)
}
