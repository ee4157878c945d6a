//! `switchboard keys`: makes, lists, changes, publishes and removes the keys that a server signs with.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use switchboard::{KeyAlgorithm, KeyFolder, SigningKeyInfo};

use crate::config::{Environment, read_layers};
use crate::data_args::DataArgs;
use crate::failure::Failure;

pub(crate) const EXAMPLES: &str = "\
Examples:
  switchboard keys make
      The first key signs at once: within a minute, the cards of a running server
      are signed, and its public keys are at /.well-known/jwks.json.
  switchboard keys rotate
      A new key signs from now on. The old one stays published, so that cards and
      tokens that it signed can still be verified.
  switchboard keys make --id winter && switchboard keys rotate --to winter
      The same in two steps, for verifiers that look for new keys seldom: wait
      between the two until all of them have seen the new key.
  switchboard keys remove 5c0d…
      The last step, once nothing is verified with the old key any more.
  switchboard keys publish > jwks.json
      The public keys as a file, for a web server elsewhere.

Where they are:
  In the folder `keys` of the data folder, or where --keys-dir, the variable
  SWITCHBOARD_KEYS_DIR or keys_dir in the configuration say. Each key is a file
  ID.pem (PKCS#8) that only its owner can read; `active` names the one that signs.";

#[derive(Subcommand)]
pub(crate) enum KeysCommand {
    /// Make a key; the first one signs, others are published until `rotate --to` lets them sign
    Make(MakeArgs),
    /// List the keys
    List(ListArgs),
    /// Let another key sign: a new one, or the one that is named
    Rotate(RotateArgs),
    /// Print the public keys as a JSON Web Key set
    Publish(PublishArgs),
    /// Delete a key; what it signed can no longer be verified
    Remove(RemoveArgs),
}

/// Which keys.
#[derive(Args)]
pub(crate) struct KeysPlace {
    /// Folder of the keys [default: from the configuration, else `keys` in the data folder]
    #[arg(long, value_name = "DIR", conflicts_with = "data")]
    keys_dir: Option<PathBuf>,
    #[command(flatten)]
    of: DataArgs,
}

#[derive(Args)]
pub(crate) struct MakeArgs {
    /// What signatures call it [default: made from the key]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// What it signs with
    #[arg(long, value_enum, default_value = "es256")]
    algorithm: AlgorithmName,
    #[command(flatten)]
    place: KeysPlace,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: KeysPlace,
}

#[derive(Args)]
pub(crate) struct RotateArgs {
    /// The key that is to sign [default: a new one]
    #[arg(long, value_name = "ID", conflicts_with = "algorithm")]
    to: Option<String>,
    /// What the new key signs with
    #[arg(long, value_enum, default_value = "es256")]
    algorithm: AlgorithmName,
    #[command(flatten)]
    place: KeysPlace,
}

#[derive(Args)]
pub(crate) struct PublishArgs {
    #[command(flatten)]
    place: KeysPlace,
}

#[derive(Args)]
pub(crate) struct RemoveArgs {
    /// The key
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    place: KeysPlace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlgorithmName {
    Es256,
    Eddsa,
}

impl From<AlgorithmName> for KeyAlgorithm {
    fn from(name: AlgorithmName) -> Self {
        match name {
            AlgorithmName::Es256 => Self::Es256,
            AlgorithmName::Eddsa => Self::EdDsa,
        }
    }
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When the keys cannot be read or written.
pub(crate) fn run(command: &KeysCommand, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let keys = |place| place_of(place, environment, folder);
    match command {
        KeysCommand::Make(args) => {
            let made = keys(&args.place)?.make(args.id.as_deref(), args.algorithm.into()).map_err(Failure::runtime)?;
            let then = match made.is_active {
                true => "it signs from now on; a server that runs uses it within a minute, or at once after SIGHUP",
                false => "it is published, and signs after `switchboard keys rotate --to` with its id",
            };
            Ok(format!("made {}\n{then}", line(&made)))
        }
        KeysCommand::List(args) => list(&keys(&args.place)?, args.json),
        KeysCommand::Rotate(args) => {
            let now = keys(&args.place)?.rotate(args.to.as_deref(), args.algorithm.into()).map_err(Failure::runtime)?;
            Ok(format!(
                "{}\nthe other keys stay published; remove one when nothing is verified with it any more",
                line(&now)
            ))
        }
        KeysCommand::Publish(args) => keys(&args.place)?.jwk_set().map_err(Failure::runtime),
        KeysCommand::Remove(args) => {
            keys(&args.place)?.remove(&args.id).map_err(Failure::runtime)?;
            Ok(format!("removed {}", args.id))
        }
    }
}

fn list(keys: &KeyFolder, json: bool) -> Result<String, Failure> {
    let keys = keys.list().map_err(Failure::runtime)?;
    if json {
        let keys = keys.iter().map(|key| {
            serde_json::json!({"id": key.id, "algorithm": key.algorithm.as_str(), "active": key.is_active, "file": key.file})
        });
        return Ok(serde_json::Value::from_iter(keys).to_string());
    }
    if keys.is_empty() {
        return Ok("there are no keys; `switchboard keys make` makes one".to_owned());
    }
    Ok(keys.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn line(key: &SigningKeyInfo) -> String {
    let word = if key.is_active { "signs" } else { "published" };
    format!("{}  {}  {word}  {}", key.id, key.algorithm, key.file.display())
}

/// The folder that flags, environment and configuration name, in this order.
fn place_of(place: &KeysPlace, environment: &Environment, folder: &Path) -> Result<KeyFolder, Failure> {
    if let Some(dir) = &place.keys_dir {
        return Ok(KeyFolder::at(folder.join(dir)));
    }
    let (server, _) = read_layers(&place.of.settings(), place.of.config.as_deref(), environment, folder).server()?;
    match server.keys_dir() {
        Some(dir) => Ok(KeyFolder::at(folder.join(dir))),
        None => Err(Failure::Usage(
            "the configuration keeps tasks in memory and names no folder for keys; name one with --keys-dir".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests;
