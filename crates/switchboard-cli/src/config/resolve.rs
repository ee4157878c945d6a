//! Turns the layers into one checked configuration: fills in defaults, and checks settings against each other. After
//! this, only the system can keep the server from starting: a port that is taken, a disk that is full.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use switchboard::{Limits, SecretKeySource, ServerBuilder, Tls};

use super::agents::{Surroundings, resolve_agents};
use super::environment::Environment;
use super::file_rights;
use super::issuers::resolve_issuers;
use super::layers::Layers;
use super::origin::{ConfigError, ConfigErrors, Errors};
use super::row::Table;
use super::secrets::{
    api_key, hints_credentials, otlp, rules, secret_keys, shared_secret, signing_keys, signing_secrets, tokens,
};
use super::table::{ServerSettings, TlsSettings};
use super::{Config, KEYS_NAME, KnownTls, Storage, listen};

/// How many tasks are kept in memory, where a million would take gigabytes.
const MEMORY_TASKS_MAX: u64 = ServerBuilder::MEMORY_TASKS_MAX_DEFAULT as u64;

/// # Errors
/// When something is wrong; the errors say what and where, all of them together.
pub(crate) fn resolve(layers: Layers, environment: &Environment, folder: &Path) -> Result<Config, ConfigErrors> {
    let Layers { mut settings, agents, issuers, mut errors, is_file_unknown } = layers;
    let server = ServerSettings::read(&mut settings, &mut errors);
    let tls_settings = TlsSettings::read(&mut settings, &mut errors);
    let (Some(mut server), Some(tls_settings), false) = (server, tls_settings, is_file_unknown) else {
        return Err(errors.into());
    };
    let search = environment.raw("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let surroundings = Surroundings { search: &search, environment, folder };
    let agents = resolve_agents(&settings, agents, &server.relays, &surroundings, &mut errors);
    let tokens = errors.keep(tokens(&mut server, folder)).flatten();
    let api_key = errors.keep(api_key(&server, environment)).flatten();
    let shared_secret = errors.keep(shared_secret(&mut server, folder)).flatten();
    let has_issuers = server.jwt_issuer.is_some() || !issuers.is_empty();
    let issuers = resolve_issuers(&server, issuers, folder, &mut errors);
    let webhook_signing_secrets = errors.keep(signing_secrets(&mut server, folder)).flatten();
    let rules = errors.keep(rules(&server, folder)).flatten();
    let tls = if errors.is_doubtful(&[(Table::Tls, "cert"), (Table::Tls, "key")]) {
        None
    } else {
        errors.keep(tls(&tls_settings, folder)).flatten()
    };
    let knows_callers = tokens.is_some()
        || server.api_key_env.is_some()
        || shared_secret.is_some()
        || has_issuers
        || tls_settings.client_authority.is_some();
    check_access(&server, knows_callers, environment, &mut errors);
    if *server.memory && !server.retention_tasks_max.is_given() {
        server.retention_tasks_max.value = MEMORY_TASKS_MAX;
    }
    if *server.memory && !server.storage_bytes_max.is_given() {
        server.storage_bytes_max.value = ServerBuilder::MEMORY_STORAGE_BYTES_MAX_DEFAULT;
    }
    let secret_keys = errors.keep(secret_keys(&mut server, folder));
    let hints_credentials = errors.keep(hints_credentials(&mut server, folder)).flatten();
    let otlp = errors.keep(otlp(&mut server, folder)).flatten();
    let signing_keys = errors.keep(signing_keys(&server, folder)).flatten();
    check_store(&server, secret_keys.as_ref(), &mut errors);
    let storage = server.storage();
    let production = environment.production_variable();
    let mut doubts = file_rights::doubts(&server, &storage, folder);
    if production.is_some() {
        doubts.drain(..).for_each(|doubt| errors.add(doubt));
        check_public_url(&server, &mut errors);
    }
    let config = Config {
        server,
        tls_settings,
        tls,
        storage,
        tokens,
        api_key,
        shared_secret,
        issuers,
        webhook_signing_secrets,
        rules,
        secret_keys: secret_keys.unwrap_or_default(),
        hints_credentials,
        otlp,
        signing_keys,
        agents,
        production,
        doubts,
    };
    errors.or(Some(config))
}

impl Layers {
    /// The settings of the server alone, for commands that serve no agents.
    ///
    /// # Errors
    /// When something is wrong with them, or the file cannot be read.
    pub(crate) fn server(mut self) -> Result<(ServerSettings, TlsSettings), ConfigErrors> {
        let server = ServerSettings::read(&mut self.settings, &mut self.errors);
        let tls_settings = TlsSettings::read(&mut self.settings, &mut self.errors);
        self.errors.or(server.zip(tls_settings))
    }
}

impl ServerSettings {
    /// Where tasks are kept.
    pub(crate) fn storage(&self) -> Storage {
        if *self.memory {
            return Storage::Memory;
        }
        if let Some(url) = &self.store.value {
            return Storage::Postgres { url: url.clone(), schema: self.store_schema.value.clone() };
        }
        Storage::Sqlite { folder: self.data.value.clone(), synchronous: *self.synchronous }
    }

    /// Where the keys that sign are kept; none if tasks are in memory and no folder is named.
    pub(crate) fn keys_dir(&self) -> Option<PathBuf> {
        let of_data = || self.storage().folder().map(|data| data.join(KEYS_NAME));
        self.keys_dir.value.clone().or_else(of_data)
    }

    /// The limits of an engine that keeps what these settings say of ended tasks.
    pub(crate) fn retain(&self, limits: Limits) -> Limits {
        Limits {
            resume_window_s: *self.resume_window_s,
            retention_events_s: *self.retention_events_s,
            retention_tasks_s: *self.retention_tasks_s,
            retention_tasks_max: *self.retention_tasks_max,
            retention_tasks_batch: *self.retention_tasks_batch,
            retention_audit_s: *self.retention_audit_s,
            retention_audit_max: *self.retention_audit_max,
            ..limits
        }
    }
}

/// What tasks in PostgreSQL need besides its address. Keys that are wrong were refused already.
fn check_store(server: &ServerSettings, keys: Option<&SecretKeySource>, errors: &mut Errors) {
    if server.store.is_none() {
        if server.hints.is_some() {
            errors.add(
                server
                    .hints
                    .from
                    .error("hints are between servers that share a database; name it (--store), or leave them out"),
            );
        }
        return;
    }
    if server.hints.is_none() && server.hints_credentials_file.is_some() {
        errors.add(server.hints_credentials_file.from.error("there is no address of NATS; name it (--hints)"));
    }
    if *server.memory {
        errors.add(server.store.from.error("tasks are to be kept in memory, too; keep one of memory and store"));
    }
    if matches!(keys, Some(SecretKeySource::Beside)) {
        let why = "secrets of webhooks are encrypted, and all servers need the same key for them; name its file \
                   (--secrets-key-file FILE or SWITCHBOARD_SECRETS_KEY_FILE) or give the key in SWITCHBOARD_SECRETS_KEY; make one: \
                   echo \"swkey_$(openssl rand -base64 32)\"";
        errors.add(server.store.from.error(why));
    }
}

/// A server that other machines can reach must have tokens, or a setting that says that it needs none.
fn check_access(server: &ServerSettings, has_tokens: bool, environment: &Environment, errors: &mut Errors) {
    let of_server = |key| (Table::Server, key);
    if errors.is_doubtful(&["tokens", "tokens_file", "allow_unauthenticated"].map(of_server)) {
        return;
    }
    let asks = "either give out tokens (--tokens FILE, or SWITCHBOARD_TOKENS) or say --allow-unauthenticated";
    if has_tokens && !server.tenants.is_empty() {
        let why =
            "these are the tenants of callers without a token, and there are tokens; name them in the tokens' lines";
        errors.add(server.tenants.from.error(why));
    }
    if has_tokens || *server.allow_unauthenticated || errors.is_doubtful(&["listen", "public_url"].map(of_server)) {
        return;
    }
    // In production it starts, and refuses every call until it knows who may call.
    if environment.production_variable().is_some() {
        return;
    }
    if !listen::is_local(*server.listen) {
        errors.add(server.listen.from.error(format_args!(
            "{} can be reached from other machines, and every client that reaches it could use every agent and read every task; {asks}",
            *server.listen
        )));
    } else if let Some(url) = server.public_url.as_ref().filter(|url| !listen::is_local_url(url)) {
        errors.add(server.public_url.from.error(format_args!(
            "{url} invites clients from other machines, and each of them could use every agent and read every task; {asks}"
        )));
    }
}

/// In production, a card must not send clients to an unencrypted address of another machine.
fn check_public_url(server: &ServerSettings, errors: &mut Errors) {
    let plain = server.public_url.as_ref().filter(|url| url.starts_with("http://") && !listen::is_local_url(url));
    if let Some(url) = plain.filter(|_| !*server.allow_plain_http) {
        errors.add(server.public_url.from.error(format_args!(
            "{url} is not encrypted, and in production clients would send their tokens there; use https://, or say --allow-plain-http"
        )));
    }
}

/// The certificate and the key of the port: both or neither, and a pair that belongs together.
fn tls(settings: &TlsSettings, folder: &Path) -> Result<Option<KnownTls>, ConfigError> {
    let TlsSettings { cert: cert_given, key: key_given, client_authority } = settings;
    let (cert, key) = match (&cert_given.value, &key_given.value) {
        (Some(cert), Some(key)) => (cert, key),
        (None, None) if client_authority.is_some() => {
            let why = "clients show certificates only to a port that speaks TLS; set tls.cert and tls.key, too";
            return Err(client_authority.from.error(why));
        }
        (None, None) => return Ok(None),
        (Some(_), None) => {
            let why =
                "there is no private key to go with it; name its file, too (tls.key, --tls-key or SWITCHBOARD_TLS_KEY)";
            return Err(cert_given.from.error(why));
        }
        (None, Some(_)) => {
            let why = "there is no certificate to go with it; name its file, too (tls.cert, --tls-cert or SWITCHBOARD_TLS_CERT)";
            return Err(key_given.from.error(why));
        }
    };
    let tls = Tls::from_files(folder.join(cert), folder.join(key)).map_err(|error| {
        let from = if error.is_about_key() { &key_given.from } else { &cert_given.from };
        from.error(error)
    })?;
    let tls = match &client_authority.value {
        Some(path) => {
            let shown = path.display();
            let unread = |error| client_authority.from.error(format_args!("{shown} cannot be read: {error}"));
            let pem = std::fs::read(folder.join(path)).map_err(unread)?;
            tls.with_client_authority(&pem)
                .map_err(|error| client_authority.from.error(format_args!("{shown}: {error}")))?
        }
        None => tls,
    };
    let doubt = tls.key_is_exposed().then(|| {
        let file = key.display();
        key_given
            .from
            .error(format_args!("everybody on this machine can read {file}; `chmod 600 {file}` keeps it private"))
    });
    Ok(Some(KnownTls { tls, doubt }))
}
