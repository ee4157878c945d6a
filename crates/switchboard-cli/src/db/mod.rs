//! `switchboard db`: copies, checks, compacts, moves and deletes the database, and brings one in PostgreSQL up to date.

pub(crate) mod args;
mod moving;
pub(crate) mod postgres;
mod verify;

use std::path::{Path, PathBuf};

use switchboard::call::Owner;
use switchboard::database::{self, Assigned, Compacted, FileError};
use switchboard::{Limits, SecretKeySource, audit_log};

use self::args::{AssignOwnerArgs, DbCommand};
use crate::config::{
    DATABASE_NAME, Environment, REMOTE_AGENTS_NAME, ServerSettings, Storage, read_layers, secret_keys,
};
use crate::data_args::DatabaseArgs;
use crate::failure::Failure;
use crate::postgres_options;
use crate::process::os_user;
use crate::relays::remote_agent_files;

/// Runs the command and returns the text to print.
///
/// # Errors
/// When there is no database, or the command failed.
pub(crate) fn run(command: &DbCommand, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let database = |of| database(of, environment, folder);
    match command {
        DbCommand::Backup(args) => {
            in_file(&args.of, BACKUP_INSTEAD, environment, folder)?;
            backup(&database(&args.of)?, &folder.join(&args.to))
        }
        DbCommand::Verify(args) if args.file.is_none() && postgres::is_meant(&args.of, environment, folder)? => {
            postgres::verify(&args.of, args.json, environment, folder)
        }
        DbCommand::Verify(args) => {
            let file = args.file.as_ref().map_or_else(|| database(&args.of), |file| Ok(folder.join(file)))?;
            let keys = match &args.file {
                Some(_) => SecretKeySource::Beside,
                None => secret_keys(&mut settings(&args.of, environment, folder)?, folder)?,
            };
            verify::verify(&file, &keys, args.json)
        }
        DbCommand::Compact(args) => {
            in_file(&args.of, COMPACT_INSTEAD, environment, folder)?;
            let limits = settings(&args.of, environment, folder)?.retain(Limits::default());
            let database = database(&args.of)?;
            // Recorded first, so that it is known even if it is interrupted.
            audit_log::record_offline(&database, &os_user(), "db compact", "").map_err(in_use_failure)?;
            compact(&database, &limits)
        }
        DbCommand::AssignOwner(args) => assign_owner(args, environment, folder),
        DbCommand::RotateSecretsKey(args) => {
            in_file(&args.of, ROTATE_INSTEAD, environment, folder)?;
            rotate_secrets_key(&database(&args.of)?, settings(&args.of, environment, folder)?, folder)
        }
        DbCommand::Move(args) => moving::run(args, environment, folder),
        DbCommand::Migrate(args) => postgres::migrate(args, environment, folder),
        DbCommand::Status(args) => postgres::status(args, environment, folder),
        DbCommand::Reset(args) if postgres::is_meant(&args.of, environment, folder)? => {
            postgres::reset(&args.of, args.yes, environment, folder)
        }
        DbCommand::Reset(args) => reset(&database(&args.of)?, args.yes),
    }
}

/// What to do about tasks in PostgreSQL in place of each command that is for files.
const BACKUP_INSTEAD: &str = "back it up with `pg_dump --schema SCHEMA`, or as you back up PostgreSQL otherwise; keep the key of the secrets of webhooks elsewhere";
const COMPACT_INSTEAD: &str = "servers remove what is no longer kept while they run, and PostgreSQL gives the space back (autovacuum, or `VACUUM FULL` by hand)";
const ROTATE_INSTEAD: &str = "put the new key in front of the others in the list that every server has, and start the servers again one by one: \
    new secrets are encrypted with the first key, and old ones are read with the others, which stay in the list";

/// Refuses a command for files where tasks are in PostgreSQL, and says what to do instead.
fn in_file(of: &DatabaseArgs, instead: &str, environment: &Environment, folder: &Path) -> Result<(), Failure> {
    match postgres::is_meant(of, environment, folder)? {
        true => {
            Err(Failure::Usage(format!("tasks are in PostgreSQL, and this command is for a file (--data): {instead}")))
        }
        false => Ok(()),
    }
}

/// The database that flags, environment and configuration name, in this order.
pub(crate) fn database(args: &DatabaseArgs, environment: &Environment, folder: &Path) -> Result<PathBuf, Failure> {
    match settings(args, environment, folder)?.storage() {
        Storage::Sqlite { folder: data, .. } => Ok(folder.join(data).join(DATABASE_NAME)),
        Storage::Memory => {
            Err(Failure::Usage("the configuration keeps tasks in memory; name a folder with --data".to_owned()))
        }
        Storage::Postgres { .. } => {
            let why = "the configuration keeps tasks in PostgreSQL, and this command is for a file (--data); PostgreSQL has its own \
                       tools, as in docs/postgres.md";
            Err(Failure::Usage(why.to_owned()))
        }
    }
}

