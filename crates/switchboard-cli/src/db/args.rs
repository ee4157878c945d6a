//! The commands of `switchboard db`, and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::data_args::{DatabaseArgs, StoreArgs};

#[derive(Subcommand)]
pub(crate) enum DbCommand {
    /// Copy the database to a file, while a server uses it or not
    Backup(BackupArgs),
    /// Check that the database, or a backup, is whole and nothing in it contradicts itself
    Verify(VerifyArgs),
    /// Remove what is no longer kept and give the space back, while no server runs
    Compact(CompactArgs),
    /// Hand tasks over to another owner, while no server runs
    AssignOwner(AssignOwnerArgs),
    /// Encrypt the secrets of webhooks with a new key, while no server runs
    RotateSecretsKey(RotateSecretsKeyArgs),
    /// Bring the tables in PostgreSQL up to date, while servers run or not
    Migrate(StoreArgs),
    /// Move everything into another, empty database: from a folder to PostgreSQL or back, while no server runs
    #[command(after_help = MOVE_HELP)]
    Move(MoveArgs),
    /// Say whether PostgreSQL can be reached, and which version its tables have
    Status(StoreArgs),
    /// Delete every task, history, artifact and push configuration
    Reset(ResetArgs),
}

#[derive(Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
    /// The copy; it must not exist yet, and only its owner will be able to read it
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
    /// Check this file, such as a backup, and not the database of the configuration
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "config"])]
    pub(crate) file: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
}

#[derive(Args)]
pub(crate) struct AssignOwnerArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
    /// Whose tasks they are: PRINCIPAL, or TENANT/PRINCIPAL; "" is everybody who has called without a credential
    #[arg(long, value_name = "OWNER")]
    pub(crate) from: String,
    /// Whose tasks they become: PRINCIPAL, or TENANT/PRINCIPAL; TENANT/ is all of a tenant (--shared-tenant)
    #[arg(long, value_name = "OWNER")]
    pub(crate) to: String,
    /// Only tasks of this agent, by its slug [default: of all agents]
    #[arg(long, value_name = "SLUG")]
    pub(crate) agent: Option<String>,
    /// Really do it
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Args)]
pub(crate) struct RotateSecretsKeyArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
}

#[derive(Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
    /// Really do it
    #[arg(long)]
    pub(crate) yes: bool,
}

pub(crate) const MOVE_HELP: &str = "\
A place is a data folder, or postgres://USER@HOST:PORT/DATABASE.

No server may use either place. Rows go over in pages, and every page is noted in
the target, so that a move that was interrupted, however, goes on when the same
command is given again. Then each row of both is compared, and the target is
verified. Until all that is done no server opens the target, and from then on
none opens the source.

The secrets of webhooks stay encrypted as they are, so servers need the same key
for both places: SWITCHBOARD_SECRETS_KEY_FILE, SWITCHBOARD_SECRETS_KEY, or the
file beside the database that is moved.

Examples:
  switchboard db move --from switchboard-data --to postgres://switchboard@db.example/switchboard
  switchboard db move --from postgres://switchboard@db.example/switchboard --to new-data
  switchboard db move --reopen switchboard-data    use what was moved away after all";

/// What is moved where.
#[derive(Args)]
pub(crate) struct MoveArgs {
    /// What is moved: a data folder, or postgres://…
    #[arg(long, value_name = "PLACE", required_unless_present = "reopen")]
    pub(super) from: Option<String>,
    /// Where it is moved to; nothing may be there yet
    #[arg(long, value_name = "PLACE", required_unless_present = "reopen")]
    pub(super) to: Option<String>,
    /// The schema in PostgreSQL that is moved [default: from the configuration, else switchboard]
    #[arg(long, value_name = "NAME")]
    pub(super) from_schema: Option<String>,
    /// The schema in PostgreSQL that it is moved to [default: from the configuration, else switchboard]
    #[arg(long, value_name = "NAME")]
    pub(super) to_schema: Option<String>,
    /// Move webhooks, too, whose secrets cannot be read because their key is lost
    #[arg(long)]
    pub(super) without_secrets: bool,
    /// Let servers open a place again that was moved away; what its target has got since then is not in it
    #[arg(long, value_name = "PLACE", conflicts_with_all = ["from", "to", "to_schema", "without_secrets"])]
    pub(super) reopen: Option<String>,
    /// Configuration file with further settings [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}
