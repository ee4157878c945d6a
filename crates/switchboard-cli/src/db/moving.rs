//! `switchboard db move`: everything from one database into another, empty one.

use std::path::Path;

use super::args::MoveArgs;
use crate::config::Environment;
use crate::failure::Failure;

#[cfg(not(feature = "postgres"))]
pub(super) fn run(_: &MoveArgs, _: &Environment, _: &Path) -> Result<String, Failure> {
    Err(Failure::Usage("this build has no PostgreSQL (its feature `postgres` is off)".to_owned()))
}

#[cfg(feature = "postgres")]
pub(super) use of_build::run;

#[cfg(feature = "postgres")]
mod of_build {
    use switchboard::moving::{self, Moved, Place, Wish};
    use switchboard::{SecretKeySource, database};

    use super::{Environment, Failure, MoveArgs, Path};
    use crate::config::REMOTE_AGENTS_NAME;
    use crate::config::{DATABASE_NAME, ServerSettings, SettingFlags, read_layers, secret_keys};
    use crate::db::copy_cards_into;
    use crate::process::os_user;
    use crate::relays::remote_agent_files;
    use crate::{output, postgres_options};

    pub(crate) fn run(args: &MoveArgs, environment: &Environment, folder: &Path) -> Result<String, Failure> {
        let place = |named: &str, schema: Option<&str>| place(args, named, schema, environment, folder);
        if let Some(named) = &args.reopen {
            let reopened = place(named, args.from_schema.as_deref())?;
            return Ok(match moving::reopen(&reopened).map_err(Failure::runtime)? {
                true => format!("{reopened} can be served again; what was moved from it is there twice now"),
                false => format!("{reopened} was not moved; nothing to do"),
            });
        }
        let (Some(from), Some(to)) = (&args.from, &args.to) else {
            return Err(Failure::Usage("name both places: --from and --to".to_owned()));
        };
        let (from, to) = (place(from, args.from_schema.as_deref())?, place(to, args.to_schema.as_deref())?);
        if is_same(&from, &to, args) {
            return Err(Failure::Usage("--from and --to name the same place".to_owned()));
        }
        let flags = SettingFlags::store(None, None);
        let keys = secret_keys(&mut settings(&flags, args, environment, folder)?, folder)?;
        let (source, target) = (from.clone(), to.clone());
        let is_key_beside = matches!(keys, SecretKeySource::Beside);
        let wish = Wish { from, to, keys, without_secrets: args.without_secrets, who: os_user() };
        let moved = moving::move_database(wish, &mut |line| output::remark(line)).map_err(Failure::runtime)?;
        let Moved { checked, was_resumed, unread_secrets } = moved;
        let again = if was_resumed { "finished moving" } else { "moved" };
        let mut text = format!(
            "{again} {} tasks with {} commits, {} webhooks, {} accepted messages, {} calls and {} entries of the audit log from {source} to \
             {target}; each was compared, and the target verified",
            checked.tasks, checked.commits, checked.webhooks, checked.accepted, checked.calls, checked.audit_entries
        );
        if unread_secrets > 0 {
            text.push_str(&format!(
                "\nthe secrets of {unread_secrets} webhooks cannot be read: they are posted to without them"
            ));
        }
        text.push_str(&after(&source, &target, is_key_beside, folder)?);
        Ok(text)
    }

    fn settings(
        flags: &SettingFlags,
        args: &MoveArgs,
        environment: &Environment,
        folder: &Path,
    ) -> Result<ServerSettings, Failure> {
        Ok(read_layers(flags, args.config.as_deref(), environment, folder).server()?.0)
    }

    fn place(
        args: &MoveArgs,
        named: &str,
        schema: Option<&str>,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Place, Failure> {
        if !named.contains("://") {
            return Ok(Place::File(folder.join(named).join(DATABASE_NAME)));
        }
        let flags = SettingFlags::store(Some(named), schema);
        postgres_options::place(&settings(&flags, args, environment, folder)?, environment)
    }

    fn is_same(from: &Place, to: &Place, args: &MoveArgs) -> bool {
        match (from, to) {
            (Place::File(from), Place::File(to)) => from == to,
            (Place::Postgres(from), Place::Postgres(to)) => {
                args.from == args.to && from.schema_name() == to.schema_name()
            }
            _ => false,
        }
    }

    /// What is in files beside the database: the key of the secrets, and accepted cards, which are copied into another data folder.
    fn after(from: &Place, to: &Place, is_key_beside: bool, folder: &Path) -> Result<String, Failure> {
        let Place::File(database) = from else { return Ok(String::new()) };
        let mut text = String::new();
        let key = database::secret_key_file(database);
        if is_key_beside && key.exists() {
            let key = key.display();
            text.push_str(&match to {
                Place::Postgres(_) => {
                    format!("\nservers need the key of the secrets of webhooks: SWITCHBOARD_SECRETS_KEY_FILE={key}")
                }
                Place::File(target) => {
                    format!(
                        "\ncopy the key of the secrets of webhooks: {key} to {}",
                        database::secret_key_file(target).display()
                    )
                }
            });
        }
        let data = database.parent().unwrap_or(folder);
        let cards = remote_agent_files(data).map_err(Failure::Runtime)?;
        if cards.is_empty() {
            return Ok(text);
        }
        let (count, place) = (cards.len(), data.join(REMOTE_AGENTS_NAME));
        match to {
            Place::Postgres(_) => text.push_str(&format!(
                "\naccepted cards of {count} agents are files and stay in {}: servers on PostgreSQL have no data folder for them",
                place.display()
            )),
            Place::File(target) => {
                let target = target.parent().unwrap_or(folder).join(REMOTE_AGENTS_NAME);
                copy_cards_into(&cards, &target).map_err(|error| Failure::Runtime(format!("{}: {error}", target.display())))?;
                text.push_str(&format!("\naccepted cards of {count} agents: copied to {}", target.display()));
            }
        }
        Ok(text)
    }
}