pub(crate) fn settings(
    args: &DatabaseArgs,
    environment: &Environment,
    folder: &Path,
) -> Result<ServerSettings, Failure> {
    Ok(read_layers(&args.settings(), args.config.as_deref(), environment, folder).server()?.0)
}

/// A copy of the database at one moment, whether a server is using it or not.
fn backup(database: &Path, to: &Path) -> Result<String, Failure> {
    let bytes = database::backup(database, to).map_err(Failure::runtime)?;
    let key = database::secret_key_file(database);
    let without = match key.exists() {
        true => {
            format!("\nnot in it: the key of the secrets of webhooks, {}; keep a copy of it elsewhere", key.display())
        }
        false => String::new(),
    };
    let cards = copy_cards(database, to)?;
    let copied = format!("copied to {}", to.display());
    // The copy is made in any case, so that a database that is not to be written can be backed up.
    let unrecorded = match audit_log::record_offline_unless_old(database, &os_user(), "db backup", &copied) {
        Ok(true) => String::new(),
        Ok(false) => "\nnot in the audit log: the database is of an earlier version".to_owned(),
        Err(FileError::InUse { .. }) => "\nnot in the audit log: a server uses the database".to_owned(),
        Err(error) => format!("\nnot in the audit log: {error}"),
    };
    Ok(format!(
        "copied {} to {} ({})\ncheck it: switchboard db verify --file {}{cards}{without}{unrecorded}",
        database.display(),
        to.display(),
        size(bytes),
        to.display()
    ))
}

/// Copies the cards that `switchboard agents add` has accepted into a folder beside the copy, and says so. They are files, so that they can be
/// changed while a server runs, whatever store it has.
fn copy_cards(database: &Path, to: &Path) -> Result<String, Failure> {
    let Some(data) = database.parent() else { return Ok(String::new()) };
    let files = remote_agent_files(data).map_err(Failure::Runtime)?;
    if files.is_empty() {
        return Ok(String::new());
    }
    let mut folder = to.as_os_str().to_owned();
    folder.push(".remote-agents");
    let folder = PathBuf::from(folder);
    let refuse = |error: std::io::Error| {
        let (copy, place) = (to.display(), folder.display());
        Failure::Runtime(format!("the database is in {copy}, but accepted cards cannot be copied to {place}: {error}"))
    };
    std::fs::create_dir(&folder).map_err(refuse)?;
    copy_cards_into(&files, &folder).map_err(refuse)?;
    let (count, place) = (files.len(), folder.display());
    Ok(format!("\naccepted cards of {count} agents: {place}; they belong into {REMOTE_AGENTS_NAME} of the data folder"))
}

fn copy_cards_into(files: &[PathBuf], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    files.iter().try_for_each(|file| std::fs::copy(file, folder.join(file.file_name().unwrap_or_default())).map(drop))
}

/// A new key for the secrets of webhooks: made in the file of keys or, if the keys come from a variable, the first of them.
fn rotate_secrets_key(database: &Path, mut settings: ServerSettings, folder: &Path) -> Result<String, Failure> {
    let file = settings.secrets_key_file.value.as_ref().map(|file| folder.join(file));
    let (resealed, then) = match secret_keys(&mut settings, folder)? {
        SecretKeySource::Keys(keys) if file.is_none() => {
            if keys.count() < 2 {
                let why = "SWITCHBOARD_SECRETS_KEY holds one key; put a new one before it (swkey_ and the base64 of 32 random bytes)";
                return Err(Failure::Usage(why.to_owned()));
            }
            audit_log::record_offline(database, &os_user(), "db rotate-secrets-key", "").map_err(in_use_failure)?;
            let resealed = database::reseal(database, &keys).map_err(in_use_failure)?;
            (resealed, "take the old keys out of SWITCHBOARD_SECRETS_KEY".to_owned())
        }
        SecretKeySource::Keys(_) | SecretKeySource::Beside | SecretKeySource::Untouched => {
            let file = file.unwrap_or_else(|| database::secret_key_file(database));
            audit_log::record_offline(database, &os_user(), "db rotate-secrets-key", "").map_err(in_use_failure)?;
            let resealed = database::rotate_secret_keys(database, &file).map_err(in_use_failure)?;
            (resealed, format!("the new key is in {}; keep a copy of it apart from backups", file.display()))
        }
    };
    let database::Resealed { webhooks, unread } = resealed;
    Ok(match unread {
        0 => format!("encrypted the secrets of {webhooks} webhooks anew\n{then}"),
        _ => format!(
            "encrypted the secrets of {webhooks} webhooks anew; those of {unread} cannot be read, because their key is not there, \
             and were left as they are\nthe old keys are kept, too"
        ),
    })
}

