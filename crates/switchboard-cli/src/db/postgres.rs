//! `switchboard db migrate` and `switchboard db status`, for tasks in PostgreSQL.

use std::path::Path;

use crate::config::{Environment, ServerSettings, Storage, read_layers};
use crate::data_args::StoreArgs;
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
