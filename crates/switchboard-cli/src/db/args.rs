//! The flags of the commands of `switchboard db`, but for those of `db move`.

use std::path::PathBuf;

use clap::Args;

use crate::data_args::DatabaseArgs;

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