/// Removes what is no longer kept and gives the space back.
fn compact(database: &Path, limits: &Limits) -> Result<String, Failure> {
    let Compacted { before, after } = database::compact(database, limits).map_err(in_use_failure)?;
    Ok(format!(
        "removed {} tasks and {} commits from {}; {} became {}",
        before.tasks - after.tasks,
        before.commits - after.commits,
        database.display(),
        size(before.bytes),
        size(after.bytes)
    ))
}

/// Hands tasks over, if the caller confirmed it: the old owner does not find them any more.
fn assign_owner(args: &AssignOwnerArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let (from, to) = (owner(&args.from), owner(&args.to));
    if !args.yes {
        let of = args.agent.as_ref().map_or(String::new(), |agent| format!(" at {agent}"));
        let what =
            format!("this would hand the tasks of {:?}{of} over to {:?}; say --yes to do it", args.from, args.to);
        return Err(Failure::Usage(what));
    }
    let what = format!("the tasks of {:?} are handed over to {:?}", args.from, args.to);
    let assigned = if postgres::is_meant(&args.of, environment, folder)? {
        let settings = settings(&args.of, environment, folder)?;
        postgres_options::assign_owner(&settings, environment, (&from, &to), args.agent.as_deref(), &what)?
    } else {
        let database = database(&args.of, environment, folder)?;
        audit_log::record_offline(&database, &os_user(), "db assign-owner", &what).map_err(in_use_failure)?;
        database::assign_owner(&database, &from, &to, args.agent.as_deref()).map_err(in_use_failure)?
    };
    let Assigned { tasks, agents, damaged } = assigned;
    let at = if agents.is_empty() { String::new() } else { format!(" at {}", agents.join(", ")) };
    let left = if damaged > 0 {
        format!("; {damaged} are damaged and stay; see switchboard db verify")
    } else {
        String::new()
    };
    Ok(format!("handed over {tasks} tasks{at}{left}"))
}

/// `PRINCIPAL`, or `TENANT/PRINCIPAL`. A tenant has no slash in its name.
fn owner(text: &str) -> Owner {
    let (tenant, principal) = text.split_once('/').unwrap_or(("", text));
    Owner { tenant: tenant.into(), principal: principal.into() }
}

/// Deletes every task, if the caller confirmed it.
fn reset(database: &Path, really: bool) -> Result<String, Failure> {
    let files = database::files(database).map_err(Failure::runtime)?;
    if files.is_empty() {
        return Ok(format!("{} does not exist; nothing to delete", database.display()));
    }
    if !really {
        let list = list(&files);
        return Err(Failure::Usage(format!("this would delete every task for ever:\n{list}\nsay --yes to do it")));
    }
    // An empty file has no log.
    let has_data = database.metadata().is_ok_and(|metadata| metadata.len() > 0);
    let kept = if has_data { keep_audit_log(database)? } else { String::new() };
    let deleted = database::reset(database).map_err(in_use_failure)?;
    Ok(format!("deleted\n{}{kept}", list(&deleted)))
}

/// Writes the audit log to a file beside the database, with the deletion as its last entry.
fn keep_audit_log(database: &Path) -> Result<String, Failure> {
    let kept = audit_log::record_offline(database, &os_user(), "db reset", "").and_then(|()| {
        let (mut lines, mut chain) = (String::new(), String::new());
        for checked in audit_log::export(database, &mut |line| lines.extend([line.as_str(), "\n"]))? {
            chain = checked.id;
        }
        let path = PathBuf::from(format!("{}.audit-{chain}.jsonl", database.display()));
        write_private(&path, &lines).map_err(|source| FileError::Io { path: path.clone(), source })?;
        Ok(path)
    });
    match kept {
        Ok(path) => Ok(format!("\nthe audit log is kept in {}", path.display())),
        Err(error @ FileError::InUse { .. }) => Err(in_use_failure(error)),
        // A database that cannot be read is a reason to delete it.
        Err(error) => Ok(format!("\nthe audit log is not kept: {error}")),
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn list(files: &[PathBuf]) -> String {
    let lines: Vec<String> = files.iter().map(|file| format!("  {}", file.display())).collect();
    lines.join("\n")
}

/// The failure of a command that needs the database for itself, with advice if a server uses it.
fn in_use_failure(error: FileError) -> Failure {
    match &error {
        FileError::InUse { .. } => Failure::Runtime(format!("{error}; stop the server first")),
        _ => Failure::runtime(error),
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit < UNITS.len() - 1 {
        tenths /= 1024;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]) }
}

#[cfg(test)]
mod tests;
