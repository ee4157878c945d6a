//! From settings to a database in PostgreSQL. A build without the feature `postgres` says so.

use switchboard::ServerBuilder;

use crate::config::{Config, Environment, ServerSettings};
use crate::failure::Failure;

#[cfg(feature = "postgres")]
mod of_build {
    use std::time::Duration;

    use switchboard::{PostgresOptions, SecretKeySource, postgres};

    use super::{Config, Environment, Failure, ServerBuilder, ServerSettings};
    use crate::config::Storage;

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
        match &config.secret_keys {
            SecretKeySource::Keys(keys) => Ok(builder.postgres(options.secrets(keys.clone()))),
            SecretKeySource::Beside | SecretKeySource::Untouched => {
                Err(Failure::Usage("tasks in PostgreSQL need a key for the secrets of webhooks".to_owned()))
            }
        }
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
}

#[cfg(not(feature = "postgres"))]
mod of_build {
    use super::{Config, Environment, Failure, ServerBuilder, ServerSettings};

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
}

/// Gives a server its database; the others are `switchboard db migrate` and `switchboard db status`.
pub(crate) use of_build::{migrate, status, with_store};
