//! What a store on PostgreSQL is told when it is opened, and the address of the database.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_engine::ports::Clock;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::error::PostgresError;
use crate::secret_keys::SecretKeys;

/// The longest name of a schema, as PostgreSQL has it.
const NAME_BYTES_MAX: usize = 63;

/// Tasks that a process wrote lately and keeps in memory.
const CACHE_RECORDS_MAX: usize = 4_096;

/// How to open a store on PostgreSQL.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?sslmode=…`. Several hosts may be given for failover.
    pub(super) url: String,
    /// The schema that holds the tables.
    pub(super) schema: String,
    pub(super) password: Option<String>,
    /// The name of this process. A process that starts under the same name takes over what its predecessor left at once.
    pub(super) replica: Option<String>,
    pub(super) secrets: Option<SecretKeys>,
    pub(super) statement_timeout: Duration,
    pub(super) readers: usize,
    pub(super) time: TimeSource,
    pub(super) migrates: bool,
    /// Tasks that the process wrote lately and keeps in memory.
    pub(super) cache_records_max: usize,
    /// Whether hints between processes go over this database.
    pub(super) carries_hints: bool,
}

/// Whose clock decides about leases and other waiting times.
#[derive(Clone)]
pub(super) enum TimeSource {
    /// The clock of the server, which all processes share.
    Database,
    /// A clock that a test moves.
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests decide the time"))]
    Given(Arc<dyn Clock>),
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password in it.
        f.debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("replica", &self.replica)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    pub const SCHEMA_DEFAULT: &str = "switchboard";
    /// Connections that read; their statements are pipelined, so a few serve many callers.
    pub const READERS_DEFAULT: usize = 4;
    pub const STATEMENT_TIMEOUT_S_DEFAULT: u64 = 30;

    /// A store in this database, in the schema `switchboard`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: Self::SCHEMA_DEFAULT.to_owned(),
            password: None,
            replica: None,
            secrets: None,
            statement_timeout: Duration::from_secs(Self::STATEMENT_TIMEOUT_S_DEFAULT),
            readers: Self::READERS_DEFAULT,
            time: TimeSource::Database,
            migrates: true,
            cache_records_max: CACHE_RECORDS_MAX,
            carries_hints: true,
        }
    }

    /// The keys that the secrets of webhooks are encrypted with. A store that is given none refuses webhooks with secrets.
    #[must_use]
    pub fn secrets(mut self, keys: SecretKeys) -> Self {
        self.secrets = Some(keys);
        self
    }

    /// Another schema.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    /// The schema that holds the tables.
    #[must_use]
    pub fn schema_name(&self) -> &str {
        &self.schema
    }

    /// The password, if the address has none.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// How many connections serve reads. A process has five more.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers;
        self
    }

    /// The name of this process among those that share the database. Without one, a name is drawn at random.
    #[must_use]
    pub fn replica(mut self, name: impl Into<String>) -> Self {
        self.replica = Some(name.into());
        self
    }

    /// The longest time that one statement may take.
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// Whether opening brings the schema to the version of this build; otherwise an older schema is an error.
    #[must_use]
    pub fn migrates(mut self, migrates: bool) -> Self {
        self.migrates = migrates;
        self
    }

    /// Whether hints between processes go over this database (`LISTEN` and `NOTIFY`); they do unless something else carries them.
    #[must_use]
    pub fn carries_hints(mut self, carries_hints: bool) -> Self {
        self.carries_hints = carries_hints;
        self
    }

    /// Lets a test decide the time.
    #[cfg(test)]
    pub(crate) fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.time = TimeSource::Given(clock);
        self
    }

    /// The address without what the client library does not know, and the file of certificates that it names.
    pub(super) fn parse(&self) -> Result<(Config, Option<PathBuf>), PostgresError> {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if self.schema.is_empty() || self.schema.len() > NAME_BYTES_MAX || !self.schema.chars().all(is_name) {
            return Err(PostgresError(format!("schema `{}`: expected letters, digits and `_`", self.schema)));
        }
        let (base, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let says_mode = query.split('&').any(|pair| pair.starts_with("sslmode="));
        let (mut kept, mut root) = (Vec::new(), None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslrootcert", file)) => root = Some(PathBuf::from(file)),
                _ => kept.push(pair),
            }
        }
        let url = if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) };
        let parsed: Result<Config, _> = url.parse();
        let mut config = parsed.map_err(|error| {
            use std::error::Error as _;
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            PostgresError(format!(
                "the address is not valid ({why}); expected postgres://user:password@host:port/database"
            ))
        })?;
        if config.get_hosts().is_empty() {
            return Err(PostgresError(
                "the address names no host; expected postgres://user@host:port/database".to_owned(),
            ));
        }
        if !says_mode {
            let is_near = config.get_hosts().iter().all(is_this_machine);
            config.ssl_mode(if is_near { SslMode::Disable } else { SslMode::Require });
        }
        if let Some(password) = self.password.as_ref().filter(|_| config.get_password().is_none()) {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("switchboard");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(5));
        }
        // Writes go to the primary, so with several hosts the one that takes writes is used.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.keepalives(true).keepalives_idle(Duration::from_secs(15)).keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(20));
        Ok((config, root))
    }
}

/// Whether a host is this machine, to which nobody else can listen.
fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::SslMode;

    use super::PostgresOptions;

    #[test]
    fn only_connections_to_this_machine_are_unencrypted_unless_the_address_says_so() {
        let mode = |url: &str| PostgresOptions::new(url).parse().unwrap().0.get_ssl_mode();
        for near in ["localhost", "127.0.0.1", "[::1]"] {
            assert_eq!(mode(&format!("postgres://u@{near}/db")), SslMode::Disable, "{near}");
        }
        assert_eq!(mode("postgres:///db?host=/run/postgresql"), SslMode::Disable);
        for far in ["db.example", "10.0.0.1", "localhost,db.example", "localhost.example"] {
            assert_eq!(mode(&format!("postgres://u@{far}/db")), SslMode::Require, "{far}");
        }
        assert_eq!(mode("postgres://u@db.example/db?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/db?sslrootcert=a.pem&sslmode=require"), SslMode::Require);
    }

    #[test]
    fn a_password_beside_the_address_is_used_if_there_is_none_in_it() {
        let password = |url: &str| {
            let config = PostgresOptions::new(url).password("beside").parse().unwrap().0;
            config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        assert_eq!(password("postgres://u@localhost/db").as_deref(), Some("beside"));
        assert_eq!(password("postgres://u:inside@localhost/db").as_deref(), Some("inside"));
    }
}
