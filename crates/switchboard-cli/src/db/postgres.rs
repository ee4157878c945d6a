//! The commands of `switchboard db` for tasks in PostgreSQL.

use std::path::Path;

use crate::config::{Environment, ServerSettings, Storage, read_layers};
use crate::data_args::{DatabaseArgs, StoreArgs};
use crate::failure::Failure;
use crate::postgres_options;

/// Brings the tables up to date and says what was done.
pub(super) fn migrate(args: &StoreArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let settings = settings(args, environment, folder)?;
    postgres_options::migrate(&settings, environment)
}

/// The state of the database. One that servers of this build cannot use is a failure.
pub(super) fn status(args: &StoreArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let settings = settings(args, environment, folder)?;
    postgres_options::status(&settings, environment)
}

/// Whether flags, environment and configuration name PostgreSQL.
pub(crate) fn is_meant(args: &DatabaseArgs, environment: &Environment, folder: &Path) -> Result<bool, Failure> {
    Ok(matches!(super::settings(args, environment, folder)?.storage(), Storage::Postgres { .. }))
}

/// Checks the database, whether servers use it or not.
pub(super) fn verify(
    args: &DatabaseArgs,
    json: bool,
    environment: &Environment,
    folder: &Path,
) -> Result<String, Failure> {
    let settings = super::settings(args, environment, folder)?;
    let place = format!("PostgreSQL, schema {}", *settings.store_schema);
    super::verify::report(&place, json, |tell| postgres_options::verify(&settings, environment, tell))
}

/// Removes the schema, if the caller confirmed it.
pub(super) fn reset(
    args: &DatabaseArgs,
    really: bool,
    environment: &Environment,
    folder: &Path,
) -> Result<String, Failure> {
    let settings = super::settings(args, environment, folder)?;
    let schema = &*settings.store_schema;
    if !really {
        return Err(Failure::Usage(format!(
            "this would delete every task for ever, and the audit log: the schema {schema} with everything in it (keep the log with \
             `switchboard audit export`); say --yes to do it"
        )));
    }
    Ok(match postgres_options::remove(&settings, environment)? {
        true => format!("deleted the schema {schema}"),
        false => format!("there is no schema {schema}; nothing to delete"),
    })
}

fn settings(args: &StoreArgs, environment: &Environment, folder: &Path) -> Result<ServerSettings, Failure> {
    let (settings, _) = read_layers(&args.settings(), args.config.as_deref(), environment, folder).server()?;
    match settings.storage() {
        Storage::Postgres { .. } => Ok(settings),
        Storage::Memory | Storage::Sqlite { .. } => {
            let why = "this command is for PostgreSQL; name it with --store postgres://USER@HOST:PORT/DATABASE (a database file is \
                       brought up to date when a server opens it)";
            Err(Failure::Usage(why.to_owned()))
        }
    }
}
