//! From settings to a database in PostgreSQL. A build without the feature `postgres` says so.

use switchboard::ServerBuilder;
use switchboard::audit_log::{AuditChain, Position, StoredEntry};
use switchboard::call::Owner;
use switchboard::database::{Assigned, Checked, Fault};

use crate::config::{Config, Environment, ServerSettings};
use crate::failure::Failure;

#[cfg(feature = "postgres")]
mod of_build {
    use std::time::Duration;

    use switchboard::moving::Place;
    use switchboard::{NatsOptions, PostgresOptions, SecretKeySource, postgres};

    use super::{
        Assigned, AuditChain, Checked, Config, Environment, Failure, Fault, Owner, Position, ServerBuilder,
        ServerSettings, StoredEntry,
    };
    use crate::config::Storage;
    use crate::process::os_user;

    fn options(settings: &ServerSettings, environment: &Environment) -> Result<PostgresOptions, Failure> {
        let Storage::Postgres { url, schema } = settings.storage() else {
            return Err(Failure::Usage("no address of PostgreSQL is given (--store)".to_owned()));
        };
        let mut options = PostgresOptions::new(url.0)
            .schema(schema)
            .migrates(*settings.store_migrate)
            .readers(usize::try_from(*settings.store_readers).unwrap_or(usize::MAX))
            .statement_timeout(Duration::from_secs(*settings.store_statement_timeout_s));
        if let Some(name) = &settings.replica.value {
            options = options.replica(name);
        }
        match environment.raw("PGPASSWORD").and_then(|password| password.into_string().ok()) {
            Some(password) => Ok(options.password(password)),
            None => Ok(options),
        }
    }

    pub(crate) fn with_store(
        builder: ServerBuilder,
        config: &Config,
        environment: &Environment,
    ) -> Result<ServerBuilder, Failure> {
        let options = options(&config.server, environment)?;
        let SecretKeySource::Keys(keys) = &config.secret_keys else {
            return Err(Failure::Usage("tasks in PostgreSQL need a key for the secrets of webhooks".to_owned()));
        };
        let options = options.secrets(keys.clone());
        let Some(url) = &config.server.hints.value else { return Ok(builder.postgres(options)) };
        let mut hints = NatsOptions::new(&*url.0).subject(&*config.server.hints_subject.value);
        if let Some(credentials) = &config.hints_credentials {
            hints = hints.credentials(&*credentials.0);
        }
        hints.check().map_err(|error| Failure::Usage(format!("{}: {error}", config.server.hints.from)))?;
        Ok(builder.postgres_with_hints(options, hints))
    }

    pub(crate) fn migrate(settings: &ServerSettings, environment: &Environment) -> Result<String, Failure> {
        let before = postgres::migrate(&options(settings, environment)?).map_err(Failure::runtime)?;
        Ok(match before.found < before.known {
            true => format!("migrated from version {} to {} (server {})", before.found, before.known, before.server),
            false => format!("nothing to do: {before}"),
        })
    }

    pub(crate) fn status(settings: &ServerSettings, environment: &Environment) -> Result<String, Failure> {
        let status = postgres::status(&options(settings, environment)?).map_err(Failure::runtime)?;
        if status.is_usable() { Ok(status.to_string()) } else { Err(Failure::runtime(status)) }
    }

    pub(crate) fn verify(
        settings: &ServerSettings,
        environment: &Environment,
        tell: &mut dyn FnMut(Fault),
    ) -> Result<Checked, Failure> {
        postgres::verify(&options(settings, environment)?, tell).map_err(Failure::runtime)
    }

    pub(crate) fn read_audit(
        settings: &ServerSettings,
        environment: &Environment,
        show: &mut dyn FnMut(&Position, &StoredEntry),
    ) -> Result<Vec<AuditChain>, Failure> {
        postgres::read_audit(&options(settings, environment)?, show).map_err(Failure::runtime)
    }

    pub(crate) fn assign_owner(
        settings: &ServerSettings,
        environment: &Environment,
        (from, to): (&Owner, &Owner),
        agent: Option<&str>,
        reason: &str,
    ) -> Result<Assigned, Failure> {
        let options = options(settings, environment)?;
        postgres::assign_owner(&options, from, to, agent, &os_user(), reason).map_err(Failure::runtime)
    }

    /// The database as one side of a move.
    pub(crate) fn place(settings: &ServerSettings, environment: &Environment) -> Result<Place, Failure> {
        options(settings, environment).map(Place::Postgres)
    }

    pub(crate) fn remove(settings: &ServerSettings, environment: &Environment) -> Result<bool, Failure> {
        postgres::remove(&options(settings, environment)?).map_err(Failure::runtime)
    }
}

#[cfg(not(feature = "postgres"))]
mod of_build {
    use super::{
        Assigned, AuditChain, Checked, Config, Environment, Failure, Fault, Owner, Position, ServerBuilder,
        ServerSettings, StoredEntry,
    };

    fn missing<T>() -> Result<T, Failure> {
        Err(Failure::Usage("this build has no PostgreSQL (its feature `postgres` is off)".to_owned()))
    }

    pub(crate) fn with_store(_: ServerBuilder, _: &Config, _: &Environment) -> Result<ServerBuilder, Failure> {
        missing()
    }

    pub(crate) fn migrate(_: &ServerSettings, _: &Environment) -> Result<String, Failure> {
        missing()
    }

    pub(crate) fn status(_: &ServerSettings, _: &Environment) -> Result<String, Failure> {
        missing()
    }

    pub(crate) fn verify(_: &ServerSettings, _: &Environment, _: &mut dyn FnMut(Fault)) -> Result<Checked, Failure> {
        missing()
    }

    pub(crate) fn read_audit(
        _: &ServerSettings,
        _: &Environment,
        _: &mut dyn FnMut(&Position, &StoredEntry),
    ) -> Result<Vec<AuditChain>, Failure> {
        missing()
    }

    pub(crate) fn assign_owner(
        _: &ServerSettings,
        _: &Environment,
        _: (&Owner, &Owner),
        _: Option<&str>,
        _: &str,
    ) -> Result<Assigned, Failure> {
        missing()
    }

    pub(crate) fn remove(_: &ServerSettings, _: &Environment) -> Result<bool, Failure> {
        missing()
    }
}

/// Gives a server its database; the others are for `switchboard db` and `switchboard audit`.
#[cfg(feature = "postgres")]
pub(crate) use of_build::place;
pub(crate) use of_build::{assign_owner, migrate, read_audit, remove, status, verify, with_store};
